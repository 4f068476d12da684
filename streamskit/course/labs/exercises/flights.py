"""Lab 22: windows over real flights, what they are joined with, and a board that queries them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby
from typing import Any

import pandas as pd
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.windows import JoinWindows, TimeWindows, Windowed
from streamskit.course.datasets import flights as data
from streamskit.course.datasets.event_time import HOUR
from streamskit.course.datasets.flights import FLIGHT_SCHEMA, WEATHER_SCHEMA
from streamskit.course.labs.difference import Outcome, StoreRows
from streamskit.course.labs.exercise import Judges, Runs, Verdict, mistaken, right, wrong
from streamskit.course.labs.exercises.flights_mission import a_silent_feed, judge_silent_airport
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import piped
from streamskit.course.labs.misconceptions import window_sizes
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.recording import Batch, OutcomeRow, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.materialized import Materialized
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver

# ---- how answers are judged ------------------------------------------------------------------------------------------


Records = Iterable[dict[str, Any]]
Tally = dict[str, int]

DAY = 24 * HOUR

TALLY = Serdes.json("flights long, landed long, minutes long")
"""What is kept of some flights; the mean delay is `minutes` divided by `landed`."""


@dataclass(frozen=True)
class Hours:
    """Some hours of a day in New York, the last included: answers are tried on the flights that leave then."""

    day: str
    first: int
    last: int

    def records(self, made: Callable[[str, str], Records]) -> list[dict[str, Any]]:
        """Return the records of these hours, in the order in which they came in."""
        begin, end = (pd.Timestamp(f"{self.day} {hour}:00", tz="America/New_York") for hour in (self.first, self.last))
        times = range(begin.value // 1_000_000, end.value // 1_000_000 + HOUR)
        return [record for record in made(self.day, self.day) if record["timestamp"] in times]

    def rows(self, name: str) -> pd.DataFrame:
        """Return the rows that a table of the package has for these hours."""
        rows, (_, month, day) = data.flights_table(name), self.day.split("-")
        is_of_day = (rows["month"] == int(month)) & (rows["day"] == int(day))
        return rows[is_of_day & rows["hour"].between(self.first, self.last)]


TALLIED, MADE, RAINY, SHOWN = (
    Hours("2013-04-10", 20, 23),
    Hours("2013-09-02", 20, 23),
    Hours("2013-06-07", 5, 7),
    Hours("2013-12-17", 15, 23),
)
"""What answers are tried on; the notebook shows another day."""


def nobody() -> Tally:
    """Return the tally of no flights."""
    return {"flights": 0, "landed": 0, "minutes": 0}


def add(key: Any, flight: dict[str, Any], tally: Tally) -> Tally:
    """Return the tally with one flight more; a delay that is missing is none."""
    delay = flight["arr_delay"]
    return {
        "flights": tally["flights"] + 1,
        "landed": tally["landed"] + (delay is not None),
        "minutes": tally["minutes"] + (delay or 0),
    }


# ---- what pandas makes of the same hours -----------------------------------------------------------------------------


def tallied(rows: pd.DataFrame, by: Any) -> dict[Any, Tally]:
    """Return the tally of each group of flights."""
    found = rows.groupby(by).agg(
        flights=("flight", "size"), landed=("arr_delay", "count"), minutes=("arr_delay", "sum")
    )
    return {key: {str(name): int(count) for name, count in row.items()} for key, row in found.to_dict("index").items()}


def by_airline_and_hour(hours: Hours) -> dict[tuple[str, int], Tally]:
    """Return the tally of each airline and hour."""
    rows = hours.rows("flights").merge(data.flights_table("airlines"), on="carrier")
    return tallied(rows, [rows["name"], rows["time_hour"].dt.as_unit("ms").astype("int64")])


def by_airline_and_airport(hours: Hours) -> dict[tuple[str, int], Tally]:
    """Return the tally of each airline at each airport, in windows of three hours of which one begins each hour."""
    rows = hours.rows("flights").merge(data.flights_table("airlines"), on="carrier")
    rows = pd.concat([rows.assign(start=rows["time_hour"] - pd.Timedelta(hours=n)) for n in range(3)])
    return tallied(rows, [rows["name"] + ", " + rows["origin"], rows["start"].dt.as_unit("ms").astype("int64")])


def by_maker(hours: Hours) -> dict[str, Tally]:
    """Return the tally of the planes of each manufacturer."""
    known = data.flights_table("planes")[["tailnum", "manufacturer"]]
    rows = hours.rows("flights").merge(known, on="tailnum", how="left")
    return tallied(rows, rows["manufacturer"].fillna("unknown"))


def by_rain(hours: Hours, next_hour: bool = False) -> dict[str, Tally]:
    """Return the tally of flights in rain and without, by the weather of their hour or by the first that comes."""
    seen = hours.rows("weather")[["origin", "time_hour", "precip"]]
    rows = hours.rows("flights")
    if next_hour:
        rows = rows.assign(time_hour=rows["time_hour"] + pd.to_timedelta(rows["minute"].gt(0).astype(int), "h"))
    rows = rows.merge(seen, on=["origin", "time_hour"])
    return tallied(rows, rows["precip"].gt(0).map({True: "rain", False: "dry"}))


def tallies(store: str, steps: list[Piped], expected: dict[Any, Tally]) -> Recording:
    """Return what goes in, and which rows the store has to hold in the end."""
    rows = tuple(OutcomeRow(-1, key, value) for key, value in expected.items())
    batches = tuple(Batch(tuple(together)) for _, together in groupby(steps, lambda step: step.topic))
    return Recording(batches, {}, {store: rows}, source="pandas")


def two_days_late(leaving: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return flights of which the first comes in last, and the one before it, which has moved stream time so far."""
    first = min(leaving, key=lambda record: record["timestamp"])
    ahead = {**first, "timestamp": first["timestamp"] + 2 * DAY}
    return [*(each for each in leaving if each is not first), ahead, first], ahead


@cache
def hours_recording() -> Recording:
    """Return the flights of some hours, and their tallies by airline and airport."""
    leaving, ahead = two_days_late(TALLIED.records(data.flights))
    names = {each["key"]: each["value"]["name"] for each in data.airlines()}
    who, hour = f"{names[ahead['value']['carrier']]}, {ahead['key']}", ahead["timestamp"] // HOUR * HOUR
    by_hour = by_airline_and_airport(TALLIED)
    by_hour |= {(who, hour - n * HOUR): add(who, ahead["value"], nobody()) for n in range(3)}
    expected = {Windowed(who, start, start + 3 * HOUR): tally for (who, start), tally in by_hour.items()}
    return tallies("delays-by-hour", [*piped("airlines", data.airlines()), *piped("flights", leaving)], expected)


@cache
def makers_recording() -> Recording:
    """Return the flights of some hours and the planes that fly, and the tallies by manufacturer."""
    leaving = MADE.records(data.flights)
    flying = {each["value"]["tailnum"] for each in leaving}
    steps = [*piped("planes", [each for each in data.planes() if each["key"] in flying]), *piped("flights", leaving)]
    return tallies("delays-by-maker", steps, by_maker(MADE))


@cache
def rain_recording() -> Recording:
    """Return the weather and the flights of some hours, and the tallies of those in rain and of the others.

    For two of the flights, on days after these, nobody has observed the weather of their hour. One later observation
    is there before all flights, from an airport from which none of them leaves then.
    """
    seen, (leaving, ahead) = RAINY.records(data.weather), two_days_late(RAINY.records(data.flights))
    elsewhere = next(each for each in seen if each["key"] != ahead["key"])
    seen.append({**elsewhere, "timestamp": ahead["timestamp"]})
    last = {**ahead, "timestamp": ahead["timestamp"] + 3 * DAY}
    steps = [*piped("weather", seen), *piped("flights", [*leaving, last])]
    return tallies("delays-in-rain", steps, by_rain(RAINY))


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def only_store(outcome: Outcome) -> StoreRows:
    """The store of the task."""
    return outcome.stores[0]


def flown(rows: Iterable[OutcomeRow]) -> int:
    """Count the flights in rows of a store."""
    return sum(row.value["flights"] for row in rows if isinstance(row.value, dict) and "flights" in row.value)


def flights_missing(outcome: Outcome) -> bool:
    """There are rows, for fewer flights than went in."""
    store = only_store(outcome)
    return 0 < flown(store.actual) < flown(store.expected)


def flights_doubled(outcome: Outcome) -> bool:
    """There are more flights than went in."""
    store = only_store(outcome)
    return flown(store.actual) > flown(store.expected)


def one_without_weather(outcome: Outcome) -> bool:
    """The flight of which no observation can come any more is there."""
    store = only_store(outcome)
    return flown(store.actual) == flown(store.expected) + 1


def other_window_size(outcome: Outcome) -> bool:
    """The store has windows of another size."""
    store = only_store(outcome)
    return bool(store.actual) and window_sizes(store.actual) != window_sizes(store.expected)


def too_few_windows(outcome: Outcome) -> bool:
    """The windows are of the right size, and begin one where the one before ends."""
    starts = {row.key.start for row in only_store(outcome).actual if isinstance(row.key, Windowed)}
    return len({start % (3 * HOUR) for start in starts}) == 1 and not other_window_size(outcome)


def weather_of_next_hour(outcome: Outcome) -> bool:
    """The rows are those of the weather that comes after the flight."""
    found = {row.key: row.value for row in only_store(outcome).actual}
    return found == by_rain(RAINY, next_hour=True)


# ---- grace -----------------------------------------------------------------------------------------------------------


def least_grace(records: Records) -> int:
    """Return the least whole hours of grace with which windows of an hour lose none of these records."""
    times = [record["timestamp"] for record in records]
    over = [seen - (time // HOUR + 1) * HOUR for seen, time in zip(accumulate(times, max), times, strict=True)]
    return max(0, max(over, default=-1) // HOUR + 1)


def by_the_clock(records: Records) -> int:
    """Return the grace that the longest time until a record came in suggests."""
    return max((each["value"]["came_in"] - each["timestamp"]) // HOUR + 1 for each in records)


def month_at(airport: str, month: str, last: str) -> list[dict[str, Any]]:
    """Return the flights of a month from one airport."""
    return [record for record in data.flights(f"2013-{month}-01", f"2013-{month}-{last}") if record["key"] == airport]


def plain(*minutes: int) -> list[dict[str, Any]]:
    """Return records with these times that come in immediately, each a cancelled flight."""
    return [{"key": "JFK", "value": {"came_in": 60_000 * at}, "timestamp": 60_000 * at} for at in minutes]


def examine_grace(answer: Callable[[list[dict[str, Any]]], Any]) -> Verdict:
    """Try a function on months and airports, in order, and on a record that comes at the very moment of closing."""
    for told, records in (
        ("Newark in August", month_at("EWR", "08", "31")),
        ("LaGuardia in February", month_at("LGA", "02", "28")),
    ):
        given, due = answer(records), least_grace(records)
        if given == by_the_clock(records):
            return mistaken("clock instead of stream time")
        if given != due:
            return wrong(f"For {told} your function says {given!r}; the least is {due}.")
    if (given := answer(plain(0, 30, 60, 90, 120))) != 0:
        return wrong(f"For records in order your function says {given!r}. None of them is late: 0 is enough.")
    if answer(plain(0, 180, 30)) != 3:
        return mistaken("open at the moment of closing")
    return right(
        "Four lists of records: Newark in August, LaGuardia in February, records in order, and one that arrives at "
        "the very moment of closing. Your grace loses none of them, and an hour less would."
    )


# ---- the board -------------------------------------------------------------------------------------------------------


def board_due(by_hour: dict[tuple[str, int], Tally], hour: int) -> list[dict[str, Any]]:
    """Return the lines that a board has to show, from the tallies by airline and hour."""
    lines = [
        {"airline": name, "flights": one["flights"], "delay": one["minutes"] / one["landed"] if one["landed"] else None}
        for (name, start), one in by_hour.items()
        if start == hour
    ]
    return sorted(lines, key=lambda line: (line["delay"] is None, -(line["delay"] or 0.0), line["airline"]))


def examine_board(answer: Callable[[Any, int], Any]) -> Verdict:
    """Ask a board for each hour of an evening."""
    builder = StreamsBuilder()
    named = builder.stream("flights", value=Serdes.json("arr_delay int"))
    windows = TimeWindows.of_size_and_grace("1 hour", "2 days")
    kept = Materialized("delays-by-hour", retention="10 days")
    named.group_by_key().windowed_by(windows).aggregate(_tally, kept)
    names = {each["key"]: each["value"]["name"] for each in data.airlines()}
    flights = [
        (names[each["value"]["carrier"]], {"arr_delay": each["value"]["arr_delay"]}, each["timestamp"])
        for each in SHOWN.records(data.flights)
    ]
    evening = by_airline_and_hour(SHOWN)
    starts = sorted({hour for _, hour in evening})
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("flights").pipe_records(flights)
        store = driver.state_store("delays-by-hour")
        for hour in starts:
            try:
                given = answer(store, hour)
            except ZeroDivisionError:
                return mistaken("a mean of nothing")
            verdict = _judged(given, board_due(evening, hour), hour)
            if verdict is not None:
                return verdict
    return right(f"{len(starts)} boards of an evening that you have not seen, each hour's, are those of pandas.")


def _tally(v: Any) -> Column:
    minutes = F.coalesce(F.sum(v.arr_delay), F.lit(0)).alias("minutes")
    return F.struct(F.count("*").alias("flights"), F.count(v.arr_delay).alias("landed"), minutes)


def _judged(given: Any, due: list[dict[str, Any]], hour: int) -> Verdict | None:
    """Return what is wrong with a board, or None."""
    at, names = f"{pd.Timestamp(hour, unit='ms'):%H:%M} UTC", {"airline", "flights", "delay"}
    if not isinstance(given, list) or any(not isinstance(line, dict) or line.keys() != names for line in given):
        return wrong(f"The board has to be a list of dicts with airline, flights and delay; it is {given!r:.200}.")
    if len(given) > len(due):
        return mistaken("more than one hour", at=at, lines=len(given), due=len(due))
    given, due = [_rounded(line) for line in given], [_rounded(line) for line in due]
    if given == due:
        return None
    if any(line["delay"] is None and line | {"delay": 0.0} in given for line in due):
        return mistaken("missing taken for zero", at=at)
    if all(line in given for line in due):
        return mistaken("another order", at=at)
    return wrong(f"The board of {at} should have the line {next(line for line in due if line not in given)}.")


def _rounded(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"delay": None if line["delay"] is None else round(line["delay"], 3)}


# ---- wrong answers ---------------------------------------------------------------------------------------------------

Answer = Callable[[StreamsBuilder], None]


def rain(windows: JoinWindows, kind: str = "join") -> Answer:
    """Return the answer that joins flights with the weather in these windows."""

    def answer(builder: StreamsBuilder) -> None:
        flight = builder.stream("flights", value=Serdes.json(FLIGHT_SCHEMA))
        observed = builder.stream("weather", value=Serdes.json(WEATHER_SCHEMA))
        joined = getattr(flight, kind)(
            observed,
            lambda flight, weather: F.struct(
                F.when(weather.precip > 0, "rain").otherwise("dry").alias("sky"), flight.arr_delay
            ),
            windows,
        )
        joined.group_by(lambda v: v.sky).aggregate(nobody, add, Materialized("delays-in-rain", value=TALLY))

    return answer


def within(difference: str | int = 0, grace: str = "2 days") -> JoinWindows:
    """Return symmetric windows of a join, as long before a record as after it."""
    return JoinWindows.of_time_difference_and_grace(difference, grace)


def board(until: int = 0, unknown: float | None = None, divides: bool = False, by_name: bool = False) -> Any:
    """Return a board with a mistake.

    Args:
        until: how much later than the hour the last window begins.
        unknown: the mean delay of an airline of whose flights none has landed.
        divides: whether it is computed for such an airline, too.
        by_name: whether the lines are in the order of names.
    """

    def line(airline: str, tally: Tally) -> dict[str, Any]:
        mean = tally["minutes"] / tally["landed"] if tally["landed"] or divides else unknown
        return {"airline": airline, "flights": tally["flights"], "delay": mean}

    def worst_first(line: dict[str, Any]) -> Any:
        return line["airline"] if by_name else (line["delay"] is None, -(line["delay"] or 0), line["airline"])

    def answer(store: Any, hour: int) -> list[dict[str, Any]]:
        found = store.fetch_all(hour, hour + until)
        return sorted((line(window.key, tally) for window, tally in found), key=worst_first)

    return answer


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "22-flights",
    delays_by_hour=Runs(
        hours_recording,
        signs={
            "windows of another size": other_window_size,
            "sent once in three hours": too_few_windows,
            "late flights dropped": flights_missing,
        },
    ),
    grace_hours=Judges(
        examine_grace,
    ),
    delays_by_maker=Runs(
        makers_recording,
        partitions=3,
    ),
    delays_in_rain=Runs(
        rain_recording,
        wrong={
            "weather of the next hour": rain(within().after("59 minutes")),
            "left instead of inner": rain(within().before("59 minutes"), "left_join"),
            "two observations for a flight": [rain(within().before("1 hour")), rain(within("59 minutes"))],
            "flights without their weather": [
                rain(within(grace="0 minutes").before("59 minutes")),
                rain(within(grace="1 day").before("59 minutes")),
                rain(within(grace="47 hours").before("59 minutes")),
                rain(within().before("30 minutes")),
            ],
        },
        signs={
            "weather of the next hour": weather_of_next_hour,
            "left instead of inner": one_without_weather,
            "two observations for a flight": flights_doubled,
            "flights without their weather": flights_missing,
        },
        partitions=3,
    ),
    departure_board=Judges(
        examine_board,
    ),
    silent_airport=Lives("silent_airport", a_silent_feed, judge_silent_airport),
)
