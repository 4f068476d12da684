"""Somebody watches the charts of Kafka Music while an instance is killed, on stores of the test."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from examples.music.charts import ChartSerde
from examples.music.schemas import LETTER_COUNT, SONG
from examples.music.service import service
from streamskit import Serdes
from streamskit.datasets import songs
from streamskit.queries.metadata import Hosts
from streamskit.state.stores import Store
from tests.browser.pages import shoot
from tests.unit.queries import rest_harness
from tests.unit.queries.rest_harness import Cluster, cluster, partition_of

pytestmark = [pytest.mark.browser]

GENRES = ("Folk", "Jazz", "Punk", "Soul", "Techno")
STORES = {
    name: Store(name, "key-value", Serdes.string(), value)
    for name, value in {
        "songs": SONG,
        "top-five-by-genre": ChartSerde(),
        "top-five": ChartSerde(),
        "dead-letters": LETTER_COUNT,
    }.items()
}
ALL = range(rest_harness.PARTITIONS)
FIRST = {number: "active" if number < 2 else "standby" for number in ALL}
SECOND = {number: "standby" if number < 2 else "active" for number in ALL}


@pytest.fixture
def music(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Two instances with the routes of Kafka Music, and stores that the test fills."""
    monkeypatch.setattr(rest_harness, "STORES", STORES)
    with cluster(FIRST, SECOND, service=service) as made:
        for each in songs():
            put(made, "songs", each["key"], each["value"])
        for rank, genre in enumerate(GENRES):
            play(made, genre, 10 * (rank + 1))
        yield made


def put(made: Cluster, store: str, key: str, value: Any) -> None:
    made.group.put(store, key.encode(), STORES[store].value.serialize(value))


def play(made: Cluster, genre: str, plays: int) -> None:
    """Let the songs of a genre have been played so often, the second one a little less, and so on."""
    names = [each["key"] for each in songs() if each["value"]["genre"] == genre][:5]
    chart = [{"id": name, "plays": plays - rank} for rank, name in enumerate(names)]
    put(made, "top-five-by-genre", genre, chart)
    put(made, "top-five", "all", chart)


def kill_the_second(made: Cluster) -> None:
    made.servers[1].stop()


def agree_that_it_is_gone(made: Cluster) -> None:
    """Do what the group does when a session is over."""
    first = made.instances[0]
    first.roles = dict.fromkeys(ALL, "active")
    made.group.members[:] = [first]
    made.group.hosts = {number: Hosts(first.here) for number in ALL}


def chart_of(page: Page, name: str) -> Locator:
    return page.locator(f"section[data-chart='{name}']")


def test_charts_change_as_updates_arrive_and_go_on_when_an_instance_is_killed(page: Page, music: Cluster) -> None:
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.goto(f"{music.url()}/")
    expect(page.locator("#status")).to_contain_text("live")
    expect(page.locator("section[data-chart]")).to_have_count(6)
    expect(page.locator("section[data-chart] h2").first).to_have_text("All genres")
    expect(chart_of(page, "Jazz").locator("li")).to_have_count(5)
    expect(chart_of(page, "Jazz")).to_contain_text("Blue Ferry")
    expect(page.locator("#instances tr")).to_have_count(2)
    hosts = {"Jazz": 0, "Folk": 0} | {genre: int(partition_of(genre.encode()) > 1) for genre in GENRES}
    assert set(hosts.values()) == {0, 1}
    for genre, host in hosts.items():
        expect(chart_of(page, genre)).to_contain_text(f"answered by {music.instances[host].here} active")
        play(music, genre, 500)
        expect(chart_of(page, genre).locator("li").first).to_contain_text("500")
    expect(page.locator("#status")).to_contain_text("10 updates")

    kill_the_second(music)
    second = str(music.instances[1].here)
    expect(page.locator("#status")).to_contain_text(f"{second} cannot be heard", timeout=10_000)
    expect(page.locator("#instances")).to_contain_text("cannot be reached")
    agree_that_it_is_gone(music)
    for genre in GENRES:
        play(music, genre, 700)
        expect(chart_of(page, genre).locator("li").first).to_contain_text("700")
        expect(chart_of(page, genre)).to_contain_text(f"answered by {music.instances[0].here} active")
    expect(page.locator("#instances tr")).to_have_count(1)
    expect(page.locator("#status")).not_to_contain_text("cannot be heard")
    shoot(page, "music-page")
    assert mistakes == []


def test_a_page_that_is_opened_while_the_service_starts_says_that_charts_will_come(page: Page, music: Cluster) -> None:
    page.route("**/charts/top-five", lambda route: route.fulfill(status=404, json={"error": "none yet"}))
    page.route("**/charts/genres", lambda route: route.fulfill(json=[]))
    page.goto(f"{music.url()}/")
    expect(page.locator("#status")).to_contain_text("no charts yet: the first ones show here a few seconds after")
    page.unroute("**/charts/top-five")
    expect(page.locator("#status")).to_contain_text("0 updates", timeout=10_000)


def test_the_page_says_when_it_is_cut_off(page: Page, music: Cluster) -> None:
    page.goto(f"{music.url()}/")
    expect(page.locator("#status")).to_contain_text("live")
    page.context.set_offline(True)
    music.servers[0].stop()
    expect(page.locator("#status")).to_contain_text("the connection is gone", timeout=10_000)
