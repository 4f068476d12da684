"""A program whose output tells what was lost and what was doubled: every record by its id, and counts by group."""

from collections import Counter

from pyspark.sql import functions as F

from streamskit import KafkaStreams, StreamsBuilder, Topology
from streamskit.broker.base import Broker

GROUPS = 7


def counting(name: str) -> Topology:
    """Return the topology: a copy of each record, and a count of each group, which goes through a repartition topic."""
    builder = StreamsBuilder()
    records = builder.stream(f"{name}-in")
    records.to(f"{name}-out")
    groups = records.group_by(lambda k, v: F.element_at(F.split(k, "-"), 1))
    groups.count("counts").to_stream().map_values(lambda v: v.cast("string")).to(f"{name}-counted")
    return builder.build()


def produce(broker: Broker, name: str, ids: range) -> None:
    """Write a record for each id; its key says its group and its id."""
    broker.produce(f"{name}-in", [(f"g{number % GROUPS}-{number}", "x") for number in ids])


def expected_counts(ids: range) -> Counter[str]:
    """Return how many of the ids there are in each group."""
    return Counter(f"g{number % GROUPS}" for number in ids)


def written(broker: Broker, name: str) -> Counter[int]:
    """Return how often each id was copied, as a reader sees it who reads what is committed."""
    keys = broker.consume(f"{name}-out", isolation="read_committed")["key"]
    return Counter(int(key.split("-")[1]) for key in keys)


def counted(broker: Broker, name: str) -> dict[str, list[int]]:
    """Return the counts that were written of each group, in their order."""
    rows = broker.consume(f"{name}-counted", isolation="read_committed")
    return {str(key): [int(value) for value in group["value"]] for key, group in rows.groupby("key")}


def create_topics(broker: Broker, name: str) -> None:
    """Create the topics that the program reads and writes."""
    broker.create_topics(*(f"{name}-{suffix}" for suffix in ("in", "out", "counted")), partitions=2)


def once(ids: range) -> Counter[int]:
    """Return what `written` returns where each id was copied once."""
    return Counter(dict.fromkeys(ids, 1))


def check_exactly_once(broker: Broker, name: str, streams: KafkaStreams, ids: range) -> None:
    """Compare all that was written and kept with what was read."""
    assert written(broker, name) == once(ids)
    assert dict(streams.store("counts").all()) == expected_counts(ids)
    counts = counted(broker, name)
    assert {key: values[-1] for key, values in counts.items()} == expected_counts(ids)
    assert all(values == sorted(set(values)) for values in counts.values())
