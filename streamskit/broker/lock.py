"""The lock file: which process is the broker of a data folder. It outlives a crash, so it can be stale."""

import json
import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from streamskit.environment.processes import alive

log = logging.getLogger("streamskit.broker")

# A process id is used again after a while; its start time tells the two apart.
SAME_START_SECONDS = 1.0


@dataclass(frozen=True)
class BrokerLock:
    """One broker process; `created` is its start time as psutil gives it, in seconds since 1970."""

    pid: int
    created: float
    bootstrap_servers: str
    kind: str
    data_dir: str

    @property
    def port(self) -> int:
        """The broker's port."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    def process(self) -> psutil.Process | None:
        """The living process, or None if the lock is stale."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created) < SAME_START_SECONDS
        except psutil.NoSuchProcess:
            return None
        return process if same and alive(process) else None

    def write(self, path: Path) -> None:
        """Write the lock in one step: a reader sees the old one or the new one."""
        draft = path.with_name(path.name + ".new")
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n")
        draft.replace(path)


def read_lock(path: Path) -> BrokerLock | None:
    """The lock in the file; None if there is no file, or it is damaged (then a log line says so)."""
    try:
        lock = BrokerLock(**json.loads(path.read_text()))
        return replace(lock, pid=int(lock.pid), created=float(lock.created))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        log.warning("The broker's lock file %s is damaged and is ignored.", path)
        return None
