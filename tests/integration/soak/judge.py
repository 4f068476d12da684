"""Holds what an application has made against what was written: lost, doubled, or wrong."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from streamskit import QueryClient, Serdes, Windowed
from streamskit.broker.base import Broker
from streamskit.faults import Driver
from streamskit.queries.instances import Instances
from tests.integration.soak.load import Load
from tests.integration.soak.program import LONG, SIZE, STRING, lives_and_turns, rate, settled_ids

SHOWN = 5


class Judge:
    """Compares results with the records that were written, and collects what is wrong in sentences.

    Args:
        broker: where the results are.
        driver: the application, which has processed all.
        load: what was written, settled with the broker.
        exactly_once: whether nothing may be there twice.
    """

    def __init__(self, broker: Broker, driver: Driver, load: Load, exactly_once: bool) -> None:
        self._broker, self._driver, self._load, self._exactly_once = broker, driver, load, exactly_once
        self.wrong: list[str] = []
        self.doubled: Counter[str] = Counter()

    def judge(self, called: list[int]) -> None:
        """Look at all results.

        Args:
            called: the ids that `foreach` was called with.
        """
        numbers = self._load.numbers
        ids = [number for _, number, _, _ in numbers]
        self._same("settled", settled_ids(self._settled()), ids)  # first: its clock goes on
        self._same("copies", [value for _, value in self._read("copies", value=LONG)], ids)
        self._tables()
        costs = [number * 10 + rate(int(key[1:])) for key, number, _, _ in numbers]
        self._same("costs", [value for _, value in self._read("costs", value=LONG)], costs)
        self._same("paid", [value for _, value in self._read("paid", value=LONG)], self._load.paid)
        self._same("digests", [value for _, value in self._read("digests", value=STRING)], self._load.digests)
        self._same("dead letters", [value for _, value in self._read("dead", value=Serdes.byte_array())],
                   self._load.poison)  # fmt: skip
        self._windows()
        self._lost("calls", Counter(called), Counter(ids))

    def instances(self, instances: Instances) -> None:
        """Look at what each instance answers."""
        expected = self._tallies()
        for server in instances:
            store, until = QueryClient(server.url, retry="60 seconds").store("tallies"), time.monotonic() + 60
            while (found := dict(store.all())) != expected and time.monotonic() < until:
                time.sleep(1)
            self._equal(f"tallies at {server}", found, expected)

    def _read(self, topic: str, **serdes: Any) -> Iterator[tuple[Any, Any]]:
        rows = self._broker.consume(topic, isolation="read_committed", **serdes)
        return zip(rows["key"], rows["value"], strict=True)

    def _tallies(self) -> dict[str, dict[str, int]]:
        found: dict[str, list[int]] = {}
        for key, number, _, _ in self._load.numbers:
            found.setdefault(key, []).append(number)
        return {key: {"least": min(each), "most": max(each), "n": len(each)} for key, each in found.items()}

    def _tables(self) -> None:
        tallies = self._tallies()
        self._equal("tallies", dict(self._driver.rows("tallies")), tallies)
        totals: Counter[str] = Counter()
        digits: Counter[str] = Counter()
        for key, number, _, _ in self._load.numbers:
            totals[key] += number
            digits[str(number % 10)] += 1
        self._equal("totals", dict(self._driver.rows("totals")), dict(totals))
        found = dict(self._driver.rows("digits"))
        if self._exactly_once:
            self._equal("digits", found, dict(digits))
        else:  # behind a repartition topic, what was written twice counts twice
            self._lost("digits", Counter(found), digits)

    def _windows(self) -> None:
        """Each window that has closed by the stream time of its partition came out, once, with its count."""
        times = self._load.stream_times()
        expected: Counter[tuple[str, int]] = Counter()
        for key, _, at, partition in self._load.numbers:
            start = at // SIZE * SIZE
            if start + SIZE <= times[partition]:
                expected[key, start] += 1
        keys = Serdes.time_windowed(STRING, SIZE)
        written: list[tuple[tuple[str, int], int]] = [
            ((key.key, key.start), count) for key, count in self._read("closed", key=keys, value=LONG)
            if isinstance(key, Windowed)
        ]  # fmt: skip
        self._same("closed windows", written, list(expected.items()))

    def _settled(self) -> list[str]:
        """Return the results of `Settling` and what is left in its stores, when its clock has settled all it has."""
        until = time.monotonic() + (60 if self._exactly_once else 15)
        while self._driver.rows("by-clock") and time.monotonic() < until:
            time.sleep(0.5)
        written = [value for _, value in self._read("settled", value=STRING)]
        if self._exactly_once:
            self._same("turns", lives_and_turns(written), list(set(lives_and_turns(written))))
        left = [value for store in ("by-clock", "by-stream-time") for _, value in self._driver.rows(store)]
        return written + left

    def _same(self, what: str, found: list[Any], expected: list[Any]) -> None:
        """Nothing is missing, nothing is there that should not be; under exactly once, nothing is there twice."""
        had, wanted = Counter(found), Counter(expected)
        self._lost(what, had, wanted)
        if strange := list(had.keys() - wanted.keys()):
            self.wrong.append(f"{what}: {len(strange):,} that nobody has written, such as {strange[:SHOWN]}")
        doubled = had - wanted
        self.doubled[what] = doubled.total()
        if self._exactly_once and doubled:
            self.wrong.append(f"{what}: {doubled.total():,} too many, such as {list(doubled)[:SHOWN]}")

    def _lost(self, what: str, had: Counter[Any], wanted: Counter[Any]) -> None:
        if lost := wanted - had:
            self.wrong.append(f"{what}: {lost.total():,} of {wanted.total():,} lost, such as {list(lost)[:SHOWN]}")

    def _equal(self, what: str, found: dict[Any, Any], expected: dict[Any, Any]) -> None:
        wrong = [(key, found.get(key), expected.get(key)) for key in found.keys() | expected.keys()
                 if found.get(key) != expected.get(key)]  # fmt: skip
        if wrong:
            self.wrong.append(f"{what}: {len(wrong):,} rows are wrong, such as {wrong[:SHOWN]} (key, is, should be)")
