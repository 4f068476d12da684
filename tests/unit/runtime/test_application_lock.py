"""The lock on an application's folder belongs to the application, not to the thread that took it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from streamskit.common.errors import StreamsError
from streamskit.runtime.sole_runner import ApplicationLock
from streamskit.state.state_folder import StateFolder


def elsewhere(work: Callable[[], object]) -> None:
    """Do something in another thread."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "the work in the other thread has not ended in a minute"


def test_another_thread_may_let_go_of_it(tmp_path: Path) -> None:
    first, second = (ApplicationLock("app", tmp_path / "app") for _ in range(2))
    first.take(())
    elsewhere(first.release)
    second.take(())
    elsewhere(second.release)
    first.take(())
    first.release()


def test_one_object_takes_it_once(tmp_path: Path) -> None:
    lock = ApplicationLock("app", tmp_path / "app")
    lock.take(())
    for held in ((), ("app",)):
        with pytest.raises(StreamsError, match="'app' is running already, in this process"):
            lock.take(held)
    lock.release()
    lock.take(())
    lock.release()


def test_who_runs_a_cell_twice_is_told_how_to_go_on_with_the_application_that_runs(tmp_path: Path) -> None:
    lock = ApplicationLock("app", tmp_path / "app")
    lock.take(())
    with pytest.raises(StreamsError) as refused:
        lock.take(("app",))
    assert str(refused.value) == (
        "An application with the id 'app' is running already, in this process: KafkaStreams.running['app'].close(), "
        "and run this again; or go on with it, streams = KafkaStreams.running['app']; or choose another application_id."
    )
    lock.release()


def test_a_folder_that_cannot_be_written_to_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StreamsError, match=r"'app' cannot keep its state in .*Make that folder writable, .*state_dir="):
        ApplicationLock("app", tmp_path / "file" / "states" / "app").take(())


def test_another_thread_may_close_the_folder_of_an_instance(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "stores")
    folder.open({})
    elsewhere(folder.close)
    again = StateFolder(tmp_path / "stores")
    again.open({})
    again.close()
