"""A program whose every result can be told from its input: a key and its window are spelled minimum, maximum and count.

Number n is written at millisecond n with the key of n modulo 50. A copy of each record goes to a topic of its own,
where a lost one is missing by its number, and one that was written twice is there twice. A processor with fields and a
schedule collects numbers and passes them on, some of them in records of 100 kB, and a function is called for each.
"""

import uuid
from pathlib import Path

from pyspark.sql import functions as F

from streamskit import (
    KafkaStreams,
    Materialized,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from streamskit.broker.base import Broker

KEYS, WINDOW, LARGE = 50, 5_000, 100_000
LONG, STRING = Serdes.long(), Serdes.string()


class Settling(Processor):
    """Collects numbers by key, and passes on what it has every two seconds of stream time.

    Each result says in which life of the processor it was made and as which, which only its fields know.
    """

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.life, self.turns = uuid.uuid4().hex, 0
        context.schedule("2 seconds", PunctuationType.STREAM_TIME, self.settle)

    def process(self, record: Record) -> None:
        store = self.context.state_store("settling")
        store.put(record.key, ",".join(filter(None, (store.get(record.key), str(record.value)))))

    def settle(self, now: int) -> None:
        store = self.context.state_store("settling")
        for key, numbers in list(store.all()):
            self.turns += 1
            store.delete(key)
            said = f"{self.life}:{self.turns}:{numbers}".ljust(LARGE if key == "0" else 0)
            self.context.forward(Record(key, said, self.context.current_stream_time_ms()))


class Noting:
    """Writes the numbers that it is called with to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, key: str, value: int) -> None:
        with self.file.open("a") as file:
            file.write(f"{value}\n")


def tallies(name: str, calls: Path) -> Topology:
    """Return the topology: minimum, maximum and count in windows by Spark, the sum in Python, a copy of each record.

    Args:
        name: what its topics are called, before "-in", "-out" and "-settled".
        calls: the file where its `foreach` writes numbers.
    """
    builder = StreamsBuilder()
    numbers = builder.stream(f"{name}-in", value=LONG)
    grouped = numbers.group_by_key()
    # The partitions of the topic need not be read at the same pace.
    grouped.windowed_by(TimeWindows.of_size_and_grace(WINDOW, 2 * WINDOW)).aggregate(
        lambda v: F.struct(F.min(v).alias("least"), F.max(v).alias("most"), F.count("*").alias("n")),
        Materialized("tallies", retention="30 days"),
    )
    grouped.reduce(lambda total, number: total + number, "totals")
    numbers.to(f"{name}-out", value=LONG)
    numbers.foreach(Noting(calls))
    settling = Stores.persistent_key_value_store("settling", STRING, STRING)
    numbers.process(Settling, stores=[settling], value=STRING).to(f"{name}-settled", value=STRING)
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


def check_settled(broker: Broker, topic: str, streams: KafkaStreams, count: int) -> None:
    """Check that each number was passed on once by the processor, or is left with it; equal results count as one."""
    results = {value.rstrip() for value in broker.consume(topic, value=STRING)["value"]}
    assert len({result.rpartition(":")[0] for result in results}) == len(results), "two results of one turn differ"
    left = [row.value for row in streams.store("settling").all()]
    numbers = [int(number) for each in [*results, *left] for number in each.rpartition(":")[2].split(",")]
    assert sorted(numbers) == list(range(count))


def check_calls(calls: Path, count: int) -> None:
    """Check that the function was called for each number, once or more often."""
    assert {int(line) for line in calls.read_text().split()} == set(range(count))
