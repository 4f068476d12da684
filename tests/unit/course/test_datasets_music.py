"""What holds of the songs and their plays, whatever the seed."""

import runpy
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit import Serdes
from streamskit.datasets import HOUR, PLAY_SCHEMA, SONG_SCHEMA, plays, songs

DATA = Path(__file__).parents[3] / "data"

few = settings(max_examples=20, deadline=None)


def test_the_same_seed_gives_the_same_plays_and_another_gives_others() -> None:
    assert list(plays(200)) == list(plays(200))
    assert list(plays(200)) != list(plays(200, seed=8))


def test_fewer_plays_are_the_first_ones_of_more() -> None:
    assert list(plays(100)) == list(plays(300))[:100]


def test_songs_have_an_id_a_name_and_a_genre_of_their_own() -> None:
    catalogue = list(songs())
    assert all(record["key"] == record["value"]["id"] for record in catalogue)
    assert len({record["key"] for record in catalogue}) == len(catalogue) == 30
    assert len({record["value"]["name"] for record in catalogue}) == 30
    assert set(Counter(record["value"]["genre"] for record in catalogue).values()) == {6}


@few
@given(st.integers(0, 10_000))
def test_plays_are_in_the_order_of_their_time_and_of_songs_that_there_are(seed: int) -> None:
    records, catalogue = list(plays(300, seed)), {record["key"] for record in songs()}
    assert all(one["timestamp"] <= next_["timestamp"] for one, next_ in pairwise(records))
    assert all(record["value"]["song_id"] in catalogue for record in records)
    assert all(0 < record["value"]["duration"] < 240_000 for record in records)


def test_about_one_play_in_five_is_ended_before_thirty_seconds() -> None:
    short = sum(record["value"]["duration"] < 30_000 for record in plays(5_000))
    assert 900 < short < 1_100


def test_a_new_song_overtakes_those_that_were_loved_first() -> None:
    records = list(plays(5_000))
    first_hour = records[0]["timestamp"] + HOUR
    early = Counter(record["value"]["song_id"] for record in records if record["timestamp"] < first_hour)
    late = Counter(record["value"]["song_id"] for record in records if record["timestamp"] >= first_hour)
    assert early.most_common(1)[0][0] != late.most_common(1)[0][0]


def test_the_recorded_music_is_what_the_generators_make(tmp_path: Path) -> None:
    runpy.run_path(str(DATA / "make.py"))["write_music"](tmp_path)
    for name in ("songs.csv", "plays.csv"):
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()


@pytest.mark.parametrize(("schema", "records"), [(SONG_SCHEMA, songs()), (PLAY_SCHEMA, plays(50))])
def test_the_schemas_have_every_field(schema: str, records: object) -> None:
    serde = Serdes.json(schema)
    fields = [part.split()[0] for part in schema.split(", ")]
    for record in records:  # type: ignore[attr-defined]
        assert [*record["value"]] == fields
        assert serde.deserialize(serde.serialize(record["value"])) == record["value"]
