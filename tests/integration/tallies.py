"""A program whose every result can be told from its input: a key and its window are spelled minimum, maximum and count.

Number n is written at millisecond n with the key of n modulo 50. A copy of each record goes to a topic of its own,
where a lost one is missing by its number, and one that was written twice is there twice.
"""

from pyspark.sql import functions as F

from streamskit import KafkaStreams, Materialized, Serdes, StreamsBuilder, TimeWindows, Topology
from streamskit.broker.base import Broker

KEYS, WINDOW = 50, 5_000
LONG = Serdes.long()


def tallies(source: str, copies: str) -> Topology:
    """Return the topology: minimum, maximum and count in windows by Spark, the sum in Python, a copy of each record."""
    builder = StreamsBuilder()
    numbers = builder.stream(source, value=LONG)
    grouped = numbers.group_by_key()
    # The partitions of the topic need not be read at the same pace.
    grouped.windowed_by(TimeWindows.of_size_and_grace(WINDOW, 2 * WINDOW)).aggregate(
        lambda v: F.struct(F.min(v).alias("least"), F.max(v).alias("most"), F.count("*").alias("n")),
        Materialized("tallies", retention="30 days"),
    )
    grouped.reduce(lambda total, number: total + number, "totals")
    numbers.to(copies, value=LONG)
    return builder.build()


def records(count: int) -> list[tuple[str, int, int]]:
    """Return the numbers below `count`, a multiple of WINDOW, each with its key and time."""
    return [(str(n % KEYS), n, n) for n in range(count)]


def check_tables(streams: KafkaStreams, count: int) -> None:
    """Check that each record has counted exactly once."""
    tallied = {(at.key, at.start): tuple(row.values()) for at, row in streams.store("tallies").all()}
    assert tallied == {
        (str(key), start): (start + key, start + WINDOW - KEYS + key, WINDOW // KEYS)
        for key in range(KEYS)
        for start in range(0, count, WINDOW)
    }
    totals = {str(key): sum(range(key, count, KEYS)) for key in range(KEYS)}
    assert dict(streams.store("totals").all()) == totals


def check_copies(broker: Broker, topic: str, count: int) -> int:
    """Check that no record is missing and that those written twice are the same to the byte; return how many are."""
    bytes_ = Serdes.byte_array()
    written = broker.consume(topic, key=bytes_, value=bytes_)
    copies = {(row.key, row.value, row.timestamp, row.partition, str(row.headers)) for row in written.itertuples()}
    given = {(key.encode(), number.to_bytes(8, "big"), time) for key, number, time in records(count)}
    assert {copy[:3] for copy in copies} == given
    assert len(copies) == count
    return len(written) - count
