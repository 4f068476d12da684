"""Wrong answers that are typical for lab 22: each is told what is misunderstood."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import JoinWindows, Materialized, Serdes, StreamsBuilder, TimeWindows
from streamskit.course.labs.exercises.flights_judging import TALLY, add, nobody
from streamskit.datasets import AIRLINE_SCHEMA, FLIGHT_SCHEMA, HOUR, PLANE_SCHEMA, WEATHER_SCHEMA
from tests.labs.wrong_answers import misconception, one_more

pytestmark = pytest.mark.spark


def hours(builder: StreamsBuilder, windows: TimeWindows, by: Any) -> None:
    flight = builder.stream("flights", value=Serdes.json(FLIGHT_SCHEMA))
    airline = builder.global_table("airlines", value=Serdes.json(AIRLINE_SCHEMA))
    named = flight.join(
        airline,
        lambda flight, airline: F.struct(airline.name, flight.carrier, flight.origin, flight.arr_delay),
        key_selector=lambda airport, flight: flight.carrier,
    )
    store = Materialized("delays-by-hour", value=TALLY, retention="10 days")
    named.group_by(by).windowed_by(windows).aggregate(nobody, add, store)


GENEROUS = TimeWindows.of_size_and_grace("1 hour", "2 days")


@one_more
def test_a_grace_of_an_hour() -> None:
    windows = TimeWindows.of_size_and_grace("1 hour", "1 hour")
    assert misconception("delays_by_hour", lambda b: hours(b, windows, lambda v: v.name)) == "late flights dropped"


@one_more
def test_windows_of_a_day() -> None:
    windows = TimeWindows.of_size_and_grace("1 day", "2 days")
    found = misconception("delays_by_hour", lambda b: hours(b, windows, lambda v: v.name))
    assert found == "windows of another size"


@one_more
def test_a_group_by_code() -> None:
    found = misconception("delays_by_hour", lambda b: hours(b, GENEROUS, lambda v: v.carrier))
    assert found == "codes instead of names"


@one_more
def test_a_group_by_airport() -> None:
    found = misconception("delays_by_hour", lambda b: hours(b, GENEROUS, lambda v: v.origin))
    assert found == "grouped by airport"


def test_grace_by_how_long_a_flight_takes() -> None:
    def answer(records: list[dict[str, Any]]) -> int:
        took = [record["value"]["came_in"] - record["timestamp"] for record in records]
        return max(0, max(took) // HOUR + 1)

    assert misconception("grace_hours", answer) == "clock instead of stream time"


def test_grace_that_is_open_at_the_moment_of_closing() -> None:
    def answer(records: list[dict[str, Any]]) -> int:
        stream_time, over = 0, 0
        for record in records:
            stream_time = max(stream_time, record["timestamp"])
            over = max(over, stream_time - (record["timestamp"] // HOUR + 1) * HOUR)
        return -(-over // HOUR)

    assert misconception("grace_hours", answer) == "open at the moment of closing"


def makers(builder: StreamsBuilder, operator: str, rekeyed: bool = True, with_number: bool = False) -> None:
    flight = builder.stream("flights", value=Serdes.json(FLIGHT_SCHEMA))
    plane = builder.table("planes", value=Serdes.json(PLANE_SCHEMA))
    if with_number:
        flight = flight.filter(lambda v: v.tailnum.isNotNull())
    if rekeyed:
        flight = flight.select_key(lambda v: v.tailnum)
    joined = getattr(flight, operator)(
        plane,
        lambda flight, plane: F.struct(
            F.coalesce(plane.manufacturer, F.lit("unknown")).alias("maker"), flight.arr_delay
        ),
    )
    store = Materialized("delays-by-maker", value=TALLY)
    joined.group_by(lambda v: v.maker).aggregate(nobody, add, store)


@one_more
def test_an_inner_join_with_the_planes() -> None:
    assert misconception("delays_by_maker", lambda b: makers(b, "join")) == "unknown planes left out"


@one_more
def test_planes_looked_up_by_the_airport() -> None:
    found = misconception("delays_by_maker", lambda b: makers(b, "left_join", rekeyed=False))
    assert found == "looked up by the airport"


@one_more
def test_flights_without_a_tail_number_filtered_out() -> None:
    found = misconception("delays_by_maker", lambda b: makers(b, "left_join", with_number=True))
    assert found == "flights without a tail number left out"


def rain(builder: StreamsBuilder, windows: JoinWindows) -> None:
    flight = builder.stream("flights", value=Serdes.json(FLIGHT_SCHEMA))
    observed = builder.stream("weather", value=Serdes.json(WEATHER_SCHEMA))
    joined = flight.join(
        observed,
        lambda flight, weather: F.struct(
            F.when(weather.precip > 0, "rain").otherwise("dry").alias("sky"), flight.arr_delay
        ),
        windows,
    )
    joined.group_by(lambda v: v.sky).aggregate(nobody, add, Materialized("delays-in-rain", value=TALLY))


@pytest.mark.parametrize(
    ("windows", "mistake"),
    [
        (JoinWindows.of_time_difference_and_grace(0, "2 days").before("1 hour"), "two observations for a flight"),
        pytest.param(
            JoinWindows.of_time_difference_and_grace("59 minutes", "2 days"),
            "two observations for a flight",
            marks=one_more,
        ),
        pytest.param(
            JoinWindows.of_time_difference_and_grace(0, "2 days").after("59 minutes"),
            "weather of the next hour",
            marks=one_more,
        ),
        pytest.param(
            JoinWindows.of_time_difference_with_no_grace(0).before("59 minutes"),
            "flights without their weather",
            marks=one_more,
        ),
        pytest.param(
            JoinWindows.of_time_difference_and_grace(0, "2 days").before("30 minutes"),
            "flights without their weather",
            marks=one_more,
        ),
    ],
)
def test_windows_that_find_other_weather(windows: JoinWindows, mistake: str) -> None:
    assert misconception("delays_in_rain", lambda b: rain(b, windows)) == mistake


def lines(store: Any, hour: int, until: int) -> list[dict[str, Any]]:
    return [
        {
            "airline": window.key,
            "flights": tally["flights"],
            "delay": tally["minutes"] / tally["landed"] if tally["landed"] else None,
        }
        for window, tally in store.fetch_all(hour, until)
    ]


def worst_first(line: dict[str, Any]) -> tuple[bool, float, str]:
    return line["delay"] is None, -(line["delay"] or 0), line["airline"]


@one_more
def test_a_board_of_two_hours() -> None:
    def answer(store: Any, hour: int) -> list[dict[str, Any]]:
        return sorted(lines(store, hour, hour + HOUR), key=worst_first)

    assert misconception("departure_board", answer) == "more than one hour"


def test_a_board_that_divides_by_nothing() -> None:
    def answer(store: Any, hour: int) -> list[dict[str, Any]]:
        known = [
            {"airline": window.key, "flights": tally["flights"], "delay": tally["minutes"] / tally["landed"]}
            for window, tally in store.fetch_all(hour, hour)
        ]
        return sorted(known, key=worst_first)

    assert misconception("departure_board", answer) == "a mean of nothing"


@one_more
def test_a_board_with_zero_for_what_is_not_known() -> None:
    def answer(store: Any, hour: int) -> list[dict[str, Any]]:
        known = [line | {"delay": line["delay"] or 0.0} for line in lines(store, hour, hour)]
        return sorted(known, key=worst_first)

    assert misconception("departure_board", answer) == "missing taken for zero"


@one_more
def test_a_board_by_name() -> None:
    def answer(store: Any, hour: int) -> list[dict[str, Any]]:
        return sorted(lines(store, hour, hour), key=lambda line: line["airline"])

    assert misconception("departure_board", answer) == "another order"
