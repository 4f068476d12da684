"""The page for workshops: timetables that add up, with the minutes that lessons state, and notes for each lesson."""

import ast
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from streamskit.environment.session import JAVA_OPTIONS_VARIABLE, LESSON_OPTIONS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "workshop.md").read_text()
TIMETABLES = runpy.run_path(str(ROOT / "docs" / "timetables.py"))
LESSONS: dict[str, Any] = TIMETABLES["lessons"]()
START = "".join(
    "".join(cell["source"])
    for cell in json.loads((ROOT / "notebooks" / "00-start-here.ipynb").read_text())["cells"]
    if cell["cell_type"] == "markdown"
)
ROW = re.compile(r"^\| (\d\d):(\d\d) \| (.+) \| (\d+) \|$", re.M)
DAY = re.compile(r"(\d\d):(\d\d) to (\d\d):(\d\d)\.\n(.*?)(?=\n\n[^|\n]|\Z)", re.S)


def plan(name: str) -> str:
    """The part of the page about one timetable."""
    return PAGE.partition(f"### {name}\n")[2].partition("\n### ")[0].partition("\n<!--")[0]


PLANS = re.findall(r"^### ((?:Half|One|Two|Three)\b.* days?)$", PAGE, re.M)


def test_the_tables_are_those_of_the_lessons_as_they_are() -> None:
    assert TIMETABLES["page"](PAGE) == PAGE, "Run: python docs/timetables.py"


def test_there_are_timetables_for_half_a_day_and_one_two_and_three_days() -> None:
    assert PLANS == ["Half a day", "One day", "Two days", "Three days"]
    assert [len(DAY.findall(plan(name))) for name in PLANS] == [1, 1, 2, 3]


@pytest.mark.parametrize("name", PLANS)
def test_a_timetable_adds_up(name: str) -> None:
    for begin_hour, begin_minute, end_hour, end_minute, table in DAY.findall(plan(name)):
        clock = 60 * int(begin_hour) + int(begin_minute)
        for hour, minute, what, minutes in ROW.findall(table):
            assert 60 * int(hour) + int(minute) == clock, what
            clock += int(minutes)
        assert clock == 60 * int(end_hour) + int(end_minute)


@pytest.mark.parametrize("name", PLANS)
def test_a_room_has_half_the_minutes_that_a_lesson_states_and_its_share_of_the_labs(name: str) -> None:
    for _, _, what, minutes in ROW.findall(plan(name)):
        if lesson := re.match(r"lesson (\w+) · ", what):
            assert 0 <= int(minutes) - LESSONS[lesson[1]].minutes / 2 < 5
        elif lab := re.match(r"lab (\w+), exercises? (?:1 to )?(\d)$", what):
            each = LESSONS[lab[1]].lab_minutes / LESSONS[lab[1]].exercises
            assert 0 <= int(minutes) - each * int(lab[2]) < 5


@pytest.mark.parametrize("name", PLANS)
def test_nobody_sits_for_longer_than_two_hours_or_misses_lunch(name: str) -> None:
    for *_, table in DAY.findall(plan(name)):
        rows = ROW.findall(table)
        sat = 0
        for _, _, what, minutes in rows:
            sat = 0 if what.startswith("*") else sat + int(minutes)
            assert sat <= 120
        assert ("*lunch*" in table) == (int(rows[-1][0]) >= 13)


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_says_which_lessons_it_leaves_out(name: str) -> None:
    known, left_out = list(LESSONS), list[str]()
    said = re.search(r"^Not in this plan: lessons (.+)\.$", plan(name), re.M)
    for part in re.split(r", | and ", said[1]) if said else []:
        first, _, last = part.partition(" to ")
        left_out += known[known.index(first) : known.index(last or first) + 1]
    assert left_out == [each for each in known if f"| lesson {each} · " not in plan(name)]


def test_three_days_have_every_lesson_once() -> None:
    assert re.findall(r"\| lesson (\w+) · ", plan("Three days")) == list(LESSONS)


def test_a_plan_for_two_days_has_a_capstone_with_an_exercise_of_its_lab() -> None:
    capstones = [number for number in re.findall(r"\| lab (\w+), exercise", plan("Two days")) if number >= "17"]
    assert capstones == ["17"]


def test_the_first_lesson_says_how_many_hours_the_course_takes_as_the_table_does() -> None:
    """In hours, rounded; somebody alone with lessons and labs needs all of them."""
    minutes = sum(lesson.minutes + lesson.lab_minutes for lesson in LESSONS.values())
    said = re.search(r"plan about (\d+) hours", START)
    assert said
    assert int(said[1]) == round(minutes / 60)


def test_the_first_lesson_has_the_same_half_day_as_the_timetable() -> None:
    said = re.search(r"\*\*Half a day:\*\* (.+?)\.", START)
    assert said
    numbers = [f"{int(number):02}" for number in re.findall(r"\d+", said[1])]
    assert ["00", *numbers] == re.findall(r"\| lesson (\w+) · ", plan("Half a day"))


def test_every_lesson_has_notes() -> None:
    noted = re.findall(r"^\| (\w+) \| ", PAGE.partition("## Notes for each lesson")[2].partition("\n## ")[0], re.M)[1:]
    assert noted == list(LESSONS)


def test_the_recipe_for_a_hub_gives_java_what_a_lesson_does() -> None:
    recipe = (ROOT / "docs" / "jupyterhub_config.py").read_text()
    given = next(
        ast.literal_eval(node.value)
        for node in ast.walk(ast.parse(recipe))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "c.Spawner.environment"
    )
    assert given == {JAVA_OPTIONS_VARIABLE: LESSON_OPTIONS}
