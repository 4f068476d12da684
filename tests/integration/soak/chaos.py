"""The faults of a soak, one method each, picked at random."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from streamskit import LogAndContinue, StreamsError, faults
from streamskit.broker import EmbeddedBroker
from streamskit.environment.processes import eventually, wait_until
from streamskit.faults import Driver
from streamskit.queries.instances import Instances
from streamskit.queries.metadata import HostInfo
from tests.integration.soak.load import Load
from tests.integration.soak.program import MOST_RECORDS, PARTITIONS, program
from tests.integration.soak.watch import WORKER, command

APPLICATION = "soak"

SETTLED = 90.0
"""For how many seconds an application is waited for that has to notice something."""


class Chaos:
    """Breaks what runs, and mends it.

    Left out is what cannot be survived without a loss or without `clean_up()`: a topic that is made anew, and
    partitions that are added.

    Args:
        broker: the broker.
        load: writes the records.
        folder: of the test's own.
        guarantee: the application's `processing_guarantee`.
        chance: what decides.
    """

    def __init__(self, broker: EmbeddedBroker, load: Load, folder: Path, guarantee: str, chance: random.Random) -> None:
        self.broker, self.load, self.chance = broker, load, chance
        self._home, self._guarantee, self._moves = folder, guarantee, 0
        self.calls = folder / "calls.txt"
        self.state_dir = folder / "state-0"
        self.driver = self._made()
        self._catalogue = folder / "catalogue"
        self.instances = Instances(
            APPLICATION, broker.bootstrap_servers, standby_replicas=1, applications=self._catalogue
        )
        self.lasting: HostInfo | None = None
        self.logs: list[str] = []
        self.done: Counter[str] = Counter()
        self.notes: list[str] = []
        lasting: list[Callable[[], None]] = [
            self.driver_stopped, self.broker_killed, self.broker_paused, self.network_stutters, self.poison,
            self.large_records, self.partition_lags, self.silence, self.instance_killed, self.started_twice,
        ]  # fmt: skip
        ending: list[Callable[[], None]] = [
            self.driver_killed, self.driver_killed_in_a_batch, self.java_killed, self.python_worker_killed,
            self.closed_and_started, self.folder_moved, self.folder_lost, self.checkpoint_damaged,
        ]  # fmt: skip
        self.faults = {fault.__name__: fault for fault in lasting + ending}
        self.leave_driver_alive = {fault.__name__ for fault in lasting}
        self._bag: list[str] = []

    def start(self) -> None:
        """Start the application, and two instances; one of them is never killed."""
        self.driver.start()
        there = self._catalogue / APPLICATION
        there.mkdir(parents=True)
        for file in (self.state_dir / APPLICATION).iterdir():
            if file.is_file():
                shutil.copy2(file, there)  # what the instances read, wherever the application's folder moves
        self.lasting = self.instances.start()
        self.instances.start()

    def stop(self) -> None:
        """End all that was started."""
        self.logs.append(self.driver.log())
        self.driver.stop()
        self.instances.stop()

    def check_lives(self) -> None:
        """Fail where the application has ended though nothing was done that ends it."""
        if not self.driver.is_running or self.driver.state not in ("RUNNING", "REBALANCING"):
            raise AssertionError(f"the application is {self.driver.state}: {self.driver.log()[-3000:]}")

    def break_something(self, driver_may_end: bool) -> str:
        """Break one thing, each of them once before one comes a second time; return which."""
        possible = set(self.faults) if driver_may_end else self.leave_driver_alive
        if not any(name in possible for name in self._bag):
            self._bag = self.chance.sample(sorted(self.faults), len(self.faults))
        name = next(each for each in self._bag if each in possible)
        self._bag.remove(name)
        self.faults[name]()
        self.done[name] += 1
        return name

    # Faults that leave the driver's process alive.

    def driver_stopped(self) -> None:
        """All processes of the application stand still, and go on: a laptop sleeps."""
        family = self._family()
        for each in family:
            _signal(each, signal.SIGSTOP)
        time.sleep(self.chance.uniform(1, 25))
        for each in reversed(family):
            _signal(each, signal.SIGCONT)

    def broker_killed(self) -> None:
        """The broker dies, and comes back on its data."""
        self.broker.kill()
        time.sleep(self.chance.uniform(0, 15))
        self.broker.start()

    def broker_paused(self) -> None:
        """The broker keeps its connections and is silent for a while."""
        self.broker.pause()
        time.sleep(self.chance.uniform(3, 20))
        self.broker.resume()

    def network_stutters(self) -> None:
        """The broker is silent for a moment, and again, as on a bad line."""
        for _ in range(10):
            self.broker.pause()
            time.sleep(self.chance.uniform(0.1, 1))
            self.broker.resume()
            time.sleep(self.chance.uniform(0.1, 1))

    def poison(self) -> None:
        """A record that no serde reads."""
        self.load.add_poison()

    def large_records(self) -> None:
        """Many records of 100 kB and more at once."""
        self.load.add_large(self.chance.randrange(50, 250))

    def partition_lags(self) -> None:
        """A partition of all topics gets nothing for a while, and then all at once."""
        self.load.hold_back(self.chance.randrange(PARTITIONS), self.chance.uniform(10, 40))

    def silence(self) -> None:
        """Nobody writes anything for a while; only the clock ticks."""
        self.load.resting.set()
        time.sleep(self.chance.uniform(5, 15))
        self.load.resting.clear()

    def instance_killed(self) -> None:
        """An instance that answers queries dies, and another one comes."""
        for each in [each for each in self.instances if each != self.lasting]:
            self.instances.kill(each)
        self.instances.start()

    def started_twice(self) -> None:
        """The application is started a second time: refused."""
        with pytest.raises(StreamsError, match="is running already"), self._made():
            pass

    # Faults after which the driver's process is another one.

    def driver_killed(self) -> None:
        """The driver and its Java die, wherever they are."""
        self.driver.kill()
        time.sleep(self.chance.choice([0, 0, 20]))
        self._start()

    def driver_killed_in_a_batch(self) -> None:
        """The driver dies a moment after a micro-batch was planned."""
        time.sleep(self.chance.uniform(0, 3))
        self._await_planned()
        time.sleep(self.chance.uniform(0, 0.5))
        self.driver.kill()
        self._start()

    def java_killed(self) -> None:
        """Spark's Java dies alone: the application says so, and the next one goes on."""
        self._end_of(lambda each: "java" in command(each), "Spark's Java")

    def python_worker_killed(self) -> None:
        """A Python process of Spark's dies: its query fails, and without a handler the application ends."""
        before = self.driver.pid
        # After a start the first micro-batch makes them, which takes its time on a busy machine.
        assert eventually(lambda: bool(self._workers()), 90), "Spark has had no Python process for 90 s"
        _signal(self._workers()[0], signal.SIGKILL)
        time.sleep(5)
        assert self.driver.pid == before
        if not eventually(lambda: self.driver.state == "RUNNING", 1):
            self._again()

    def closed_and_started(self) -> None:
        """An orderly end, and a start."""
        self._again()

    def folder_moved(self) -> None:
        """The application's folder is moved while it is closed."""
        self.driver.stop()
        self._moves += 1
        there = self._home / f"state-{self._moves}"
        self.state_dir.rename(there)
        self.state_dir = there
        self.logs.append(self.driver.log())
        self.driver = self._made()
        self._start()

    def folder_lost(self) -> None:
        """The application dies, or is closed, and its folder is gone: it is rebuilt from the copies in Kafka."""
        self.chance.choice([self.driver.kill, self.driver.stop])()
        self.logs.append(self.driver.log())
        faults.delete_state(APPLICATION, "application", self.state_dir)
        for aside in self.state_dir.glob(".aside-*"):
            shutil.rmtree(aside)
        self._start()

    def checkpoint_damaged(self) -> None:
        """A file of the checkpoint is damaged between two runs: it is named, or not needed; then it is whole again."""
        self.driver.stop()
        kind = self.chance.choice(["offsets", "commits", "state", "metadata"])
        how = self.chance.choice(["flip", "truncate"])
        fault = faults.corrupt_checkpoint(APPLICATION, kind, how, self.state_dir)
        refusal = self._refused()
        if refusal is not None:
            assert "damaged" in refusal, f"{fault.description} {refusal}"
        else:
            if eventually(lambda: self.driver.state != "RUNNING", 20):
                self.driver.stop()
            else:
                self.notes.append(f"{kind} {how}: went on")
                return
        fault.undo()
        self._start()

    def _refused(self) -> str | None:
        """Start the application; return why it was refused, if it was."""
        try:
            self.driver.start()
        except StreamsError as refusal:
            return str(refusal)
        return None

    # What they are made of.

    def _workers(self) -> list[psutil.Process]:
        return [each for each in self._family() if WORKER in command(each)]

    def _made(self) -> Driver:
        return Driver(
            program(self.calls), APPLICATION, self.broker.bootstrap_servers, state_dir=self.state_dir,
            processing_guarantee=self._guarantee, max_records_per_batch=MOST_RECORDS, commit_interval="1 second",
            deserialization_handler=LogAndContinue("dead"), task_timeout="10 minutes",
        )  # fmt: skip

    def _start(self) -> None:
        self.driver.start()

    def _again(self) -> None:
        self.driver.stop()
        self._start()

    def _family(self) -> list[psutil.Process]:
        process = psutil.Process(self.driver.pid)
        return [process, *process.children(recursive=True)]

    def _end_of(self, which: Callable[[psutil.Process], bool], what: str) -> None:
        """Kill processes of the driver's, and start it again when the application has said so."""
        victims = [each for each in self._family()[1:] if which(each)]
        assert victims, f"{what} was not found"
        for each in victims:
            _signal(each, signal.SIGKILL)
        has_ended = f"the end of an application without {what}"
        wait_until(lambda: self.driver.state in ("ERROR", "NOT_RUNNING"), has_ended, SETTLED)
        self._again()

    def _await_planned(self) -> None:
        """Wait until one more micro-batch is planned; a moment is enough where nothing is to be done."""

        def planned() -> int:
            return len(list(self.state_dir.glob(f"{APPLICATION}/*/offsets/[0-9]*")))

        before = planned()
        eventually(lambda: planned() > before, 10)


def _signal(process: psutil.Process, number: int) -> None:
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return
