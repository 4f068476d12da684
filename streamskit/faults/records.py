"""A fault: a record that no serde can read."""

from kafka import TopicPartition

from streamskit.api.client_settings import BootstrapServers
from streamskit.broker.base import Broker
from streamskit.common.errors import StreamsError
from streamskit.common.names import own_name
from streamskit.faults.brokers import own
from streamskit.faults.fault import Fault
from streamskit.kafka import topics
from streamskit.kafka.connection import admin_client
from streamskit.serdes import Serdes

POISON = b"\xff\xfe\x00poison"
"""Not text, not JSON, and not as long as any number."""


def poison(
    topic: str,
    broker: Broker | None = None,
    value: bytes = POISON,
    key: str | bytes = "poison",
    partition: int | None = None,
) -> Fault:
    """Write a record that no serde can read to a topic; only a text serde reads it, as it accepts any bytes.

    Kafka cannot take back a single record. `undo` deletes its partition from the beginning up to and including the
    record, so an application that has not read the other records there yet stops because of the loss.

    Args:
        topic: the topic to write to.
        broker: its broker; the project's shared one when not given.
        value: the unreadable bytes.
        key: the record's key.
        partition: its partition; by default, that of the key.

    Raises:
        BrokerError: there is no such topic or partition, or the broker is not this project's own.
        StreamsError: `value` is not bytes.

    >>> fault = poison("trades")  # doctest: +SKIP
    >>> streams.state  # doctest: +SKIP
    <State.ERROR: 'ERROR'>
    """
    if not isinstance(value, bytes):
        raise StreamsError(f"poison(value={value!r}): the unreadable value has to be bytes, such as b'\\xff'.")
    chosen = own(broker, "fed with poison")
    before = chosen.end_offsets(topic)
    chosen.produce(topic, [{"key": key, "value": value} | ({} if partition is None else {"partition": partition})])
    where, offset = _find(chosen, topic, before, value)
    first = topics.offsets(chosen.connection, own_name(topic), "read_uncommitted")[0][where]
    others = offset - first
    return Fault(
        f"A record that no serde reads was written to '{topic}', partition {where}, offset {offset}.",
        "an application that reads it stops with a sentence, at every start; with a deserialization_handler, such as "
        "LogAndContinue('dead-letters'), it goes on and counts it in streams.metrics()",
        "undo() deletes the record"
        + (f", and with it the {others:,} that stand before it in partition {where}" if others else ""),
        lambda: _delete_up_to(chosen.connection, own_name(topic), where, offset),
    )


def _find(broker: Broker, topic: str, before: dict[int, int], value: bytes) -> tuple[int, int]:
    """Return the record's partition and offset: of the newest one with its value, as others may be writing as well."""
    written = [record for record in broker.records(topic, None, Serdes.bytes(), before) if record.value == value]
    return written[-1].partition, written[-1].offset


def _delete_up_to(bootstrap_servers: BootstrapServers, topic: str, partition: int, offset: int) -> None:
    with admin_client(bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, partition): offset + 1})
