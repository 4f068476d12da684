"""Kafka Music as a deployment runs it: a registry and topics of others, and checkpoints that outlive its process."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from examples.music.application import Music
from streamskit import StreamsError
from streamskit.broker import EmbeddedBroker
from streamskit.testing import wait_until
from tests.integration import real_registry

ROOT = Path(__file__).parents[2]
PLAYS = 400
LISTENERS = """
import itertools, sys
from examples.music.driver import announce_songs
from examples.music.schemas import PLAY, PLAYS
from streamskit.broker import ExternalBroker
from streamskit.datasets import plays

broker = ExternalBroker(sys.argv[1])
announce_songs(broker)
heard = (play | {"value": play["value"] | {"duration": 60_000}} for play in plays(seed=int(sys.argv[2])))
broker.produce(PLAYS, list(itertools.islice(heard, int(sys.argv[3]))), value=PLAY)
"""


def test_others_plays_need_a_registry_that_others_reach(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match="SCHEMA_REGISTRY_URL"):
        Music(bootstrap_servers="127.0.0.1:1", state_dir=tmp_path).start()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture(scope="module")
def registry() -> Iterator[dict[str, str]]:
    if not real_registry.is_here():
        pytest.skip("no registry is here: python -m tests.integration.real_registry fetches it")
    with real_registry.running() as url:
        yield {"SCHEMA_REGISTRY_URL": url.replace("://", f"://{real_registry.USER_INFO.replace('s:', 's%3A')}@")}


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[str]:
    """Run the service, give its address, and kill it: a deployment does not always say goodbye."""
    with log.open("w") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_until(lambda: process.poll() is not None or "Music is at" in log.read_text(), "the service's start", 120)
        address = re.search(r"http://\S+/", log.read_text())
        assert address, log.read_text()
        yield address[0]
    finally:
        process.kill()
        process.wait(30)


def counted(url: str) -> int:
    """Return how many plays are counted of all songs; 0 while nobody answers."""
    with contextlib.suppress(httpx.HTTPError):
        answer = httpx.get(f"{url}state/keyvalues/play-counts/all", trust_env=False, timeout=10)
        if answer.status_code == 200:
            return sum(int(row["value"]) for row in answer.json()["rows"])
    return 0


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(400)
def test_after_a_kill_it_goes_on_where_it_was_and_counts_each_play_once(
    broker: EmbeddedBroker, registry: dict[str, str], tmp_path: Path
) -> None:
    broker.create_topics("play-events", "song-feed", partitions=2)
    environment = os.environ | registry
    command = [sys.executable, "-m", "examples.music", "--bootstrap-servers", broker.bootstrap_servers, "--port", "0"]
    command += ["--instances", "1", "--state-dir", str(tmp_path / "state")]

    def listen(seed: int) -> None:
        arguments = [broker.bootstrap_servers, str(seed), str(PLAYS)]
        subprocess.run([sys.executable, "-c", LISTENERS, *arguments], env=environment, cwd=ROOT, check=True, timeout=60)

    listen(1)
    with running(command, environment, tmp_path / "first.log") as url:
        wait_until(lambda: counted(url) == PLAYS, "all plays in the counts", 60)
    listen(2)  # while it is away
    with running(command, environment, tmp_path / "second.log") as url:
        wait_until(lambda: counted(url) >= 2 * PLAYS, "the plays of the time when it was away", 60)
        assert counted(url) == 2 * PLAYS
        assert httpx.get(f"{url}song/song-07", trust_env=False).json()["id"] == "song-07"
