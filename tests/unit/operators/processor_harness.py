"""Runs processors in process, on a dict of pages, as the task of one partition does."""

from collections.abc import Callable, Sequence
from typing import Any

from streamskit import FixedKeyProcessor, Processor, PunctuationType, Serde, Serdes, Stores, operators
from streamskit.operators import OperatorRecord, StreamTask
from streamskit.operators.processor_stores import open_store
from streamskit.operators.processors import InputPort, OutputPort, ProcessorsOperator, ProcessorSpec, TableStore
from streamskit.operators.records import SourceRecord
from streamskit.operators.state_store import ChangelogBuffer, StoreAccess
from streamskit.state.stores import Store
from tests.unit.operators.operator_harness import Pages

STRING, LONG = Serdes.string(), Serdes.long()
Supplier = Callable[[], Processor | FixedKeyProcessor]
Made = tuple[str, Any, Any, int]
"""Where a record went, or of which store it is an update; its key, its value and its time."""


class Task:
    """A chain of processors over one topic; `ways` are the names of the sinks after the last one.

    Everything is text unless `value` is another serde. Each call of `run` is a micro-batch.
    """

    def __init__(
        self,
        *processors: Supplier,
        stores: Sequence[Store] = (),
        tables: Sequence[Store] = (),
        ways: Sequence[str] = ("out",),
        value: Serde = STRING,
    ) -> None:
        names = [f"processor-{number}" for number in range(1, len(processors) + 1)]
        kept = tuple(store.name for store in (*stores, *tables))
        following: list[tuple[tuple[str, int | None], ...]] = [((name, None),) for name in names[1:]]
        following.append(tuple((way, number) for number, way in enumerate(ways)))
        members = map(ProcessorSpec, names, processors, [kept] * len(names), following)
        entrances = (
            InputPort(STRING, value, processor=names[0]),
            *(InputPort(table.key, table.value, store=table.name) for table in tables),
        )
        outside = tuple(OutputPort(STRING, value) for _ in ways)
        self.operator = ProcessorsOperator(
            "group",
            "app",
            tuple(members),
            entrances,
            outside,
            tuple(stores),
            tuple(TableStore(table, f"store {table.name}", "it is a copy.") for table in tables),
        )
        self.pages, self.clock, self.start, self._offset = Pages(), 0, "first start", -1
        self._value = value

    def run(self, *records: tuple[Any, Any, int], tick: bool = False) -> list[Made]:
        """Process a micro-batch, each record given as (key, value, timestamp), and return what it makes.

        `tick` says that the wall clock is looked at before, as it is when no records come.
        """
        stage = StreamTask([self.operator], self.pages, wall_clock=self.clock, run=self.start)
        stage.open_punctuating()
        if tick:
            stage.punctuate(PunctuationType.WALL_CLOCK_TIME, self.clock)
        for key, value, timestamp in records:
            self._punctuate_by_stream_time(stage)
            self._offset += 1
            stage.begin(SourceRecord("in", 0, self._offset, timestamp))
            row = OperatorRecord(STRING.serialize(key), self._value.serialize(value), None, None, timestamp, None)
            stage.process(0, 0, row)
        self._punctuate_by_stream_time(stage)
        stage.finish()
        return [self._made(output) for output in stage.take_outputs()]

    def put_into_table(self, side: int, row: OperatorRecord) -> None:
        """Let an update of a table that the processors look into arrive."""
        stage = StreamTask([self.operator], self.pages, wall_clock=self.clock, run=self.start)
        stage.process(0, side, row)
        stage.finish()

    def values(self, *records: tuple[Any, Any, int], tick: bool = False) -> list[Any]:
        """Return the values alone of what a micro-batch makes."""
        return [value for _, _, value, _ in self.run(*records, tick=tick)]

    def restart(self) -> None:
        """Begin anew on the state that there is, as an application does that is started again."""
        self.start += " again"

    def _punctuate_by_stream_time(self, stage: StreamTask) -> None:
        if stage.stream_time >= 0:
            stage.punctuate(PunctuationType.STREAM_TIME, stage.stream_time)

    def _made(self, output: Any) -> Made:
        """Read an output: that of a way, or that of a store's changelog with the value in its bytes."""
        number = 0 if output.other is None else output.other[0]
        names = [name for name, _ in self.operator.processors[-1].children]
        if number < len(names):
            read = self._value.deserialize
            return names[number], STRING.deserialize(output.key), read(output.value), output.timestamp
        store = self.operator.logged[number - len(names)]
        return store.name, output.key, output.value, output.timestamp


class OneStore:
    """One store in a task of its own; each `call` is a micro-batch, so that all state is saved and loaded between.

    `log` is what went to its changelog: key, value and time; `dropped` is how many rows it has not taken.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.pages = store, Pages()
        self.log: list[tuple[bytes, bytes | None, int]] = []
        self.dropped = 0

    def call(self, act: Callable[[Any], Any], timestamp: int = 0) -> Any:
        """Do something with the store while a record of a time is in hand, and return what it answers, as a list."""
        stage = StreamTask([], self.pages)
        context = operators.OperatorContext(stage, 0, "test", lambda *_, **__: None, False)
        changelog = ChangelogBuffer(lambda *update: self.log.append(update), self.store.cached, lambda: timestamp)
        stage.saved.append(changelog)
        found = act(open_store(context, self.store, StoreAccess("rows", changelog if self.store.logged else None)))
        found = list(found) if hasattr(found, "__next__") else found
        stage.finish()
        self.dropped += sum(stage.dropped.values())
        return found

    def do(self, name: str, *arguments: Any) -> Any:
        """Call one method of the store by its name."""
        return self.call(lambda store: getattr(store, name)(*arguments))


def key_value(name: str = "rows") -> Store:
    """Return a store of texts by text."""
    return Stores.persistent_key_value_store(name, STRING, STRING)
