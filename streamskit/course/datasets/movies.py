"""Movies and what viewers think of them, made from a seed. Titles and years are real, viewers and ratings are not."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamskit.course.datasets.arguments import checked
from streamskit.course.datasets.event_time import NEW_YEAR, numbers

MOVIE_SCHEMA = "id string, title string, year int"
"""The fields of a movie, as `Serdes.json` takes them."""

RATING_SCHEMA = "viewer string, movie_id string, rating int"
"""The fields of a rating, from 1 to 10."""


class Movie(NamedTuple):
    """A movie; `quality` is the rating it settles at, `hype` what its first viewers give or take."""

    id: str
    title: str
    year: int
    quality: float
    hype: float = 0.0


MOVIES = (
    Movie("movie-01", "Metropolis", 1927, 8.1), Movie("movie-02", "The General", 1926, 8.4),
    Movie("movie-03", "Nosferatu", 1922, 7.7), Movie("movie-04", "Nosferatu", 1979, 7.2),
    Movie("movie-05", "Nosferatu", 2024, 6.1, hype=3.0), Movie("movie-06", "Safety Last!", 1923, 8.0),
    Movie("movie-07", "Ben-Hur", 1925, 7.5), Movie("movie-08", "Ben-Hur", 1959, 8.2),
    Movie("movie-09", "Ben-Hur", 2016, 4.4, hype=2.5), Movie("movie-10", "King Kong", 1933, 7.8),
    Movie("movie-11", "King Kong", 1976, 5.2), Movie("movie-12", "King Kong", 2005, 6.9, hype=1.5),
    Movie("movie-13", "The Gold Rush", 1925, 8.3), Movie("movie-14", "Faust", 1926, 7.9),
    Movie("movie-15", "Wings", 1927, 7.0), Movie("movie-16", "The Kid", 1921, 8.1),
    Movie("movie-17", "Sunrise", 1927, 8.0, hype=-3.5), Movie("movie-18", "City Lights", 1931, 8.6),
    Movie("movie-19", "Frankenstein", 1931, 7.4), Movie("movie-20", "Dracula", 1931, 7.1),
)  # fmt: skip
"""Those at the end are watched least, however good they are."""


@checked
def movies(start: int = NEW_YEAR) -> Iterator[dict[str, Any]]:
    """Yield the twenty movies, ready for `broker.produce`; the key is the movie's id. Some share a title.

    Args:
        start: the time at which they are announced, in milliseconds since 1970.

    >>> next(movies())["value"]
    {'id': 'movie-01', 'title': 'Metropolis', 'year': 1927}
    """
    for movie in MOVIES:
        value = {"id": movie.id, "title": movie.title, "year": movie.year}
        yield {"key": movie.id, "value": value, "timestamp": start}


@checked
def ratings(
    count: int | None = None, seed: int = 7, per_minute: float = 20.0, start: int = NEW_YEAR
) -> Iterator[dict[str, Any]]:
    """Yield ratings in the order of their time, ready for `broker.produce`; the key is the viewer.

    Some movies begin better or worse than they end, and some viewers rate a movie again.

    Args:
        count: how many; a smaller count gives the first of the same ratings. Without it they never end.
        seed: another seed gives other ratings of the same movies.
        per_minute: how many there are on average in a minute of event time.
        start: when the first is, in milliseconds since 1970.

    >>> next(ratings(1))["value"].keys()
    dict_keys(['viewer', 'movie_id', 'rating'])
    """
    chance = random.Random(seed)
    popularity = [1 / (place + 5) for place in range(len(MOVIES))]
    seen: Counter[str] = Counter()
    now = float(start)
    for _ in numbers(count):
        movie = chance.choices(MOVIES, popularity)[0]
        viewer = f"viewer-{chance.randint(1, 200):03}"
        opinion = chance.gauss(movie.quality + movie.hype * 0.97 ** seen[movie.id], 1.4)
        seen[movie.id] += 1
        value = {"viewer": viewer, "movie_id": movie.id, "rating": min(10, max(1, round(opinion)))}
        yield {"key": viewer, "value": value, "timestamp": int(now)}
        now += chance.expovariate(per_minute) * 60_000
