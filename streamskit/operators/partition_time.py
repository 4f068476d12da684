"""The time of a partition, for records that have none of their own."""

from dataclasses import dataclass

from streamskit.common.errors import StreamsError
from streamskit.operators.records import OperatorRecord
from streamskit.operators.stream_task import Operator, OperatorContext, Process

NO_TIMESTAMP = -(2**63)
"""Stands for null, which no field of eight bytes can hold: an extractor may well take -1 from a value."""


@dataclass(frozen=True)
class PartitionTimeOperator(Operator):
    """Says what becomes of records whose timestamp is negative, and remembers the latest time of each partition.

    `record.timestamp` is what the extractor gave, `NO_TIMESTAMP` for null; `record.extra` is the partition's id.
    Mirrors the part of `org.apache.kafka.streams.processor.internals.RecordQueue` that calls a `TimestampExtractor`.

    Args:
        name: the node's name.
        invalid: "fail", "skip", or "partition time": the latest time of the partition so far.
        unknown: what to do before that is known: "fail" or "skip". With "skip" the times come from the records' values:
            there a null one is replaced, and one that is negative as it stands is skipped.
    """

    name: str
    invalid: str
    unknown: str = "fail"

    def open(self, task: OperatorContext) -> Process:
        latest, forward, drop = task.memory, task.forward, task.drop

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, partition, timestamp, headers = record
            known = f"partition {(partition or b'').hex()}"
            if timestamp < 0:
                if self.invalid == "partition time" and (timestamp == NO_TIMESTAMP or self.unknown == "fail"):
                    timestamp = latest.get(known, timestamp)
                if timestamp < 0:
                    return drop() if "skip" in (self.invalid, self.unknown) else self._fail(timestamp)
            if timestamp > latest.get(known, -1):
                latest[known] = timestamp
            return forward(key, value, timestamp, headers)

        return process

    def _fail(self, timestamp: int) -> None:
        why = " and its partition has no earlier record to take the time from" if self.invalid != "fail" else ""
        has = "no timestamp" if timestamp == NO_TIMESTAMP else f"the timestamp {timestamp}"
        raise StreamsError(
            f"{self.name}: a record has {has}{why}. Give its producer a valid clock, or choose "
            "TimestampExtractor.log_and_skip_on_invalid() for this topic."
        )
