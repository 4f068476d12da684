"""The last records of topics, where reading them fails; no broker takes part."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from streamskit.kafka import tail
from streamskit.kafka.access import NoRightError, Right, no_right
from streamskit.kafka.tail import END, Tail
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Batch, Offsets, TopicRecord
from streamskit.kafka.topics import TopicIdentity

IN = TopicPartition("in", 0)


class FakeReader:
    """A reader that is not allowed to read at first; like a real one, it takes no partition twice."""

    def __init__(self, *settings: Any) -> None:
        self.assigned: set[TopicPartition] = set()
        self.is_allowed = False

    def assign(self, starts: Mapping[TopicPartition, int]) -> None:
        assert self.assigned.isdisjoint(starts)
        self.assigned |= starts.keys()

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        self.assigned -= set(partitions)

    def poll(self, seconds: float) -> Batch[TopicRecord]:
        if not self.is_allowed:
            self.is_allowed = True
            raise no_right("somewhere:9092", Right("Read", "topic", "in"))
        batch = Batch[TopicRecord]()
        batch.records[IN].append(TopicRecord("in", 0, 0, 0, b"k", b"v", []))
        batch.positions[IN] = 1
        return batch


class OnePartition(Tail):
    """A tail of a topic with one record."""

    def _identities(self) -> Mapping[str, TopicIdentity]:
        return {"in": TopicIdentity("its id", 1)}

    def _offsets(self, partitions: Any, spec: Any) -> Offsets:
        return {IN: 1 if spec is END else 0}


def test_who_gets_the_right_to_read_sees_the_records_at_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PartitionReader", FakeReader)
    looking = OnePartition("somewhere:9092", ["in"], keep=5)
    with pytest.raises(NoRightError):
        looking.look()
    looking.look()
    assert [record.value for record in looking.records()] == [b"v"]
