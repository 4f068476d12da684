"""Every program gives what Kafka Streams gave: recorded vectors, one record at a time."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamskit import StreamsBuilder, Topology, TopologyTestDriver, Windowed
from streamskit.serdes import Serde, Serdes
from tests.conformance.programs import PROGRAMS

VECTORS = Path(__file__).parent / "vectors"

pytestmark = pytest.mark.spark


@pytest.fixture(params=sorted(PROGRAMS))
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    return json.loads((VECTORS / f"{request.param}.json").read_text())


@pytest.fixture
def topology(vector: dict[str, Any]) -> Topology:
    builder = StreamsBuilder()
    PROGRAMS[vector["name"]](builder)
    return builder.build()


def test_the_description_is_that_of_kafka_streams(vector: dict[str, Any], topology: Topology) -> None:
    assert topology.describe() == vector["topology"]


def test_the_records_stores_and_drops_are_those_of_kafka_streams(vector: dict[str, Any], topology: Topology) -> None:
    written: dict[str, list[dict[str, Any]]] = {name: [] for name in vector["outputs"]}
    dropped = []
    with TopologyTestDriver(topology) as driver:
        outputs = {name: driver.create_output_topic(name) for name in written}
        for number, step in enumerate(vector["steps"]):
            before = driver.dropped()
            pipe(driver, topology, step["pipe"])
            for name, topic in outputs.items():
                written[name] += [row(record, after_step=number) for record in topic.read_records_to_list()]
            if driver.dropped() > before:
                dropped.append({"after_step": number, "count": driver.dropped() - before})
        stores = {name: stored(driver, name) for name in vector["stores"]}
    assert written == vector["outputs"]
    for name, rows in stores.items():
        assert unordered(rows) == unordered(vector["stores"][name])
    assert dropped == vector["dropped_by_step"]


def pipe(driver: TopologyTestDriver, topology: Topology, record: dict[str, Any]) -> None:
    source = next(source for source in topology.sources if record["topic"] in source.topics)
    key = as_it_is(record, "key", source.key)
    value = as_it_is(record, "value", source.value)
    headers = tuple((name, text.encode()) for name, text in record.get("headers", {}).items())
    driver.create_input_topic(record["topic"], key, value).pipe_input(
        record.get("key", record.get("key_utf8")),
        record.get("value", record.get("value_utf8")),
        record["timestamp"],
        headers,
    )


def as_it_is(record: dict[str, Any], part: str, serde: Serde) -> Serde:
    return Serdes.string() if f"{part}_utf8" in record else serde


def row(record: Any, **more: Any) -> dict[str, Any]:
    made = {"key": record.key, "value": record.value, "timestamp": record.timestamp} | more
    if isinstance(record.key, Windowed):
        made |= {"key": record.key.key, "window": {"start": record.key.start, "end": record.key.end}}
    if record.headers:
        made["headers"] = {name: value.decode() for name, value in record.headers}
    return made


def stored(driver: TopologyTestDriver, name: str) -> list[dict[str, Any]]:
    store = driver.state_store(name)
    rows = []
    for entry, timestamp in zip(store.all(), store.to_pandas().get("timestamp", ()), strict=True):
        one = {"key": entry.key, "value": entry.value, "timestamp": int(timestamp)}
        if isinstance(entry.key, Windowed):
            one |= {"key": entry.key.key, "window": {"start": entry.key.start, "end": entry.key.end}}
        rows.append(one)
    return rows


def unordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_there_is_a_recording_for_every_program() -> None:
    assert not [name for name in PROGRAMS if not (VECTORS / f"{name}.json").exists()]
