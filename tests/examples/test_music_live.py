"""Kafka Music on a broker: two instances, of which one is killed; and all of it ended by Ctrl-C."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from examples.music.application import PARTITIONS, Music
from examples.music.schemas import PLAYS
from streamskit.testing import wait_until
from tests.examples.test_music_topology import expected

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
TO_END = 100


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


def test_both_instances_answer_the_same_and_when_one_is_killed_the_other_goes_on(
    music: Music, client: httpx.Client
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
    music.instances.kill(other)
    music.feed.start()
    for genre in GENRES:
        wait_until(lambda genre=genre: more(client, music, genre, charts), f"newer plays of {genre}")  # type: ignore[misc]


GENRES = ("Folk", "Jazz", "Punk", "Soul", "Techno")


def more(client: httpx.Client, music: Music, genre: str, before: dict[str, Any]) -> bool:
    """Whether a genre has more plays now."""
    chart = answer(client, f"{music.url}charts/genre/{genre}")
    return chart is not None and sum(e["plays"] for e in chart) > sum(e["plays"] for e in before[genre])


def test_one_command_starts_everything_and_ctrl_c_ends_all_of_it() -> None:
    command = [sys.executable, "-m", "examples.music", "--port", "0", "--per-second", "50"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if "A further instance" in line:
                break
        url = re.search(r"http://\S+/", "".join(said))
        assert url, "".join(said)
        family = psutil.Process(process.pid).children(recursive=True)
        assert any("serve" in each.cmdline() for each in family)
        with httpx.Client(trust_env=False, timeout=10) as client:
            wait_until(lambda: answer(client, f"{url[0]}charts/top-five"), "a chart", 120)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        rest, _ = process.communicate(timeout=TO_END)
        assert (process.returncode, rest.splitlines()[-1]) == (0, "All of it has ended."), rest
        _, alive = psutil.wait_procs(family, timeout=20)
        assert alive == []
    finally:
        if process.poll() is None:
            process.kill()
