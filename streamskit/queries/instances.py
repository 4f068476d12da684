"""Starts and kills instances of an application on this machine, as a lesson or a test needs them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from streamskit.api.client_settings import BootstrapServers, ClientSettings
from streamskit.api.streams_config import TOKEN_VARIABLE, token_of_environment
from streamskit.broker.settings import free_port
from streamskit.common.errors import StreamsError
from streamskit.common.names import check_application_id, own_name
from streamskit.common.secret import Secret, revealed
from streamskit.environment.spark_processes import python_path
from streamskit.queries.client import QueryClient
from streamskit.queries.metadata import HostInfo, InstanceState, TaskState

READY_SECONDS = 60.0


class Instances:
    """The query instances of one application, each a process of its own: `python -m streamskit serve`.

    They end with this process, also when it crashes.

    Args:
        application_id: the application, which has been started.
        bootstrap_servers: the Kafka brokers, as "host:port".
        standby_replicas: how many further instances keep a copy of each partition.
        session_timeout: after how long without a sign of life an instance counts as dead.
        in_memory: whether they keep no store on the disk.
        applications: the `state_dir` of the application, if it is not the project's own.
        topology: "module:name" of its topology, or of a function that makes it, for an application that never ran on
            this machine; otherwise the instances read what `start()` noted.
        serdes: "module:class" of each custom serde that a store has: such a class has to be imported.
        rest_service: "module:name" of the application's own routes, a `RestService`, or of a function that makes it.
        client_settings: what clients show to a secured cluster: see `StreamsConfig`.
        token: what those who query over REST have to show; without it, the environment variable `STREAMSKIT_TOKEN`
            says it. It has to be the application's.

    Raises:
        StreamsError: no application can have that id, or the client settings are not valid.

    >>> with Instances("trades-app", broker.bootstrap_servers) as instances:  # doctest: +SKIP
    ...     server = instances.start()
    ...     instances.kill(server)
    """

    def __init__(
        self,
        application_id: str,
        bootstrap_servers: BootstrapServers,
        *,
        standby_replicas: int = 0,
        session_timeout: str = "6 seconds",
        in_memory: bool = False,
        applications: Path | None = None,
        topology: str | None = None,
        serdes: Collection[str] = (),
        rest_service: str | None = None,
        client_settings: Mapping[str, Any] | str | Path | None = None,
        token: str | Secret | None = None,
    ) -> None:
        self._application_id = check_application_id(own_name(application_id))
        self._connection = ClientSettings.of(bootstrap_servers, client_settings)
        self._options = [f"--standby-replicas={standby_replicas}", f"--session-timeout={session_timeout}"]
        self._options += ["--in-memory"] * in_memory
        self._options += [f"--applications={applications}"] if applications else []
        self._options += [f"--topology={topology}"] if topology else []
        self._options += [f"--serde={each}" for each in serdes]
        self._options += [f"--rest-service={rest_service}"] if rest_service else []
        # By the path of a file: everybody on the machine can read a command line.
        self._options += [f"--command-config={self._connection.path}"] if self._connection.properties else []
        # Not on the command line, either.
        self._token = token_of_environment() if token is None else revealed(token)
        self._folder = _new_folder()
        self._processes: dict[HostInfo, subprocess.Popen[bytes]] = {}

    def __repr__(self) -> str:
        running = ", ".join(map(str, self)) or "none"
        return f"<Instances of '{self._application_id}': {running}>"

    def __iter__(self) -> Iterator[HostInfo]:
        """Yield those that run."""
        return iter([server for server, process in self._processes.items() if process.poll() is None])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self, port: int = 0) -> HostInfo:
        """Start one more instance, and return where it answers; it joins the others in a moment.

        Args:
            port: where it is to answer, such as the port of one that was killed, whose stores it then goes on with.

        Raises:
            StreamsError: it does not start.
        """
        server = HostInfo("127.0.0.1", port or free_port())
        if not Path(self._folder.name).exists():  # all were stopped before
            self._folder = _new_folder()
        state = Path(self._folder.name) / str(server.port)
        with self._log(server).open("wb") as log:
            self._processes[server] = subprocess.Popen(
                [
                    sys.executable, "-m", "streamskit", "serve", self._application_id,
                    f"--bootstrap-servers={self._connection}", f"--port={server.port}",
                    f"--state-dir={state}", f"--ends-with-parent={os.getpid()}", *self._options,
                ],
                env=os.environ | {"PYTHONPATH": python_path()} | ({TOKEN_VARIABLE: self._token} if self._token else {}),
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._await(server)
        return server

    def kill(self, server: HostInfo | str) -> None:
        """Kill an instance with signal 9: it has no time to say so. Its stores on the disk stay.

        Args:
            server: where it answers, as `start` returned it or as text.

        Raises:
            StreamsError: there is no such instance.
        """
        host = HostInfo.of(str(server))
        self._signal(host, signal.SIGKILL)
        self._processes[host].wait()

    def instances(self) -> list[InstanceState]:
        """Return what each instance hosts, and how far that has been restored; one that was killed hosts nothing."""
        said = self._asked()
        return [
            InstanceState(str(server), server in said, task_states(said.get(server, {}))) for server in self._processes
        ]

    def pause(self, server: HostInfo) -> None:
        """Let an instance hang, as a long garbage collection or a frozen machine would."""
        self._signal(server, signal.SIGSTOP)

    def resume(self, server: HostInfo) -> None:
        """Let a paused instance go on."""
        self._signal(server, signal.SIGCONT)

    def stop(self, server: HostInfo | None = None) -> None:
        """Stop one instance, or all: each says goodbye, so that the others take over at once.

        Stopping all removes their logs and stores; those that start afterwards begin with empty ones.
        """
        for each in [server] if server else list(self):
            self._signal(each, signal.SIGTERM)
        for each in [server] if server else list(self._processes):
            try:
                self._processes[each].wait(15)
            except subprocess.TimeoutExpired:
                self._processes[each].kill()
        if server is None:
            self._folder.cleanup()

    def log(self, server: HostInfo) -> str:
        """Return what an instance has said.

        Raises:
            StreamsError: no instance was started there, or `stop` has ended all.
        """
        if not (log := self._log(server)).exists():
            raise StreamsError(f"There is no log of an instance at {server}: none was started, or all are stopped.")
        return log.read_text(errors="replace")

    def _asked(self) -> dict[HostInfo, Mapping[str, Any]]:
        """Return what the instances say they host, by where they answer; one of them asks the others."""
        for server in self:
            try:
                with QueryClient(server.url, token=self._token, timeout="3 seconds", retry=0) as client:
                    found = client.instances()
            except StreamsError:
                continue
            return {HostInfo.of(each["server"]): each["stores"] for each in found if each["reachable"]}
        return {}

    def _log(self, server: HostInfo) -> Path:
        return Path(self._folder.name) / f"{server.port}.log"

    def _signal(self, server: HostInfo, number: int) -> None:
        process = self._processes.get(server)
        if process is None or process.poll() is not None:
            running = ", ".join(map(str, self)) or "none"
            raise StreamsError(f"No instance that was started here runs at {server}; those that run: {running}.")
        os.kill(process.pid, number)

    def _await(self, server: HostInfo) -> None:
        process, deadline = self._processes[server], time.monotonic() + READY_SECONDS
        while "answers at" not in self.log(server):
            if process.poll() is not None:
                raise StreamsError(f"The instance at {server} did not start: {self.log(server).strip()}")
            if time.monotonic() > deadline:
                raise StreamsError(f"The instance at {server} was not there after {READY_SECONDS:.0f} s.")
            time.sleep(0.05)


def task_states(stores: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[TaskState]:
    """Return what an instance hosts, from what it reports about the partitions of its stores, by store."""
    return [
        TaskState(
            store,
            part["partition"],
            "active" if part["role"] == "active" else "standby",
            part["position"] if part["ready"] else min(part["position"], part["end"] - 1),
            part["end"] if not part["ready"] else part["position"],
        )
        for store, parts in stores.items()
        for part in parts
        if part["role"] != "global"
    ]


def _new_folder() -> tempfile.TemporaryDirectory[str]:
    """Make the folder of logs and stores."""
    return tempfile.TemporaryDirectory(prefix="streamskit-instances-")
