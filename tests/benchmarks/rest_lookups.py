"""Key look-ups over REST while the store is being updated, beside a FastAPI handler that returns a constant."""

import argparse
import subprocess
import sys
import threading
import time

import uvicorn
from fastapi import FastAPI

from streamskit.interactive.metadata import HostInfo, Hosts
from streamskit.interactive.rest.server import Server, bind
from tests.benchmarks.http_load import load
from tests.unit.rest_harness import ALL_ACTIVE, TIME, FakeInstance, Group, long, partition_of

KEYS = 100_000


def main() -> None:
    """Print look-ups a second and their times: a constant, a store at rest, a store that is being updated."""
    arguments = argparse.ArgumentParser(prog="python -m tests.benchmarks.rest_lookups", description=__doc__)
    arguments.add_argument("--seconds", type=float, default=5.0)
    arguments.add_argument("--connections", type=int, default=8)
    arguments.add_argument("--updates", type=int, default=20_000, help="updates a second of the store")
    arguments.add_argument("--serve", choices=["constant", "store"], help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.serve:
        {"constant": _serve_a_constant, "store": _serve_a_store}[chosen.serve](chosen.updates)
    for what, served, updates in (
        ("a constant", "constant", 0),
        ("the store at rest", "store", 0),
        (f"{chosen.updates:,} updates/s", "store", chosen.updates),
    ):
        _measure(what, served, updates, chosen)


def _measure(what: str, served: str, updates: int, chosen: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.rest_lookups", "--serve", served, "--updates", str(updates)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            paths = [f"/state/keyvalue/counts/key-{number * 31 % KEYS}" for number in range(1000)]
            load("127.0.0.1", port, paths, chosen.connections, 1.0)
            print(f"{what:<22}{load('127.0.0.1', port, paths, chosen.connections, chosen.seconds)}", flush=True)
        finally:
            process.kill()


def _serve_a_constant(updates: int) -> None:
    app = FastAPI()

    @app.get("/state/keyvalue/{store}/{key}")
    async def constant(store: str, key: str) -> dict[str, int]:
        return {"value": 1}

    bound = bind("127.0.0.1")
    print(bound.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error")).run(sockets=[bound])


def _serve_a_store(updates: int) -> None:
    bound = bind("127.0.0.1")
    group = Group()
    instance = FakeInstance(group, HostInfo(*bound.getsockname()))
    instance.roles = dict(ALL_ACTIVE)
    group.members.append(instance)
    group.hosts = dict.fromkeys(ALL_ACTIVE, Hosts(instance.here))
    store = instance.local_stores["counts"]
    records = [(f"key-{number}".encode(), long(number), TIME) for number in range(KEYS)]
    for partition in ALL_ACTIVE:
        store.take(partition, [record for record in records if partition_of(record[0]) == partition])
    Server(instance, bound).start()
    print(bound.getsockname()[1], flush=True)
    number = 0
    while True:
        if not updates:
            threading.Event().wait()
        began = time.monotonic()
        batch = [records[(number + each) % KEYS] for each in range(max(1, updates // 20))]
        for partition in ALL_ACTIVE:
            store.take(partition, [record for record in batch if partition_of(record[0]) == partition])
        number += len(batch)
        time.sleep(max(0.0, 0.05 - (time.monotonic() - began)))


if __name__ == "__main__":
    main()
