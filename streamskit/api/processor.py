"""The Processor API: a class of your own that receives the records of one task, one after another."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from streamskit.api.headers import Headers, headers_of
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError

LATEST_TIME = 2**63 - 1
"""The largest timestamp that fits into the eight bytes of Kafka's."""


@dataclass(frozen=True)
class _AnyRecord:
    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()

    def __post_init__(self) -> None:
        time: object = self.timestamp
        if not isinstance(time, int) or isinstance(time, bool) or not 0 <= time <= LATEST_TIME:
            raise StreamsError(
                f"A record cannot have the timestamp {self.timestamp!r}; give it whole milliseconds since 1970, an int "
                "that is not negative."
            )
        if self.headers != ():
            object.__setattr__(self, "headers", headers_of(self.headers))

    def with_value(self, value: Any) -> Self:
        """Return the record with another value.

        >>> Record("KO", 1, 0).with_value(2).value
        2
        """
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> Self:
        """Return the record with another time, in milliseconds since 1970.

        Raises:
            StreamsError: the time is negative or not an int.

        >>> Record("KO", 1, 0).with_timestamp(5000).timestamp
        5000
        """
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Self:
        """Return the record with other headers, as pairs of a name and bytes; as in Kafka, None may stand for bytes.

        Raises:
            StreamsError: they are something else.

        >>> Record("KO", 1, 0).with_headers((("source", b"NYSE"),)).headers
        (('source', b'NYSE'),)
        """
        return replace(self, headers=headers)


@dataclass(frozen=True)
class Record(_AnyRecord):
    """A record as plain Python values; `timestamp` in milliseconds since 1970, headers as pairs of a name and bytes.

    Raises:
        StreamsError: the timestamp is negative or not an int, or the headers are not such pairs.

    Mirrors `org.apache.kafka.streams.processor.api.Record`.

    >>> Record("KO", 1, timestamp=0)
    Record(key='KO', value=1, timestamp=0, headers=())
    """

    def with_key(self, key: Any) -> "Record":
        """Return the record with another key.

        >>> Record("KO", 1, 0).with_key("PEP").key
        'PEP'
        """
        return replace(self, key=key)


@dataclass(frozen=True)
class FixedKeyRecord(_AnyRecord):
    """A record whose key cannot change, as `process_values` passes it in and accepts it back.

    A processor can only forward the record that it received, with another value, time or headers.
    Mirrors `org.apache.kafka.streams.processor.api.FixedKeyRecord`.
    """

    given_key: Any = field(default=None, kw_only=True, repr=False, compare=False)

    @classmethod
    def given(cls, key: Any, value: Any, timestamp: int, headers: Headers) -> "FixedKeyRecord":
        """Return the record that a task passes to a processor."""
        return cls(key, value, timestamp, headers, given_key=(key,))

    @property
    def has_its_key(self) -> bool:
        """Whether its key is the one that the task gave it."""
        return self.given_key is not None and (self.key is self.given_key[0] or self.key == self.given_key[0])


def _refuse_change(record: _AnyRecord, name: str, value: object) -> None:
    if hasattr(record, f"with_{name}"):
        raise FrozenInstanceError(
            f"a record cannot be changed, as others may have it, too: record.with_{name}(...) makes another one."
        )
    lasting = " that process_values passes in" if name == "key" else ""
    raise FrozenInstanceError(f"a record{lasting} cannot be given another '{name}'.")


Record.__setattr__ = FixedKeyRecord.__setattr__ = _refuse_change  # type: ignore[assignment, method-assign]


class RecordMetadata(NamedTuple):
    """Where the record that is being processed came from; in a punctuation the topic is None and the numbers are -1.

    Mirrors `org.apache.kafka.streams.processor.api.RecordMetadata`.
    """

    topic: str | None
    partition: int
    offset: int


class PunctuationType(Enum):
    """The clock by which a punctuation is due. Mirrors `org.apache.kafka.streams.processor.PunctuationType`."""

    STREAM_TIME = "stream time"
    """The latest timestamp among the records of the task: it stands still when no records come."""
    WALL_CLOCK_TIME = "wall clock time"
    """The machine's time; in a test driver, the driver's own clock."""


class Cancellable(Protocol):
    """A punctuation that can be called off. Mirrors `org.apache.kafka.streams.processor.Cancellable`."""

    def cancel(self) -> None:
        """Cancel the punctuation."""


Punctuator = Callable[[int], object]
"""Called with the time, in milliseconds, when a punctuation is due."""


NO_RECORD = (
    "forward() passes on a record, and {!r} is none: write forward(record.with_value(...)), or forward(Record(key, "
    "value, timestamp))."
)
"""Why something cannot be forwarded."""


class Services(Protocol):
    """What a task does for a processor's context."""

    application_id: str
    task_id: str

    def forward(self, record: "Record | FixedKeyRecord", to: str | None) -> None: ...
    def schedule(self, interval: int, kind: PunctuationType, punctuator: Punctuator) -> Cancellable: ...
    def state_store(self, name: str) -> Any: ...
    def stream_time(self) -> int: ...
    def wall_clock(self) -> int: ...
    def timestamp(self) -> int: ...
    def metadata(self) -> RecordMetadata: ...
    def commit(self) -> None: ...


class ProcessorContext:
    """What a processor can get from the task it runs in: forwarding records, its stores, the time.

    Mirrors `org.apache.kafka.streams.processor.api.ProcessorContext`, and `FixedKeyProcessorContext`.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def application_id(self) -> str:
        """The id of the application."""
        return self._services.application_id

    @property
    def task_id(self) -> str:
        """The id of the task, such as "0_1": the number of the sub-topology, then that of the partition.

        A processor that fills a global store belongs to no task: there it is "-1_-1", as in Kafka Streams.
        Mirrors `ProcessorContext#taskId`.
        """
        return self._services.task_id

    def forward(self, record: Record | FixedKeyRecord, to: str | None = None) -> None:
        """Pass a record on to the steps that follow, or to one of them.

        Args:
            record: what they get.
            to: the name of the one step to pass it on to.

        Raises:
            StreamsError: no step of that name follows, what is given is no record, or a fixed key has changed.

        >>> class Zero(Processor):
        ...     def process(self, record):
        ...         self.context.forward(record.with_value(0), to="audit")

        Mirrors `ProcessorContext#forward`.
        """
        self._services.forward(record, to)

    def schedule(self, interval: Duration, kind: PunctuationType, punctuator: Punctuator) -> Cancellable:
        """Have a function called at regular intervals, with the time in milliseconds.

        By wall clock it is called between micro-batches. While no records arrive, it is called only if it was scheduled
        in `init`, which is where streamskit looks for punctuations to wake up for.

        Args:
            interval: a duration. By stream time the function is due at multiples of it, by wall clock counted from now.
            kind: the clock. After a gap the function is called once, not once for each missed interval.
            punctuator: the function; it may forward records and use the processor's fields and stores.

        Raises:
            StreamsError: the interval is shorter than 1 ms, the clock is no `PunctuationType`, the function does not
                take one argument, or the processor fills a global store.
            ValueError: the interval is no duration, or negative.

        >>> class Totals(Processor):
        ...     def init(self, context):
        ...         super().init(context)
        ...         context.schedule("10 seconds", PunctuationType.STREAM_TIME, self.emit_totals)

        Mirrors `ProcessorContext#schedule`.
        """
        if not isinstance(kind, PunctuationType):
            raise StreamsError(
                "A punctuation goes by one of two clocks, PunctuationType.STREAM_TIME or "
                f"PunctuationType.WALL_CLOCK_TIME, and not by {kind!r}."
            )
        _check_takes_time(punctuator)
        return self._services.schedule(to_milliseconds(interval, "interval"), kind, punctuator)

    def state_store(self, name: str) -> Any:
        """Return a store that this processor was given.

        Args:
            name: the name of the store.

        Raises:
            StreamsError: this processor was not given such a store.

        >>> class Totals(Processor):
        ...     def init(self, context):
        ...         super().init(context)
        ...         self.totals = context.state_store("totals")
        ...
        ...     def process(self, record):
        ...         self.totals.put(record.key, record.value)

        Mirrors `ProcessorContext#getStateStore`.
        """
        return self._services.state_store(name)

    def current_stream_time_ms(self) -> int:
        """Return the latest time of the records of this task, in milliseconds since 1970; -1 before the first.

        Mirrors `ProcessorContext#currentStreamTimeMs`.
        """
        return self._services.stream_time()

    def current_system_time_ms(self) -> int:
        """Return the wall clock's time in milliseconds since 1970; in a test driver, the driver's own.

        Mirrors `ProcessorContext#currentSystemTimeMs`.
        """
        return self._services.wall_clock()

    def timestamp(self) -> int:
        """Return the time of the record that is being processed, or of the punctuation, in milliseconds since 1970."""
        return self._services.timestamp()

    def record_metadata(self) -> RecordMetadata:
        """Return topic, partition and offset of the record that is being processed.

        Mirrors `ProcessorContext#recordMetadata`.
        """
        return self._services.metadata()

    def commit(self) -> None:
        """Request a commit as soon as possible.

        The end of the micro-batch is the commit: Spark then records what has been read, and saves the stores with it.
        The batch ends once its records are processed, so there is nothing to hurry, and calling this changes nothing;
        set `commit_interval` for the time between two batches.

        >>> class Totals(Processor):
        ...     def process(self, record):
        ...         self.context.forward(record)
        ...         self.context.commit()

        Mirrors `ProcessorContext#commit`.
        """
        self._services.commit()


def _check_takes_time(punctuator: object) -> None:
    if not callable(punctuator):
        raise StreamsError(
            f"A punctuation is a function that is called later, and {punctuator!r} is none: write "
            "schedule(interval, kind, self.on_time), without brackets after the name."
        )
    try:
        signature = inspect.signature(punctuator)
    except ValueError:
        return  # a C function without a signature
    try:
        signature.bind(0)
    except TypeError:
        name = getattr(punctuator, "__name__", type(punctuator).__name__)
        raise StreamsError(
            f"A punctuation is called with the time in milliseconds, and {name} takes {signature}: write "
            "def on_time(self, time)."
        ) from None


class _WithContext:
    context: ProcessorContext

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what an own `init` has left out, which is called for what an object lacks only."""
            if name == "context":
                raise StreamsError(
                    f"{type(self).__name__} has no context. An init of your own has to pass it on, in its first line: "
                    "super().init(context). In __init__ there is none yet."
                )
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)


class _AnyProcessor(_WithContext, ABC):
    def init(self, context: ProcessorContext) -> None:
        """Called once in each task when the application starts; fetch stores and schedule punctuations here."""
        self.context = context

    def close(self) -> None:
        """Called at the end of each micro-batch; release what cannot outlive it, such as open files.

        Fields are kept from one micro-batch to the next, as long as they can be pickled, until the application stops.
        What has to survive that belongs in a store.
        """
        return


class Processor(_AnyProcessor):
    """Subclass this: `process` is called for each record of a task, and forwards what the next steps should get.

    A class may bring along the stores that its processors use: its static method `stores` returns them, and they are
    added and connected wherever the class is used. Processors that share a store each return the same one.

    >>> class Shout(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value.upper()))
    >>> class Latest(Processor):
    ...     @staticmethod
    ...     def stores():
    ...         return [Stores.persistent_key_value_store("latest", Serdes.string(), Serdes.string())]
    ...
    ...     def process(self, record):
    ...         self.context.state_store("latest").put(record.key, record.value)
    >>> latest = StreamsBuilder().stream("in").process(Latest)

    Mirrors `org.apache.kafka.streams.processor.api.ContextualProcessor`, and `ProcessorSupplier#stores`.
    """

    @abstractmethod
    def process(self, record: Record) -> None:
        """Process one record."""


class ValueTransformerWithKey(_WithContext, ABC):
    """Subclass this for `KTable.transform_values`: `transform` makes the new value of a row, and may keep state.

    >>> class Numbered(ValueTransformerWithKey):
    ...     def init(self, context):
    ...         super().init(context)
    ...         self.counts = context.state_store("counts")
    ...
    ...     def transform(self, key, value):
    ...         count = (self.counts.get(key) or 0) + 1
    ...         self.counts.put(key, count)
    ...         return f"{value} ({count})"

    Mirrors `org.apache.kafka.streams.kstream.ValueTransformerWithKey`.
    """

    def init(self, context: ProcessorContext) -> None:
        """Called once in each task when the application starts; fetch stores here.

        The context cannot forward anything: what `transform` returns is passed on.
        """
        self.context = context

    @abstractmethod
    def transform(self, key: Any, value: Any) -> Any:
        """Return the new value of a row; None deletes it. For a deleted row, `value` is None."""

    def close(self) -> None:
        """Called at the end of each micro-batch; release what cannot outlive it, such as open files."""
        return


class FixedKeyProcessor(_AnyProcessor):
    """Subclass this for `process_values`: it may change values and times but not keys, so nothing is repartitioned.

    >>> class Length(FixedKeyProcessor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(len(record.value)))

    Mirrors `org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor`.
    """

    @abstractmethod
    def process(self, record: FixedKeyRecord) -> None:
        """Process one record."""
