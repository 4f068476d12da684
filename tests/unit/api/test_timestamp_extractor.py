"""Timestamp extractors as values: what they take a time from, and what they say about a record without one."""

import dataclasses

import pytest

from streamskit import TimestampExtractor


def test_the_extractors_that_kafka_streams_brings_take_the_records_own_time() -> None:
    made = {
        "fail": TimestampExtractor.fail_on_invalid(),
        "skip": TimestampExtractor.log_and_skip_on_invalid(),
        "partition time": TimestampExtractor.use_partition_time_on_invalid(),
    }
    for invalid, extractor in made.items():
        assert (extractor.extract, extractor.invalid, extractor.missing) == (None, invalid, None)


def test_an_extractor_of_ones_own_asks_a_function_and_fails_unless_told_otherwise() -> None:
    def time(value: object) -> object:
        return value

    assert TimestampExtractor.of(time) == TimestampExtractor(time, "fail", None)
    assert TimestampExtractor.of(time, invalid="skip", missing="partition time").missing == "partition time"


@pytest.mark.parametrize("wanted", [{"invalid": "ignore"}, {"missing": "ignore"}, {"invalid": ""}])
def test_a_policy_that_does_not_exist_is_answered_with_those_that_do(wanted: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not known: choose 'fail', 'skip', 'partition time'"):
        TimestampExtractor(**wanted)  # type: ignore[arg-type]


def test_an_extractor_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TimestampExtractor.fail_on_invalid().invalid = "skip"  # type: ignore[misc]
