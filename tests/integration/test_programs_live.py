"""The programs of recorded vectors, running on a broker with several partitions, end with the same tables."""

import json
from typing import Any

import pytest

from streamskit import KafkaStreams, StreamsBuilder, Topology, Windowed
from streamskit.broker import Broker
from tests.conformance.programs import PROGRAMS
from tests.conformance.test_vectors import VECTORS, Vector, unordered

pytestmark = [pytest.mark.spark, pytest.mark.broker]

PARTITIONS = 3

LIVE = [
    "basic-aggregate",
    "basic-word-count",
    "examples-music-charts",
    "joins-stream-stream-inner",
    "joins-stream-table-rekeyed-inner",
    "joins-table-table-foreign-key",
    "joins-table-table-outer",
    "ktable-group-by-reduce",
    "windows-session-count",
    "windows-sliding-count",
]


@pytest.mark.parametrize("name", LIVE)
def test_a_program_ends_with_the_recorded_tables(name: str, broker: Broker, tmp_path: Any) -> None:
    vector = json.loads((VECTORS / f"{name}.json").read_text())
    topology = built(name)
    topics = [topic for topic, role in vector["topics"].items() if role["role"] != "internal"]
    broker.delete_topics(*topics, missing_ok=True)
    broker.create_topics(*topics, partitions=PARTITIONS)
    fill(broker, topology, vector)
    with KafkaStreams(topology, f"live-{name}", broker.bootstrap_servers, state_dir=tmp_path) as streams:
        streams.await_processed("120 seconds")
        stores = {store: rows(streams.store(store).all()) for store in vector["stores"]}
        written = {topic: last_by_key(broker, topology, topic) for topic in vector["outputs"]}
    streams.clean_up()
    for store, expected in vector["stores"].items():
        assert unordered(stores[store]) == unordered([without_time(row) for row in expected])
    for topic, expected in vector["outputs"].items():
        assert written[topic] == {spelled(row): row["value"] for row in expected}


def built(name: str) -> Topology:
    builder = StreamsBuilder()
    PROGRAMS[name](builder)
    return builder.build()


def fill(broker: Broker, topology: Topology, vector: Vector) -> None:
    """Write the vector's records to its topics, each key to its partition."""
    for topic in {step["pipe"]["topic"] for step in vector["steps"]}:
        source = next(source for source in topology.sources if topic in source.topics)
        mine = [step["pipe"] for step in vector["steps"] if step["pipe"]["topic"] == topic]
        broker.produce(
            topic,
            [(source.key.serialize(one.get("key")), source.value.serialize(one.get("value")), one["timestamp"])
             for one in mine],
        )  # fmt: skip


def last_by_key(broker: Broker, topology: Topology, topic: str) -> dict[str, Any]:
    sink = next(sink for sink in topology.sinks if sink.topic == topic)
    found = broker.records(topic, key=sink.key, value=sink.value)
    return {spelled(row): row["value"] for row in rows(found)}


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
