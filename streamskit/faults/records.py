"""A record that nobody can read."""

from kafka import TopicPartition

from streamskit.api.client_settings import BootstrapServers
from streamskit.broker.base import Broker
from streamskit.common.names import own_name
from streamskit.faults.brokers import own
from streamskit.faults.fault import Fault
from streamskit.kafka import topics
from streamskit.kafka.connection import admin_client
from streamskit.serdes import Serdes

POISON = b"\xff\xfe\x00poison"
"""No text, no JSON, and of no length that a number has."""


def poison(
    topic: str,
    broker: Broker | None = None,
    value: bytes = POISON,
    key: str | bytes = "poison",
    partition: int | None = None,
) -> Fault:
    """Write a record to a topic that no serde reads; but for text, which makes something of any bytes.

    Kafka cannot take a record back. `undo` deletes the beginning of its partition up to and including the record, and
    what else stands there: an application that has not read that yet then stops for what it has missed.

    Args:
        topic: where to.
        broker: on which broker; the project's shared one when not given.
        value: the bytes that are no value.
        key: its key.
        partition: which partition; that of the key when not given.

    Raises:
        BrokerError: there is no such topic or partition, or the broker is not this project's own.

    >>> fault = poison("trades")  # doctest: +SKIP
    >>> streams.state  # doctest: +SKIP
    <State.ERROR: 'ERROR'>
    """
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
    """Return partition and offset of the record: the newest with its value, for others may write as well."""
    written = [record for record in broker.records(topic, None, Serdes.bytes(), before) if record.value == value]
    return written[-1].partition, written[-1].offset


def _delete_up_to(bootstrap_servers: BootstrapServers, topic: str, partition: int, offset: int) -> None:
    with admin_client(bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, partition): offset + 1})
