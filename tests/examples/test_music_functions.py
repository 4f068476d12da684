"""Kafka Music, its functions alone: charts, their bytes, the feed, what the routes return."""

import asyncio
import doctest
import random
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.music import charts, driver
from examples.music.charts import ChartSerde, empty, put_in, taken_out
from examples.music.dead_letters import none, one_more
from examples.music.driver import BROKEN, Mischief, listeners
from examples.music.schemas import PLAY
from examples.music.service import genre_chart, instances, service, song, top_five
from streamskit import HostInfo, RestCall
from streamskit.serdes import SerdeError
from streamskit.testing import wait_until


def run(answer: Coroutine[Any, Any, Any]) -> Any:
    """Run a route in a thread of its own: another test of this process may have left its thread a running loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, answer).result(60)


CHARTS = st.lists(st.fixed_dictionaries({"id": st.text(max_size=20), "plays": st.integers(-(2**63), 2**63 - 1)}))


def test_a_chart_holds_the_five_songs_that_are_played_most_whatever_the_order_of_the_plays() -> None:
    chance, plays, chart = random.Random(3), Counter[str](), empty()
    for _ in range(500):
        name = f"song-{int(chance.triangular(0, 12, 0)):02}"
        if plays[name]:
            chart = taken_out("all", {"id": name, "plays": plays[name]}, chart)
        plays[name] += 1
        chart = put_in("all", {"id": name, "plays": plays[name]}, chart)
    best = sorted(plays.items(), key=lambda each: (-each[1], each[0]))[:5]
    assert [(each["id"], each["plays"]) for each in chart] == best


def test_songs_with_equal_plays_stand_in_the_order_of_their_ids() -> None:
    chart = empty()
    for name in ("b", "c", "a"):
        chart = put_in("Jazz", {"id": name, "plays": 1}, chart)
    assert [each["id"] for each in chart] == ["a", "b", "c"]


@given(CHARTS)
def test_a_chart_is_the_same_after_its_way_as_bytes(chart: list[dict[str, Any]]) -> None:
    serde = ChartSerde()
    assert serde.deserialize(serde.serialize(chart)) == chart


@pytest.mark.parametrize(("cut", "says"), [(3, "within song 2"), (14, "within the id of song 2")])
def test_bytes_that_end_too_early_are_no_chart(cut: int, says: str) -> None:
    whole = ChartSerde().serialize([{"id": "song-01", "plays": 2}, {"id": "song-02", "plays": 1}]) or b""
    with pytest.raises(ValueError, match=says):
        ChartSerde().deserialize(whole[: len(whole) // 2 + cut])


@pytest.mark.parametrize("data", BROKEN)
def test_a_broken_play_cannot_be_read(data: bytes) -> None:
    with pytest.raises(SerdeError):
        PLAY.deserialize(data)


def test_dead_letters_are_counted_with_the_place_of_the_last_one() -> None:
    counted = one_more("SerializationException", "b@2", one_more("SerializationException", "a@1", none()))
    assert counted == {"count": 2, "last": "b@2"}


class Topic:
    """A broker that writes down what it gets."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def produce(self, topic: str, records: Any) -> int:
        self.records += records
        return len(self.records)


def test_listeners_with_one_seed_play_the_same_songs() -> None:
    heard = []
    for _ in range(2):
        topic: Any = Topic()
        with listeners(topic, per_second=0, seed=3) as feed:
            feed.burst(50)
            wait_until(lambda feed=feed: len(feed.sent) == 50, "the burst")  # type: ignore[misc]
        heard.append([(each["key"], each["value"]) for each in feed.sent])
        assert [PLAY.deserialize(each["value"]) for each in topic.records] == [each["value"] for each in feed.sent]
    assert heard[0] == heard[1]


def test_on_an_ordinary_day_all_kinds_of_mischief_happen_and_mostly_none() -> None:
    day = Counter(islice(Mischief(seed=7), 1_000))
    assert set(day) == {"", "burst", "late", "poison"}
    assert day[""] > 700
    assert list(islice(Mischief(1), 50)) == list(islice(Mischief(1), 50))


def call(stores: dict[str, Any], answers: dict[tuple[str, ...], Any]) -> RestCall:
    """Return a call that finds these stores here, and gets these answers."""

    async def ask(*parts: str, **query: object) -> Any:
        return answers.get(parts)

    return RestCall(HostInfo("127.0.0.1", 1), "active", stores.__getitem__, ask)


def test_a_chart_is_told_with_its_songs_and_a_song_that_nobody_knows_by_its_id() -> None:
    chart = [{"id": "song-01", "plays": 7}, {"id": "song-99", "plays": 3}]
    known: dict[tuple[str, ...], Any] = {("song", "song-01"): {"id": "song-01", "name": "Last Bus Home"}}
    expected = [{"id": "song-01", "name": "Last Bus Home", "plays": 7}, {"id": "song-99", "plays": 3}]
    here = call({"top-five-by-genre": {"Punk": chart}, "top-five": {"all": chart}}, known)
    assert run(genre_chart(here, "Punk")) == expected
    assert run(top_five(here)) == expected
    assert run(genre_chart(here, "Polka")) is None
    assert run(song(call({"songs": {"a": {"id": "a"}}}, {}), "a")) == {"id": "a"}


def test_instances_are_told_with_what_they_host() -> None:
    said = {
        "instances": [
            {
                "server": "a:1",
                "reachable": True,
                "stores": {"songs": [{"role": "active"}, {"role": "standby"}], "top-five": [{"role": "active"}] * 2},
            },
            {"server": "b:2", "reachable": False, "stores": {}},
        ]
    }
    assert run(instances(call({}, {("state", "instances"): said}))) == [
        {"server": "a:1", "reachable": True, "active": {"songs": 1, "top-five": 2}, "standby": {"songs": 1}},
        {"server": "b:2", "reachable": False, "active": {}, "standby": {}},
    ]


@pytest.mark.parametrize("module", [charts, driver])
def test_the_examples_in_docstrings_do_what_they_show(module: ModuleType) -> None:
    outcome = doctest.testmod(module, extraglobs={"islice": islice})
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


def test_the_service_has_the_routes_that_its_readme_lists() -> None:
    assert [route.path for route in service.routes] == [
        "/charts/genre/{genre}",
        "/charts/top-five",
        "/charts/genres",
        "/song/{id}",
        "/instances",
        "/dead-letters",
        "/",
    ]
