"""Lab 22: windows over real flights, what they are joined with, and a board that is asked."""

from streamskit.course.datasets.event_time import HOUR
from streamskit.course.labs.exercise import Judges, Runs
from streamskit.course.labs.exercises.flights_judging import (
    board,
    by_the_clock,
    examine_board,
    examine_grace,
    flights_doubled,
    flights_missing,
    grace_until_closing,
    hours,
    hours_recording,
    makers,
    makers_recording,
    other_window_size,
    rain,
    rain_recording,
    weather_of_next_hour,
    within,
)
from streamskit.course.labs.exercises.flights_mission import WRONG, a_silent_feed, judge_silent_airport
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.missions import Lives

LAB = lab(
    "22-flights",
    delays_by_hour=Runs(
        hours_recording,
        wrong={
            "codes instead of names": hours(by=lambda v: v.carrier),
            "grouped by airport": hours(by=lambda v: v.origin),
            "windows of another size": hours(size="1 day"),
            "late flights dropped": hours("1 hour"),
        },
        signs={"windows of another size": other_window_size, "late flights dropped": flights_missing},
    ),
    grace_hours=Judges(
        examine_grace,
        {"clock instead of stream time": by_the_clock, "open at the moment of closing": grace_until_closing},
    ),
    delays_by_maker=Runs(
        makers_recording,
        wrong={
            "looked up by the airport": makers("left_join", rekeyed=False),
            "unknown planes left out": makers("join"),
            "flights without a tail number left out": makers("left_join", numbered=True),
        },
    ),
    delays_in_rain=Runs(
        rain_recording,
        wrong={
            "weather of the next hour": rain(within().after("59 minutes")),
            "two observations for a flight": [rain(within().before("1 hour")), rain(within("59 minutes"))],
            "flights without their weather": [
                rain(within(grace="0 minutes").before("59 minutes")),
                rain(within().before("30 minutes")),
            ],
        },
        signs={
            "weather of the next hour": weather_of_next_hour,
            "two observations for a flight": flights_doubled,
            "flights without their weather": flights_missing,
        },
    ),
    departure_board=Judges(
        examine_board,
        {
            "a mean of nothing": board(divides=True),
            "more than one hour": board(until=HOUR),
            "missing taken for zero": board(unknown=0.0),
            "another order": board(by_name=True),
        },
    ),
    silent_airport=Lives("silent_airport", a_silent_feed, judge_silent_airport, wrong=WRONG),
)
