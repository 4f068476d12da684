"""A program whose output tells what was lost and what was doubled: every record by its id, and counts by group."""

from collections import Counter

from pyspark.sql import functions as F

from streamskit import StreamsBuilder, Topology
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
