"""The exercises of lab 20: averages, which are computed from what is kept and never kept themselves."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.movies import MOVIES, movies, ratings
from streamskit.course.labs.asking import Ask, Asks, gives, reads_all
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.loops import Due, as_if, looped, piped
from streamskit.course.labs.misconceptions import Misconception
from streamskit.course.labs.recording import Batch, Piped, Recording, Step
from streamskit.course.labs.stores import table
from streamskit.serdes import Serdes

TITLES = {movie.id: f"{movie.title} ({movie.year})" for movie in MOVIES}
TOTAL = Serdes.json("count long, sum long")

ANNOUNCED = Batch(tuple(piped("rated-movies", movies())))
"""All movies, before the first rating."""


def some_ratings(count: int, seed: int, of: tuple[str, ...]) -> list[Piped]:
    """Return the first ratings of some movies."""
    every = (record for record in ratings(2_000, seed) if record["value"]["movie_id"] in of)
    return piped("rated-ratings", (record for record, _ in zip(every, range(count), strict=False)))


# ---- 1: the average now ----------------------------------------------------------------------------------------------


def _mean(given: list[int]) -> float:
    return sum(given) / len(given)


def _of_the_last_two(given: list[int]) -> float:
    average = float(given[0])
    for rating in given[1:]:
        average = (average + rating) / 2
    return average


def _averages(
    average: Callable[[list[int]], float] = _mean, key: Callable[[str], str] = lambda movie: TITLES[movie]
) -> Recording:
    given: dict[str, list[int]] = defaultdict(list)
    totals: dict[str, dict[str, int]] = {}

    def loop(record: Piped) -> Iterator[Due]:
        if record.topic == "rated-ratings":
            title = key(record.value["movie_id"])
            given[title].append(record.value["rating"])
            totals[title] = {"count": len(given[title]), "sum": sum(given[title])}
            yield Due("rated-averages", title, average(given[title]), record.timestamp)

    steps: list[Step] = [ANNOUNCED, *some_ratings(8, 79, ("movie-07", "movie-08"))]
    return looped(steps, ["rated-averages"], loop, {"ratings-by-title": totals})


def titles_without_years(outcome: Outcome) -> bool:
    """The keys are titles without the year."""
    return any(str(row.key) in {movie.title for movie in MOVIES} for row in outcome.actual)


def movies_by_id(outcome: Outcome) -> bool:
    """The keys are the movies' ids."""
    return any(str(row.key) in TITLES for row in outcome.actual)


def viewers(outcome: Outcome) -> bool:
    """The keys are viewers."""
    return any(str(row.key).startswith("viewer") for row in outcome.actual)


# ---- 2 and 4: asking for averages ------------------------------------------------------------------------------------


def _totals(seed: int, count: int) -> dict[str, dict[str, int]]:
    """Return count and sum of each title's ratings; one of the titles begins like another one."""
    totals: dict[str, dict[str, int]] = {"King Kong Lives (1986)": {"count": 40, "sum": 120}}
    for record in ratings(count, seed):
        total = totals.setdefault(TITLES[record["value"]["movie_id"]], {"count": 0, "sum": 0})
        total["count"] += 1
        total["sum"] += record["value"]["rating"]
    return totals


def _ask_together() -> list[Ask]:
    asks = []
    for seed in (83, 89):
        store = table("ratings-by-title", _totals(seed, 700), TOTAL)
        for title in ("Ben-Hur", "King Kong", "Metropolis", "Casablanca"):
            expected = _together(store, title)
            asks.append(Ask(f'average_of_a_title(store, "{title}")', (store, title), expected))
    return asks


def _together(store: Any, title: str, end: str = " (") -> float | None:
    found = [total for _, total in store.prefix_scan(title + end)]
    return sum(t["sum"] for t in found) / sum(t["count"] for t in found) if found else None


def _of_averages(store: Any, title: str, end: str = " (") -> float | None:
    found = [total["sum"] / total["count"] for _, total in store.prefix_scan(title + end)]
    return sum(found) / len(found) if found else None


def _undivided(store: Any, title: str) -> float:
    found = [total for _, total in store.prefix_scan(title + " (")]
    return sum(t["sum"] for t in found) / sum(t["count"] for t in found)


def _undivided_averages(store: Any, title: str) -> float:
    found = [total["sum"] / total["count"] for _, total in store.prefix_scan(title + " (")]
    return sum(found) / len(found)


def _ask_best() -> list[Ask]:
    asks = []
    for seed, count in ((97, 900), (101, 300)):
        store = table("ratings-by-title", _totals(seed, count), TOTAL)
        for least in (1, store.get("Ben-Hur (1959)")["count"], 10_000):
            asks.append(Ask(f"best_movies(store, {least})", (store, least), _best()(store, least)))
    return asks


def _average(total: Mapping[str, int]) -> float:
    return total["sum"] / total["count"]


def _best(
    by: Callable[[Mapping[str, int]], float] = _average, more: int = 0, sign: int = -1, all_of_them: bool = False
) -> Callable[[Any, int], list[str]]:
    def answer(store: Any, least: int) -> list[str]:
        found = [(title, total) for title, total in store.all() if total["count"] >= least + more or all_of_them]
        return [title for title, _ in sorted(found, key=lambda pair: (sign * by(pair[1]), pair[0]))]

    return answer


# ---- 3: a viewer changes their mind ----------------------------------------------------------------------------------

RATED = "ann/01 9, bob/01 7, ann/02 4, ann/01 5, bob/01 10, ann/02 6, ann/01 9"


def _last_words(take_out_sum: bool = True, take_out_count: bool = True) -> Recording:
    words: dict[tuple[str, str], int] = {}
    totals: dict[str, dict[str, int]] = defaultdict(lambda: {"count": 0, "sum": 0})

    def loop(record: Piped) -> Iterator[Due]:
        movie, rating = record.value["movie_id"], record.value["rating"]
        before = words.get((record.key, movie))
        words[record.key, movie] = rating
        total = totals[movie]
        again = before is not None
        total = {"count": total["count"] + 1 - (again and take_out_count), "sum": total["sum"] + rating}
        total["sum"] -= before if before is not None and take_out_sum else 0
        totals[movie] = total
        yield Due("last-words", movie, total)

    steps = []
    for minute, given in enumerate(RATED.split(", ")):
        who, rating = given.split()
        viewer, movie = who.split("/")
        value = {"viewer": viewer, "movie_id": f"movie-{movie}", "rating": int(rating)}
        steps.append(Piped("rated-ratings", viewer, value, NEW_YEAR + minute * 60_000))
    return looped(steps, ["last-words"], loop, {"last-words-by-movie": totals})


# ---- 5: how far opinions differ --------------------------------------------------------------------------------------


def _variance(given: list[int]) -> float:
    mean = _mean(given)
    return sum((rating - mean) ** 2 for rating in given) / len(given)


def _deviation(given: list[int]) -> float:
    return math.sqrt(_variance(given))


def _sample(first: float | None) -> Callable[[list[int]], Any]:
    """Return the deviation of a sample, and what it is said to be for the first rating."""

    def deviation(given: list[int]) -> float | None:
        return first if len(given) == 1 else math.sqrt(_variance(given) * len(given) / (len(given) - 1))

    return deviation


def _spread(made: Callable[[list[int]], Any] = _deviation) -> Recording:
    given: dict[str, list[int]] = defaultdict(list)

    def loop(record: Piped) -> Iterator[Due]:
        movie = record.value["movie_id"]
        given[movie].append(record.value["rating"])
        yield Due("rating-spread", movie, made(given[movie]), record.timestamp)

    return looped(some_ratings(10, 103, ("movie-05", "movie-08")), ["rating-spread"], loop)


LAB = Lab(
    "20-movie-ratings",
    "Movie ratings",
    (
        Exercise(
            "running_average",
            "Keep count and sum of each movie's ratings, and send its average with each of them.",
            Runs(
                _averages,
                (
                    Misconception(
                        "titles without their years",
                        "The keys are titles alone, and three movies are called Ben-Hur: they share a row, without any "
                        "error.",
                        titles_without_years,
                    ),
                    Misconception(
                        "another key than the title",
                        "The keys are the movies' ids, or viewers. The title is known after the join; group_by makes "
                        "it the key.",
                        lambda outcome: movies_by_id(outcome) or viewers(outcome),
                    ),
                    Misconception(
                        "an average averaged with the next rating",
                        "Each result is halfway between the average before and the new rating. The tenth rating moves "
                        "an average by a tenth of the difference: count and sum have to be known.",
                        as_if(lambda: _averages(_of_the_last_two)),
                    ),
                    Misconception(
                        "the last rating for the average",
                        "Each result is the rating that has just come.",
                        as_if(lambda: _averages(lambda given: float(given[-1]))),
                    ),
                ),
            ),
            (
                "What has to be kept of a title's ratings, so that the next average can be computed?",
                'aggregate(lambda v: F.struct(...), materialized="ratings-by-title") with F.count("*") and '
                "F.sum(v.rating); then map_values divides.",
                'F.struct(F.count("*").alias("count"), F.sum(v.rating).alias("sum")), and '
                'map_values(lambda v: v.sum / v["count"])',
            ),
        ),
        Exercise(
            "average_of_a_title",
            "Say what viewers think of all movies of one title together.",
            Asks(
                _ask_together,
                "of titles of three movies, of one movie, and of none; another title begins like one of them.",
                (
                    Misconception(
                        "averages averaged",
                        "You take the average of the movies' averages, and so a movie that few have seen weighs as "
                        "much as the others. Add up the sums, add up the counts, divide at the end.",
                        gives(_of_averages, _undivided_averages, lambda store, title: _of_averages(store, title, "")),
                    ),
                    Misconception(
                        "keys that begin alike taken for one title",
                        "King Kong Lives is another movie, whose title begins like King Kong. Behind a title come a "
                        "blank and a bracket: they belong to the prefix.",
                        gives(lambda store, title: _together(store, title, "")),
                    ),
                    Misconception(
                        "divided by nothing",
                        "There is no movie of that title, and so nothing to divide by. The task wants None.",
                        gives(_undivided),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for one title",
                        "The answers are right, and all movies were read for each. prefix_scan reads those that begin "
                        "alike.",
                        reads_all,
                    ),
                ),
            ),
            (
                "The keys are titles with the year. Which call finds the three Ben-Hurs, and nothing else?",
                'store.prefix_scan(f"{title} (") has them; each value has count and sum.',
                'sum(v["sum"] for each) / sum(v["count"] for each), or None if there are none.',
            ),
        ),
        Exercise(
            "last_words",
            "Let only the last rating of each viewer for a movie count.",
            Runs(
                _last_words,
                (
                    Misconception(
                        "a changed rating counts twice",
                        "A viewer who rates a movie again counts as two. Of a table the old row has to be taken out "
                        "before the new one is put in: that is what the subtractor is for.",
                        as_if(lambda: _last_words(False, False)),
                    ),
                    Misconception(
                        "the old rating left in the sum",
                        "When a viewer rates again, the count stays as it is, and the sum grows by the whole new "
                        "rating. The subtractor takes the old one out of both.",
                        as_if(lambda: _last_words(take_out_sum=False)),
                    ),
                    Misconception(
                        "the old rating left in the count",
                        "When a viewer rates again, the old rating leaves the sum, and still counts. The subtractor "
                        "takes it out of both.",
                        as_if(lambda: _last_words(take_out_count=False)),
                    ),
                    Misconception(
                        "by viewer instead of by movie",
                        "The rows are those of viewers. The table's rows have to be grouped by the movie.",
                        lambda outcome: any("movie" not in str(row.key) for row in outcome.actual),
                    ),
                ),
            ),
            (
                "First a table with a row for each viewer and movie; then its rows are grouped by movie.",
                "select_key(viewer/movie), to_table(), group_by(lambda key, v: (v.movie_id, v.rating)), aggregate with "
                "an adder and a subtractor.",
                'taken_out: {"count": total["count"] - 1, "sum": total["sum"] - rating}',
            ),
        ),
        Exercise(
            "best_movies",
            "List the movies with enough ratings, the best average first.",
            Asks(
                _ask_best,
                "for one rating, for as many as some movie has, and for more than any has.",
                (
                    Misconception(
                        "sum taken for average",
                        "You sort by the sum, and the movie that was rated most often is first. Divide by the count.",
                        gives(_best(lambda total: total["sum"]), _best(lambda total: total["count"])),
                    ),
                    Misconception("worst first", "You begin with the movie that is liked least.", gives(_best(sign=1))),
                    Misconception(
                        "at least taken for more than",
                        "A movie with just as many ratings as are asked for is missing.",
                        gives(_best(more=1)),
                    ),
                    Misconception(
                        "too few ratings",
                        "Movies are in it that have fewer ratings than are asked for. One viewer's 10 is no average.",
                        gives(_best(all_of_them=True)),
                    ),
                ),
            ),
            (
                "For another order than that of the keys a store is read whole. Which rows stay, and what are they "
                "sorted by?",
                "sorted(..., key=...) with two parts: minus the average, and the title.",
                'sorted(found, key=lambda row: (-row[1]["sum"] / row[1]["count"], row[0]))',
            ),
        ),
        Exercise(
            "rating_spread",
            "Send with each rating how far the opinions on its movie differ.",
            Runs(
                _spread,
                (
                    Misconception(
                        "variance instead of deviation",
                        "That is the mean of the squares of the differences. The deviation is its square root.",
                        as_if(lambda: _spread(_variance)),
                    ),
                    Misconception(
                        "a sample instead of all ratings",
                        "You divide by one less than the number of ratings, as for a sample of them. These are all "
                        "ratings there are, and the first one has a deviation of 0.",
                        as_if(*(lambda first=first: _spread(_sample(first)) for first in (None, 0.0))),
                    ),
                    Misconception(
                        "difference to the last rating",
                        "Results depend only on the last ratings. Three numbers have to be kept: how many, their sum, "
                        "and the sum of their squares.",
                        as_if(lambda: _spread(lambda given: float(abs(given[-1] - given[-2])) if given[1:] else 0.0)),
                    ),
                ),
            ),
            (
                "An average needs two numbers. Which third one is needed for the deviation?",
                "Keep count, sum, and the sum of the squares; the variance is squares / count - (sum / count) ** 2.",
                "F.sqrt(v.squares / v.n - (v.sum / v.n) * (v.sum / v.n)) in map_values; or let Spark do all of it with "
                "F.stddev_pop.",
            ),
        ),
    ),
)
