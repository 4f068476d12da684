"""Reads a topic up to its end: no consumer group, no waiting for more."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from streamskit.common.errors import BrokerError
from streamskit.kafka.connection import CONNECT_SECONDS, reachable, reason
from streamskit.kafka.encoding import SerdeLike, decoder
from streamskit.kafka.topics import offsets

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
FromOffsets: TypeAlias = "Literal['earliest', 'latest'] | Mapping[int, int]"

NO_PROGRESS_SECONDS = 30.0
DTYPES = {
    "partition": "int32",
    "offset": "int64",
    "timestamp": "int64",
    "key": "object",
    "value": "object",
    "headers": "object",
}


class ConsumedRecord(NamedTuple):
    """One record as it lies in the topic; the fields are the columns of `consume`."""

    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes]]


def consume(
    bootstrap_servers: str,
    topic: str,
    key: SerdeLike | None,
    value: SerdeLike | None,
    from_offsets: FromOffsets,
    isolation: Isolation,
) -> pd.DataFrame:
    """All records up to the end offsets known now, as a DataFrame; see `KafkaClient`."""
    raw: dict[int, list[Any]] = {}
    for number, batch in _read(bootstrap_servers, topic, from_offsets, isolation):
        raw.setdefault(number, []).extend(batch)
    ordered = [record for number in sorted(raw) for record in raw[number]]
    columns = {
        "partition": [record.partition for record in ordered],
        "offset": [record.offset for record in ordered],
        "timestamp": [record.timestamp for record in ordered],
        "key": _decoded(key, "key", ordered),
        "value": _decoded(value, "value", ordered),
        "headers": [record.headers for record in ordered],
    }
    return pd.DataFrame({name: pd.Series(column, dtype=DTYPES[name]) for name, column in columns.items()})


def records(
    bootstrap_servers: str,
    topic: str,
    key: SerdeLike | None,
    value: SerdeLike | None,
    from_offsets: FromOffsets,
    isolation: Isolation,
) -> Iterator[ConsumedRecord]:
    """The same records one by one; in order inside a partition, partitions mixed."""
    for _, batch in _read(bootstrap_servers, topic, from_offsets, isolation):
        decoded = zip(batch, _decoded(key, "key", batch), _decoded(value, "value", batch), strict=True)
        for raw, key_of_record, value_of_record in decoded:
            yield ConsumedRecord(raw.partition, raw.offset, raw.timestamp, key_of_record, value_of_record, raw.headers)


def _read(
    bootstrap_servers: str, topic: str, from_offsets: FromOffsets, isolation: Isolation
) -> Iterator[tuple[int, list[Any]]]:
    """Batches of raw records, each with its partition."""
    if isolation not in ("read_uncommitted", "read_committed"):
        raise BrokerError(f'isolation is "read_uncommitted" or "read_committed", not {isolation!r}.')
    first, end = offsets(bootstrap_servers, topic, isolation)
    start = _start(topic, from_offsets, first, end)
    unread = {number: offset for number, offset in end.items() if start[number] < offset}
    if unread:
        with _consumer(bootstrap_servers, isolation) as consumer:
            yield from _poll(consumer, topic, start, unread)


def _poll(
    consumer: KafkaConsumer, topic: str, start: dict[int, int], end: dict[int, int]
) -> Iterator[tuple[int, list[Any]]]:
    """Batches until the position of each partition has reached its end offset.

    The position, not the last record, says so: transaction markers and compacted records have offsets, too.
    """
    unread = {TopicPartition(topic, number): offset for number, offset in end.items()}
    consumer.assign(unread)
    for partition in unread:
        consumer.seek(partition, start[partition.partition])
    deadline = time.monotonic() + NO_PROGRESS_SECONDS
    while unread:
        before = {partition: consumer.position(partition) for partition in unread}
        for partition, batch in consumer.poll(timeout_ms=500).items():
            end_here = end[partition.partition]
            # what arrived after the call is left out
            yield (
                partition.partition,
                batch if batch[-1].offset < end_here else [r for r in batch if r.offset < end_here],
            )
        now = {partition: consumer.position(partition) for partition in unread}
        finished = [partition for partition, position in now.items() if position >= unread[partition]]
        consumer.pause(*finished)
        for partition in finished:
            del unread[partition]
        if now != before:
            deadline = time.monotonic() + NO_PROGRESS_SECONDS
        elif time.monotonic() > deadline:
            raise BrokerError(
                f"Nothing arrived from topic {topic!r} for {NO_PROGRESS_SECONDS:.0f} s, although "
                f"partition(s) {sorted(partition.partition for partition in unread)} hold more. Is the "
                "broker still running?"
            )


def _start(topic: str, from_offsets: FromOffsets, first: dict[int, int], end: dict[int, int]) -> dict[int, int]:
    """The offset to start at in each partition; those a dict does not name start at their first record."""
    if from_offsets == "earliest":
        return first
    if from_offsets == "latest":
        return end
    if not isinstance(from_offsets, Mapping):
        raise BrokerError(
            f'from_offsets is "earliest", "latest" or a dict of partition to offset, not {from_offsets!r}.'
        )
    for number, offset in from_offsets.items():
        if number not in end:
            raise BrokerError(f"Topic {topic!r} has no partition {number!r}; it has 0 to {len(end) - 1}.")
        if not isinstance(offset, (int, np.integer)) or not 0 <= offset <= end[number]:
            raise BrokerError(
                f"Partition {number} of topic {topic!r} ends at offset {end[number]}; {offset} is not in it."
            )
    return {number: max(int(from_offsets.get(number, 0)), first[number]) for number in end}


def _decoded(serde: SerdeLike | None, part: str, batch: list[Any]) -> list[Any]:
    """The keys or values of raw records."""
    decode = decoder(serde)
    decoded: list[Any] = []  # its length tells the record that failed
    try:
        for raw in batch:
            decoded.append(decode(getattr(raw, part)))
    except Exception as error:  # a serde is the learner's own code
        raw = batch[len(decoded)]
        raise BrokerError(
            f"The {part} of the record at offset {raw.offset} of topic {raw.topic!r}, partition "
            f"{raw.partition}, cannot be deserialized: {error} Its bytes are {getattr(raw, part)!r}."
        ) from error
    return decoded


@contextlib.contextmanager
def _consumer(bootstrap_servers: str, isolation: Isolation) -> Iterator[KafkaConsumer]:
    with reachable(bootstrap_servers):
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers.split(","),
            bootstrap_timeout_ms=int(CONNECT_SECONDS * 1000),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=isolation,
            allow_auto_create_topics=False,
            exclude_internal_topics=False,
            max_poll_records=50_000,
            max_partition_fetch_bytes=8 * 1024 * 1024,
            check_crcs=False,  # the broker checked on arrival; in pure Python it would halve the rate
            reconnect_backoff_max_ms=1000,
            retry_backoff_ms=20,  # also the wait before the first look-up of a topic
            metrics_enabled=False,
        )
    try:
        yield consumer
    except KafkaError as error:
        raise BrokerError(f"Reading from the broker at {bootstrap_servers} failed: {reason(error)}") from error
    finally:
        consumer.close(autocommit=False, timeout_ms=1000)
