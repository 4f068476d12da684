"""The Processor API: a class of your own that is given the records of one task, one after the other."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Record:
    """A record as plain Python values; `timestamp` in milliseconds since 1970, headers as pairs of name and bytes.

    Mirrors `org.apache.kafka.streams.processor.api.Record`.
    """

    key: Any
    value: Any
    timestamp: int
    headers: Any = ()

    def with_key(self, key: Any) -> "Record":
        """Return the record with another key."""
        return replace(self, key=key)

    def with_value(self, value: Any) -> "Record":
        """Return the record with another value."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> "Record":
        """Return the record with another time, in milliseconds."""
        return replace(self, timestamp=timestamp)


class ProcessorContext:
    """What a processor may ask of the task it runs in.

    Mirrors `org.apache.kafka.streams.processor.api.ProcessorContext`.
    """

    def __init__(self, forward: Callable[[Record], None], clock: dict[str, int]) -> None:
        self._forward, self._clock = forward, clock

    def forward(self, record: Record) -> None:
        """Pass a record on to the steps that follow."""
        self._forward(record)

    def current_stream_time_ms(self) -> int:
        """Return the latest time of the records that reached this processor in its task; -1 before the first."""
        return self._clock.get("stream time", -1)


class Processor(ABC):
    """Subclass this: `process` is called for each record; `init` before the first of a micro-batch, `close` at its end.

    >>> class Shout(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value.upper()))

    Mirrors `org.apache.kafka.streams.processor.api.ContextualProcessor`.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Keep the context; override to prepare more."""
        self.context = context

    @abstractmethod
    def process(self, record: Record) -> None:
        """Process one record."""

    def close(self) -> None:
        """Called when the micro-batch is done."""
        return
