"""What holds of the movies and their ratings, whatever the seed."""

import runpy
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import mean

from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit import Serdes
from streamskit.course.datasets.movies import MOVIE_SCHEMA, MOVIES, RATING_SCHEMA, movies, ratings

DATA = Path(__file__).parents[3] / "data"

few = settings(max_examples=20, deadline=None)


def test_the_same_seed_gives_the_same_ratings_and_another_gives_others() -> None:
    assert list(ratings(200)) == list(ratings(200))
    assert list(ratings(200)) != list(ratings(200, seed=8))


def test_fewer_ratings_are_the_first_ones_of_more() -> None:
    assert list(ratings(100)) == list(ratings(300))[:100]


def test_a_movie_is_known_by_title_and_year_but_not_by_its_title() -> None:
    known = [record["value"] for record in movies()]
    assert len({(movie["title"], movie["year"]) for movie in known}) == len(known) == 20
    titles = Counter(movie["title"] for movie in known)
    assert {title for title, count in titles.items() if count == 3} == {"Nosferatu", "Ben-Hur", "King Kong"}


@few
@given(st.integers(0, 10_000))
def test_ratings_are_whole_numbers_from_one_to_ten_in_the_order_of_their_time(seed: int) -> None:
    records, known = list(ratings(300, seed)), {record["key"] for record in movies()}
    assert all(one["timestamp"] <= next_["timestamp"] for one, next_ in pairwise(records))
    for record in records:
        assert record["key"] == record["value"]["viewer"]
        assert record["value"]["movie_id"] in known
        assert record["value"]["rating"] in range(1, 11)


def test_many_viewers_rate_a_movie_again() -> None:
    pairs = [(record["key"], record["value"]["movie_id"]) for record in ratings(3_000)]
    assert 0.2 < 1 - len(set(pairs)) / len(pairs) < 0.5


def test_a_hyped_movie_begins_better_than_it_ends_and_a_discovery_worse() -> None:
    opinions = defaultdict(list)
    for record in ratings(4_000):
        opinions[record["value"]["movie_id"]].append(record["value"]["rating"])
    for movie in MOVIES:
        if movie.hype:
            first, last = mean(opinions[movie.id][:15]), mean(opinions[movie.id][-15:])
            assert (first > last) == (movie.hype > 0)


def test_the_recorded_movies_are_what_the_generators_make(tmp_path: Path) -> None:
    runpy.run_path(str(DATA / "make.py"))["write_movies"](tmp_path)
    for name in ("movies.csv", "ratings.csv"):
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()


def test_the_schemas_have_every_field() -> None:
    for schema, records in ((MOVIE_SCHEMA, movies()), (RATING_SCHEMA, ratings(50))):
        serde = Serdes.json(schema)
        for record in records:
            assert [*record["value"]] == [part.split()[0] for part in schema.split(", ")]
            assert serde.deserialize(serde.serialize(record["value"])) == record["value"]
