"""Key look-ups over REST of an instance whose store is being updated, beside a FastAPI handler of a constant."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI

from streamskit import Serdes
from streamskit.broker.base import Broker
from streamskit.queries import Catalogue, QueryableStore
from streamskit.queries.rest.server import bind
from streamskit.state.stores import Store
from tests.benchmarks.changelogs import fill, producer_to, update
from tests.benchmarks.http_load import Load, load
from tests.benchmarks.table import Row

KEYS = 100_000
CONNECTIONS = 8
NAME, CHANGELOG = "lookups", "lookups-counts-changelog"
STORE = Store("counts", "key-value", Serdes.string(), Serdes.long())


def rows(broker: Broker, folder: Path, seconds: float, updates: int) -> Iterator[Row]:
    """Measure a constant, an instance at rest, and one that takes so many updates a second.

    Args:
        broker: the broker that has the store's changelog.
        folder: where the instance finds its application.
        seconds: for how long each.
        updates: how many a second.
    """
    Catalogue(NAME, (QueryableStore(STORE, CHANGELOG, 0),)).save(folder / NAME)
    fill(broker, CHANGELOG, KEYS)
    with _process(["-m", "tests.benchmarks.rest_lookups"]) as port:
        constant = _load(port, seconds)
    serve = ["-m", "streamskit", "serve", NAME, "--bootstrap-servers", broker.bootstrap_servers,
             "--applications", str(folder), "--state-dir", str(folder / "instance"), "--ends-with-parent"]  # fmt: skip
    with _process(serve) as port:
        _until_whole(port)
        yield _row("look-ups over REST, at rest", constant, _load(port, seconds))
        with _updating(broker, updates):
            yield _row(f"look-ups over REST, {updates:,} updates/s", constant, _load(port, seconds))


def _row(what: str, constant: Load, kit: Load) -> Row:
    def spell(one: Load) -> str:
        return f"{one.rate:,.0f}/s p99 {one.p99 * 1000:.1f} ms"

    if kit.others:
        raise RuntimeError(f"{kit.others} look-ups were not answered with 200.")
    return Row(what, spell(constant), spell(kit), constant.rate / kit.rate, "by hand: FastAPI, a constant")


def _load(port: int, seconds: float) -> Load:
    paths = [f"/state/keyvalue/counts/key-{number * 31 % KEYS:07}" for number in range(1000)]
    load("127.0.0.1", port, paths, CONNECTIONS, 1.0)
    return load("127.0.0.1", port, paths, CONNECTIONS, seconds)


@contextmanager
def _process(command: list[str]) -> Iterator[int]:
    """Run a server, and give the port: the last number in its first line."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(re.findall(r"\d+", process.stdout.readline())[-1])
        finally:
            process.terminate()


def _until_whole(port: int) -> None:
    """Wait until the instance has its share and all rows of it."""
    deadline = time.monotonic() + 60
    while httpx.get(f"http://127.0.0.1:{port}/state/keyvalue/counts/key-{KEYS - 1:07}").status_code != 200:
        if time.monotonic() > deadline:
            raise RuntimeError("The instance did not restore its store within a minute.")
        time.sleep(0.1)


@contextmanager
def _updating(broker: Broker, updates: int) -> Iterator[None]:
    """Write so many updates a second to the changelog."""
    stopping = threading.Event()
    producer = producer_to(broker)

    def run() -> None:
        number = 0
        while not stopping.is_set():
            began = time.monotonic()
            for _ in range(updates // 20):
                update(producer, CHANGELOG, number % KEYS, number)
                number += 1
            producer.poll(0)
            stopping.wait(max(0.0, 0.05 - (time.monotonic() - began)))
        producer.flush()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(60)


def serve_a_constant() -> None:
    """Answer every look-up with the same number, and do nothing else."""
    app = FastAPI()

    @app.get("/state/keyvalue/{store}/{key}")
    async def constant(store: str, key: str) -> dict[str, int]:
        return {"value": 1}

    bound = bind("127.0.0.1")
    print(bound.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error")).run(sockets=[bound])


if __name__ == "__main__":
    serve_a_constant()
