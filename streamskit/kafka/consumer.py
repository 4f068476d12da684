"""Reads a topic up to its end: no consumer group, no waiting for more."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from confluent_kafka import KafkaException

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError
from streamskit.kafka.encoding import SerdeLike, decoder
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Isolation, PartitionReader, TopicRecord, topic_record
from streamskit.kafka.topics import offsets

FromOffsets: TypeAlias = "Literal['earliest', 'latest'] | Mapping[int, int]"
Raw: TypeAlias = list[TopicRecord]

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


def to_frame(batches: Iterable[Raw], key: SerdeLike | None, value: SerdeLike | None) -> pd.DataFrame:
    """Return all records as a data frame, ordered by partition and offset.

    Its columns are partition, offset, timestamp (milliseconds since 1970), key, value and headers.
    """
    raw: dict[int, Raw] = {}
    for batch in batches:
        if batch:
            raw.setdefault(batch[0].partition, []).extend(batch)
    ordered = [record for number in sorted(raw) for record in raw[number]]
    columns = {name: [getattr(record, name) for record in ordered] for name in ("partition", "offset", "timestamp")}
    columns["key"], columns["value"] = _decoded(key, "key", ordered), _decoded(value, "value", ordered)
    columns["headers"] = [record.headers for record in ordered]
    return pd.DataFrame({name: pd.Series(column, dtype=DTYPES[name]) for name, column in columns.items()})


def decoded(batches: Iterable[Raw], key: SerdeLike | None, value: SerdeLike | None) -> Iterator[ConsumedRecord]:
    """The records one by one; in order inside a partition, partitions mixed."""
    for batch in batches:
        pairs = zip(batch, _decoded(key, "key", batch), _decoded(value, "value", batch), strict=True)
        for raw, key_of_record, value_of_record in pairs:
            yield ConsumedRecord(raw.partition, raw.offset, raw.timestamp, key_of_record, value_of_record, raw.headers)


def read(
    bootstrap_servers: BootstrapServers, topic: str, from_offsets: FromOffsets, isolation: Isolation
) -> Iterator[Raw]:
    """Batches of raw records, each of one partition, up to the end offsets known now; see `KafkaClient`.

    Raises:
        BrokerError: there is no such isolation, topic or offset, or reading fails.
    """
    if isolation not in ("read_uncommitted", "read_committed"):
        raise BrokerError(f'isolation is "read_uncommitted" or "read_committed", not {isolation!r}.')
    first, end = offsets(bootstrap_servers, topic, isolation)
    start = _start(topic, from_offsets, first, end)
    unread = {TopicPartition(topic, number): offset for number, offset in end.items() if start[number] < offset}
    if not unread:
        return
    reader = PartitionReader(bootstrap_servers, topic_record, isolation)
    try:
        reader.assign({where: start[where.partition] for where in unread})
        yield from _up_to_ends(reader, unread)
    except KafkaException as error:
        raise BrokerError(f"Reading from the broker at {bootstrap_servers} failed: {error.args[0].str()}") from error
    finally:
        reader.close()


def _up_to_ends(reader: PartitionReader[TopicRecord], unread: dict[TopicPartition, int]) -> Iterator[Raw]:
    """Batches until the position of each partition has reached its end offset."""
    deadline = time.monotonic() + NO_PROGRESS_SECONDS
    while unread:
        batch = reader.poll(0.5)
        for where, found in batch.records.items():
            # what arrived after the call is left out
            end = unread[where]
            yield found if found[-1].offset < end else [record for record in found if record.offset < end]
        finished = [where for where, position in batch.positions.items() if position >= unread[where]]
        reader.unassign(finished)
        for where in finished:
            del unread[where]
        if batch.positions:
            deadline = time.monotonic() + NO_PROGRESS_SECONDS
        elif time.monotonic() > deadline:
            raise BrokerError(
                f"Nothing arrived from topic {next(iter(unread)).topic!r} for {NO_PROGRESS_SECONDS:.0f} s, although "
                f"partition(s) {sorted(where.partition for where in unread)} hold more. Is the "
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


def _decoded(serde: SerdeLike | None, part: str, batch: Raw) -> list[Any]:
    """The keys or values of raw records."""
    decode = decoder(serde)
    decoded: list[Any] = []  # its length tells the record that failed
    try:
        for raw in batch:
            decoded.append(decode(getattr(raw, part)))
    except Exception as error:  # a serde is the user's own code
        raw = batch[len(decoded)]
        raise BrokerError(
            f"The {part} of the record at offset {raw.offset} of topic {raw.topic!r}, partition "
            f"{raw.partition}, cannot be deserialized: {error} Its bytes are {getattr(raw, part)!r}."
        ) from error
    return decoded
