"""The Java process of an embedded broker: its folder and lock file, and how it is launched, awaited and ended."""

import base64
import json
import logging
import os
import re
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from streamskit.broker.settings import ALONE, HOST, LOGGING, server_properties
from streamskit.common.errors import BrokerError, SetupError
from streamskit.common.ownership import check_own
from streamskit.common.properties_files import lines
from streamskit.environment import processes
from streamskit.environment.archives import java_options
from streamskit.environment.identity import process_start
from streamskit.environment.jars import broker_jars
from streamskit.environment.java import find_java, java_environment
from streamskit.environment.processes import alive
from streamskit.kafka.connection import cluster_id

log = logging.getLogger("streamskit.broker")


@dataclass(frozen=True)
class BrokerLock:
    """One broker process; `started` is what `process_start` returns for it, as process ids are reused."""

    pid: int
    started: str
    bootstrap_servers: str
    kind: str
    data_dir: str

    @property
    def port(self) -> int:
        """The broker's port."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    def process(self) -> psutil.Process | None:
        """The living process, or None if the lock is stale."""
        if process_start(self.pid) != self.started:
            return None
        try:
            process = psutil.Process(self.pid)
        except psutil.NoSuchProcess:
            return None
        return process if alive(process) else None

    def write(self, path: Path) -> None:
        """Write the lock in one step: a reader sees the old one or the new one."""
        draft = path.with_name(path.name + ".new")
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n")
        draft.replace(path)


def read_lock(path: Path) -> BrokerLock | None:
    """The lock in the file; None if there is no file, or it is damaged (then a log line says so).

    Raises:
        SetupError: another user wrote it, and could make us talk to their own broker.
    """
    check_own(path)
    try:
        lock = BrokerLock(**json.loads(path.read_text()))
        return replace(lock, pid=int(lock.pid))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        log.warning("The broker's lock file %s is damaged and is ignored.", path)
        return None


JVM_OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"]
FORMAT_SECONDS = 60.0
LEAST_FREE_BYTES = 100 * 1024 * 1024


class DataFolder:
    """The files of one embedded broker: `kafka/` holds Kafka's own, beside it are its settings and log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kafka = path / "kafka"
        self.properties = path / "server.properties"
        self.logging = path / "log4j2.properties"
        self.log = path / "server.log"
        self.console = path / "console.log"

    @property
    def is_formatted(self) -> bool:
        """Whether Kafka has prepared the folder."""
        return (self.kafka / "meta.properties").is_file()

    @property
    def has_crashed(self) -> bool:
        """Whether Kafka ran on this folder, and did not end in an orderly way."""
        return self.is_formatted and not (self.kafka / ".kafka_cleanshutdown").exists()

    @property
    def cluster_id(self) -> str | None:
        """The id that Kafka's cluster was given when the folder was prepared."""
        found = re.search(r"^cluster\.id=(.+)$", (self.kafka / "meta.properties").read_text(), re.MULTILINE)
        return found[1].strip() if found else None

    @property
    def last_port(self) -> int | None:
        """The port that the broker of this folder had last time."""
        if not self.properties.is_file():
            return None
        listeners = next((line.value for line in lines(self.properties) if line.name == "listeners"), "")
        found = re.match(r"PLAINTEXT://[^:]+:(\d+)", listeners)
        return int(found[1]) if found else None

    def write_settings(self, port: int, controller_port: int, extra: Mapping[str, str]) -> None:
        """Write the files that Kafka reads at its start."""
        self.path.mkdir(parents=True, exist_ok=True)
        own = {} if self.has_crashed else ALONE
        text = server_properties(self.kafka, port, controller_port, {**own, **extra})
        self.properties.write_text(text, encoding="ascii")  # Kafka reads Latin-1
        self.logging.write_text(LOGGING)

    def format(self, cluster_id: str | None = None) -> None:
        """Prepare the folder with Kafka's own tool; this takes about half a second, once.

        Raises:
            BrokerError: it fails, or takes too long.
            SetupError: the disk is full.
        """
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id or new_cluster_id(), "-c", str(self.properties)]
        try:
            done = subprocess.run(
                _java("-Xmx128m") + tool,
                capture_output=True,
                text=True,
                timeout=FORMAT_SECONDS,
                env=java_environment(),
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise BrokerError(f"Preparing the data folder {self.path} took more than {FORMAT_SECONDS:.0f} s.") from None
        if done.returncode != 0:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            raise explain(self.path, lines[0] if lines else f"exit code {done.returncode}")

    def launch(self, heap: str) -> psutil.Process:
        """Start Kafka as a process of its own, which outlives this one."""
        return processes.launch(self._command(heap), self.path, self.console, java_environment())

    def launch_dependent(self, heap: str, is_temporary: bool) -> processes.Dependent:
        """Start Kafka so that it ends with this process, and its folder is removed then if it is temporary."""
        leaves = self.path if is_temporary else None
        return processes.Dependent(self._command(heap), self.path, self.console, java_environment(), leaves)

    def _command(self, heap: str) -> list[str]:
        options = [
            *java_options("broker"),
            f"-Xmx{heap}",
            f"-Dlog4j2.configurationFile={self.logging.as_uri()}",
            f"-Dkafka.logs.file={self.log}",
        ]
        self.log.unlink(missing_ok=True)
        return [*_java(*options), "kafka.Kafka", str(self.properties)]

    def owner(self) -> int | None:
        """The process id of a broker that runs on this folder, even one whose lock file is lost."""
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or []
            is_kafka = "kafka.Kafka" in command and command[0] != "sh"  # nor a dependent broker's lifeline
            if is_kafka and str(self.properties) in command:  # others may only look into the file
                return process.pid
        return None

    def failure(self) -> str:
        """The line of the log, or of the console, that best explains why Kafka ended."""
        log = self.log.read_text(errors="replace").splitlines() if self.log.is_file() else []
        exceptions = [line for line in log if re.match(r"(Caused by: )?[\w.$]+(Exception|Error): ", line)]
        errors = [
            re.sub(r"^\[[^]]*\] (ERROR|FATAL) ", "", line) for line in log if re.match(r"\[[^]]*\] (ERROR|FATAL)", line)
        ]
        console = " ".join(self.console.read_text(errors="replace").split("\n")[:2])
        candidates = exceptions[-1:] or errors[-1:] or [console]
        return candidates[0].strip() or "Java wrote nothing"


def new_cluster_id() -> str:
    """Return a random id in Kafka's format: 22 characters, of which the first is not a dash."""
    while (new_id := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass  # Kafka's tool would take it for an option
    return new_id


def await_ready(folder: DataFolder, process: psutil.Process, port: int, seconds: float) -> None:
    """Return once a metadata request succeeds. Raises an error if Java ends or time is up."""
    deadline = time.monotonic() + seconds
    while True:
        if not alive(process):
            raise explain(folder.path, folder.failure(), port)
        answer = cluster_id(f"{HOST}:{port}", timeout=min(5.0, seconds))
        if answer is not None and answer == folder.cluster_id:  # another broker may have taken the port
            return
        if time.monotonic() > deadline:
            raise BrokerError(
                f"The broker did not answer on {HOST}:{port} within {seconds:.0f} s, so it was stopped. Its "
                f"last output: {folder.failure()} (log: {folder.log}). On a busy machine try again."
            )
        time.sleep(0.02)


def end(process: psutil.Process, orderly: bool) -> None:
    """End a broker by SIGTERM, then SIGKILL after ten seconds; if not orderly, by SIGKILL. Waits for it.

    Raises:
        BrokerError: it is still there after SIGKILL.
    """
    if not processes.end(process, orderly):
        raise BrokerError(
            f"The broker's process {process.pid} did not end {processes.KILL_SECONDS:.0f} s after SIGKILL."
        )


def explain(path: Path, words: str, port: int | None = None) -> BrokerError | SetupError:
    """The error for what Kafka said when it could not start."""
    if "Address already in use" in words or "Failed to bind" in words:
        return SetupError(
            f"Port {port} of {HOST} is taken by another program. Stop that one, or choose another port: "
            f"EmbeddedBroker(port=…), or no port for a free one. ({words})"
        )
    if "No space left on device" in words:
        return SetupError(f"The disk that holds {path} is full. Free some space and start again. ({words})")
    if "Failed to acquire lock" in words:
        return BrokerError(f"The data folder {path} is in use by another process: stop that one first. ({words})")
    if "ConfigException" in words:
        return BrokerError(f"Kafka refuses one of its settings: {words}. Correct the settings of this EmbeddedBroker.")
    if "initialization of VM" in words or "Could not create the Java" in words:
        return SetupError(f"Java does not start: {words}. Check the heap of this EmbeddedBroker and the free memory.")
    return BrokerError(
        f"Kafka could not start on the data folder {path}: {words} (log: {path / 'server.log'}). If the "
        "folder is damaged, remove it and start again; its records are then gone."
    )


def _java(*options: str) -> list[str]:
    classpath = os.pathsep.join(str(jar) for jar in broker_jars())
    return [str(find_java().executable), *options, *JVM_OPTIONS, "-cp", classpath]
