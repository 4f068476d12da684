"""`MockProcessorContext`: what a processor asks of its task, captured, so that a plain test can call the processor."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from streamskit.api.processor import (
    NO_RECORD,
    FixedKeyRecord,
    ProcessorContext,
    PunctuationType,
    Punctuator,
    Record,
    RecordMetadata,
)
from streamskit.common.durations import whole_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.operators.paged_state import MemoryPages
from streamskit.operators.processor_stores import open_store
from streamskit.operators.records import NO_SOURCE
from streamskit.operators.state_store import StoreAccess
from streamskit.operators.stream_task import OperatorContext, StreamTask
from streamskit.state.stores import Store


class CapturedForward(NamedTuple):
    """A record that a processor has forwarded, and the one child it is for; None if it is for all of them.

    Mirrors `MockProcessorContext.CapturedForward`.
    """

    record: Record | FixedKeyRecord
    child: str | None = None


@dataclass
class CapturedPunctuator:
    """A punctuation that a processor has scheduled; a test calls it: `captured.punctuator(60_000)`.

    `interval` is in milliseconds. Mirrors `MockProcessorContext.CapturedPunctuator`.
    """

    interval: int
    kind: PunctuationType
    punctuator: Punctuator
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Cancel the punctuation, as the processor does with what `schedule` returned."""
        self.is_cancelled = True


class MockProcessorContext(ProcessorContext):
    """A context without a topology, for the test of a single processor: it captures what the processor forwards.

    The test makes the processor, hands it the context in `init`, and calls `process` itself, without Spark, Java or a
    broker, so it takes microseconds. The stores are those that a task has, in memory. Clocks do not move and
    punctuations are not called by themselves: the test sets the former and calls the latter. How steps work together
    is for the `TopologyTestDriver`.

    Args:
        application_id: what the context returns as the application's id.
        task_id: what it returns as the task's, the numbers of sub-topology and partition.

    >>> class Total(Processor):
    ...     def process(self, record):
    ...         totals = self.context.state_store("totals")
    ...         totals.put(record.key, (totals.get(record.key) or 0) + record.value)
    ...         self.context.forward(record.with_value(totals.get(record.key)))
    >>> context = MockProcessorContext()
    >>> totals = context.add_state_store(Stores.in_memory_key_value_store("totals", Serdes.string(), Serdes.long()))
    >>> total = Total()
    >>> total.init(context)
    >>> total.process(Record("KO", 2, timestamp=0))
    >>> total.process(Record("KO", 3, timestamp=1000))
    >>> [forward.record.value for forward in context.forwarded()], totals.get("KO")
    ([2, 5], 5)

    Mirrors `org.apache.kafka.streams.processor.api.MockProcessorContext`.
    """

    def __init__(self, application_id: str = "", task_id: str = "0_0") -> None:
        self._captured = _CapturingServices(application_id, task_id)
        super().__init__(self._captured)

    def add_state_store(self, store: Store) -> Any:
        """Give the processor a store, and return it, so that the test can fill it and read it.

        Args:
            store: what `Stores` makes.

        Raises:
            StreamsError: it is no such store, or there is another of its name.

        Mirrors `MockProcessorContext#addStateStore`.
        """
        return self._captured.add(store)

    def forwarded(self, to: str | None = None) -> list[CapturedForward]:
        """Return what was forwarded so far: everything, or what one child gets.

        Args:
            to: the name of the child. It also gets what is forwarded to all.

        >>> context = MockProcessorContext()
        >>> context.forward(Record("KO", 1, timestamp=0))
        >>> context.forward(Record("PEP", 2, timestamp=0), to="audit")
        >>> [len(context.forwarded()), len(context.forwarded("audit")), len(context.forwarded("alarms"))]
        [2, 2, 1]

        Mirrors `MockProcessorContext#forwarded`.
        """
        return [forward for forward in self._captured.forwards if to is None or forward.child in (None, to)]

    def reset_forwards(self) -> None:
        """Forget what was forwarded so far. Mirrors `MockProcessorContext#resetForwards`."""
        self._captured.forwards.clear()

    def scheduled_punctuators(self) -> list[CapturedPunctuator]:
        """Return the punctuations in the order in which they were scheduled; those that were cancelled are among them.

        >>> context = MockProcessorContext()
        >>> handle = context.schedule("1 minute", PunctuationType.STREAM_TIME, print)
        >>> [captured] = context.scheduled_punctuators()
        >>> captured.interval, captured.kind.name, captured.is_cancelled
        (60000, 'STREAM_TIME', False)
        >>> captured.punctuator(120_000)
        120000

        Mirrors `MockProcessorContext#scheduledPunctuators`.
        """
        return list(self._captured.punctuators)

    def committed(self) -> bool:
        """Return whether the processor has asked for a commit. Mirrors `MockProcessorContext#committed`."""
        return self._captured.is_committed

    def reset_commit(self) -> None:
        """Forget that the processor has asked for a commit. Mirrors `MockProcessorContext#resetCommit`."""
        self._captured.is_committed = False

    def set_record_metadata(self, topic: str, partition: int, offset: int) -> None:
        """Set where the record in hand is from; before, it is from nowhere, as in a punctuation.

        Mirrors `MockProcessorContext#setRecordMetadata`.
        """
        self._captured.record_metadata = RecordMetadata(topic, partition, offset)

    def set_timestamp(self, timestamp: int) -> None:
        """Set what `timestamp()` returns: the time of the record in hand, in milliseconds since 1970.

        Raises:
            StreamsError: it is no whole number.
        """
        self._captured.times["timestamp"] = _whole("set_timestamp", timestamp)

    def set_current_stream_time_ms(self, time: int) -> None:
        """Set stream time, in milliseconds since 1970. Mirrors `MockProcessorContext#setCurrentStreamTimeMs`.

        Raises:
            StreamsError: it is no whole number.
        """
        self._captured.times["current_stream_time_ms"] = _whole("set_current_stream_time_ms", time)

    def set_current_system_time_ms(self, time: int) -> None:
        """Set the wall clock, in milliseconds since 1970. Mirrors `MockProcessorContext#setCurrentSystemTimeMs`.

        Raises:
            StreamsError: it is no whole number.
        """
        self._captured.times["current_system_time_ms"] = _whole("set_current_system_time_ms", time)


class _CapturingServices:
    """The services of a task for one processor, whose stores live in a task of their own that is never saved."""

    def __init__(self, application_id: str, task_id: str) -> None:
        self.application_id, self.task_id = application_id, task_id
        self.forwards: list[CapturedForward] = []
        self.punctuators: list[CapturedPunctuator] = []
        self.stores: dict[str, Any] = {}
        self.times: dict[str, int] = {}
        self.record_metadata, self.is_committed = RecordMetadata(*NO_SOURCE[:3]), False
        self._stores_context = OperatorContext(StreamTask([], MemoryPages()), 0, "mock", _ignore, False)

    def add(self, store: Store) -> Any:
        if not isinstance(store, Store):
            raise StreamsError(
                f"add_state_store() takes a store that Stores makes, and {store!r} is none: write "
                "add_state_store(Stores.in_memory_key_value_store(name, key, value))."
            )
        if store.name in self.stores:
            raise StreamsError(f"This context has a store '{store.name}' already: add it once, or name it otherwise.")
        opened = open_store(self._stores_context, store, StoreAccess(f"store {store.name}"))
        self.stores[store.name] = opened
        return opened

    def forward(self, record: Record | FixedKeyRecord, to: str | None) -> None:
        if not isinstance(record, Record | FixedKeyRecord):
            raise StreamsError(NO_RECORD.format(record))
        self.forwards.append(CapturedForward(record, to))

    def schedule(self, interval: int, kind: PunctuationType, punctuator: Punctuator) -> CapturedPunctuator:
        if interval < 1:
            raise StreamsError("The interval of a punctuation is at least 1 ms.")
        self.punctuators.append(CapturedPunctuator(interval, kind, punctuator))
        return self.punctuators[-1]

    def state_store(self, name: str) -> Any:
        if name not in self.stores:
            known = ", ".join(self.stores) or "none"
            raise StreamsError(
                f"This context has no store '{name}': give it one before init(), with add_state_store(Stores...). "
                f"It has: {known}."
            )
        return self.stores[name]

    def stream_time(self) -> int:
        return self._time("current_stream_time_ms")

    def wall_clock(self) -> int:
        return self._time("current_system_time_ms")

    def timestamp(self) -> int:
        return self._time("timestamp")

    def metadata(self) -> RecordMetadata:
        return self.record_metadata

    def commit(self) -> None:
        self.is_committed = True

    def _time(self, name: str) -> int:
        if name not in self.times:
            raise StreamsError(f"{name}() has no time, as no clock runs here: set it, set_{name}(milliseconds).")
        return self.times[name]


def _ignore(*result: Any, **others: Any) -> None:
    """Stores have no changelog here."""


def _whole(method: str, time: Any) -> int:
    number = whole_milliseconds(time)
    if number is None:
        raise StreamsError(f"{method}() takes whole milliseconds since 1970, and {time!r} is none.")
    return number
