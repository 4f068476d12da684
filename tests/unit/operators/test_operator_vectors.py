"""Task operators give what Kafka Streams gave: recorded vectors, with state saved after every record and without."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.operators.operator_harness import SERDES, Harness, record
from tests.unit.operators.operator_programs import PROGRAMS, Program

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


@pytest.mark.parametrize("together", [False, True], ids=["saved-after-each", "in-one-stage"])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_an_operator_makes_the_records_that_kafka_streams_made(name: str, together: bool) -> None:
    program = PROGRAMS[name]
    vector = json.loads((VECTORS / f"{name}.json").read_text())
    if together and program.options.get("cache"):
        pytest.skip("With a cache results come at the end of a stage.")
    task = Harness(program.operators, together=together, **program.options)
    written, dropped = run(task, program, vector)
    expected = {topic: rows for topic, rows in vector["outputs"].items() if vector["topics"][topic]["role"] == "output"}
    assert written == expected
    assert dropped == vector["dropped_by_step"]


def run(task: Harness, program: Program, vector: dict[str, Any]) -> tuple[dict[str, list[Any]], list[Any]]:
    written: dict[str, list[Any]] = {
        topic: [] for topic in vector["outputs"] if vector["topics"][topic]["role"] == "output"
    }
    dropped = []
    for number, step in enumerate(vector["steps"]):
        before = task.dropped
        if "pipe" in step:
            pipe = step["pipe"]
            types = vector["topics"][pipe["topic"]]
            key, value = SERDES[types["key"]].serialize(pipe["key"]), SERDES[types["value"]].serialize(pipe["value"])
            for topic, row in program.route(task, pipe["topic"], record(key, value, pipe["timestamp"])):
                written[topic].append(row | {"after_step": number})
        elif "advance_wall_clock_ms" in step:
            task.advance(step["advance_wall_clock_ms"])
        if task.dropped > before:
            dropped.append({"after_step": number, "count": task.dropped - before})
    return written, dropped
