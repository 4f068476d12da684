"""The processors and transformers of programs made up at random, as in `RandomPrograms.java`."""

from collections.abc import Iterator

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


class Counting(Processor):
    """Adds up a key's values in a store, and says so; or at punctuations."""

    def __init__(self, store: str, kind: str, number: int) -> None:
        self.store, self.kind, self.number = store, kind, number

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.state_store(self.store)
        times = {"stream time": PunctuationType.STREAM_TIME, "wall clock": PunctuationType.WALL_CLOCK_TIME}
        if self.kind in times:
            context.schedule(10 * (self.number + 1), times[self.kind], self.tick)

    def tick(self, timestamp: int) -> None:
        for key, value in self.counts.all():
            self.context.forward(Record(key, value, timestamp))

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        if record.value is None:
            self.counts.delete(record.key)
            return
        now = (self.counts.get(record.key) or 0) + record.value
        self.counts.put(record.key, now)
        if self.kind == "each":
            self.context.forward(record.with_value(now))
            if now % 2 == self.number % 2:
                self.context.forward(record.with_value(-now).with_timestamp(record.timestamp + self.number))


class Windowing(Processor):
    """Adds values up in windows of a store of its own, and forwards the windows that it finds around the record."""

    def __init__(self, store: str, kind: str, size: int) -> None:
        self.store, self.kind, self.size = store, kind, size

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.windows = context.state_store(self.store)

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        time = record.timestamp
        start = time - time % self.size
        if record.value is None:
            self.windows.put(record.key, None, start)
        else:
            self.windows.put(record.key, (self.windows.fetch(record.key, start) or 0) + record.value, start)
        for key, begin, value in self.found(record.key, time - 3 * self.size, time + self.size):
            self.context.forward(record.with_key(key).with_value(value * 1000 + begin // self.size % 1000))

    def found(self, key: str, first: int, last: int) -> Iterator[tuple[str, int, int]]:
        """Return the key, start and value of windows that begin between two times."""
        match self.kind:
            case "fetch":
                yield from ((key, start, value) for start, value in self.windows.fetch(key, first, last))
                return
            case "backward":
                yield from ((key, start, value) for start, value in self.windows.backward_fetch(key, first, last))
                return
            case "range":
                rows = self.windows.fetch_range("a", "b", first, last)
            case "all":
                rows = self.windows.fetch_all(first, last)
            case _:
                rows = self.windows.all()
        yield from ((window.key, window.start, value) for window, value in rows)


class Sessioning(Processor):
    """Adds values up in sessions of a store of its own; a record without a value asks for those around it."""

    def __init__(self, store: str, kind: str, gap: int) -> None:
        self.store, self.kind, self.gap = store, kind, gap

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.sessions = context.state_store(self.store)

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        time, value = record.timestamp, record.value
        if value is None:
            self.tell(record)
            return
        start = end = time
        for session, so_far in list(self.sessions.find_sessions(record.key, time - self.gap, time + self.gap)):
            self.sessions.remove(session)
            start, end, value = min(start, session.start), max(end, session.end), value + so_far
        self.sessions.put(Windowed(record.key, start, end), value)
        if self.kind == "each":
            self.context.forward(record.with_value(value * 1000 + end - start))
        else:
            self.tell(record)

    def tell(self, record: Record) -> None:
        """Forward sessions: all of the key, or those of two keys around the record."""
        if self.kind == "range":
            near = record.timestamp - self.gap, record.timestamp + self.gap
            rows = self.sessions.find_sessions_range("a", "b", *near)
        else:
            rows = self.sessions.fetch(record.key)
        for session, value in rows:
            told = value * 1000 + session.end - session.start
            self.context.forward(record.with_key(session.key).with_value(told))


class Versioning(Processor):
    """Keeps versions of a key's value, and forwards until when each holds, and what held before."""

    def __init__(self, store: str, number: int) -> None:
        self.store, self.number = store, number

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.versions = context.state_store(self.store)

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        if record.value is None and self.number % 2:
            deleted = self.versions.delete(record.key, record.timestamp)
            self.context.forward(record.with_value(None if deleted is None else deleted.value))
            return
        valid_to = self.versions.put(record.key, record.value, record.timestamp)
        self.context.forward(record.with_value(max(valid_to, -2)))
        for found in (
            self.versions.get(record.key),
            self.versions.get(record.key, record.timestamp - 5 * (self.number + 1)),
        ):
            if found is not None:
                self.context.forward(record.with_value(found.value).with_timestamp(found.timestamp))


class Fixing(FixedKeyProcessor):
    """Numbers a key's values, and forwards some of them twice."""

    def __init__(self, store: str, number: int) -> None:
        self.store, self.number = store, number

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.state_store(self.store)

    def process(self, record: FixedKeyRecord) -> None:
        key = "none" if record.key is None else record.key
        count = (self.counts.get(key) or 0) + 1
        self.counts.put(key, count)
        value = (0 if record.value is None else record.value) * 10 + count
        self.context.forward(record.with_value(value))
        if count % 2 == self.number % 2:
            self.context.forward(record.with_value(None).with_timestamp(record.timestamp + self.number))


class Numbering(ValueTransformerWithKey):
    """Numbers the updates of a row; what it is called for shows in the numbers."""

    def __init__(self, store: str) -> None:
        self.store = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.counts = context.state_store(self.store)

    def transform(self, key: str, value: int | None) -> int | None:
        count = (self.counts.get(key) or 0) + 1
        self.counts.put(key, count)
        return None if value is None else value * 10 + count


class Looking(Processor):
    """Forwards what a table's store has for each record's key, or how many rows it has."""

    def __init__(self, store: str) -> None:
        self.store = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.rows = context.state_store(self.store)

    def process(self, record: Record) -> None:
        found = None if record.key is None else self.rows.get(record.key)
        if found is None:
            self.context.forward(record.with_value(sum(1 for _ in self.rows.all())))
        else:
            self.context.forward(record.with_value(found.value).with_timestamp(found.timestamp))


class Doubling(Processor):
    """Fills a global store with twice the values of its topic."""

    def __init__(self, store: str) -> None:
        self.store = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.rows = context.state_store(self.store)

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.rows.put(record.key, None if record.value is None else record.value * 2)


class Asking(Processor):
    """Forwards what a global store has for each record's letter."""

    def __init__(self, store: str) -> None:
        self.store = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.rows = context.state_store(self.store)

    def process(self, record: Record) -> None:
        letter = None if record.value is None else "abcd"[record.value % 4]
        found = None if letter is None else self.rows.get(letter)
        self.context.forward(record.with_value(found))
