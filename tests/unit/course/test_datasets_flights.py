"""What holds of the flights, their weather, planes and airlines, and of the order in which records come in."""

import importlib.util
from collections import Counter
from itertools import accumulate, pairwise
from typing import Any

import pytest

from streamskit import Serdes
from streamskit.common.errors import SetupError
from streamskit.course.datasets import flights as data
from streamskit.datasets import (
    AIRLINE_SCHEMA,
    FLIGHT_SCHEMA,
    HOUR,
    MINUTE,
    PLANE_SCHEMA,
    WEATHER_SCHEMA,
    airlines,
    flights,
    flights_table,
    planes,
    weather,
)


@pytest.fixture(scope="module")
def year() -> list[dict[str, Any]]:
    return list(flights())


def test_the_year_has_all_its_flights(year: list[dict[str, Any]]) -> None:
    assert len(year) == 336_776
    assert Counter(record["key"] for record in year) == {"EWR": 120_835, "JFK": 111_279, "LGA": 104_662}
    assert all(record["key"] == record["value"]["origin"] for record in year)


def test_records_come_in_the_order_in_which_flights_end_and_so_out_of_the_order_of_their_time(
    year: list[dict[str, Any]],
) -> None:
    assert all(one["value"]["came_in"] <= next_["value"]["came_in"] for one, next_ in pairwise(year))
    latest = accumulate((record["timestamp"] for record in year), max)
    behind = [seen - record["timestamp"] for seen, record in zip(latest, year, strict=True)]
    assert 0.5 < sum(late > HOUR for late in behind) / len(behind) < 0.9
    assert HOUR < max(behind) < 32 * HOUR


def test_what_did_not_happen_is_none_and_never_a_number(year: list[dict[str, Any]]) -> None:
    values = [record["value"] for record in year]
    cancelled = [value for value in values if value["dep_delay"] is None]
    elsewhere = [value for value in values if value["dep_delay"] is not None and value["arr_delay"] is None]
    assert (len(cancelled), len(elsewhere)) == (8_255, 1_175)
    assert all(value["arr_delay"] is None for value in cancelled)
    assert sum(value["tailnum"] is None for value in values) == 2_512
    assert {type(value["dep_delay"]) for value in values} == {int, type(None)}


def test_a_cancelled_flight_comes_in_when_it_should_have_left() -> None:
    for record in flights("2013-02-08", "2013-02-08"):
        late = record["value"]["came_in"] - record["timestamp"]
        assert late == 0 or record["value"]["dep_delay"] is not None
        assert late % MINUTE == 0


def test_times_are_those_of_new_york_in_utc_in_winter_and_in_summer() -> None:
    for day, offset in (("2013-01-15", 5), ("2013-07-15", 4)):
        first = min(record["timestamp"] for record in flights(day, day))
        raw = flights_table("flights").query(f"month == {int(day[5:7])} and day == 15")
        assert first // HOUR % 24 == raw["hour"].min() + offset


def test_some_days_are_those_of_the_year(year: list[dict[str, Any]]) -> None:
    some = list(flights("2013-03-09", "2013-03-11"))
    days = {(row.month, row.day) for row in flights_table("flights").itertuples()}
    assert len(days) == 365
    assert len(some) == len(flights_table("flights").query("month == 3 and 9 <= day <= 11"))
    known = {(each["timestamp"], each["value"]["carrier"], each["value"]["flight"]) for each in year}
    assert {(each["timestamp"], each["value"]["carrier"], each["value"]["flight"]) for each in some} <= known


def test_there_is_one_observation_an_hour_at_most_and_some_hours_have_none() -> None:
    records = list(weather("2013-01-01", "2013-10-31"))
    assert all(one["timestamp"] <= next_["timestamp"] for one, next_ in pairwise(records))
    assert all(record["timestamp"] % HOUR == 0 for record in records)
    times = Counter((record["key"], record["timestamp"]) for record in records)
    assert set(times.values()) == {1}
    hours = {(record["key"], record["timestamp"] // HOUR * HOUR) for record in flights("2013-01-01", "2013-10-31")}
    assert 0 < len(hours - times.keys()) < len(hours) / 50


def test_most_planes_are_known_and_all_airlines(year: list[dict[str, Any]]) -> None:
    known = {record["key"] for record in planes()}
    flown = {record["value"]["tailnum"] for record in year} - {None}
    assert known < flown
    assert 0.7 < len(known) / len(flown) < 0.9
    assert {record["value"]["carrier"] for record in year} == {record["key"] for record in airlines()}


def test_planes_and_airlines_are_announced_before_the_first_flight(year: list[dict[str, Any]]) -> None:
    announced = {record["timestamp"] for records in (planes(), airlines()) for record in records}
    assert max(announced) < min(record["timestamp"] for record in year)


def test_a_table_may_be_changed_without_harm() -> None:
    rows = flights_table("airlines")
    rows["name"] = "nobody"
    assert flights_table("airlines")["name"].nunique() == 16


def test_the_schemas_have_every_field() -> None:
    day = "2013-02-08"
    samples = (
        (FLIGHT_SCHEMA, list(flights(day, day))),
        (WEATHER_SCHEMA, list(weather(day, day))),
        (PLANE_SCHEMA, list(planes())[:200]),
        (AIRLINE_SCHEMA, list(airlines())),
    )
    for schema, records in samples:
        serde = Serdes.json(schema)
        for record in records:
            assert [*record["value"]] == [part.split()[0] for part in schema.split(", ")]
            assert serde.deserialize(serde.serialize(record["value"])) == record["value"]


def test_without_the_package_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    data._read.cache_clear()
    with pytest.raises(SetupError, match="pip install"):
        next(data.flights())
