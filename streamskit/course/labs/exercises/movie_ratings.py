"""The exercises of lab 20: averages, which are computed from what is kept and never kept themselves."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.movies import MOVIES, movies, ratings
from streamskit.course.labs.asking import Ask, Asks, reading_all, reads_all
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.exercises.movie_ratings_mission import (
    a_page_that_is_wrong,
    judge_rated_anew,
)
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, WrongLoop, looped, piped
from streamskit.course.labs.missions import ID_IS_TAKEN, Lives
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


def another_key(outcome: Outcome) -> bool:
    """The keys are the movies' ids, or viewers."""
    return any(str(row.key) in TITLES or str(row.key).startswith("viewer") for row in outcome.actual)


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


# ---- 3: viewers change their minds -----------------------------------------------------------------------------------

RATED = "ann/01 9, bob/01 7, ann/02 4, ann/01 5, bob/01 7, cho/02 8, bob/01 10, ann/02 6, ann/01 9, cho/02 8"

Before = Callable[[list[int]], int | None]
"""Which rating the new one is compared with, of those that came before it; None where it is not compared."""


def _last(earlier: list[int]) -> int | None:
    return earlier[-1] if earlier else None


def _changed_minds(
    before: Before = _last, of: Callable[[str, str], str] = "{}/{}".format, again: bool = False, by_movie: bool = True
) -> Recording:
    given: dict[str, list[int]] = defaultdict(list)
    totals: dict[str, dict[str, int]] = {}

    def loop(record: Piped) -> Iterator[Due]:
        movie, rating = record.value["movie_id"], record.value["rating"]
        earlier = given[of(record.key, movie)]
        compared = before(earlier)
        earlier.append(rating)
        if compared is not None and (rating != compared or again):
            group = movie if by_movie else record.key
            total = totals.get(group, {"changes": 0, "moved": 0})
            totals[group] = {"changes": total["changes"] + 1, "moved": total["moved"] + rating - compared}
            yield Due("changed-minds", group, totals[group])

    steps = []
    for minute, rated in enumerate(RATED.split(", ")):
        who, rating = rated.split()
        viewer, movie = who.split("/")
        value = {"viewer": viewer, "movie_id": f"movie-{movie}", "rating": int(rating)}
        steps.append(Piped("rated-ratings", viewer, value, NEW_YEAR + minute * 60_000))
    return looped(steps, ["changed-minds"], loop, {"changed-minds": totals})


def by_viewer(outcome: Outcome) -> bool:
    """The rows are those of viewers."""
    return any("movie" not in str(row.key) for row in outcome.actual)


# ---- 5: how far opinions differ --------------------------------------------------------------------------------------


def _variance(given: list[int]) -> float:
    mean = _mean(given)
    return sum((rating - mean) ** 2 for rating in given) / len(given)


def _deviation(given: list[int]) -> float:
    return math.sqrt(_variance(given))


def _sample(first: float | None) -> Callable[[list[int]], Any]:
    """Return a function for the deviation of a sample, with the given value for the first rating."""

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


LAB = lab(
    "20-movie-ratings",
    running_average=Runs(
        _averages,
        wrong={
            "titles without their years": WrongLoop(
                lambda: _averages(key=lambda movie: TITLES[movie][: -len(" (1959)")])
            ),
            "another key than the title": WrongLoop(lambda: _averages(key=lambda movie: movie)),
            "an average averaged with the next rating": WrongLoop(lambda: _averages(_of_the_last_two)),
            "the last rating for the average": WrongLoop(lambda: _averages(lambda given: float(given[-1]))),
        },
        signs={"another key than the title": another_key},
        partitions=3,
    ),
    average_of_a_title=Asks(
        _ask_together,
        "of titles of three movies, of one movie, and of none; another title begins like one of them.",
        wrong={
            "averages averaged": [
                _of_averages,
                _undivided_averages,
                lambda store, title: _of_averages(store, title, ""),
            ],
            "keys that begin alike taken for one title": lambda store, title: _together(store, title, ""),
            "divided by nothing": _undivided,
            "whole store read for one title": reading_all(_together),
        },
        habits={"whole store read for one title": reads_all},
    ),
    changed_minds=Runs(
        _changed_minds,
        wrong={
            "by viewer instead of by movie": WrongLoop(lambda: _changed_minds(by_movie=False)),
            "a first rating taken for a change": WrongLoop(lambda: _changed_minds(lambda earlier: _last(earlier) or 0)),
            "the same again taken for a change": WrongLoop(lambda: _changed_minds(again=True)),
            "compared with the first rating": WrongLoop(
                lambda: _changed_minds(lambda earlier: earlier[0] if earlier else None)
            ),
            "compared with another viewer": WrongLoop(lambda: _changed_minds(of=lambda viewer, movie: movie)),
            "compared with another movie": WrongLoop(lambda: _changed_minds(of=lambda viewer, movie: viewer)),
        },
        signs={"by viewer instead of by movie": by_viewer},
        partitions=3,
    ),
    best_movies=Asks(
        _ask_best,
        "for one rating, for as many as some movie has, and for more than any has.",
        wrong={
            "sum taken for average": [_best(lambda total: total["sum"]), _best(lambda total: total["count"])],
            "worst first": _best(sign=1),
            "at least taken for more than": _best(more=1),
            "too few ratings": _best(all_of_them=True),
        },
    ),
    rating_spread=Runs(
        _spread,
        wrong={
            "variance instead of deviation": WrongLoop(lambda: _spread(_variance)),
            "a sample instead of all ratings": [WrongLoop(partial(_spread, _sample(first))) for first in (None, 0.0)],
            "difference to the last rating": WrongLoop(
                lambda: _spread(lambda given: float(abs(given[-1] - given[-2])) if given[1:] else 0.0)
            ),
        },
        partitions=3,
    ),
    rated_anew=Lives(
        "rated_anew",
        a_page_that_is_wrong,
        judge_rated_anew,
        returns_application=True,
        errors={ID_IS_TAKEN: "two of one name"},
    ),
)
