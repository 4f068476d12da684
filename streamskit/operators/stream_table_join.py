"""A stream that looks its records up in a table."""

from collections.abc import Callable
from dataclasses import dataclass

from streamskit.operators.records import OperatorRecord
from streamskit.operators.stream_task import Operator, OperatorContext, Process
from streamskit.operators.timeline import Timeline, width_for
from streamskit.operators.versioned_store import BytesVersionedStore


@dataclass(frozen=True)
class StreamTableJoinOperator(Operator):
    """Joins each record of a stream (side 0) with the row that a table (side 1) has for its key.

    A stream's record without a value is dropped, and so is one without a key to look up, but a left join keeps a record
    with a null key. `other` of the output is the row. Mirrors `KStreamKTableJoin` and, with `by_extra`,
    `KStreamGlobalKTableJoin`.

    Args:
        name: the node's name.
        left: whether records without a row go on.
        history: the table's, in milliseconds: the row is the one at the record's time; None takes the row of now.
        grace: how long records wait for the table, in milliseconds of stream time; None joins them at once.
        by_extra: looks up `record.extra` in place of the key.
    """

    name: str
    left: bool
    history: int | None = None
    grace: int | None = None
    by_extra: bool = False

    def open(self, task: OperatorContext) -> Process:
        forward, drop, left, by_extra = task.forward, task.drop, self.left, self.by_extra
        put, get = _latest_rows(task) if self.history is None else _versions(task, self.history)
        buffer = None if self.grace is None else _Buffer(task, self.grace)

        def join(record: OperatorRecord) -> None:
            key, value, _, extra, timestamp, headers = record
            wanted = extra if by_extra else key
            row = None if wanted is None else get(wanted, timestamp)
            if row is not None or left:
                forward(key, value, timestamp, headers, None, row)

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, extra, timestamp, _ = record
            if side == 1:
                return drop() if key is None or not put(key, value, timestamp) else None
            wanted = extra if by_extra else key
            if value is None or (wanted is None and not (left and key is None)):
                return drop()
            if buffer is None or key is None or not buffer.add(record):
                return join(record)
            for waited in buffer.take_due():
                join(waited)
            return None

        return process


Put = Callable[[bytes, bytes | None, int], bool]
Get = Callable[[bytes, int], bytes | None]


def _latest_rows(task: OperatorContext) -> tuple[Put, Get]:
    """Return how to put and get rows of which only the latest value is kept."""
    table = task.table(task.name)

    def put(key: bytes, value: bytes | None, timestamp: int) -> bool:
        rows = table.change(key)
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value
        return True

    def get(key: bytes, timestamp: int) -> bytes | None:
        return table.look_at(key).get(key)

    return put, get


def _versions(task: OperatorContext, history: int) -> tuple[Put, Get]:
    """Return how to put and get rows by time."""
    store = BytesVersionedStore(task, task.name, history)

    def put(key: bytes, value: bytes | None, timestamp: int) -> bool:
        return store.put(key, value, timestamp).is_kept

    return put, store.get


class _Buffer:
    """Records that wait for the table, in the order of time, key and arrival.

    Mirrors `org.apache.kafka.streams.state.internals.RocksDBTimeOrderedKeyValueBuffer`.
    """

    def __init__(self, task: OperatorContext, grace: int) -> None:
        self._timeline = Timeline(f"{task.name}/buffer", task.pages, width_for(grace))
        self._memory, self._grace = task.memory, grace
        self._memory.setdefault("stream time", -1)
        self._memory.setdefault("arrivals", 0)
        task.keep(self._timeline)

    def add(self, record: OperatorRecord) -> bool:
        """Let a record wait; return False if its time to wait is over already."""
        memory = self._memory
        if record.timestamp < memory["stream time"] - self._grace:
            return False
        memory["stream time"] = max(memory["stream time"], record.timestamp)
        memory["arrivals"] += 1
        self._timeline.put((record.timestamp, record.key, memory["arrivals"]), tuple(record))
        return True

    def take_due(self) -> list[OperatorRecord]:
        """Return the records that have waited long enough; they wait no more."""
        due = self._memory["stream time"] - self._grace
        return [OperatorRecord(*waiting) for _, waiting in self._timeline.take_until(due)]
