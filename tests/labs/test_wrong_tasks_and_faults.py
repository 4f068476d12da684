"""Wrong answers that are typical for tasks, shares and recovery: each is told what is misunderstood. Plain Python."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamskit.course.labs.exercises.fault_tolerance_judging import recorded_changelog, store_of
from streamskit.course.labs.recording import Recording
from tests.labs.wrong_answers import misconception

FAIR = {1: [6], 2: [3, 3], 4: [1, 1, 2, 2], 5: [1, 1, 1, 1, 2], 8: [0, 0, 1, 1, 1, 1, 1, 1]}


def by_number_of_names(checkpoint: Path) -> int | None:
    begun = sorted(file.name for file in (checkpoint / "offsets").glob("[0-9]*"))
    done = sorted(file.name for file in (checkpoint / "commits").glob("[0-9]*"))
    return None if begun[-1:] == done[-1:] else int(begun[-1])


def older_updates_ignored(changelog: list[tuple[str, Any, int]]) -> dict[str, Any]:
    rows: dict[str, tuple[int, Any]] = {}
    for key, value, time in changelog:
        if key not in rows or time >= rows[key][0]:
            rows[key] = (time, value)
    return {key: value for key, (_, value) in rows.items() if value is not None}


ANSWERS: list[tuple[str, Any, str]] = [
    ("turns", lambda tasks, slots: (math.ceil(tasks / slots), max(0, slots - tasks)), "idle in the first turn only"),
    ("turns", lambda tasks, slots: (tasks // slots, max(0, slots - tasks)), "a turn that is not full forgotten"),
    ("turns", lambda tasks, slots: (math.ceil(tasks / slots), tasks % slots), "what is left over for who is idle"),
    ("fair_shares", FAIR | {8: [1] * 8}, "more instances than partitions"),
    ("fair_shares", FAIR | {4: [2, 2, 1, 1]}, "another order"),
    (
        "changed_hands",
        lambda before, after: {each for name in after if name not in before for each in after[name]},
        "only to newcomers",
    ),
    (
        "changed_hands",
        lambda before, after: {each for name in before if name in after for each in before[name] - after[name]},
        "those of the dead",
    ),
    ("seconds_of_a_batch", lambda tasks, slots, once: (sum(tasks) + once) / slots, "everything divided"),
    ("seconds_of_a_batch", lambda tasks, slots, once: sum(tasks) / slots + once, "tasks cut in pieces"),
    ("store_from_changelog", lambda changelog: {key: value for key, value, _ in changelog}, "tombstone missed"),
    ("store_from_changelog", older_updates_ignored, "the order of time"),
    (
        "after_compaction",
        lambda records, active: sorted({key: (at, key, value) for at, key, value in records}.values()),
        "the active segment compacted",
    ),
    (
        "deposited",
        lambda deposits: {
            name: sum(each["amount"] for account, each in deposits if account == name) for name, _ in deposits
        },
        "duplicates added",
    ),
    ("runs_again", by_number_of_names, "numbers compared as texts"),
    ("runs_again", lambda checkpoint: len([*(checkpoint / "commits").glob("[0-9]*")]), "a batch that was never begun"),
]


@pytest.mark.parametrize(("exercise", "answer", "mistake"), ANSWERS)
def test_a_wrong_answer_is_told_what_is_misunderstood(exercise: str, answer: Callable[..., Any], mistake: str) -> None:
    assert misconception(exercise, answer) == mistake


def test_the_right_answer_rebuilds_the_store_that_kafka_streams_had() -> None:
    rows = Recording.of("ktable-source-changelog", stores=["rows"]).stores["rows"]
    assert store_of(recorded_changelog()) == {row.key: row.value for row in rows}
