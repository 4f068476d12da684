"""A real Kafka broker in its own Java process: no Docker, no installation."""

import contextlib
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path

import psutil

from streamskit.api.client_settings import LAST_PORT
from streamskit.broker import java_process, settings
from streamskit.broker.base import Broker
from streamskit.broker.java_process import BrokerLock, DataFolder, read_lock
from streamskit.broker.settings import HOST
from streamskit.common.errors import BrokerError, SetupError
from streamskit.common.ownership import PRIVATE
from streamskit.environment.identity import process_start
from streamskit.environment.processes import Dependent, alive, freeze

log = logging.getLogger("streamskit.broker")

START_SECONDS = 60.0
PORT_ATTEMPTS = 3


class EmbeddedBroker(Broker):
    """Apache Kafka 4.3 in KRaft mode: one node, broker and controller, on loopback.

    `data_dir` is the folder for its data (None: a temporary one, removed with the object); `port` its port
    (None or 0: the one it had last time on this data, else a free one); `settings` are Kafka broker settings on
    top of those for teaching; `heap` is the JVM's maximum heap; `cluster_id` is the id that new data gets (None: a
    random one). It ends with this Python process, even when that is killed (except on Windows), unless `detached`:
    then it keeps running, and every EmbeddedBroker with this `data_dir` and `detached` controls the same process.

    Raises:
        BrokerError: `port` is no port, or a detached broker has no data folder.
        SetupError: from `start()`: there is a problem with Java, the jars, the port or the disk.
        BrokerError: from `start()`: there is a problem with the data folder.

    >>> with EmbeddedBroker() as broker:  # doctest: +SKIP
    ...     broker.produce("trades", [("KO", 41.5)])
    """

    kind = "embedded"

    def __init__(
        self,
        data_dir: str | Path | None = None,
        port: int | None = None,
        *,
        detached: bool = False,
        settings: Mapping[str, str] | None = None,
        heap: str = "512m",
        lock_file: str | Path | None = None,
        cluster_id: str | None = None,
    ) -> None:
        if detached and data_dir is None:
            raise BrokerError("A detached broker outlives this process, so it needs a data_dir of its own.")
        if port is not None and (type(port) is not int or not 0 <= port <= LAST_PORT):
            raise BrokerError(
                f"port={port!r} is not a number from 1 to {LAST_PORT}. Give one, or leave it out for a free one."
            )
        self._temporary = data_dir is None
        folder = Path(tempfile.mkdtemp(prefix="streamskit-broker-") if data_dir is None else data_dir)
        self.data_dir = folder.expanduser().absolute()
        self._folder = DataFolder(self.data_dir)
        self._lock_file = Path(lock_file).absolute() if lock_file else self.data_dir / "broker.json"
        self._port = port or None
        self._detached = detached
        self._settings = dict(settings or {})
        self._heap = heap
        self._cluster_id = cluster_id
        self._own: psutil.Process | None = None
        self._dependent: Dependent | None = None
        self._finalizer = weakref.finalize(self, _end_with_owner, os.getpid(), None, self._temporary_dir)

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to: "127.0.0.1:port".

        Raises:
            BrokerError: before the first start.
        """
        port = self._port
        if port is None or self._detached:  # another program may have started it on another port
            port = self._folder.last_port or port
        if port is None:
            raise BrokerError("This broker has no address before its first start: call broker.start().")
        return f"{HOST}:{port}"

    @property
    def process(self) -> psutil.Process | None:
        """The broker's process while it is alive."""
        if self._own is not None and alive(self._own):
            return self._own
        lock = read_lock(self._lock_file) if self._detached else None
        return lock.process() if lock else None

    @property
    def is_running(self) -> bool:
        """Whether the broker's process is alive; a paused one is."""
        return self.process is not None

    def start(self) -> None:
        """Start the broker and return once it answers a metadata request; does nothing if it runs."""
        if self.is_running:
            return
        self._check_folder()
        for attempt in range(1, PORT_ATTEMPTS + 1):
            port = self._choose_port()
            try:
                self._launch(port)
            except SetupError:
                # A free port can be taken before Java binds it; a port that was given explicitly must stay.
                if self._port is not None or settings.is_free(port) or attempt == PORT_ATTEMPTS:
                    raise
            else:
                self._port = port
                return

    def stop(self) -> None:
        """Shut the broker down (SIGTERM, after ten seconds SIGKILL); its data stays."""
        self._end(orderly=True)
        lock = read_lock(self._lock_file)
        if lock is None or lock.process() is None:  # it may be the lock of another broker on this folder
            self._lock_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """End the broker at once by SIGKILL, as a crash would; `restart()` brings it back with its data."""
        self._end(orderly=False)

    def pause(self) -> None:
        """Freeze the broker (SIGSTOP): it keeps its connections and answers nothing until `resume()`."""
        freeze(self._running_process("paused"))

    def resume(self) -> None:
        """Let a paused broker go on (SIGCONT)."""
        self._running_process("resumed").resume()

    def __repr__(self) -> str:
        return f"EmbeddedBroker({str(self.data_dir)!r}, {'running' if self.is_running else 'stopped'})"

    @property
    def _temporary_dir(self) -> Path | None:
        return self.data_dir if self._temporary else None

    def _check_folder(self) -> None:
        """Refuse a folder that Kafka cannot name, is not a broker's, is in use, or has no room."""
        if "," in str(self.data_dir):
            raise BrokerError(
                f"The data folder {str(self.data_dir)!r} has a comma in its path, at which Kafka would cut it in two. "
                "Choose a data_dir without one. The broker of a project has its data in its folder: move that."
            )
        lock = read_lock(self._lock_file)
        if lock and lock.process():
            raise BrokerError(
                f"The data folder {self.data_dir} is in use by another broker, process {lock.pid} at "
                f"{lock.bootstrap_servers}. Stop that one, or choose another data_dir."
            )
        if owner := self._folder.owner():
            raise BrokerError(
                f"The data folder {self.data_dir} is in use by process {owner}, a broker whose lock file is "
                f"lost. End it with `kill {owner}`, then start again."
            )
        if self.data_dir.exists() and any(self.data_dir.iterdir()) and not self._folder.properties.exists():
            raise BrokerError(
                f"{self.data_dir} holds files that don't belong to a broker. Choose an empty folder as data_dir."
            )
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
            free = shutil.disk_usage(self.data_dir).free
        except OSError as error:
            raise SetupError(f"The data folder {self.data_dir} cannot be made: {error.strerror}.") from error
        if free < java_process.LEAST_FREE_BYTES:
            raise SetupError(
                f"The disk that holds {self.data_dir} has {free // 2**20} MB left; a broker needs at least "
                f"{java_process.LEAST_FREE_BYTES // 2**20} MB. Free some space, or choose another data_dir."
            )

    def _choose_port(self) -> int:
        if self._port is not None:
            if not settings.is_free(self._port):
                raise java_process.explain(self.data_dir, "Address already in use", self._port)
            return self._port
        last = self._folder.last_port
        if last and settings.is_free(last):
            return last
        port = settings.free_port()
        if last:
            log.warning("Port %s, which this broker had before, is taken; it moves to %s.", last, port)
        return port

    def _launch(self, port: int) -> None:
        try:
            self._folder.write_settings(port, settings.free_port(apart_from=[port]), self._settings)
            if not self._folder.is_formatted:
                self._folder.format(self._cluster_id)
            process = self._launched()
        except OSError as error:
            raise SetupError(f"The broker cannot be started in {self.data_dir}: {error}.") from error
        self._own = process
        self._finalizer.detach()
        owned = None if self._detached else (self._dependent or process)
        self._finalizer = weakref.finalize(self, _end_with_owner, os.getpid(), owned, self._temporary_dir)
        try:
            address = f"{HOST}:{port}"
            started = process_start(process.pid) or ""
            BrokerLock(process.pid, started, address, self.kind, str(self.data_dir)).write(self._lock_file)
            java_process.await_ready(self._folder, process, port, START_SECONDS)
        except BaseException:
            java_process.end(process, orderly=False)
            self._let_go()
            raise

    def _launched(self) -> psutil.Process:
        """Start Kafka, tied to this process or not."""
        self._let_go()
        if self._detached or os.name == "nt":  # the tie is a shell
            return self._folder.launch(self._heap)
        self._dependent = self._folder.launch_dependent(self._heap, self._temporary)
        return self._dependent.process

    def _end(self, orderly: bool) -> None:
        process = self.process
        if process is not None:
            java_process.end(process, orderly)
        self._let_go()

    def _let_go(self) -> None:
        """Let go of a process of ours that has ended."""
        if self._dependent is not None and not alive(self._dependent.process):
            self._dependent.let_go()
            self._dependent = None

    def _running_process(self, verb: str) -> psutil.Process:
        process = self.process
        if process is None:
            raise BrokerError(f"The broker is not running, so it cannot be {verb}; start it with broker.start().")
        return process

    def _discard(self) -> None:
        if self._temporary:
            self._finalizer()


def _end_with_owner(owner: int, owned: Dependent | psutil.Process | None, temporary: Path | None) -> None:
    """End a broker and its temporary data with the Python process that started it, not with a fork."""
    if os.getpid() != owner:
        return
    if isinstance(owned, Dependent):
        owned.end(orderly=temporary is None)
    elif owned is not None:
        with contextlib.suppress(BrokerError):
            java_process.end(owned, orderly=temporary is None)
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)
