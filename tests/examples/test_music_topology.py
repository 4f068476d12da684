"""Kafka Music, its topologies whole, one record at a time in the test driver."""

from collections import Counter, defaultdict
from typing import Any

import pytest

from examples.music import dead_letters
from examples.music.driver import BROKEN
from examples.music.schemas import LETTERS, PLAY, PLAYS, SONG, SONGS
from examples.music.topology import topology
from streamskit import LogAndContinue, Serdes, TopologyTestDriver
from streamskit.datasets import plays, songs

pytestmark = [pytest.mark.spark]

both = pytest.mark.parametrize("songs_everywhere", [False, True], ids=["songs shared out", "songs everywhere"])


def expected(heard: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The charts of some plays, by plain counting."""
    genre_of = {each["key"]: each["value"]["genre"] for each in songs()}
    counts = Counter(each["value"]["song_id"] for each in heard if each["value"]["duration"] >= 30_000)
    charts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        for chart in (genre_of[name], "all"):
            charts[chart] += [{"id": name, "plays": count}] if len(charts[chart]) < 5 else []
    return charts


@both
def test_charts_are_those_of_plain_counting_and_unknown_songs_are_left_out(songs_everywhere: bool) -> None:
    heard = list(plays(12))
    with TopologyTestDriver(topology(songs_everywhere)) as driver:
        announced = driver.create_input_topic(SONGS, value=SONG)
        announced.pipe_records([(each["key"], each["value"]) for each in songs()])
        played = driver.create_input_topic(PLAYS, value=PLAY)
        played.pipe_records([(each["key"], each["value"]) for each in heard])
        played.pipe_input("ann", {"song_id": "song-99", "duration": 60_000})
        told = dict(driver.state_store("top-five-by-genre").all()) | dict(driver.state_store("top-five").all())
    assert told == expected(heard)


def test_a_broken_play_becomes_a_dead_letter_and_the_second_application_counts_it_by_its_error() -> None:
    with TopologyTestDriver(topology(), deserialization_handler=LogAndContinue(LETTERS)) as driver:
        driver.create_input_topic(SONGS, value=SONG).pipe_input("song-07", next(iter(songs()))["value"])
        raw = driver.create_input_topic(PLAYS, value=Serdes.bytes())
        raw.pipe_records([("ann", data) for data in BROKEN])
        letters = driver.dead_letters(LETTERS).read_records_to_list()
    assert [letter.value for letter in letters] == list(BROKEN)
    with TopologyTestDriver(dead_letters.topology()) as driver:
        topic = driver.create_input_topic(LETTERS, key=Serdes.bytes(), value=Serdes.bytes())
        for letter in letters:
            topic.pipe_input(letter.key, letter.value, headers=letter.headers)
        counted = dict(driver.state_store("letters-by-kind").all())
    assert counted == {"SerializationException": {"count": len(BROKEN), "last": f"{PLAYS}-0@2"}}


def test_songs_that_are_shared_out_cost_a_repartition_of_every_play() -> None:
    names = [set(topology(everywhere).nodes) for everywhere in (False, True)]
    repartitions = [{name for name in each if name.startswith("plays-by-song")} for each in names]
    assert repartitions[0]
    assert not repartitions[1]
