"""Kafka Music on a broker: its charts, its page, and two instances, of which one is killed."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from examples.music.application import PARTITIONS, Music
from examples.music.schemas import PLAYS
from streamskit.testing import wait_until
from tests.browser.pages import shoot
from tests.examples.test_music_topology import expected

# Lesson 23 runs it in `make test`, and test_music_page.py looks at its page.
pytestmark = [pytest.mark.browser, pytest.mark.broker, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def music() -> Iterator[Music]:
    with Music(per_second=50) as made:
        yield made


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=10) as made:
        yield made


def answer(client: httpx.Client, url: str) -> Any:
    """Return what a route answers; None while it does not."""
    with contextlib.suppress(httpx.HTTPError):
        heard = client.get(url)
        return heard.json() if heard.status_code == 200 else None
    return None


def test_charts_are_those_of_all_plays_that_were_sent_late_ones_too_and_broken_ones_are_counted(
    music: Music, client: httpx.Client
) -> None:
    music.feed.burst(500)
    music.feed.late(50)
    music.feed.poison(6)
    wait_until(lambda: len(music.feed.sent) > 800, "plays")
    music.feed.stop()
    for application in (music.streams, music.letters):
        application.await_processed("120 seconds")
    charts = expected(music.feed.sent)
    told = {
        name: answer(client, f"{music.url}charts/" + ("top-five" if name == "all" else f"genre/{name}"))
        for name in charts
    }
    assert {name: [{"id": s["id"], "plays": s["plays"]} for s in chart] for name, chart in told.items()} == charts
    assert all(song["name"] for chart in told.values() for song in chart)
    assert answer(client, f"{music.url}charts/genres") == sorted(set(charts) - {"all"})

    def letters() -> Any:
        return answer(client, f"{music.url}dead-letters")["SerializationException"]

    wait_until(lambda: letters()["count"] == 6, "the count of the dead letters")
    assert re.fullmatch(rf"{PLAYS}-\d+@\d+", letters()["last"])


def test_both_instances_answer_the_same_and_when_one_is_killed_the_other_and_the_page_go_on(
    music: Music, client: httpx.Client, page: Page
) -> None:
    (other,) = music.instances
    music.feed.start()

    def shared() -> bool:
        active = {each["server"]: each["active"] for each in answer(client, f"{music.url}instances")}
        return (
            active.get(str(other), {}).get("top-five-by-genre") == PARTITIONS
        )  # it joined last, and has the last tasks

    wait_until(shared, "the second instance with its share")
    wait_until(lambda: answer(client, f"{music.url}charts/genres") == list(GENRES), "a chart of each genre")
    ran = {client.get(f"{music.url}charts/genre/{genre}").headers["streamskit-answered-by"] for genre in GENRES}
    assert ran == {f"{other} active"}
    music.feed.stop()
    music.streams.await_processed("60 seconds")
    charts = {genre: answer(client, f"{music.url}charts/genre/{genre}") for genre in GENRES}
    wait_until(
        lambda: all(answer(client, f"{other.url}/charts/genre/{genre}") == charts[genre] for genre in GENRES),
        "the same charts at the other instance",
    )
    page.goto(music.url)
    songs = [*charts.values(), answer(client, f"{music.url}charts/top-five")]
    expect(page.locator("section[data-chart] li")).to_have_count(sum(map(len, songs)), timeout=60_000)
    expect(page.locator("#dead")).to_contain_text("6 × SerializationException", timeout=60_000)
    second = page.locator("#instances tr").filter(has_text=str(other))
    expect(second).to_contain_text(re.compile(r"answers for .*top-five-by-genre \(2\)"), timeout=60_000)
    shoot(page, "music-live")

    music.instances.kill(other)
    expect(page.locator("#status")).to_contain_text(f"{other} cannot be heard", timeout=30_000)
    music.feed.start()
    for shown in page.locator("section[data-chart] ol").all():
        before = shown.inner_text()
        expect(shown).not_to_have_text(before, timeout=60_000, use_inner_text=True)
    expect(page.locator("#instances tr")).to_have_count(1, timeout=60_000)
    for genre in GENRES:
        wait_until(lambda genre=genre: more(client, music, genre, charts), f"newer plays of {genre}")  # type: ignore[misc]
    page.emulate_media(color_scheme="dark")
    shoot(page, "music-killed-dark")


GENRES = ("Folk", "Jazz", "Punk", "Soul", "Techno")


def more(client: httpx.Client, music: Music, genre: str, before: dict[str, Any]) -> bool:
    """Whether a genre has more plays now."""
    chart = answer(client, f"{music.url}charts/genre/{genre}")
    return chart is not None and sum(e["plays"] for e in chart) > sum(e["plays"] for e in before[genre])
