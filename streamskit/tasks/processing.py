"""A learner's processor in a task."""

from collections.abc import Callable
from dataclasses import dataclass

from streamskit import processor
from streamskit.serdes import Serde
from streamskit.tasks.records import Record
from streamskit.tasks.stage import Operator, Process, Task


@dataclass(frozen=True)
class RunProcessor(Operator):
    """Gives records to a processor as plain Python values, and passes on what it forwards.

    Args:
        name: the node's name.
        supplier: makes the processor.
        key: the serde of the keys that come in.
        value: the serde of the values that come in.
        new_key: the serde of the keys that go out.
        new_value: the serde of the values that go out.
    """

    name: str
    supplier: Callable[[], processor.Processor]
    key: Serde
    value: Serde
    new_key: Serde
    new_value: Serde

    def open(self, task: Task) -> Process:
        clock = task.memory

        def forward(made: processor.Record) -> None:
            key, value = self.new_key.serialize(made.key), self.new_value.serialize(made.value)
            task.forward(key, value, made.timestamp, made.headers)

        running = self.supplier()
        running.init(processor.ProcessorContext(forward, clock))
        task.keep(_Closing(running))

        def process(side: int, record: Record) -> None:
            clock["stream time"] = max(clock.get("stream time", -1), record.timestamp)
            key, value = self.key.deserialize(record.key), self.value.deserialize(record.value)
            running.process(processor.Record(key, value, record.timestamp, record.headers))

        return process


class _Closing:
    """Closes a processor when its stage ends."""

    def __init__(self, running: processor.Processor) -> None:
        self._running = running

    def save(self) -> None:
        """Close the processor."""
        self._running.close()
