"""A global store outside the tasks: runs its processor, to fill a copy of the store that can be queried."""

from collections.abc import Sequence
from typing import Any

from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_reader import TopicRecord
from streamskit.operators.paged_state import MemoryPages
from streamskit.operators.processors import InputPort, ProcessorsOperator, ProcessorSpec, RunningProcessors
from streamskit.operators.records import OperatorRecord, SourceRecord
from streamskit.operators.stream_task import OperatorContext, StreamTask
from streamskit.serdes import RegistryError, Serde
from streamskit.state.stores import Store

StoreChange = tuple[Any, bytes | None, int]
"""Key, value and time of a change of the store; a null value deletes the row."""


class GlobalStoreFiller:
    """Passes the records of a topic to the processor of a global store, and returns what it puts into the store.

    Mirrors `org.apache.kafka.streams.processor.internals.GlobalStateUpdateTask`.

    Args:
        name: of the processor's node.
        place: the name with its place in the program, for errors.
        application_id: as its context returns it.
        processor: makes the processor.
        store: what it fills.
        key: the serde of the topic's keys.
        value: the serde of the topic's values.
    """

    def __init__(
        self, name: str, place: str, application_id: str, processor: object, store: Store, key: Serde, value: Serde
    ) -> None:
        spec = ProcessorSpec(name, processor, (), (), fills=store.name)
        ports = (InputPort(key, value, processor=name),)
        operator = ProcessorsOperator(name, application_id, (spec,), ports, (), global_stores=(store,))
        self._place, self._serdes = place, (key, value)
        self._changes: list[StoreChange] = []
        self._task = StreamTask([operator], MemoryPages())
        context = OperatorContext(self._task, 0, name, lambda *_, **__: None, is_cached=False)
        self._processors = RunningProcessors(operator, context, lambda *change: self._changes.append(change))

    def changes(self, records: Sequence[TopicRecord]) -> list[StoreChange]:
        """Give records to the processor, and return what it has put into the store.

        Raises:
            StreamsError: one of them cannot be read.
        """
        for topic, partition, offset, timestamp, key, value, pairs in records:
            self._task.source = SourceRecord(topic, partition, offset, timestamp)
            headers = [{"key": name, "value": header} for name, header in pairs] or None
            try:
                self._processors.process(0, OperatorRecord(key, value, None, None, timestamp, headers))
            except Exception as failure:
                if can_be_read(key, value, *self._serdes):
                    raise
                raise StreamsError(
                    f"{self._place} cannot read a record in partition {partition} of topic '{topic}': {failure} Choose "
                    "deserialization_handler=LogAndContinue() to go on without such records."
                ) from failure
        changes = self._changes[:]
        self._changes.clear()
        return changes


def can_be_read(key: bytes | None, value: bytes | None, key_serde: Serde, value_serde: Serde) -> bool:
    """Return whether the serdes of a topic can read key and value of a record.

    Raises:
        RegistryError: the schema registry does not answer.
    """
    try:
        key_serde.deserialize(key)
        value_serde.deserialize(value)
    except RegistryError:  # no record is at fault
        raise
    except Exception:  # a serde may be a user's own
        return False
    return True
