"""What came of a run of a recorded program, live or in a test driver, and how far it is what was recorded."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from streamskit import Topology
from streamskit.kafka.topic_partition import partition_for
from streamskit.topology.nodes import Source
from tests.conformance.programs import PROGRAMS
from tests.conformance.test_vectors import Replay, Vector, as_far_as_told, as_it_is, in_python, unordered


@dataclass
class Outcome:
    """What an application has written, kept and dropped. Outputs are by topic and partition, in order."""

    outputs: dict[str, dict[int, list[Vector]]] = field(default_factory=dict)
    stores: dict[str, list[Vector]] = field(default_factory=dict)
    dropped: int = 0
    side_effects: list[Vector] = field(default_factory=list)
    failure: str | None = None

    def whole(self) -> dict[str, list[Vector]]:
        """Return the outputs of an application whose topics have one partition."""
        return {topic: partitions.get(0, []) for topic, partitions in self.outputs.items()}

    def last(self) -> dict[str, dict[str, Any]]:
        """Return the last value of each key in each topic: what is in a table made of it."""
        found: dict[str, dict[str, Any]] = {}
        for topic, partitions in self.outputs.items():
            rows = [record for records in partitions.values() for record in records]
            last = {spelled(each): each["value"] for each in rows}
            found[topic] = {key: value for key, value in last.items() if value is not None}
        return found


def expected(vector: Vector) -> Outcome:
    """Return what the vector says that came of a run."""
    outputs = {topic: {0: [without(each, "after_step") for each in rows]} for topic, rows in vector["outputs"].items()}
    effects = [without(in_python(effect), "after_step") for effect in vector.get("side_effects", [])]
    failure = "it fails" if vector.get("errors") else None
    return Outcome(outputs, vector["stores"], vector["dropped"], effects, failure)


def without(record: Vector, *names: str) -> Vector:
    """Return a record without some of its fields."""
    return {name: value for name, value in record.items() if name not in names}


def spelled(record: Vector) -> str:
    """Return the key of a record, with its window, as text."""
    return json.dumps([record["key"], record.get("window")], sort_keys=True)


def difference(vector: Vector, found: Outcome, asked: Iterable[str]) -> str:
    """Return in which of some points a run is unlike the vector, in words; nothing if it is not.

    Args:
        vector: what was recorded.
        found: what came of the run.
        asked: the points: "outputs", "outputs by key" (in order for each key), "tables" (the last value of each key in
            each topic), "stores", "rows" (stores without timestamps), "dropped", "side effects by kind" (in order
            for each function), "failure".
    """
    wanted, said = expected(vector), []
    if len(found.side_effects) == len(wanted.side_effects):
        told = map(as_far_as_told, found.side_effects, wanted.side_effects)
        found = replace(found, side_effects=list(told))
    views: dict[str, Callable[[Outcome], Any]] = {
        "outputs": lambda outcome: outcome.whole(),
        "outputs by key": lambda outcome: {
            topic: sorted(records, key=spelled) for topic, records in outcome.whole().items()
        },
        "tables": lambda outcome: outcome.last(),
        "stores": lambda outcome: {name: unordered(rows) for name, rows in listed(vector, outcome.stores).items()},
        "rows": lambda outcome: {
            name: unordered([without(row, "timestamp") for row in rows])
            for name, rows in listed(vector, outcome.stores).items()
        },
        "dropped": lambda outcome: outcome.dropped,
        "side effects by kind": lambda outcome: sorted(outcome.side_effects, key=itemgetter("kind")),
        "failure": lambda outcome: outcome.failure is not None,
    }
    for point in asked:
        was, has = views[point](wanted), views[point](found)
        if was != has:
            said.append(f"{point}:\n    recorded {json.dumps(was)}\n    live     {json.dumps(has)}")
    if said and found.failure and not wanted.failure:
        said.append(f"it failed: {found.failure}")
    return "\n".join(said)


def listed(vector: Vector, stores: Mapping[str, list[Vector]]) -> dict[str, list[Vector]]:
    """Return the rows of stores that the recording has asked for: a versioned store cannot list its keys."""
    keys = {record["key"] for records in vector["outputs"].values() for record in records if "key" in record}
    keys |= {step["query"]["args"][0] for step in vector["steps"] if "query" in step and step["query"]["args"]}
    versioned = [name for name, kind in vector["store_kinds"].items() if kind == "versioned-key-value"]
    return {name: [row for row in rows if name not in versioned or row["key"] in keys] for name, rows in stores.items()}


def of_tasks(vector: Vector, partitions: int) -> Outcome:
    """Return what comes of a vector's records where each partition is a task of its own, as a test driver says.

    That is so where a program has one sub-topology. Records without a key go to the first partition.
    """
    topology, every = PROGRAMS[vector["name"]](), Outcome()
    for partition in range(partitions):
        mine = [
            step
            for step in vector["steps"]
            if "pipe" in step and partition in partitions_of(step["pipe"], topology, partitions)
        ]
        replay = Replay(vector | {"steps": mine})
        replay.run()
        every.dropped += sum(step["count"] for step in replay.dropped)
        for topic, records in replay.written.items():
            every.outputs.setdefault(topic, {})[partition] = [without(record, "after_step") for record in records]
        for name, rows in replay.stores.items():
            kept = every.stores.setdefault(name, [])
            kept += [row for row in rows if row not in kept or not vector["store_kinds"][name].startswith("global")]
    # An instance reads a global table once for all its tasks, and drops what cannot be read once.
    shared = Replay(vector | {"steps": [step for step in vector["steps"] if of_all_tasks(step, topology)]})
    shared.run()
    every.dropped -= (partitions - 1) * sum(step["count"] for step in shared.dropped)
    return every


def of_all_tasks(step: Vector, topology: Topology) -> bool:
    """Return whether a step is a record of a global table."""
    return "pipe" in step and step["pipe"]["topic"] in globals_of(topology)


def partitions_of(record: Vector, topology: Topology, partitions: int) -> Iterable[int]:
    """Return the tasks that get a record of a vector: all of them a row of a global table."""
    source = source_of(record["topic"], topology)
    key = as_it_is(record, "key", source.key).serialize(record.get("key", record.get("key_utf8")))
    if record["topic"] in globals_of(topology):
        return range(partitions)
    return [0] if key is None else [partition_for(key, partitions)]


def source_of(topic: str, topology: Topology) -> Source:
    """Return the source that reads a topic, by its name or by a pattern."""
    return next(
        each
        for each in topology.sources
        if topic in each.topics or (each.pattern and re.fullmatch(each.pattern, topic))
    )


def difference_of_tasks(vector: Vector, found: Outcome, wanted: Outcome) -> str:
    """Return in what a run on several partitions is unlike what its tasks are to give, in words."""
    views: dict[str, Callable[[Outcome], Any]] = {
        "outputs in any order": lambda outcome: {
            topic: unordered([record for records in partitions.values() for record in records])
            for topic, partitions in outcome.outputs.items()
        },
        "stores": lambda outcome: {name: unordered(rows) for name, rows in listed(vector, outcome.stores).items()},
        "dropped": lambda outcome: outcome.dropped,
        "failure": lambda outcome: outcome.failure,
    }
    return "\n".join(
        f"{point}:\n    tasks {json.dumps(view(wanted))}\n    live  {json.dumps(view(found))}"
        for point, view in views.items()
        if view(wanted) != view(found)
    )


def globals_of(topology: Topology) -> set[str]:
    """Return the topics of global tables."""
    parents = {parent for node in topology.nodes.values() if node.is_global for parent in node.parents}
    return {topic for source in topology.sources if source.name in parents for topic in source.topics}
