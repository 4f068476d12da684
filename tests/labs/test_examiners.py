"""What examiners say of answers that make no mistake of a lab's list."""

from typing import Any

import pytest

from streamskit import TopologyTestDriver
from streamskit.course.labs import catalogue
from streamskit.course.labs.exercise import Says, Verdict
from streamskit.course.labs.exercises.fault_tolerance_judging import recorded_changelog, store_of
from streamskit.course.labs.recording import Recording


def verdict(exercise: str, answer: Any) -> Verdict:
    return catalogue.exercise(exercise).examine_answer(answer)


@pytest.mark.spark
def test_an_answer_with_a_part_missing_is_told_which_parts_there_are() -> None:
    assert "'as a batch'" in verdict("alarms_of_five", {"one by one": 3}).says


@pytest.mark.spark
def test_values_without_a_known_mistake_are_told_which_ones_are_wrong() -> None:
    found = verdict("cuts", {"A": 1, "B": 1, "C": 5, "D": 2, "E": 7, "F": 2})
    assert found.misconception is None
    assert found.says == "C, E: wrong."


@pytest.mark.parametrize(
    ("answer", "says"), [(2, "2 is too small."), (9, "9 is too large."), ("four", "'four' is not right.")]
)
def test_a_wrong_number_is_told_in_which_direction_the_right_one_lies(answer: Any, says: str) -> None:
    assert says in Says(4, "Four.")(answer).says


def test_a_test_without_a_driver_is_told_to_take_one() -> None:
    assert "the driver" in verdict("three_failures", lambda: None).says


@pytest.mark.spark
def test_an_error_in_a_learners_test_itself_is_the_learners_to_see() -> None:
    def answer(driver: TopologyTestDriver) -> None:
        driver.no_such_method()  # type: ignore[attr-defined]

    with pytest.raises(AttributeError):
        verdict("three_failures", answer)


def test_the_right_answer_rebuilds_the_store_that_kafka_streams_had() -> None:
    rows = Recording.of("ktable-source-changelog", stores=["rows"]).stores["rows"]
    assert store_of(recorded_changelog()) == {row.key: row.value for row in rows}
