"""A join of two tables by a foreign key: orders subscribe at their customer, and the customer answers.

The two tables are cut into tasks by different keys. So a row of the left table sends a subscription to the task that
has the row with its foreign key; whatever happens there is sent back as an answer to the task that has the left row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from streamskit.operators.records import OUT_OF_ORDER, OperatorRecord
from streamskit.operators.stores import BytesKeyValueStore
from streamskit.operators.stream_task import Operator, OperatorContext, Process
from streamskit.operators.subscription_messages import (
    STAYING,
    Instruction,
    SubscriptionResponseWrapper,
    SubscriptionWrapper,
)


@dataclass(frozen=True)
class SubscriptionSendOperator(Operator):
    """Sends a subscription for each update of the left table, to its foreign key, which is in `record.extra`.

    A row without a key is dropped. Mirrors `SubscriptionSendProcessorSupplier`.

    Args:
        name: the node's name.
        store: the table in which the left rows are kept, with their foreign keys.
    """

    name: str
    store: str

    def open(self, task: OperatorContext) -> Process:
        rows, forward, drop = BytesKeyValueStore(task.table(self.store)), task.forward, task.drop

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, foreign_key, timestamp, headers = record
            if key is None:
                return drop()
            old_value, old_foreign_key = rows.get(key) or (None, None)
            rows.put(key, None if value is None else (value, foreign_key))
            if value is None and old_value is None:
                return None
            if value is None:
                foreign_key = None
            digest = fingerprint(value)

            def send(to: bytes | None, instruction: Instruction) -> None:
                forward(to, SubscriptionWrapper(instruction, digest, key).to_bytes(), timestamp, headers)

            if foreign_key is None:
                return send(old_foreign_key, Instruction.LEAVE)
            if old_foreign_key is None:
                return send(foreign_key, Instruction.ENTER)
            if old_foreign_key != foreign_key:
                send(old_foreign_key, Instruction.MOVE_AWAY)
            return send(foreign_key, Instruction.STAY)

        return process


@dataclass(frozen=True)
class SubscriptionJoinOperator(Operator):
    """Keeps the subscriptions (side 0) to the right table's rows (side 1) and sends answers to the left rows.

    Mirrors `SubscriptionReceiveProcessorSupplier`, `SubscriptionJoinProcessorSupplier` and
    `ForeignTableJoinProcessorSupplier`.

    Args:
        name: the node's name.
        left: whether left rows without a partner have a result.
    """

    name: str
    left: bool

    def open(self, task: OperatorContext) -> Process:
        rows = BytesKeyValueStore(task.table(f"{self.name}/rows"))
        subscribers = BytesKeyValueStore(task.table(f"{self.name}/subscribers"))
        subscribe, notify = self._subscribe(task, rows, subscribers), _notify(task, rows, subscribers)
        return lambda side, record: notify(record) if side else subscribe(record)

    def _subscribe(
        self, task: OperatorContext, rows: BytesKeyValueStore, subscribers: BytesKeyValueStore
    ) -> Callable[[OperatorRecord], None]:
        forward, drop, left = task.forward, task.drop, self.left

        def subscribe(record: OperatorRecord) -> None:
            foreign_key, _, _, _, timestamp, headers = record
            instruction, digest, primary_key = SubscriptionWrapper.from_bytes(record.value or b"")
            if foreign_key is None:
                if left:
                    forward(primary_key, SubscriptionResponseWrapper(digest, None).to_bytes(), timestamp, headers)
                elif digest:
                    drop()
                return
            _enroll(subscribers, foreign_key, primary_key, digest if instruction in STAYING else None)
            row, row_timestamp = rows.get(foreign_key) or (None, timestamp)
            if instruction == Instruction.MOVE_AWAY or (instruction == Instruction.ENTER and row is None and not left):
                return
            latest = max(timestamp, row_timestamp)
            if instruction == Instruction.LEAVE:
                # A left join answers such a row without a look at the right one.
                row, latest = None, timestamp if left else latest
            forward(primary_key, SubscriptionResponseWrapper(digest, row).to_bytes(), latest, headers)

        return subscribe


def _enroll(subscribers: BytesKeyValueStore, foreign_key: bytes, primary_key: bytes, digest: bytes | None) -> None:
    """Note that a left row with this fingerprint subscribes to a foreign key; None is one that does so no more."""
    enrolled = dict(subscribers.get(foreign_key) or ())
    if digest is None:
        enrolled.pop(primary_key, None)
    else:
        enrolled[primary_key] = digest
    subscribers.put(foreign_key, enrolled or None)


def _notify(
    task: OperatorContext, rows: BytesKeyValueStore, subscribers: BytesKeyValueStore
) -> Callable[[OperatorRecord], None]:
    """Return the function that takes a right row's update and tells it to the row's subscribers."""
    forward, drop = task.forward, task.drop

    def notify(record: OperatorRecord) -> None:
        foreign_key, value, _, extra, timestamp, headers = record
        if foreign_key is None or extra == OUT_OF_ORDER:
            return drop()
        rows.put(foreign_key, None if value is None else (value, timestamp))
        for primary_key, digest in sorted((subscribers.get(foreign_key) or {}).items()):
            forward(primary_key, SubscriptionResponseWrapper(digest, value).to_bytes(), timestamp, headers)
        return None

    return notify


@dataclass(frozen=True)
class ResponseJoinOperator(Operator):
    """Turns answers into results, as long as the left row is still the one that asked; others are dropped.

    `value` of the output is the left row, `other` the right one; `value` None is a tombstone. Mirrors
    `ResponseJoinProcessorSupplier`.

    Args:
        name: the node's name.
        store: the table of left rows that `SubscriptionSendOperator` keeps, in the same stage.
        left: whether left rows without a partner have a result.
    """

    name: str
    store: str
    left: bool

    def open(self, task: OperatorContext) -> Process:
        rows, forward, drop, left = BytesKeyValueStore(task.table(self.store)), task.forward, task.drop, self.left

        def process(side: int, record: OperatorRecord) -> None:
            key, data, _, _, timestamp, headers = record
            if key is None or data is None:
                return drop()
            digest, right = SubscriptionResponseWrapper.from_bytes(data)
            value, _ = rows.get(key) or (None, None)
            if digest != fingerprint(value):
                return drop()
            if value is None or (right is None and not left):
                return forward(key, None, timestamp, headers)
            return forward(key, value, timestamp, headers, None, right)

        return process


def fingerprint(value: bytes | None) -> bytes:
    """Return a short digest of a row by which an answer knows whether it is still the same; empty for no row."""
    return b"" if value is None else blake2b(value, digest_size=16).digest()
