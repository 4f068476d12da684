"""`Cluster`: a Spark standalone cluster on this machine, to run an application on more than one executor."""

import os
import re
import signal
import tempfile
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from streamskit.broker.settings import HOST
from streamskit.cluster.daemons import Daemon, end_all, start_master, start_worker, sweep
from streamskit.cluster.reports import Executor, Worker, ask_master, executors_of, table, worker_of
from streamskit.common.errors import SetupError, StreamsError
from streamskit.common.ownership import make_private
from streamskit.common.paths import state_dir
from streamskit.environment.processes import eventually
from streamskit.environment.session import running_session, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REGISTERED_SECONDS = 30.0
EXECUTOR_SECONDS = 10.0
"""How long `add_worker` waits for the new worker's executor; one that starts later is listed later."""

LEAST_MEMORY = 1024
"""In MB: what Spark's executors request by default; with less, an application would wait forever."""

UNITS = {"m": 1, "g": 1024}


class Cluster:
    """A Spark standalone cluster on this machine: a master and workers, each a process of its own, on loopback only.

    It ends with this program, however that ends. Everyone on this machine can use it while it runs.

    Args:
        workers: how many workers to start with, from 1 up.
        cores: how many tasks a worker's executor runs at the same time, from 1 up.
        memory: how much memory a worker gives to its executor's Java, as "1500m" or "2g", at least 1 GB; what Python
            takes comes on top.

    Raises:
        SetupError: an argument is not valid, or there is no Java.

    >>> with Cluster(workers=2) as cluster:  # doctest: +SKIP
    ...     spark = cluster.spark_session()
    ...     len(cluster.executors())
    2

    Mirrors Spark's `sbin/start-master.sh` and `sbin/start-worker.sh`.
    """

    def __init__(self, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        self._initial_workers, self.cores = _count(workers, "workers"), _count(cores, "cores")
        self.memory = memory
        _megabytes(memory)
        self._daemons: list[Daemon] = []
        self._named = 0
        self._folder = Path()
        self._finalizer: weakref.finalize[..., Cluster] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        if not self.is_running:
            return "<Cluster: stopped>"
        return f"<Cluster at {self.master_url}: {len(self._workers)} workers, {len(self.executors())} executors>"

    def _repr_html_(self) -> str:
        if not self.is_running:
            return "<p>A Spark cluster that is not running: call start().</p>"
        return (
            f"<p><b>Spark cluster</b> at {self.master_url}</p>"
            f"<p>Workers</p>{table(self.workers(), Worker)}<p>Executors</p>{table(self.executors(), Executor)}"
        )

    @property
    def is_running(self) -> bool:
        """Whether the master's process runs."""
        return bool(self._daemons) and self._daemons[0].is_alive

    @property
    def master_url(self) -> str:
        """Where applications request executors: "spark://host:port", the one setting that makes them run here.

        Raises:
            StreamsError: the cluster does not run.
        """
        return f"spark://{HOST}:{self._running().port}"

    @property
    def web_url(self) -> str:
        """The master's own page, for a browser on this machine.

        Raises:
            StreamsError: the cluster does not run.
        """
        return f"http://{HOST}:{self._running().page}"

    def start(self) -> None:
        """Start the master and the workers, and return once all have registered; does nothing if they run.

        Raises:
            SetupError: one does not start.
        """
        if self.is_running:
            return
        self.stop()  # the workers of a master that has died
        home = state_dir() / "clusters"
        make_private(home)
        sweep(home)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=home))
        self._daemons = []
        self._finalizer = weakref.finalize(self, end_all, os.getpid(), self._daemons, self._folder)
        try:
            self._daemons.append(start_master(self._folder))
            for _ in range(self._initial_workers):
                self.add_worker()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the Spark session that this program has on the cluster, then all processes, and remove their files."""
        session = running_session()
        if session is not None and self.is_running and session.sparkContext.master == self.master_url:
            session.stop()
        if self._finalizer is not None:
            self._finalizer()

    def spark_session(self, **settings: str) -> "SparkSession":
        """Return a Spark session whose executors fill this cluster's workers; see `spark_session`.

        Raises:
            SetupError: Spark runs in this process already, elsewhere.
        """
        own = {"spark__executor__memory": self.memory, "spark__executor__cores": str(self.cores)}
        return spark_session(self.master_url, **(own | settings))

    def workers(self) -> list[Worker]:
        """Return the workers as the master sees them, in the order of their start.

        Raises:
            StreamsError: the cluster does not run.
        """
        said = {worker["port"]: worker for worker in ask_master(self.web_url)["workers"]}
        return [worker_of(each.name, each.running.process.pid, said.get(each.port, {})) for each in self._workers]

    def executors(self) -> list[Executor]:
        """Return the executors that run now, by worker: what the workers' processes have started.

        Raises:
            StreamsError: the cluster does not run.
        """
        names = {app["id"]: app["name"] for app in ask_master(self.web_url)["activeapps"]}
        return [
            Executor(number, pid, daemon.name, names.get(application, application))
            for daemon in self._workers
            for pid, (application, number) in executors_of(daemon.running.process).items()
        ]

    def add_worker(self) -> Worker:
        """Start one more worker; Spark puts an executor on it for each application that wants more cores.

        If an application gets the cores, this waits for its executor, so that `executors()` lists it.

        Raises:
            SetupError: it does not start, or the cluster does not run.
        """
        master = self._running()
        self._named += 1
        worker = start_worker(f"worker-{self._named}", master, self.cores, self.memory, self._folder)
        self._daemons.append(worker)
        if not eventually(lambda: self.workers()[-1].state == "ALIVE", REGISTERED_SECONDS):
            raise SetupError(f"{worker.name} did not register with the master within {REGISTERED_SECONDS:.0f} s.")
        # The master assigns the cores when a worker registers; the executor's process takes a moment longer.
        if self.workers()[-1].cores_used:
            eventually(lambda: executors_of(worker.running.process), EXECUTOR_SECONDS)
        return self.workers()[-1]

    def remove_worker(self, name: str | None = None) -> None:
        """Stop a worker and its executors; the tasks that they were running run again on others.

        Args:
            name: which one, as in `workers()`; the last one when not given.

        Raises:
            StreamsError: there is no such worker.
        """
        self._running()
        found = [worker for worker in self._workers if name in (None, worker.name)]
        if not found:
            known = ", ".join(worker.name for worker in self._workers) or "none"
            raise StreamsError(f"This cluster has no worker {name!r}; its workers are: {known}.")
        self._daemons.remove(found[-1])
        found[-1].running.end()

    def kill_executor(self, executor: str | None = None) -> Executor:
        """Kill an executor with signal 9, and return which; its worker starts another one in its place.

        Args:
            executor: its `id`, as in `executors()`; the first one when not given.

        Raises:
            StreamsError: there is no such executor.
        """
        found = [each for each in self.executors() if executor in (None, each.id)]
        if not found:
            known = ", ".join(each.id for each in self.executors()) or "none"
            raise StreamsError(
                f"This cluster has no executor {executor or 'yet'}; those that run: {known}. Start an application on "
                "it first: spark_session(cluster.master_url)."
            )
        os.kill(found[0].pid, signal.SIGKILL)
        return found[0]

    def log(self, name: str = "master") -> str:
        """Return what the master or a worker has said.

        Raises:
            StreamsError: nothing has that name.
        """
        path = self._folder / f"{name}.log"
        if not self.is_running or not path.is_file():
            raise StreamsError(f"Nothing in this cluster is called {name!r}: ask for 'master', 'worker-1' and so on.")
        return path.read_text(errors="replace")

    def _running(self) -> Daemon:
        if not self.is_running:
            raise StreamsError("This Spark cluster is not running: call start(), or use it in a `with` block.")
        return self._daemons[0]

    @property
    def _workers(self) -> list[Daemon]:
        return self._daemons[1:]


def _count(number: int, name: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise SetupError(f"{name}={number!r} is not a whole number of at least 1.")
    return number


def _megabytes(memory: str) -> int:
    found = re.fullmatch(r"(\d+)([mg])", memory) if isinstance(memory, str) else None
    if found is None or int(found[1]) * UNITS[found[2]] < LEAST_MEMORY:
        raise SetupError(
            f"memory={memory!r} is not enough for an executor, or not an amount: write '1g' or more, such as '1500m'."
        )
    return int(found[1]) * UNITS[found[2]]
