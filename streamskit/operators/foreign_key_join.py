"""A join of two tables by a foreign key: orders subscribe to their customer, and the customer responds.

The two tables are split into tasks by different keys. So a row of the left table sends a subscription to the task that
has the row with its foreign key; every change there is sent back as a response to the task that has the left row.
Both messages go through repartition topics.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

from streamskit.operators.bytes_stores import BytesKeyValueStore
from streamskit.operators.bytes_timed_stores import RowRetention, rows_of_table
from streamskit.operators.records import OUT_OF_ORDER, OperatorRecord, row_time
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessRecord


class Instruction(IntEnum):
    """What a left row requests from a foreign key. Mirrors `SubscriptionWrapper.Instruction`."""

    DELETE_KEY_NO_PROPAGATE = 0
    """Unsubscribe without a response: the row has moved to another foreign key, which will respond."""
    DELETE_KEY_AND_PROPAGATE = 1
    """Unsubscribe and respond: the row was deleted, or has no foreign key any more."""
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    """Subscribe, and respond even if there is no right row: an earlier result may have to be deleted."""
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3
    """Subscribe, and respond if there is a right row: the left row has no result yet."""

    @property
    def subscribes(self) -> bool:
        """Whether the left row is subscribed afterwards."""
        return self >= Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE


class SubscriptionWrapper(NamedTuple):
    """Subscription message: from a left row to its foreign key.

    Mirrors `org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionWrapper`.
    """

    instruction: Instruction
    digest: bytes
    """The `fingerprint` of the left row; empty if it was deleted."""
    primary_key: bytes
    """The key of the left row."""

    def to_bytes(self) -> bytes:
        """Return the message: one byte each for the instruction and the digest's length, the digest, the key."""
        return struct.pack("BB", self.instruction, len(self.digest)) + self.digest + self.primary_key

    @classmethod
    def from_bytes(cls, data: bytes) -> "SubscriptionWrapper":
        """Decode a message."""
        end = 2 + data[1]
        return cls(Instruction(data[0]), data[2:end], data[end:])


class SubscriptionResponseWrapper(NamedTuple):
    """Response message: from a foreign key to a left row.

    Mirrors `org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionResponseWrapper`.
    """

    digest: bytes
    """The `fingerprint` of the left row that subscribed."""
    right: bytes | None
    """The right row's value, if there is one."""

    def to_bytes(self) -> bytes:
        """Return the message: one byte each for the digest's length and whether there is a right row, then both."""
        return struct.pack("B?", len(self.digest), self.right is not None) + self.digest + (self.right or b"")

    @classmethod
    def from_bytes(cls, data: bytes) -> "SubscriptionResponseWrapper":
        """Decode a message."""
        end = 2 + data[0]
        return cls(data[2:end], data[end:] if data[1] else None)


def fingerprint(value: bytes | None) -> bytes:
    """Return a short digest of a left row, by which to check whether it is still the same; empty for no row."""
    return b"" if value is None else blake2b(value, digest_size=16).digest()


@dataclass(frozen=True)
class SubscriptionSendOperator(Operator):
    """Foreign-key join, left table: sends a subscription for each update to its foreign key, in `record.extra`.

    A row without a key is dropped; in an inner join so is an update that has no foreign key now and had none before.
    Mirrors `org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionSendProcessorSupplier`.

    Args:
        name: the node's name.
        store: the table in which the left rows are kept, with their foreign keys.
        left: whether left rows without a partner have a result.
        tells_old: whether updates carry the previous value, and `record.extra` has both foreign keys, as
            `change_from_bytes` reads them; otherwise both come from the row that is kept here.
        retention: for how long rows of a windowed left table can be looked up.
    """

    name: str
    store: str
    left: bool = False
    tells_old: bool = False
    retention: RowRetention | None = None

    def open(self, context: OperatorContext) -> ProcessRecord:
        rows = rows_of_table(context, self.store, self.retention)
        forward, drop = context.forward, context.drop
        left, tells_old = self.left, self.tells_old

        def process(side: int, record: OperatorRecord) -> None:
            key, value, old_value, foreign_key, timestamp, headers = record
            if key is None:
                return drop()
            if tells_old:
                foreign_key, old_foreign_key = change_from_bytes(foreign_key)
            else:
                old_value, old_foreign_key = rows.get(key) or (None, None)
            rows.put(key, None if value is None else (value, foreign_key))
            if value is None and old_value is None:
                return None
            digest = fingerprint(value)

            def send(foreign_key: bytes | None, instruction: Instruction) -> None:
                forward(foreign_key, SubscriptionWrapper(instruction, digest, key).to_bytes(), timestamp, headers)

            if foreign_key is None and old_foreign_key is None and not left:
                return drop()
            if foreign_key is None or value is None:
                return send(old_foreign_key, Instruction.DELETE_KEY_AND_PROPAGATE)
            if old_foreign_key is None:
                return send(foreign_key, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)
            if old_foreign_key == foreign_key:
                # Without a right row there was no result before, either.
                return send(foreign_key, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)
            send(old_foreign_key, Instruction.DELETE_KEY_NO_PROPAGATE)
            return send(foreign_key, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)

        return process


def change_from_bytes(data: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Return the new and the old bytes of what `execution.record_columns.change_to_bytes` wrote."""
    if data is None:
        return None, None
    if data[:1] == b"\x03":
        end = 9 + int.from_bytes(data[1:9], "big")
        return data[9:end], data[end:]
    return (data[1:], None) if data[:1] == b"\x01" else (None, data[1:])


Subscriptions = dict[bytes, bytes]
"""Of a foreign key: the left rows that subscribe to it, by primary key, each with its fingerprint."""


@dataclass(frozen=True)
class SubscriptionJoinOperator(Operator):
    """Foreign-key join, right table: keeps subscriptions (side 0) to its rows (side 1) and sends responses.

    Mirrors `SubscriptionReceiveProcessorSupplier`, `SubscriptionJoinProcessorSupplier` and
    `ForeignTableJoinProcessorSupplier` of `org.apache.kafka.streams.kstream.internals.foreignkeyjoin`.

    Args:
        name: the node's name.
        left: whether left rows without a partner have a result.
        retention: for how long rows of a windowed right table can be looked up.
    """

    name: str
    left: bool
    retention: RowRetention | None = None

    def open(self, context: OperatorContext) -> ProcessRecord:
        rows = rows_of_table(context, f"{self.name}/rows", self.retention)
        subscribers = BytesKeyValueStore(context.table(f"{self.name}/subscribers"))
        subscribe, notify = self._subscribe(context, rows, subscribers), _notify(context, rows, subscribers)
        return lambda side, record: notify(record) if side else subscribe(record)

    def _subscribe(
        self, context: OperatorContext, rows: BytesKeyValueStore, subscribers: BytesKeyValueStore
    ) -> Callable[[OperatorRecord], None]:
        """Return the function that stores a subscription and responds to it."""
        forward, left = context.forward, self.left

        def subscribe(record: OperatorRecord) -> None:
            foreign_key, data, _, _, timestamp, headers = record
            instruction, digest, primary_key = SubscriptionWrapper.from_bytes(data or b"")
            if foreign_key is None:
                forward(primary_key, SubscriptionResponseWrapper(digest, None).to_bytes(), timestamp, headers)
                return
            # Not a copy: a key may have very many subscribers, and each record changes only one.
            subscriptions: Subscriptions = subscribers.get(foreign_key) or {}
            if instruction.subscribes:
                subscriptions[primary_key] = digest
            else:
                subscriptions.pop(primary_key, None)
            subscribers.put(foreign_key, subscriptions or None)
            row, row_timestamp = rows.get(foreign_key) or (None, timestamp)
            if not _responds(instruction, left or row is not None):
                return
            latest = max(timestamp, row_timestamp)
            if instruction == Instruction.DELETE_KEY_AND_PROPAGATE:
                # A left join responds to such a row without looking at the right one.
                row, latest = None, timestamp if left else latest
            forward(primary_key, SubscriptionResponseWrapper(digest, row).to_bytes(), latest, headers)

        return subscribe


def _responds(instruction: Instruction, has_result: bool) -> bool:
    if instruction == Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE:
        return has_result
    return instruction != Instruction.DELETE_KEY_NO_PROPAGATE


def _notify(
    context: OperatorContext, rows: BytesKeyValueStore, subscribers: BytesKeyValueStore
) -> Callable[[OperatorRecord], None]:
    """Return the function that stores a right row's update and responds to the row's subscribers."""
    forward, drop = context.forward, context.drop

    def notify(record: OperatorRecord) -> None:
        foreign_key, value, _, extra, timestamp, headers = record
        if foreign_key is None or extra == OUT_OF_ORDER:
            return drop()
        rows.put(foreign_key, None if value is None else (value, row_time(record)))
        subscriptions: Subscriptions = subscribers.get(foreign_key) or {}
        for primary_key, digest in sorted(subscriptions.items()):
            forward(primary_key, SubscriptionResponseWrapper(digest, value).to_bytes(), timestamp, headers)
        return None

    return notify


@dataclass(frozen=True)
class ResponseJoinOperator(Operator):
    """Foreign-key join, result: joins responses with the left row, if it is still the one that subscribed.

    Other responses are dropped. `value` of the output is the left row, `other` the right one; `value` None is a
    tombstone.
    Mirrors `org.apache.kafka.streams.kstream.internals.foreignkeyjoin.ResponseJoinProcessorSupplier`.

    Args:
        name: the node's name.
        store: the table of left rows that `SubscriptionSendOperator` keeps, in the same task.
        left: whether left rows without a partner have a result.
        retention: as there; the response to a row that is too old is dropped.
    """

    name: str
    store: str
    left: bool
    retention: RowRetention | None = None

    def open(self, context: OperatorContext) -> ProcessRecord:
        rows = rows_of_table(context, self.store, self.retention)
        forward, drop = context.forward, context.drop

        def process(side: int, record: OperatorRecord) -> None:
            key, data, _, _, timestamp, headers = record
            if key is None or data is None:
                return drop()
            digest, right = SubscriptionResponseWrapper.from_bytes(data)
            value, _ = rows.get(key) or (None, None)
            if digest != fingerprint(value):
                return drop()
            if value is None or (right is None and not self.left):
                return forward(key, None, timestamp, headers)
            return forward(key, value, timestamp, headers, None, right)

        return process
