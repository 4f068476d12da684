from datetime import timedelta

import pytest

from streamskit.common.durations import spell, to_milliseconds


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("5 seconds", 5000),
        ("250 ms", 250),
        ("1 hour 30 minutes", 5_400_000),
        ("1.5 s", 1500),
        (42, 42),
        ("2 days", 172_800_000),
    ],
)
def test_a_duration_is_read_as_it_is_written(written: str | int, milliseconds: int) -> None:
    assert to_milliseconds(written) == milliseconds


def test_a_timedelta_is_a_duration() -> None:
    assert to_milliseconds(timedelta(minutes=2)) == 120_000


@pytest.mark.parametrize("wrong", ["soon", "5", "5 parsecs", "", "5 seconds or so", -1, True, None, 1.5])
def test_what_is_no_duration_is_refused_with_an_example(wrong: object) -> None:
    with pytest.raises(ValueError, match="grace"):
        to_milliseconds(wrong, "grace")  # type: ignore[arg-type]


def test_a_duration_is_spelt_in_its_largest_whole_unit() -> None:
    assert [spell(value) for value in (0, 250, 5000, 5_400_000, 86_400_000)] == [
        "0 ms",
        "250 ms",
        "5 s",
        "90 min",
        "1 d",
    ]
