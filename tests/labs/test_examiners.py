"""What examiners say of answers that make no mistake of a lab's list."""

from typing import Any

import pytest

from streamskit import StreamsBuilder, TopologyTestDriver
from streamskit.course.labs import catalogue
from streamskit.course.labs.exercise import Says, Verdict
from streamskit.course.labs.exercises.elasticity import READING, shares
from streamskit.course.labs.exercises.fault_tolerance import BALANCES, recorded_changelog, standby
from streamskit.course.labs.recording import Recording


def verdict(exercise: str, answer: Any) -> Verdict:
    return catalogue.exercise(exercise).examine_answer(answer)


@pytest.mark.spark
def test_an_answer_with_a_part_missing_is_told_which_parts_there_are() -> None:
    assert "'together'" in verdict("alarms_of_five", {"one by one": 3}).says


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


def test_a_standby_has_the_rows_of_the_store_that_kafka_streams_had() -> None:
    rows = Recording.of("ktable-source-changelog", stores=["rows"]).stores["rows"]
    copy = standby(updates=recorded_changelog).stores["copy"]
    assert [row.value for row in copy] == [BALANCES[row.value] for row in rows]


@pytest.mark.parametrize(
    ("before", "found"),
    [
        (lambda readings: readings, 2),
        (lambda readings: readings.repartition(), 2),
        (lambda readings: readings.repartition(partitions=8), 8),
        (lambda readings: readings.repartition(partitions=4).repartition(), 4),
    ],
)
def test_a_store_has_a_share_for_each_partition_of_what_its_step_reads(before: Any, found: int) -> None:
    builder = StreamsBuilder()
    before(builder.stream("readings", value=READING)).group_by_key().count("readings-by-station")
    assert shares(builder.build(), "readings-by-station") == found
