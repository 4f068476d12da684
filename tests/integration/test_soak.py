"""`make soak`: a program of everything that keeps state, while faults are picked at random; nothing may be lost.

STREAMSKIT_SOAK_MINUTES says for how long in all, 60 if not given, half of it for each processing guarantee.
STREAMSKIT_SOAK_SEED repeats a run, as far as time allows: its number is printed.
"""

import os
import random
import threading
import time
from pathlib import Path

import pytest

from streamskit import QueryClient, StreamsRebalancingError
from streamskit.broker import EmbeddedBroker
from tests.integration.kafka_defaults import KAFKA_DEFAULTS
from tests.integration.soak.chaos import Chaos
from tests.integration.soak.judge import Judge
from tests.integration.soak.load import Load
from tests.integration.soak.watch import WORKER_LIMIT, Watch

SECONDS = 60 * float(os.environ.get("STREAMSKIT_SOAK_MINUTES", "60")) / 2
SEED = int(os.environ.get("STREAMSKIT_SOAK_SEED", "0")) or random.randrange(1, 10**6)

DRIVER_ENDS_BEFORE = 0.6
"""For which part of the time faults may end the driver's process; then growth is measured in one that lives on."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


class Asking:
    """Asks instances for keys; an answer may be behind, but never wrong."""

    def __init__(self, chaos: Chaos, load: Load) -> None:
        self._instances, self._load = chaos.instances, load
        self.answers, self.refusals, self.wrong = 0, 0, list[str]()
        self._known: set[str] = set()

    def run(self) -> None:
        while not self._load.stopping.wait(0.2):
            servers, numbers = list(self._instances), self._load.numbers
            if not servers or not numbers:
                continue
            server, (key, *_) = random.choice(servers), random.choice(numbers)
            try:
                row = QueryClient(server.url, timeout="3 seconds", retry="0 seconds").store("tallies").get(key)
            except StreamsRebalancingError:
                self.refusals += 1
                self._known.add(str(server))
                continue
            except Exception as failure:
                # One that is just starting cannot answer yet; one that has answered may fall silent by dying only, and
                # a connection may break before its process is seen to be gone.
                time.sleep(1)
                if str(server) in self._known and server in list(self._instances):
                    self.wrong.append(f"{key} at {server}: {failure!r}")
                continue
            self.answers += 1
            self._known.add(str(server))
            if row is not None and not (0 <= row["least"] <= row["most"] < len(self._load.numbers) and row["n"] >= 1):
                self.wrong.append(f"{key} at {server}: {row}")


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_nothing_is_lost_and_nothing_grows_while_everything_fails_at_random(guarantee: str, tmp_path: Path) -> None:
    print(f"\n{guarantee}: STREAMSKIT_SOAK_SEED={SEED}, {SECONDS:.0f} s")
    chance = random.Random(SEED)
    with EmbeddedBroker(data_dir=tmp_path / "broker", settings=KAFKA_DEFAULTS) as broker:
        Load.create_topics(broker)
        load = Load(broker, random.Random(SEED))
        load.write_table()
        chaos = Chaos(broker, load, tmp_path, guarantee, chance)
        watch = Watch(broker, lambda: chaos.driver, lambda: chaos.state_dir)
        asking = Asking(chaos, load)
        threads = [threading.Thread(target=work, daemon=True) for work in (load.run, asking.run, watch.run)]
        try:
            chaos.start()
            for thread in threads:
                thread.start()
            began = time.monotonic()
            settled = _break_things(chaos, chance)
            load.stopping.set()
            for thread in threads[:2]:
                thread.join(600)
                assert not thread.is_alive(), f"{thread} has not ended 10 minutes after it was to stop"
            _say(began, "all is written")
            chaos.driver.await_processed("15 minutes")
            _say(began, "all is processed")
            watch.stopping.set()
            load.settle(broker)
            judge = Judge(broker, chaos.driver, load, guarantee == "exactly_once")
            judge.judge([int(line) for line in chaos.calls.read_text().split()])
            _say(began, "results were compared")
            judge.instances(chaos.instances)
        finally:
            load.stopping.set()
            watch.stopping.set()
            chaos.stop()
            (tmp_path / "driver.log").write_text("\n".join(chaos.logs))
    sizes = (f"{what} {first:.0f} {second:.0f}" for what, (first, second, _) in watch.growth(settled).items())
    print(
        f"{len(load.numbers):,} numbers, {load.orders:,} orders, {len(load.blobs):,} large records",
        f"{len(load.refused)} records that the broker answered with an error; {load.notes or 'all others are there'}",
        f"done: {dict(chaos.done)} {chaos.notes}",
        f"written twice: {dict(judge.doubled)}; {asking.answers} answers, {asking.refusals} refusals",
        f"the largest Python process had {watch.largest_worker:.0f} MB; sizes in both halves of the last "
        f"{time.monotonic() - settled:.0f} s: {', '.join(sizes)}",
        sep="\n",
    )
    assert load.failure is None
    assert judge.wrong == []
    assert asking.wrong == []
    assert asking.answers > SECONDS / 2
    assert 0 < watch.largest_worker < WORKER_LIMIT
    assert watch.too_much(settled) == {}


def _break_things(chaos: Chaos, chance: random.Random) -> float:
    """Break one thing after the other; return since when the driver's process has been one and the same."""
    began, settled = time.monotonic(), 0.0
    while (passed := time.monotonic() - began) < SECONDS:
        may_end = passed < SECONDS * DRIVER_ENDS_BEFORE
        if not may_end and not settled:
            settled = time.monotonic()
        at = time.monotonic()
        what = chaos.break_something(may_end)
        _say(began, f"{what}, {time.monotonic() - at:.0f} s")
        until = time.monotonic() + chance.uniform(3, 15)
        while time.monotonic() < until:
            chaos.check_lives()
            time.sleep(0.5)
    return settled or time.monotonic()


def _say(began: float, what: str) -> None:
    print(f"  {time.monotonic() - began:5.0f} s {what}", flush=True)
