"""Writes the timetables of docs/workshop.md, from the minutes that lessons and labs state: `python docs/timetables.py`.

Run it after a lesson was added or takes another time. A test compares the page with what this script would write.
"""

import json
import math
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "workshop.md"

BEGIN, LUNCH_FROM = 9 * 60, 11 * 60 + 45
BREAK, LUNCH, SET_UP, END = 15, 60, 15, 10
LONGEST_STRETCH = 105
"""Minutes: when a day begins, from when on there may be lunch, how long everything lasts, and when a break is due."""

NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}

# Lessons, each with how many exercises of its lab are done in the room.
HALF_A_DAY = {"00": 0, "01": 3, "02": 2, "03": 2, "17": 0}
ONE_DAY = {"00": 0, "00b": 0, "01": 3, "02": 2, "03": 3, "05": 2, "08": 3, "17": 0}
TWO_DAYS = {
    "00": 0, "00b": 0, "01": 3, "02": 3, "03": 2, "05": 2, "07": 2, "08": 3, "09": 1,
    "12": 2, "13": 2, "15": 2, "15b": 0, "16": 2, "17": 1,
}  # fmt: skip
EXERCISES_WITH_EVERY_LESSON = 2
"""In three days, which have all lessons; the capstones' labs are for afterwards."""
FIRST_CAPSTONE = "17"


class Lesson(NamedTuple):
    """A lesson: its number as in its file's name, its title, and the minutes that it and its lab state."""

    number: str
    title: str
    file: str
    minutes: int
    lab_minutes: int
    exercises: int

    @property
    def projected(self) -> int:
        """The minutes of a lesson that is projected and run together: half of what one alone needs."""
        return _to_five(self.minutes / 2)

    def practised(self, exercises: int) -> int:
        """The minutes of the first exercises of its lab."""
        return _to_five(self.lab_minutes * exercises / self.exercises)


class Block(NamedTuple):
    """What is not torn apart by a break: rows of what is done, with their minutes."""

    rows: tuple[tuple[str, int], ...]

    @property
    def minutes(self) -> int:
        """How long it lasts."""
        return sum(minutes for _, minutes in self.rows)


def lessons() -> dict[str, Lesson]:
    """All lessons by their numbers, in the course's order."""
    found = [_lesson(path) for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]*.ipynb"))]
    return {lesson.number: lesson for lesson in found}


def plans() -> dict[str, list[list[Block]]]:
    """The blocks of each day, by the name of the plan."""
    known = lessons()
    three = {number: EXERCISES_WITH_EVERY_LESSON if _has_room(lesson) else 0 for number, lesson in known.items()}
    wanted = {
        "Half a day": (HALF_A_DAY, 1),
        "One day": (ONE_DAY, 1),
        "Two days": (TWO_DAYS, 2),
        "Three days": (three, 3),
    }
    return {
        name: _in_days([_block(known[number], exercises) for number, exercises in chosen.items()], days)
        for name, (chosen, days) in wanted.items()
    }


def day(blocks: list[Block]) -> list[tuple[int, str, int]]:
    """The rows of a day: when something begins, in minutes since midnight, what it is, and its minutes."""
    rows: list[tuple[int, str, int]] = []
    clock, stretch, eaten = BEGIN, 0, sum(block.minutes for block in blocks) <= LUNCH_FROM - BEGIN + 60

    def add(what: str, minutes: int) -> None:
        nonlocal clock
        rows.append((clock, what, minutes))
        clock += minutes

    for block in blocks:
        if not eaten and clock >= LUNCH_FROM:
            add("*lunch*", LUNCH)
            stretch, eaten = 0, True
        elif stretch and stretch + block.minutes > LONGEST_STRETCH:
            add("*break*", BREAK)
            stretch = 0
        for what, minutes in block.rows:
            add(what, minutes)
        stretch += block.minutes
    add("questions, and what comes next", END)
    return rows


def minutes_table() -> str:
    """A table of what each lesson and lab takes."""
    known = lessons().values()
    rows = [
        f"| [{each.title}](../notebooks/{each.file}) | {each.minutes} | {each.projected} | {each.lab_minutes or ''} |"
        for each in known
    ]
    sums = (
        sum(each.minutes for each in known),
        sum(each.projected for each in known),
        sum(e.lab_minutes for e in known),
    )
    total = "| **all, in hours** | " + " | ".join(f"**{minutes / 60:.0f}**" for minutes in sums) + " |"
    return "\n".join(["| lesson | alone | projected | its lab |", "|---|---|---|---|", *rows, total])


def timetables() -> str:
    """All timetables, as Markdown."""
    return "\n\n".join(part for name, days in plans().items() for part in _plan(name, days))


def page(text: str) -> str:
    """A page's text with the tables as they should be."""
    for name, table in (("minutes", minutes_table()), ("timetables", timetables())):
        begin, end = f"<!-- {name}: docs/timetables.py writes them -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    return text


def _plan(name: str, days: list[list[Block]]) -> Iterator[str]:
    yield f"### {name}"
    for number, blocks in enumerate(days, 1):
        rows = day(blocks)
        end = rows[-1][0] + rows[-1][2]
        title = f"Day {NUMBERS[number]}: " if len(days) > 1 else ""
        yield f"{title}{_clock(BEGIN)} to {_clock(end)}."
        table = [f"| {_clock(begin)} | {what} | {minutes} |" for begin, what, minutes in rows]
        yield "\n".join(["| at | what | minutes |", "|---|---|---|", *table])
    if left_out := _left_out(days):
        yield f"Not in this plan: lessons {left_out}."


def _left_out(days: list[list[Block]]) -> str:
    """The numbers of the lessons that a plan does not have; three and more in a row as a range."""
    planned = {row for blocks in days for block in blocks for row, _ in block.rows}
    known = list(lessons().values())
    runs: list[list[str]] = []
    for before, lesson in zip([None, *known], known, strict=False):
        if f"lesson {lesson.title}" in planned:
            continue
        if runs and before is not None and runs[-1][-1] == before.number:
            runs[-1].append(lesson.number)
        else:
            runs.append([lesson.number])
    said = [part for run in runs for part in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]
    return " and ".join([", ".join(said[:-1]), said[-1]]) if len(said) > 1 else "".join(said)


def _block(lesson: Lesson, exercises: int) -> Block:
    rows = [(f"lesson {lesson.title}", lesson.projected)]
    if lesson.number == "00":
        rows.insert(0, ("set-up: `make doctor` on each machine", SET_UP))
    if exercises:
        which = "exercise 1" if exercises == 1 else f"exercises 1 to {exercises}"
        rows.append((f"lab {lesson.number}, {which}", lesson.practised(exercises)))
    return Block(tuple(rows))


def _has_room(lesson: Lesson) -> bool:
    return bool(lesson.exercises) and lesson.number < FIRST_CAPSTONE


def _in_days(blocks: list[Block], days: int) -> list[list[Block]]:
    """Cut blocks into days of which the longest is as short as it can be."""

    def parts(cuts: tuple[int, ...]) -> list[list[Block]]:
        return [blocks[begin:end] for begin, end in zip((0, *cuts), (*cuts, len(blocks)), strict=True)]

    def longest(cuts: tuple[int, ...]) -> int:
        return max(sum(block.minutes for block in part) for part in parts(cuts))

    return parts(min(combinations(range(1, len(blocks)), days - 1), key=longest))


def _lesson(path: Path) -> Lesson:
    number, said = path.name.partition("-")[0], _markdown(path)
    title = re.sub(r"^\d+ · ", "", said.partition("\n")[0].removeprefix("# ").partition(":")[0])
    lab = ROOT / "labs" / path.name
    told = re.search(r"· (\d+) minutes · (\w+) exercises", _markdown(lab)) if lab.exists() else None
    counts = {word: count for count, word in NUMBERS.items()}
    minutes = re.search(r"Takes about (\d+) minutes", said)
    if minutes is None or (lab.exists() and told is None):
        raise SystemExit(f"{path.name} or its lab does not say how many minutes it takes.")
    lab_minutes, exercises = (int(told[1]), counts[told[2]]) if told else (0, 0)
    return Lesson(number, f"{number} · {title}", path.name, int(minutes[1]), lab_minutes, exercises)


def _markdown(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def _to_five(minutes: float) -> int:
    return math.ceil(minutes / 5) * 5


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
