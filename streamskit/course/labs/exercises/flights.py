"""The exercises of lab 22: windows over real flights, what they are joined with, and a board that is asked."""

from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.exercises.flights_judging import (
    all_unknown,
    by_airport,
    codes_for_names,
    examine_board,
    examine_grace,
    flights_doubled,
    flights_missing,
    hours_recording,
    makers_recording,
    none_unknown,
    other_window_size,
    rain_recording,
    weather_of_next_hour,
    without_number_missing,
)
from streamskit.course.labs.misconceptions import Misconception

LAB = Lab(
    "22-flights",
    "Flights of 2013",
    (
        Exercise(
            "delays_by_hour",
            "Keep the delays of each airline and hour, with grace for records that come after a long flight.",
            Runs(
                hours_recording,
                (
                    Misconception(
                        "codes instead of names",
                        "The keys are the airlines' codes. The global table has the names: let the joiner take "
                        "the name along, and group by it.",
                        codes_for_names,
                    ),
                    Misconception(
                        "grouped by airport",
                        "The keys are airports: a record keeps its key through a join with a global table. Group by "
                        "the airline's name.",
                        by_airport,
                    ),
                    Misconception(
                        "windows of another size",
                        "The task asks for windows of one hour, and yours have another size.",
                        other_window_size,
                    ),
                    Misconception(
                        "late flights dropped",
                        "Flights are missing: their windows had closed when their records came in. Records come when "
                        "a flight has landed, so those that were late and far are lost first. Give the windows the "
                        "grace that the task names.",
                        flights_missing,
                    ),
                ),
            ),
            (
                "Three things are to be said: where the name comes from, what to group by, how long windows stay open.",
                "flight.join(airline, joiner, key_selector=...): the joiner makes F.struct of the name and arr_delay, "
                "and the key_selector names flight.carrier. Then group_by(...) and TimeWindows.of_size_and_grace(...).",
                "named = flight.join(airline, lambda flight, airline: F.struct(airline.name, flight.arr_delay), "
                "key_selector=lambda airport, flight: flight.carrier); grouped = named.group_by(lambda v: v.name); "
                'windows = TimeWindows.of_size_and_grace("1 hour", "2 days")',
            ),
        ),
        Exercise(
            "grace_hours",
            "Measure how many hours of grace some records need.",
            examine_grace,
            (
                "Walk through the records in order and keep the largest timestamp so far. Of each record you know when "
                "its window ends.",
                "A window's end is (timestamp // HOUR + 1) * HOUR. It is closed when stream time is at or past the end "
                "plus the grace: by how much is stream time past the end, at most?",
                "over = max(stream_time - end) over all records; the answer is max(0, over // HOUR + 1).",
            ),
        ),
        Exercise(
            "delays_by_maker",
            "Look the planes up by their tail numbers, and tally the delays by manufacturer.",
            Runs(
                makers_recording,
                (
                    Misconception(
                        "looked up by the airport",
                        "All planes are unknown: a stream is joined with a table by the record's key, and that is the "
                        "airport. Give each flight its tail number as the key first.",
                        all_unknown,
                    ),
                    Misconception(
                        "unknown planes left out",
                        "No flight is of an unknown plane. An inner join drops flights whose plane is not in the "
                        "table; the task wants them counted.",
                        none_unknown,
                    ),
                    Misconception(
                        "flights without a tail number left out",
                        "Some flights of unknown planes are missing: those that have no tail number at all. They are "
                        "flights, too.",
                        without_number_missing,
                    ),
                ),
            ),
            (
                "Which key has the table of planes, and which has a flight? Which join keeps a flight without a plane?",
                "select_key(lambda v: v.tailnum), then left_join; in the joiner F.coalesce(plane.manufacturer, "
                'F.lit("unknown")) stands for planes that are not there.',
                "joined = flight.select_key(lambda v: v.tailnum).left_join(plane, lambda flight, plane: F.struct("
                'F.coalesce(plane.manufacturer, F.lit("unknown")).alias("maker"), flight.arr_delay)); then '
                "joined.group_by(lambda v: v.maker).aggregate(nobody, add, store)",
            ),
        ),
        Exercise(
            "delays_in_rain",
            "Join each flight with the weather of its hour, and tally the delays in rain and without.",
            Runs(
                rain_recording,
                (
                    Misconception(
                        "weather of the next hour",
                        "Each flight has found the weather that came after it. before(...) says how much earlier the "
                        "right record may be, after(...) how much later.",
                        weather_of_next_hour,
                    ),
                    Misconception(
                        "two observations for a flight",
                        "Some flights count twice: two observations lie in their window. It ends at the flight, and a "
                        "full hour before the flight is still in it: both ends of a join's window belong to it.",
                        flights_doubled,
                    ),
                    Misconception(
                        "flights without their weather",
                        "Flights are missing. Either the window is so short that it does not reach back to the full "
                        "hour, or the weather was forgotten before the flight's record came in: that is the grace.",
                        flights_missing,
                    ),
                ),
            ),
            (
                "The observation is made at the full hour, and the flight leaves up to 59 minutes after it.",
                "JoinWindows.of_time_difference_and_grace(0, ...) is a moment; .before(...) lets it reach back.",
                'JoinWindows.of_time_difference_and_grace(0, "2 days").before("59 minutes")',
            ),
        ),
        Exercise(
            "departure_board",
            "Ask a window store for all airlines of an hour, and make a board of them.",
            examine_board,
            (
                "One question to the store gives all keys of an hour. The rest is a list, and sorting it.",
                "store.fetch_all(hour, hour) gives pairs of a windowed key and a value: each.key.key is the airline. "
                "The mean is minutes / landed, if anything has landed.",
                "Sort by (line['delay'] is None, -(line['delay'] or 0), line['airline']).",
            ),
        ),
    ),
)
