"""The one broker of a project, which its notebooks and programs share."""

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator

import filelock
import psutil

from streamskit.broker import java_process
from streamskit.broker.base import Broker
from streamskit.broker.embedded import EmbeddedBroker
from streamskit.broker.external import ExternalBroker
from streamskit.broker.java_process import BrokerLock, read_lock
from streamskit.common.errors import BrokerError
from streamskit.common.ownership import check_writable
from streamskit.common.paths import state_dir
from streamskit.kafka.access import not_let_in
from streamskit.kafka.connection import answers, no_answer

log = logging.getLogger("streamskit.broker")

EXTERNAL_VARIABLE = "STREAMSKIT_BOOTSTRAP_SERVERS"
ANSWER_SECONDS = 15.0
GUARD_SECONDS = 180.0


def shared_broker() -> Broker:
    """The broker of this project, started if it does not run; it keeps running after this Python process has ended.

    It is found through `.streamskit/broker.json` and keeps its data in `.streamskit/broker`. With the
    environment variable STREAMSKIT_BOOTSTRAP_SERVERS it is the external broker at that address. Raises
    SetupError or BrokerError if it cannot be started.

    >>> broker = shared_broker()  # doctest: +SKIP
    >>> broker.topics()  # doctest: +SKIP
    """
    if address := os.environ.get(EXTERNAL_VARIABLE):
        return ExternalBroker(address)
    broker = _broker()
    with _guard():
        lock = read_lock(state_dir() / "broker.json")
        if lock is not None and _serves(lock):
            return broker
        broker.start()
    return broker


def find_shared_broker() -> Broker | None:
    """The broker of this project if it runs, without starting one.

    >>> find_shared_broker() is None  # doctest: +SKIP
    True
    """
    if address := os.environ.get(EXTERNAL_VARIABLE):
        return ExternalBroker(address)
    broker = _broker()
    return broker if broker.is_running else None


def check_answers(broker: Broker) -> None:
    """Make sure that a broker that was found answers: one that the environment names may be away.

    Raises:
        BrokerError: it does not, or does not let its clients in.
    """
    if not broker.is_running:
        raise not_let_in(broker.connection) or no_answer(broker.connection)


def stop_shared_broker() -> bool:
    """Stop the broker of this project; return whether one was running. Its data stays.

    Raises:
        BrokerError: the broker is an external one.

    >>> stop_shared_broker()  # doctest: +SKIP
    True
    """
    _refuse_external("stopped")
    with _guard():
        broker = _broker()
        was_running = broker.is_running
        broker.stop()
    return was_running


def clean_shared_broker() -> bool:
    """Stop the broker of this project and remove its data; return whether there was any.

    Raises:
        BrokerError: the broker is an external one.

    >>> clean_shared_broker()  # doctest: +SKIP
    True
    """
    _refuse_external("cleaned")
    with _guard():
        broker = _broker()
        broker.stop()
        had_data = broker.data_dir.exists()
        if had_data:
            shutil.rmtree(broker.data_dir)
    return had_data


def _broker() -> EmbeddedBroker:
    folder = state_dir()
    return EmbeddedBroker(folder / "broker", detached=True, lock_file=folder / "broker.json")


def _serves(lock: BrokerLock) -> bool:
    """Whether the lock's broker answers; if not, the reason is logged, and a process that hangs is ended."""
    process = lock.process()
    if process is None:
        log.warning("The broker of this project (process %s) is gone; starting it anew on its data.", lock.pid)
        return False
    if process.status() == psutil.STATUS_STOPPED:
        log.warning("The broker of this project (process %s) was paused; it goes on.", lock.pid)
        process.resume()
    if answers(lock.bootstrap_servers, ANSWER_SECONDS):
        return True
    log.warning(
        "The broker of this project (process %s) does not answer at %s; starting it anew on its data.",
        lock.pid,
        lock.bootstrap_servers,
    )
    java_process.end(process, orderly=True)
    return False


@contextlib.contextmanager
def _guard() -> Iterator[None]:
    """Let only one process at a time start or stop the broker."""
    path = state_dir() / "broker.lock"
    check_writable(path.parent)
    try:
        with filelock.FileLock(path, timeout=GUARD_SECONDS, thread_local=False):
            yield
    except filelock.Timeout:
        raise BrokerError(
            f"Another process has been starting or stopping the broker for {GUARD_SECONDS:.0f} s. If none "
            f"does, remove {path}."
        ) from None


def _refuse_external(participle: str) -> None:
    if address := os.environ.get(EXTERNAL_VARIABLE):
        raise BrokerError(
            f"{EXTERNAL_VARIABLE} names the broker at {address}, which runs outside this project, so it "
            f"cannot be {participle} from here. Unset the variable for the project's own broker."
        )
