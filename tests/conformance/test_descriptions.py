"""Every program is described as Kafka Streams describes it: names, numbers, stores, sub-topologies, to the letter."""

import json
from pathlib import Path

import pytest

from streamskit import StreamsBuilder
from tests.conformance.programs import PROGRAMS
from tests.conformance.programs_described import DESCRIBED

RECORDED = json.loads(Path(__file__).with_name("descriptions.json").read_text())
VECTORS = Path(__file__).parent / "vectors"

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_description_is_that_of_kafka_streams(name: str) -> None:
    expected = json.loads((VECTORS / f"{name}.json").read_text())["topology"]
    if expected:  # Kafka Streams has refused the others
        assert PROGRAMS[name]().describe() == expected


def test_there_is_a_program_for_every_vector_of_the_dsl() -> None:
    areas = ("basic", "errors", "examples", "joins", "ktable", "processor", "time", "windows")
    recorded = {path.stem for path in VECTORS.glob("*.json") if path.stem.startswith(areas)}
    assert recorded == set(PROGRAMS) - {name for name in PROGRAMS if not name.startswith(areas)}


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_every_operator_is_named_and_numbered_as_by_kafka_streams(name: str) -> None:
    builder = StreamsBuilder()
    DESCRIBED[name](builder)
    assert builder.build().describe() == RECORDED[name]
