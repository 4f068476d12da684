"""Which workers and executors a cluster has, according to its master and this machine's process table."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from html import escape
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import psutil

from streamskit.common.errors import StreamsError
from streamskit.environment.processes import command_line

ANSWER_SECONDS = 10.0
BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
"""The class that an executor's Java runs."""


@dataclass(frozen=True)
class Worker:
    """A process that offers cores and memory to applications, and starts executors for them.

    `state` is as the master reports it: "ALIVE", "DEAD", "DECOMMISSIONED" or "UNKNOWN"; `memory` is in MB.
    """

    name: str
    pid: int
    state: str
    cores: int
    cores_used: int
    memory: int


@dataclass(frozen=True)
class Executor:
    """A process that runs the tasks of one application: `id` is its number there, `worker` is what started it."""

    id: str
    pid: int
    worker: str
    application: str


def ask_master(url: str) -> dict[str, Any]:
    """Return what the master reports on its page `/json`.

    Raises:
        StreamsError: it does not answer.
    """
    try:
        # A proxy from the environment is only for other machines.
        with build_opener(ProxyHandler({})).open(f"{url}/json/", timeout=ANSWER_SECONDS) as answer:
            return dict(json.load(answer))
    except (URLError, OSError, ValueError) as failure:
        raise StreamsError(
            f"The master of the Spark cluster does not answer at {url} ({failure}). Start a new Cluster."
        ) from failure


def worker_of(name: str, pid: int, said: Mapping[str, Any]) -> Worker:
    """Return what is known of a worker; `said` is the master's entry on it, empty before it has registered."""
    return Worker(
        name, pid, said.get("state", "UNKNOWN"), said.get("cores", 0), said.get("coresused", 0), said.get("memory", 0)
    )


def executors_of(worker: psutil.Process) -> dict[int, tuple[str, str]]:
    """Return the executors that a worker has started: application id and executor id by process id."""
    executors = {}
    try:
        children = worker.children()
    except psutil.NoSuchProcess:
        return {}
    for process in children:
        said = command_line(process)
        if BACKEND in said:
            executors[process.pid] = (said[said.index("--app-id") + 1], said[said.index("--executor-id") + 1])
    return executors


def table(rows: Iterable[Worker | Executor], kind: type[Worker] | type[Executor]) -> str:
    """Return rows as a table in HTML."""
    names = [field.name for field in fields(kind)]
    heads = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(str(getattr(row, name)))}</td>" for name in names) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
