"""The notebooks belong together: same beginnings and ends, links that lead somewhere, small files without traces."""

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streamskit import StreamsBuilder, TopologyTestDriver
from streamskit.course.labs import catalogue

ROOT = Path(__file__).parents[3]
LESSONS = sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
ASIDES = sorted((ROOT / "notebooks").glob("[0-9][0-9][a-z]-*.ipynb"))
"""Lessons without a number of their own, and without a lab."""

EVERY = [
    *LESSONS,
    *ASIDES,
    *sorted((ROOT / "labs").glob("*.ipynb")),
    *sorted((ROOT / "labs" / "source").glob("*/*.ipynb")),
]
NAMES = [path.stem for path in LESSONS]


def cells(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text())["cells"])


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def markdown(path: Path) -> str:
    return "\n\n".join(text(cell) for cell in cells(path) if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("lesson", LESSONS, ids=NAMES)
def test_a_lesson_begins_with_its_title_and_goals_and_ends_with_questions(lesson: Path) -> None:
    first, last = text(cells(lesson)[0]), text(cells(lesson)[-1])
    assert first.startswith(f"# {int(lesson.stem[:2])} · ")
    assert "**After this lesson you can**" in first or "**When you are through, you can**" in first
    assert "## Questions" in last
    assert last.count("<details>") >= 2


@pytest.mark.parametrize("lesson", LESSONS[1:], ids=NAMES[1:])
def test_a_lesson_leads_to_the_next_to_its_lab_and_to_what_it_mirrors(lesson: Path) -> None:
    last = text(cells(lesson)[-1])
    following = dict(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))[lesson.stem]
    assert f"]({following}.ipynb)" in last
    assert f"](../labs/{lesson.name})" in last
    assert "https://kafka.apache.org/41/streams/" in last
    assert "https://spark.apache.org/docs/" in last


@pytest.mark.parametrize("lesson", [*LESSONS, *ASIDES], ids=lambda path: path.stem)
def test_a_cell_that_reveals_can_run_again_after_a_late_prediction(lesson: Path) -> None:
    """An application that such a cell starts, and leaves running, would refuse the second start."""
    for cell in cells(lesson):
        if cell["cell_type"] == "code" and re.search(r"^reveal\(", text(cell), re.MULTILINE):
            for name in re.findall(r"^(\w+)\.start\(\)", text(cell), re.MULTILINE):
                before = text(cell).partition(f"{name} = KafkaStreams(")[0]
                assert ".close()" in before or f"{name} = KafkaStreams(" not in text(cell), text(cell)


def test_what_lesson_5_reads_from_its_driver_can_be_read_again() -> None:
    [helpers] = [text(cell) for cell in cells(ROOT / "notebooks" / "05-joins.ipynb") if "def run(" in text(cell)]
    names: dict[str, Any] = {"cache": cache, "TopologyTestDriver": TopologyTestDriver}
    exec(helpers, names)  # what the lesson itself says
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    read = names["run"](builder, {"in": [("ann", "e1", 0)]})
    assert [record.value for record in read("out")] == ["e1"]
    assert [record.value for record in read("out")] == ["e1"]


@pytest.mark.parametrize("notebook", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_link_inside_the_course_leads_to_a_file(notebook: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", markdown(notebook))
    place = ROOT / "labs" if "source" in notebook.parts else notebook.parent  # where learners have it
    assert [link for link in links if not (place / link).exists()] == []


@pytest.mark.parametrize("aside", ASIDES, ids=lambda path: path.stem)
def test_a_lesson_without_a_number_has_goals_and_leads_on(aside: Path) -> None:
    first, last = text(cells(aside)[0]), text(cells(aside)[-1])
    assert re.match(r"# \S", first)
    assert re.search(r"\*\*After this \w+ you can\*\*", first)
    assert re.search(r"Takes about \d+ minutes", first)
    assert "**Next:**" in last


def test_every_lesson_has_its_lab() -> None:
    assert list(catalogue.NAMES) == NAMES[1:]


def test_the_map_of_the_course_has_every_lesson_and_lab_once() -> None:
    start = markdown(ROOT / "notebooks" / "00-start-here.ipynb")
    for name in NAMES[1:]:
        assert start.count(f"| [lab](../labs/{name}.ipynb) |") == 1
        assert f"]({name}.ipynb)" in start


@pytest.mark.parametrize("notebook", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_notebook_tells_of_the_machine_on_which_it_ran(notebook: Path) -> None:
    found = re.findall(r"/(?:work|root|home|tmp)/[\w./-]+", notebook.read_text())
    assert found == []


@pytest.mark.parametrize("notebook", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_notebook_stores_when_its_cells_ran(notebook: Path) -> None:
    assert [cell["metadata"] for cell in cells(notebook) if "execution" in cell["metadata"]] == []


@pytest.mark.parametrize("notebook", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_headings_below_the_title_go_one_level_deeper_at_a_time(notebook: Path) -> None:
    prose = re.sub(r"```.*?```", "", markdown(notebook), flags=re.DOTALL)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert [both for both in pairwise(levels) if both[1] > both[0] + 1] == []


def test_all_notebooks_together_are_small() -> None:
    assert sum(path.stat().st_size for path in EVERY) < 8_000_000
