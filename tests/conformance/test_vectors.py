"""Every program gives what Kafka Streams gave: recorded vectors in a test driver."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamskit import StreamsError, Topology, TopologyError, TopologyTestDriver, Windowed
from streamskit.serdes import Serde, Serdes
from streamskit.testing import TestInputTopic
from tests.conformance.differences import DIFFERENCES
from tests.conformance.programs import PROGRAMS
from tests.conformance.queries import answers, ask
from tests.conformance.registry import LETTERS, QUICK, SETTINGS, forget_effects, take_effects
from tests.driver_in_micro_batches import DriverInMicroBatches

VECTORS = Path(__file__).parent / "vectors"

Vector = dict[str, Any]


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.quick] if name in QUICK else []) for name in sorted(PROGRAMS)]
)
def vector(request: pytest.FixtureRequest) -> Vector:
    if request.param in DIFFERENCES:
        request.applymarker(pytest.mark.xfail(reason=DIFFERENCES[request.param], strict=True))
    return recorded(request.param)


def recorded(name: str) -> Vector:
    return json.loads((VECTORS / f"{name}.json").read_text())


@pytest.mark.spark
def test_the_records_stores_and_drops_are_those_of_kafka_streams(vector: Vector) -> None:
    check(Replay(vector), vector)


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(QUICK))
def test_micro_batches_give_what_kafka_streams_gave(name: str) -> None:
    """One of each kind; `test_live_vectors` takes them all through a running application's micro-batches."""
    vector = recorded(name)
    check(ReplayInMicroBatches(vector), vector)


def check(replayed: "Replay", vector: Vector) -> None:
    replayed.run()
    assert replayed.written == vector["outputs"]
    for name, rows in replayed.stores.items():
        # A versioned store cannot list its keys: the recording asked for those that came out or were queried.
        asked = {record["key"] for records in vector["outputs"].values() for record in records}
        asked |= {query["args"][0] for _, query, _ in answers(vector) if query["args"]}
        listed = [row for row in rows if row["key"] in asked or vector["store_kinds"][name] != "versioned-key-value"]
        assert unordered(listed) == unordered(vector["stores"][name]), name
    assert replayed.dropped == vector["dropped_by_step"]
    expected = [in_python(effect) for effect in vector.get("side_effects", [])]
    assert len(replayed.side_effects) == len(expected)
    assert list(map(as_far_as_told, replayed.side_effects, expected)) == expected
    assert replayed.answers == {number: answer for number, _, answer in answers(vector)}
    assert replayed.failed_at == [error["after_step"] for error in vector.get("errors", [])]


class Replay:
    """Pipes a vector's steps through its program and notes what the vector notes."""

    driver: type[TopologyTestDriver] = TopologyTestDriver

    def __init__(self, vector: Vector) -> None:
        self.vector = vector
        self.step = 0
        self.written: dict[str, list[Vector]] = {name: [] for name in vector["outputs"]}
        self.stores: dict[str, list[Vector]] = {}
        self.dropped: list[Vector] = []
        self.side_effects: list[Vector] = []
        self.failed_at: list[int] = []
        self.answers: dict[int, Any] = {}

    def run(self) -> None:
        """Replay all steps."""
        try:
            topology = self.topology()
            driver = self.driver(topology, "oracle", **SETTINGS.get(self.vector["name"], {}))
        except TopologyError:
            self.failed_at.append(-1)
            return
        with driver:
            letters = driver.dead_letters(LETTERS)
            outputs = {name: driver.create_output_topic(name, value=self.json_of(name)) for name in self.written}
            for number, dropped in self.performed(driver, topology):
                self.step = number
                self.side_effects += [
                    {"after_step": self.step, "kind": kind, "data": text} for kind, text in take_effects()
                ]
                self.side_effects += [
                    {"after_step": self.step, "kind": "dead_letter", "data": json.loads(letter.value)}
                    for letter in letters.read_records_to_list()
                ]
                for name, topic in outputs.items():
                    self.written[name] += [row(record, after_step=self.step) for record in topic.read_records_to_list()]
                if dropped:
                    self.dropped.append({"after_step": self.step, "count": dropped})
            kinds = self.vector["store_kinds"]
            self.stores = {name: list(stored(driver, name, kinds[name])) for name in self.vector["stores"]}

    def performed(self, driver: TopologyTestDriver, topology: Topology) -> Iterator[tuple[int, int]]:
        """Perform the steps, and yield after each that is no query its number, and how many records it dropped."""
        for number, step in enumerate(self.vector["steps"]):
            forget_effects()
            try:
                yield from self.performed_alone(driver, topology, number, step)
            except StreamsError:
                self.failed_at.append(number)
                return

    def performed_alone(
        self, driver: TopologyTestDriver, topology: Topology, number: int, step: Vector
    ) -> Iterator[tuple[int, int]]:
        """Perform one step; of a query note the answer, of any other yield what `performed` does."""
        if "query" in step:
            self.answers[number] = ask(driver.state_store(step["query"]["store"]), step["query"])
            return
        before = driver.dropped()
        perform(driver, topology, step)
        yield number, driver.dropped() - before

    def json_of(self, topic: str) -> Serde | None:
        """Return a serde that reads any JSON if the topic holds that, however the program writes it."""
        return Serdes.json("string") if self.vector["topics"][topic]["value"] == "json" else None

    def topology(self) -> Topology:
        """Return the vector's program, built."""
        return PROGRAMS[self.vector["name"]]()


class ReplayInMicroBatches(Replay):
    """Pipes each record as a micro-batch."""

    driver = DriverInMicroBatches


def perform(driver: TopologyTestDriver, topology: Topology, step: Vector) -> None:
    if "advance_wall_clock_ms" in step:
        driver.advance_wall_clock_time(step["advance_wall_clock_ms"])
    else:
        topic, record = piped(driver, topology, step["pipe"])
        topic.pipe_input(*record)


def piped(driver: TopologyTestDriver, topology: Topology, record: Vector) -> tuple[TestInputTopic, tuple[Any, ...]]:
    """Return the topic that a record of a vector goes to, and the arguments of its `pipe_input`."""
    source = next(source for source in topology.sources if source.reads_topic(record["topic"]))
    key = as_it_is(record, "key", source.key)
    value = as_it_is(record, "value", source.value)
    headers = tuple((name, text.encode()) for name, text in record.get("headers", {}).items())
    data = (record.get(part, record.get(f"{part}_utf8")) for part in ("key", "value"))
    return driver.create_input_topic(record["topic"], key, value), (*data, record["timestamp"], headers)


def as_it_is(record: Vector, part: str, serde: Serde) -> Serde:
    return Serdes.string() if f"{part}_utf8" in record else serde


def row(record: Any, **more: Any) -> Vector:
    made = {"key": record.key, "value": record.value, "timestamp": record.timestamp} | more
    if isinstance(record.key, Windowed):
        made |= {"key": record.key.key, "window": {"start": record.key.start, "end": record.key.end}}
    if record.headers:
        made["headers"] = {name: value.decode() for name, value in record.headers}
    return made


def stored(driver: TopologyTestDriver, name: str, kind: str) -> Iterator[Vector]:
    store = driver.state_store(name)
    timed = kind not in ("key-value", "window", "session")
    for entry, timestamp in zip(store.all(), store.to_pandas().get("timestamp", ()), strict=True):
        one = {"key": entry.key, "value": entry.value} | ({"timestamp": int(timestamp)} if timed else {})
        if isinstance(entry.key, Windowed):
            one |= {"key": entry.key.key, "window": {"start": entry.key.start, "end": entry.key.end}}
        yield one


def in_python(effect: Vector) -> Vector:
    """Return a side effect without what is Java's own: the class of an exception, what Kafka Streams' own ones say."""
    if effect["kind"] != "dead_letter":
        return effect
    java = {"exception", "task"} | (
        {"message"} if effect["data"]["exception"].startswith("org.apache.kafka") else set()
    )
    return effect | {"data": {name: value for name, value in effect["data"].items() if name not in java}}


def as_far_as_told(effect: Vector, expected: Vector) -> Vector:
    """Return a dead letter without its message if none is expected."""
    if effect["kind"] != "dead_letter" or "message" in expected["data"]:
        return effect
    return effect | {"data": {name: value for name, value in effect["data"].items() if name != "message"}}


def unordered(rows: list[Vector]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_make_check_replays_one_vector_of_each_area() -> None:
    assert sorted(name.partition("-")[0] for name in QUICK) == sorted({name.partition("-")[0] for name in PROGRAMS})


def test_every_program_has_a_recording_and_every_recording_a_program() -> None:
    assert set(PROGRAMS) == {path.stem for path in VECTORS.glob("*.json")}
    assert set(PROGRAMS) >= set(DIFFERENCES)
