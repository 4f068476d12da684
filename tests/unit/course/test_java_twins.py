"""The Java programs beside the lessons' own: recorded from Kafka Streams, each in one lesson, compared in its cell."""

import json
import re
from pathlib import Path

import pytest

from streamskit import StreamsBuilder
from streamskit.common.errors import StreamsKitError
from streamskit.course.lessons.java_twins import DESCRIPTIONS, OTHER, SAME, TWINS, fingerprint
from streamskit.lessons import java_twin

ROOT = Path(__file__).parents[3]
NAMES = sorted(path.stem for path in TWINS.glob("*.java"))
RECORDED = json.loads(DESCRIPTIONS.read_text())["programs"]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def balances(value: str = "ft-balances") -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.stream("ft-deposits").group_by_key().count("balances").to_stream().to(value)
    return builder


@pytest.mark.parametrize("name", NAMES)
def test_the_recording_is_of_the_program_as_it_is(name: str) -> None:
    source = (TWINS / f"{name}.java").read_text()
    assert RECORDED[name]["java"] == fingerprint(source), "record it again: python -m tests.java.record_twins FOLDER"


def test_nothing_is_recorded_that_has_no_program() -> None:
    assert sorted(RECORDED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_program_fits_a_page_and_ends_with_its_topology(name: str) -> None:
    lines = (TWINS / f"{name}.java").read_text().splitlines()
    assert max(map(len, lines)) <= 120
    assert any(line.startswith("Topology topology = ") for line in lines)


def test_each_program_is_shown_in_one_lesson_whose_topology_it_is() -> None:
    shown = {}
    for lesson in LESSONS:
        for cell in json.loads(lesson.read_text())["cells"]:
            for name in re.findall(r'^java_twin\("([\w-]+)"', "".join(cell["source"]), re.MULTILINE):
                shown[name] = [output["data"]["text/plain"] for output in cell["outputs"]]
                assert "nbval-ignore-output" not in cell["metadata"].get("tags", []), f"{lesson.name} does not check it"
    assert shown == {name: [[f"[{SAME}]"]] for name in NAMES}


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_that_builds_a_topology_shows_one_in_java(lesson: Path) -> None:
    cells = json.loads(lesson.read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert ("StreamsBuilder()" in code) == ("\njava_twin(" in code)


def test_the_same_topology_is_said_to_be_the_same() -> None:
    twin = java_twin("balances", balances().build())
    assert twin.title == SAME
    assert ".groupByKey()" in twin.text


def test_a_program_that_was_changed_is_told_where_the_two_part() -> None:
    twin = java_twin("balances", balances("elsewhere").build())
    assert twin.title == OTHER
    sink = "Sink: KSTREAM-SINK-0000000003 (topic: "
    assert f"here “{sink}elsewhere)”, in Java “{sink}ft-balances)”" in twin.text


def test_a_topology_that_ends_earlier_parts_from_java_at_its_end() -> None:
    shorter = StreamsBuilder()
    shorter.stream("ft-deposits")
    assert java_twin("balances", shorter.build()).title == OTHER


def test_a_builder_in_the_place_of_a_topology_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r'a StreamsBuilder: write java_twin\("balances", builder\.build\(\)\)\.'):
        java_twin("balances", balances())  # type: ignore[arg-type]


def test_a_name_without_a_program_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(StreamsKitError, match=r"There is no Java program 'balance'\. There are: balances, "):
        java_twin("balance", balances().build())
