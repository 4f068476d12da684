"""`Driver`: an application in its own process, which can be killed without losing the notebook."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd
import psutil
from pyspark import cloudpickle

from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.common.names import check_application_id
from streamskit.environment.session import MASTER_VARIABLE
from streamskit.environment.spark_processes import python_path
from streamskit.topology import Topology, check_topology

START_SECONDS = 180.0
STOP_SECONDS = 60.0
ANSWER_SECONDS = 60.0

Program = Topology | Callable[[], Topology]


class Driver:
    """Runs an application in its own process: a `KafkaStreams`, and the Java process of Spark's driver.

    It ends with this program, and can be killed and started again; it then goes on after its last whole micro-batch.

    Args:
        program: a function without arguments that returns the topology, or the topology. It may be written in a
            notebook: it is sent to the process together with what it uses.
        application_id: the application's name.
        bootstrap_servers: the Kafka brokers, as "host:port".
        master: where Spark runs, such as `cluster.master_url`; as the environment says when not given.
        options: those of `KafkaStreams`, by name, such as `client_settings`.

    Raises:
        StreamsError: no application can have that id.
        TopologyError: the program is neither a function nor a topology.

    >>> with Driver(trade_statistics, "trades-app", broker.bootstrap_servers) as driver:  # doctest: +SKIP
    ...     driver.kill()
    ...     driver.start()
    ...     driver.await_processed()

    Mirrors a Java program with a `KafkaStreams` in its `main`.
    """

    def __init__(
        self,
        program: Program,
        application_id: str,
        bootstrap_servers: str,
        *,
        master: str | None = None,
        **options: Any,
    ) -> None:
        self.application_id = check_application_id(application_id)
        if not callable(program):
            check_topology(program)
        self._work = cloudpickle.dumps((program, application_id, bootstrap_servers, options))  # type: ignore[no-untyped-call]
        self._environment = {"PYTHONPATH": python_path()} | ({MASTER_VARIABLE: master} if master else {})
        self._folder = tempfile.TemporaryDirectory(prefix="streamskit-driver-")
        self._log = Path(self._folder.name) / "driver.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Connection | None = None
        self._calls: dict[int, Future[Any]] = {}
        self._numbers, self._sending = itertools.count(1), threading.Lock()
        self._said = "CREATED"

    def __repr__(self) -> str:
        return f"<Driver of '{self.application_id}': {self.state}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of its process.

        Raises:
            StreamsError: it does not run.
        """
        if self._process is None or not self.is_running:
            raise StreamsError(f"{self!r} is not running: call start().")
        return self._process.pid

    @property
    def state(self) -> str:
        """The application's state, such as "RUNNING"; "KILLED" if its process was, "CREATED" before the start."""
        if self._process is None or (code := self._process.poll()) is None:
            return self._said
        return "KILLED" if code == -signal.SIGKILL else "NOT_RUNNING"

    def start(self) -> None:
        """Start the process and return once the application runs; a killed one goes on where its checkpoint says.

        Raises:
            StreamsError: it runs already, or does not start.
        """
        if self.is_running:
            raise StreamsError(f"{self!r} runs already.")
        self._line, theirs = Pipe()
        self._said = "CREATED"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streamskit.faults.driver_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        theirs.close()
        self._line.send_bytes(self._work)
        started = self._calls[0] = Future()
        threading.Thread(target=self._listen, args=(self._line,), name="streamskit: driver", daemon=True).start()
        try:
            started.result(START_SECONDS)
        except TimeoutError:
            self._kill(self._process.pid)
            raise StreamsError(
                f"The driver of '{self.application_id}' has not started within {START_SECONDS:g} s, and was stopped: "
                f"does its broker answer, and is the machine too busy? Its last output: {self._last_output()}"
            ) from None
        except BaseException:
            self._end()
            raise

    def kill(self) -> None:
        """Kill the process and its Java with signal 9.

        Raises:
            StreamsError: it does not run.
        """
        self._kill(self.pid)

    def stop(self) -> None:
        """Close the application and end the process; do nothing if none runs."""
        if self.is_running:
            self._end()

    def await_processed(self, timeout: Duration = "60 seconds") -> None:
        """Wait until all that is in the source topics now is processed: see `KafkaStreams.await_processed`.

        Raises:
            StreamsError: a query failed for good, it took too long, or the process was killed.
        """
        self._ask("await_processed", timeout, seconds=to_milliseconds(timeout, "timeout") / 1000 + ANSWER_SECONDS)

    def rows(self, store: str) -> list[Any]:
        """Return all rows of a store, as `streams.store(store).all()` gives them.

        Raises:
            StreamsError: there is no such store, the process was killed, or does not answer.
        """
        return list(self._ask("rows", store))

    def metrics(self) -> pd.DataFrame:
        """Return what each query has done: see `KafkaStreams.metrics`.

        Raises:
            StreamsError: the process was killed, or does not answer.
        """
        return self._ask("metrics")

    def log(self) -> str:
        """Return the output of the process, of all its runs."""
        return self._log.read_text(errors="replace") if self._log.is_file() else ""

    def _ask(self, *question: Any, seconds: float | None = None) -> Any:
        """Send a question to the process and return its answer; it has this many seconds to give it."""
        if self._line is None or not self.is_running:
            raise self._is_gone()
        number = next(self._numbers)
        answer = self._calls[number] = Future()
        try:
            with self._sending:
                self._line.send((number, *question))
        except OSError:
            raise self._is_gone() from None
        limit = ANSWER_SECONDS if seconds is None else seconds
        try:
            return answer.result(limit)
        except TimeoutError:
            raise StreamsError(
                f"The driver of '{self.application_id}' has not answered within {limit:g} s, though its process runs: "
                "is it stopped, or the machine too busy? kill() and start() let it go on where its checkpoint says."
            ) from None

    def _listen(self, line: Connection) -> None:
        """Receive messages of the process until its end: states, and answers with the number of their question."""
        try:
            while True:
                number, is_fine, said = line.recv()
                if number is None:
                    self._said = said
                elif is_fine:
                    self._calls.pop(number).set_result(said)
                else:
                    self._calls.pop(number).set_exception(StreamsError(said))
        except (EOFError, OSError):
            for number in list(self._calls):
                self._calls.pop(number).set_exception(self._is_gone())

    def _is_gone(self) -> StreamsError:
        return StreamsError(
            f"The driver of '{self.application_id}' does not run (any more): start() lets it go on where its "
            f"checkpoint says. Its last output: {self._last_output()}"
        )

    def _last_output(self) -> str:
        return (self.log().strip().splitlines() or ["nothing"])[-1]

    def _end(self) -> None:
        """Let the process end by itself, and kill it if it does not."""
        assert self._process is not None
        with contextlib.suppress(OSError), self._sending:
            if self._line is not None:
                self._line.send(None)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill(self._process.pid)

    def _kill(self, pid: int) -> None:
        """Kill a process and all that it has started, and wait until none of them can write anything."""
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        os.killpg(pid, signal.SIGKILL)
        for each in family[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        assert self._process is not None
        self._process.wait()
        psutil.wait_procs(family[1:], timeout=STOP_SECONDS)
