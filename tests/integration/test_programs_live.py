"""The programs of recorded vectors, running on a broker with several partitions, end with the same tables."""

import json
from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest

from streamskit import KafkaStreams, Topology, Windowed
from streamskit.broker import Broker
from tests.conformance.programs import PROGRAMS
from tests.conformance.test_vectors import VECTORS, Vector, unordered

pytestmark = [pytest.mark.spark, pytest.mark.broker]

PARTITIONS = 3

LIVE = [
    pytest.param("basic-aggregate", marks=pytest.mark.soak),
    "basic-word-count",
    pytest.param("examples-music-charts", marks=pytest.mark.soak),
    pytest.param("joins-stream-stream-inner", marks=pytest.mark.soak),
    "joins-stream-table-rekeyed-inner",
    pytest.param("joins-table-table-foreign-key", marks=pytest.mark.soak),
    pytest.param("joins-table-table-outer", marks=pytest.mark.soak),
    pytest.param("ktable-group-by-reduce", marks=pytest.mark.soak),
    "windows-session-count",
    pytest.param("windows-sliding-count", marks=pytest.mark.soak),
]

ORDERED = ["examples-music-charts", "joins-stream-table-rekeyed-inner"]
"""Programs that look records of a stream up in a table, and so depend on which comes first."""


@pytest.mark.parametrize("name", LIVE)
def test_a_program_ends_with_the_recorded_tables(name: str, broker: Broker, tmp_path: Any) -> None:
    vector = json.loads((VECTORS / f"{name}.json").read_text())
    topology = PROGRAMS[name]()
    topics = [topic for topic, role in vector["topics"].items() if role["role"] != "internal"]
    broker.delete_topics(*topics, missing_ok=True)
    broker.create_topics(*topics, partitions=PARTITIONS)
    streams = KafkaStreams(
        topology,
        f"live-{name}",
        broker.bootstrap_servers,
        state_dir=tmp_path,
        statestore_cache_max_bytes=0,  # with a cache, a row that comes and goes within a batch is never seen
    )
    first, *later = portions(vector)
    fill(broker, topology, first)  # before the start: what lies in two topics is then read together, in order of time
    with streams:
        streams.await_processed("120 seconds")
        for records in later:
            fill(broker, topology, records)
            streams.await_processed("120 seconds")
        stores = {store: rows(streams.store(store).all()) for store in vector["stores"]}
        written = {topic: last_by_key(broker, topology, topic) for topic in vector["outputs"]}
    streams.clean_up()
    for store, expected in vector["stores"].items():
        assert unordered(stores[store]) == unordered([without_time(row) for row in expected])
    for topic, expected in vector["outputs"].items():
        assert table(written[topic]) == table({spelled(row): row["value"] for row in expected})


def table(last: dict[str, Any]) -> dict[str, Any]:
    """Return the rows that are there at the end; one that never was is none, and neither is one that was deleted.

    A foreign-key join that asks for a row of the other table when that is gone already tells of no result, ever.
    """
    return {key: value for key, value in last.items() if value is not None}


def portions(vector: Vector) -> list[list[Vector]]:
    """Return the vector's records, cut where a lookup has to wait for the table: a stream does not wait for it."""
    records = [step["pipe"] for step in vector["steps"]]
    if vector["name"] not in ORDERED:
        return [records]
    return [list(group) for _, group in groupby(records, itemgetter("topic"))]


def fill(broker: Broker, topology: Topology, records: list[Vector]) -> None:
    """Write records to their topics, each key to its partition."""
    for topic in {record["topic"] for record in records}:
        source = next(source for source in topology.sources if topic in source.topics)
        mine = [(source.key.serialize(one.get("key")), source.value.serialize(one.get("value")), one["timestamp"])
                for one in records if one["topic"] == topic]  # fmt: skip
        broker.produce(topic, mine)


def last_by_key(broker: Broker, topology: Topology, topic: str) -> dict[str, Any]:
    sink = next(sink for sink in topology.sinks if sink.topic == topic)
    return {spelled(row): row["value"] for row in rows(broker.records(topic, key=sink.key, value=sink.value))}


def rows(entries: Any) -> list[Vector]:
    made = []
    for entry in entries:
        key = entry.key
        window = {"window": {"start": key.start, "end": key.end}} if isinstance(key, Windowed) else {}
        made.append({"key": key.key if window else key, "value": entry.value} | window)
    return made


def without_time(row: Vector) -> Vector:
    return {name: value for name, value in row.items() if name != "timestamp"}


def spelled(row: Vector) -> str:
    return json.dumps([row["key"], row.get("window")])
