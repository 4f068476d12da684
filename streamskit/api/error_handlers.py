"""What happens to a record that cannot be read, processed or written: fail, go on without it, or keep it aside.

A handler is a function of an `ErrorHandlerContext`, the record and the exception, which returns a `Response`. It runs
where the record is, in one of Spark's processes. What it prints does not appear in a notebook, so anything worth
keeping belongs in a dead letter.
"""

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from streamskit.api.headers import Headers, headers_of
from streamskit.common.errors import StreamsError, TopologyError

EXCEPTION, MESSAGE = "__streams.errors.exception", "__streams.errors.message"
STACKTRACE = "__streams.errors.stacktrace"
TOPIC, PARTITION, OFFSET = "__streams.errors.topic", "__streams.errors.partition", "__streams.errors.offset"
"""The headers of a dead letter that say what was wrong and where its record came from, named as Kafka Streams does."""

LEFT_OUT = "__streamskit.value.left.out"
"""The header with the size of a dead letter's value that was too large to write."""

LONGEST_MESSAGE = 1000
"""The most characters of an error message that a dead letter keeps; an error may quote a whole record."""

LONGEST_TRACE = 4000
"""The most characters of a stack trace that a dead letter keeps: the last ones, nearest to the error."""

FAILED_AT = "streamskit operator failed: "
"""The beginning of a note on an exception that says in which operator it was raised."""

KIND = r"^((?:\w+\.)*\w+(?:Exception|Error)): "
"""How the text of an exception begins if only its text is left: with the name of its class."""

JAVA_CLASSES = {
    "org.apache.kafka.common.errors": (
        "SerializationException", "RecordTooLargeException", "InvalidTimestampException", "InvalidTopicException",
        "UnknownTopicOrPartitionException",
    ),
    "org.apache.kafka.common": ("InvalidRecordException",),
    "org.apache.spark": (
        "SparkArithmeticException", "SparkArrayIndexOutOfBoundsException", "SparkClassCastException",
        "SparkDateTimeException", "SparkException", "SparkIllegalArgumentException", "SparkNoSuchElementException",
        "SparkNumberFormatException", "SparkRuntimeException", "SparkUnsupportedOperationException",
        "SparkUpgradeException",
    ),
    "java.lang": ("ArithmeticException", "IllegalArgumentException", "NullPointerException", "NumberFormatException"),
}  # fmt: skip
"""The packages of Java exceptions that a record may cause; only the name of the class travels with the record."""

OVERHEAD = 512
"""The most bytes that a request to a broker has besides keys, values and headers."""


@dataclass(frozen=True)
class ErrorHandlerContext:
    """Where a record failed: the node, the position of the source record being processed, and its raw key and value.

    The `timestamp` (in milliseconds) and the `headers` are those of the record that the node received, which earlier
    steps may have changed. The `task_id` is the task's, such as "0_1": the number of the sub-topology, then that of
    the partition if it is known. In a punctuation there is no source record: the topic is None, partition and
    offset are -1, and the timestamp is that of the punctuation.
    Mirrors `org.apache.kafka.streams.errors.ErrorHandlerContext`.
    """

    processor_node_id: str
    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers = ()
    source_raw_key: bytes | None = None
    source_raw_value: bytes | None = None
    task_id: str = ""


@dataclass(frozen=True)
class RawRecord:
    """A record as raw bytes, as a handler receives one that could not be read.

    Mirrors `org.apache.kafka.clients.consumer.ConsumerRecord`.
    """

    topic: str | None
    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(frozen=True)
class ProducerRecord:
    """A record that could not be written to a topic, as a production handler gets it.

    Key and value are plain Python values if one of them could not be serialized. If both were, but the record is too
    large or has no topic to go to, they are the serialized bytes.
    Mirrors `org.apache.kafka.clients.producer.ProducerRecord`.
    """

    topic: str | None
    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()


@dataclass(frozen=True)
class DeadLetter:
    """A record that a handler wants written, and its topic. A `timestamp` of None stands for the failed record's."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise StreamsError(f"A dead letter goes to a topic, by its name, and not to {self.topic!r}.")
        for data in (self.key, self.value, *(value for _, value in self.headers)):
            if data is not None and not isinstance(data, bytes):
                raise StreamsError(f"A dead letter is made of bytes, and {data!r} is none: write text.encode().")
        object.__setattr__(self, "headers", headers_of(self.headers))


@dataclass(frozen=True)
class Response:
    """What a handler decides.

    Mirrors `ProcessingExceptionHandler.Response`, and those of the other handlers.
    """

    fails: bool
    dead_letters: tuple[DeadLetter, ...] = ()

    @classmethod
    def fail(cls) -> "Response":
        """Stop the application with an error.

        >>> Response.fail()
        Response(fails=True, dead_letters=())

        Mirrors `Response#fail`.
        """
        return cls(True)

    @classmethod
    def resume(cls, *dead_letters: DeadLetter) -> "Response":
        """Go on without the record, and write the dead letters.

        Args:
            dead_letters: what is to be kept, and in which topics.

        >>> Response.resume(DeadLetter("orders-dead-letters", b"1", b"no JSON"))
        Response(fails=False, dead_letters=(DeadLetter(topic='orders-dead-letters', key=b'1', value=b'no JSON', ...

        Mirrors `Response#resume`.
        """
        return cls(False, dead_letters)


Handler = Callable[[ErrorHandlerContext, Any, Exception], Response]
"""Decides what happens. A record that could not be read is a `RawRecord`, one not written a `ProducerRecord`.

A processing handler receives the `Record` that the failing step received, with plain Python values (for a table the
row's new value, for a join the left side's value), and None in a punctuation.
"""


@dataclass(frozen=True)
class LogAndFail:
    """Stops the application with an error that names the record; the default.

    With this handler, a value that no step looks at is not read, and so not checked: `count()` also counts bad JSON,
    which Kafka Streams would fail to read. Reading every value for nothing would slow down every such query. With any
    other deserialization handler, every key and value is read.

    Mirrors `LogAndFailExceptionHandler`, `LogAndFailProcessingExceptionHandler` and
    `DefaultProductionExceptionHandler`.
    """

    def __call__(self, context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
        """Fail."""
        return Response.fail()


@dataclass(frozen=True)
class LogAndContinue:
    """Skips the record, counts it in `metrics()`, logs a warning, and keeps it in a topic if one is given.

    Args:
        dead_letter_topic: the topic that gets the unchanged source record, with headers for topic, partition, offset,
            error and stack trace (those of KIP-1034); by default none. A value that is too large to be written is left
            out, and a header says so.

    >>> handler = LogAndContinue("orders-dead-letters")
    >>> KafkaStreams(topology, "app", servers, deserialization_handler=handler)  # doctest: +SKIP

    Mirrors `LogAndContinueExceptionHandler`, and Kafka Streams' `errors.dead.letter.queue.topic.name`.
    """

    dead_letter_topic: str | None = None

    def __call__(self, context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
        """Resume."""
        if self.dead_letter_topic is None:
            return Response.resume()
        return Response.resume(dead_letter(self.dead_letter_topic, context, exception))


class StepError(StreamsError):
    """What is left of an exception that was raised for a record within Spark: its text, with the name of its class.

    Args:
        said: the text.
        place: the step, and where in the program it was written.
    """

    def __init__(self, said: str, place: str) -> None:
        super().__init__(said)
        self.place = place

    def __reduce__(self) -> Any:
        return StepError, (str(self), self.place)

    @property
    def message(self) -> str:
        """The text without the name."""
        return re.sub(KIND, "", str(self))

    @property
    def kind(self) -> str:
        """The qualified name of the class; a text without one is about a record that could not be read or written."""
        found = re.match(KIND, str(self))
        name = found[1] if found else "SerializationException"
        return next((f"{package}.{name}" for package, names in JAVA_CLASSES.items() if name in names), name)

    @property
    def stack_trace(self) -> str:
        """The text in the form of a Java stack trace, with the step as its only frame."""
        return f"{self.kind}: {self.message}\n\tat {self.place}"


def exception_name(exception: Exception) -> str:
    """Return the qualified name of an exception's class, as a Python traceback shows it.

    >>> exception_name(ValueError("no number")), exception_name(StreamsError("no"))
    ('ValueError', 'streamskit.common.errors.StreamsError')
    """
    if isinstance(exception, StepError):
        return exception.kind
    kind = type(exception)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def stack_trace(exception: Exception) -> str:
    """Return the end of an exception's stack trace, without the notes that streamskit added to it."""
    if isinstance(exception, StepError):
        return exception.stack_trace[-LONGEST_TRACE:]
    lines = "".join(traceback.format_exception(exception)).splitlines()
    return "\n".join(line for line in lines if not line.startswith(FAILED_AT))[-LONGEST_TRACE:]


def dead_letter(topic: str, context: ErrorHandlerContext, exception: Exception) -> DeadLetter:
    """Return the source record as it was, with headers that say where it came from and what was wrong with it.

    Mirrors `org.apache.kafka.streams.errors.internals.ExceptionHandlerUtils`, and so KIP-1034.
    """
    message = exception.message if isinstance(exception, StepError) else str(exception)
    reasons = {
        EXCEPTION: exception_name(exception),
        MESSAGE: message[:LONGEST_MESSAGE],
        STACKTRACE: stack_trace(exception),
        TOPIC: context.topic or "",
        PARTITION: str(context.partition),
        OFFSET: str(context.offset),
    }
    headers = (*context.headers, *((name, text.encode()) for name, text in reasons.items()))
    return DeadLetter(topic, context.source_raw_key, context.source_raw_value, headers, context.timestamp)


def fitting(letter: DeadLetter, most: int) -> DeadLetter:
    """Return a dead letter of at most `most` bytes: a larger one loses its value."""
    value = letter.value or b""
    headers = sum(len(name) + len(data or b"") for name, data in letter.headers)
    if len(letter.key or b"") + len(value) + headers <= most:
        return letter
    return replace(letter, value=None, headers=(*letter.headers, (LEFT_OUT, f"{len(value)} bytes".encode())))


@dataclass(frozen=True)
class Handlers:
    """The handlers of an application: of records that cannot be read, processed, or written.

    A record to write is too large if it makes a request of more than `max_request_size` bytes.
    """

    deserialization: Handler = field(default_factory=LogAndFail)
    processing: Handler = field(default_factory=LogAndFail)
    production: Handler = field(default_factory=LogAndFail)
    max_request_size: int = 1024 * 1024

    @classmethod
    def of(
        cls,
        deserialization: Handler | None,
        processing: Handler | None,
        production: Handler | None,
        max_request_size: int = 1024 * 1024,
    ) -> "Handlers":
        """Return the handlers, with `LogAndFail` for each that is None.

        Raises:
            TopologyError: one of them is not a handler.
        """
        handlers = {"deserialization": deserialization, "processing": processing, "production": production}
        chosen = {name: handler for name, handler in handlers.items() if handler is not None}
        for name, handler in chosen.items():
            if isinstance(handler, type) or not callable(handler):
                raise TopologyError(
                    f"{name}_handler is {handler!r}; give LogAndContinue(), LogAndFail(), or a function of context, "
                    "record and exception that returns Response.resume() or Response.fail()."
                )
        return cls(**{name: as_function(each) for name, each in chosen.items()}, max_request_size=max_request_size)

    @property
    def every(self) -> tuple[Handler, Handler, Handler]:
        """All of them."""
        return self.deserialization, self.processing, self.production

    @property
    def largest_record(self) -> int:
        """The most bytes that key, value and headers of a record to write may have."""
        return self.max_request_size - OVERHEAD

    @property
    def dead_letter_topics(self) -> list[str]:
        """The topics that dead letters go to, as far as they are known in advance."""
        topics = [handler.dead_letter_topic for handler in self.every if isinstance(handler, LogAndContinue)]
        return list(dict.fromkeys(topic for topic in topics if topic is not None))

    @property
    def make_rows(self) -> bool:
        """Whether a failed record can make rows of its own, on its way through a query."""
        return self.ask_for_sources or self.make_rows_in_reading

    @property
    def make_rows_in_reading(self) -> bool:
        """Whether a record that cannot be read can make rows of its own."""
        return self.deserialization not in (LogAndFail(), LogAndContinue())

    @property
    def ask_for_sources(self) -> bool:
        """Whether a dead letter may be made from a source record that operators have turned into other records."""
        return not (fails(self.processing) and fails(self.production))

    @property
    def ask_on_the_way(self) -> bool:
        """Whether a function decides about records that cannot be read or processed."""
        return asks(self.deserialization) or asks(self.processing)

    @property
    def that_continue(self) -> list[Handler]:
        """The handlers that do not always fail."""
        return [handler for handler in self.every if not fails(handler)]


def as_function(handler: Handler) -> Handler:
    """Return a handler; one whose class extends `LogAndContinue` or `LogAndFail` and decides otherwise as a function.

    What the two do is compiled, without a call for each record; what a subclass does is not known.
    """
    for kind in (LogAndContinue, LogAndFail):
        if isinstance(handler, kind) and type(handler).__call__ is not kind.__call__:
            return handler.__call__
    return handler


def fails(handler: Handler) -> bool:
    """Return whether a handler always fails, so that nothing has to be caught for it."""
    return isinstance(handler, LogAndFail)


def asks(handler: Handler) -> bool:
    """Return whether a handler is a function that has to be called for each record."""
    return not isinstance(handler, LogAndFail | LogAndContinue)


def ask(handler: Handler, context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
    """Return what a handler decides.

    Raises:
        StreamsError: the handler itself failed, or did not return a `Response`.
    """
    kind = "" if isinstance(exception, StreamsError) else f"{type(exception).__name__}: "
    about = f"It was asked about: {kind}{exception}"
    try:
        response: Any = handler(context, record, exception)
    except Exception as failure:
        reason = f"{type(failure).__name__}: {failure}".rstrip(": .")
        raise StreamsError(f"the error handler itself raised {reason}. {about}") from failure
    if not isinstance(response, Response) or not all(isinstance(each, DeadLetter) for each in response.dead_letters):
        raise StreamsError(
            f"the error handler returned {response!r}, and has to return Response.resume(), "
            f"Response.resume(DeadLetter(...)) or Response.fail(). {about}"
        )
    return response
