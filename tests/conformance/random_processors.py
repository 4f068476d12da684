"""The processors and transformers of programs made up at random, as in `RandomPrograms.java`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    ValueTransformerWithKey,
    Windowed,
)


@dataclass(eq=False)
class WithStore:
    """What has a store, by its name: a part of processors and transformers."""

    store: str

    def init(self, context: ProcessorContext) -> None:
        super().init(context)  # type: ignore[misc]  # of the processor that this is a part of
        self.kept: Any = context.state_store(self.store)


@dataclass(eq=False)
class Counting(WithStore, Processor):
    """Adds up a key's values in a store, and says so; or at punctuations."""

    kind: str
    number: int

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        times = {"stream time": PunctuationType.STREAM_TIME, "wall clock": PunctuationType.WALL_CLOCK_TIME}
        if self.kind in times:
            context.schedule(10 * (self.number + 1), times[self.kind], self.tick)

    def tick(self, timestamp: int) -> None:
        for key, value in self.kept.all():
            self.context.forward(Record(key, value, timestamp))

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        if record.value is None:
            self.kept.delete(record.key)
            return
        now = (self.kept.get(record.key) or 0) + record.value
        self.kept.put(record.key, now)
        if self.kind == "failing" and now % 3 == 0:
            raise ValueError(f"{now} can be divided by three")
        if self.kind in ("each", "failing"):
            self.context.forward(record.with_value(now))
            if now % 2 == self.number % 2:
                self.context.forward(record.with_value(-now).with_timestamp(record.timestamp + self.number))


@dataclass(eq=False)
class Windowing(WithStore, Processor):
    """Adds values up in windows of a store of its own, and forwards the windows that it finds around the record."""

    kind: str
    size: int

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        time = record.timestamp
        start = time - time % self.size
        if record.value is None:
            self.kept.put(record.key, None, start)
        else:
            self.kept.put(record.key, (self.kept.fetch(record.key, start) or 0) + record.value, start)
        for key, begin, value in self.found(record.key, time - 3 * self.size, time + self.size):
            self.context.forward(record.with_key(key).with_value(value * 1000 + begin // self.size % 1000))

    def found(self, key: str, first: int, last: int) -> Iterator[tuple[str, int, int]]:
        """Return the key, start and value of windows that begin between two times."""
        match self.kind:
            case "fetch":
                yield from ((key, start, value) for start, value in self.kept.fetch(key, first, last))
                return
            case "backward":
                yield from ((key, start, value) for start, value in self.kept.backward_fetch(key, first, last))
                return
            case "range":
                rows = self.kept.fetch_range("a", "b", first, last)
            case "all":
                rows = self.kept.fetch_all(first, last)
            case _:
                rows = self.kept.all()
        yield from ((window.key, window.start, value) for window, value in rows)


@dataclass(eq=False)
class Sessioning(WithStore, Processor):
    """Adds values up in sessions of a store of its own; a record without a value asks for those around it."""

    kind: str
    gap: int

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        time, value = record.timestamp, record.value
        if value is None:
            self.tell(record)
            return
        start = end = time
        for session, so_far in list(self.kept.find_sessions(record.key, time - self.gap, time + self.gap)):
            self.kept.remove(session)
            start, end, value = min(start, session.start), max(end, session.end), value + so_far
        self.kept.put(Windowed(record.key, start, end), value)
        if self.kind == "each":
            self.context.forward(record.with_value(value * 1000 + end - start))
        else:
            self.tell(record)

    def tell(self, record: Record) -> None:
        """Forward sessions: all of the key, or those of two keys around the record."""
        if self.kind == "range":
            near = record.timestamp - self.gap, record.timestamp + self.gap
            rows = self.kept.find_sessions_range("a", "b", *near)
        else:
            rows = self.kept.fetch(record.key)
        for session, value in rows:
            told = value * 1000 + session.end - session.start
            self.context.forward(record.with_key(session.key).with_value(told))


@dataclass(eq=False)
class Versioning(WithStore, Processor):
    """Keeps versions of a key's value, and forwards until when each holds, and what held before."""

    number: int

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        if record.value is None and self.number % 2:
            deleted = self.kept.delete(record.key, record.timestamp)
            self.context.forward(record.with_value(None if deleted is None else deleted.value))
            return
        valid_to = self.kept.put(record.key, record.value, record.timestamp)
        self.context.forward(record.with_value(max(valid_to, -2)))
        for found in (
            self.kept.get(record.key),
            self.kept.get(record.key, record.timestamp - 5 * (self.number + 1)),
        ):
            if found is not None:
                self.context.forward(record.with_value(found.value).with_timestamp(found.timestamp))


@dataclass(eq=False)
class Fixing(WithStore, FixedKeyProcessor):
    """Numbers a key's values, and forwards some of them twice."""

    number: int

    def process(self, record: FixedKeyRecord) -> None:
        key = "none" if record.key is None else record.key
        count = (self.kept.get(key) or 0) + 1
        self.kept.put(key, count)
        value = (0 if record.value is None else record.value) * 10 + count
        self.context.forward(record.with_value(value))
        if count % 2 == self.number % 2:
            self.context.forward(record.with_value(None).with_timestamp(record.timestamp + self.number))


@dataclass(eq=False)
class Numbering(WithStore, ValueTransformerWithKey):
    """Numbers the updates of a row; what it is called for shows in the numbers."""

    def transform(self, key: str, value: int | None) -> int | None:
        count = (self.kept.get(key) or 0) + 1
        self.kept.put(key, count)
        return None if value is None else value * 10 + count


@dataclass(eq=False)
class Looking(WithStore, Processor):
    """Forwards what a table's store has for each record's key, or how many rows it has."""

    def process(self, record: Record) -> None:
        found = None if record.key is None else self.kept.get(record.key)
        if found is None:
            self.context.forward(record.with_value(sum(1 for _ in self.kept.all())))
        else:
            self.context.forward(record.with_value(found.value).with_timestamp(found.timestamp))


@dataclass(eq=False)
class Doubling(WithStore, Processor):
    """Fills a global store with twice the values of its topic."""

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.kept.put(record.key, None if record.value is None else record.value * 2)


@dataclass(eq=False)
class Asking(WithStore, Processor):
    """Forwards what a global store has for each record's letter."""

    def process(self, record: Record) -> None:
        letter = None if record.value is None else "abcd"[record.value % 4]
        found = None if letter is None else self.kept.get(letter)
        self.context.forward(record.with_value(found))
