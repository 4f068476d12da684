"""Sources: what happens to a topic's records first, in a stream (their time) and in a table (its latest values)."""

from dataclasses import dataclass

from streamskit.common.errors import StreamsError
from streamskit.operators.bytes_stores import BytesVersionedStore
from streamskit.operators.error_handling import attribute_failure
from streamskit.operators.records import NO_TIMESTAMP, OUT_OF_ORDER, OperatorRecord
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessRecord


@dataclass(frozen=True)
class PartitionTimeOperator(Operator):
    """Partition time: decides about records with a negative timestamp, and remembers each partition's latest time.

    `record.timestamp` is what the extractor gave, `NO_TIMESTAMP` for null; `record.extra` is the partition's id.
    Mirrors the part of `org.apache.kafka.streams.processor.internals.RecordQueue` that calls a `TimestampExtractor`.

    Args:
        name: the node's name.
        invalid: "fail", "skip", or "partition time": the latest time of the partition so far.
        unknown: what to do before that is known: "fail" or "skip". With "skip" the times come from the records' values:
            a null one is then replaced, and one that is negative itself is skipped.
    """

    name: str
    invalid: str
    unknown: str = "fail"

    def open(self, context: OperatorContext) -> ProcessRecord:
        latest, forward, drop = context.memory, context.forward, context.drop

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, partition, timestamp, headers = record
            partition_id = f"partition {(partition or b'').hex()}"
            if timestamp < 0:
                if self.invalid == "partition time" and (timestamp == NO_TIMESTAMP or self.unknown == "fail"):
                    timestamp = latest.get(partition_id, timestamp)
                if timestamp < 0:
                    return drop() if "skip" in (self.invalid, self.unknown) else self._fail(timestamp)
            if timestamp > latest.get(partition_id, -1):
                latest[partition_id] = timestamp
            context.task.decide_time(timestamp)
            return forward(key, value, timestamp, headers)

        return process

    def _fail(self, timestamp: int) -> None:
        why = " and its partition has no earlier record to take the time from" if self.invalid != "fail" else ""
        has = "no timestamp" if timestamp == NO_TIMESTAMP else f"the timestamp {timestamp}"
        error = StreamsError(
            f"{self.name}: a record has {has}{why}. Give its producer a valid clock, or choose "
            "TimestampExtractor.log_and_skip_on_invalid() for this topic."
        )
        attribute_failure(error, self.name)  # no handler is called for a record without a time
        raise error


@dataclass(frozen=True)
class OrderOperator(Operator):
    """Order: passes records on in the order in which its task takes them, which is that of their times.

    Mirrors the order in which `org.apache.kafka.streams.processor.internals.PartitionGroup` hands records out.
    """

    name: str

    def open(self, context: OperatorContext) -> ProcessRecord:
        forward = context.forward

        def process(side: int, record: OperatorRecord) -> None:
            forward(record.key, record.value, record.timestamp, record.headers)

        return process


@dataclass(frozen=True)
class LatestValueOperator(Operator):
    """Latest values: each record is the new value of its key's row, and is passed on with the previous value.

    A table's source has this operator, and so has a step with its own store where old values are requested.
    A record without a key is dropped. With a history a late record does not replace the latest value, but is passed on
    all the same, marked with `OUT_OF_ORDER` in `other`; one older than the history is dropped.
    Mirrors `org.apache.kafka.streams.kstream.internals.KTableSource`, and the stores of `KTableFilter` and
    `KTableMapValues`.

    Args:
        name: the node's name.
        history: how far back versions are kept, in milliseconds; None keeps the latest value only.
        skips_absent: whether an update is not passed on if its row neither existed before nor exists now.
        timed: whether the time of each row is kept with its value, for processors that use it.
        tells_given: whether a table with a history passes on the old value that an update came with, not its row's.
    """

    name: str
    history: int | None = None
    skips_absent: bool = False
    timed: bool = False
    tells_given: bool = False

    @property
    def is_cacheable(self) -> bool:
        return self.history is None

    def open(self, context: OperatorContext) -> ProcessRecord:
        return self._latest(context) if self.history is None else self._versioned(context, self.history)

    def _latest(self, context: OperatorContext) -> ProcessRecord:
        changed_page, forward, drop = context.table(self.name).changed_page, context.forward, context.drop
        skips_absent = self.skips_absent
        timed = self.timed

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, _, timestamp, headers = record
            if key is None:
                return drop()
            rows = changed_page(key)
            old = rows.pop(key, None) if value is None else rows.get(key)
            if value is not None:
                rows[key] = (value, timestamp) if timed else value
            elif old is None and skips_absent:
                return None
            return forward(key, value, timestamp, headers, old[0] if timed and old is not None else old)

        return process

    def _versioned(self, context: OperatorContext, history: int) -> ProcessRecord:
        store, forward, drop = BytesVersionedStore(context, self.name, history), context.forward, context.drop

        def process(side: int, record: OperatorRecord) -> None:
            key, value, given, _, timestamp, headers = record
            if key is None:
                return drop()
            old = given if self.tells_given else store.get(key)
            if value is None and old is None and self.skips_absent:
                return None
            put = store.put(key, value, timestamp)
            if not put.is_kept:
                return drop()
            return forward(key, value, timestamp, headers, old, None if put.is_latest else OUT_OF_ORDER)

        return process
