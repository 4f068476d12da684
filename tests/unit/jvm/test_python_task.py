"""What is sent to the Python workers, and the error if it cannot be."""

import threading
from types import SimpleNamespace

import pytest

from streamskit.common.errors import TopologyError
from streamskit.jvm.python_task import pickled


def test_a_function_that_holds_a_lock_is_refused_with_the_name_of_its_step() -> None:
    lock = threading.Lock()

    def latest(old: str, new: str) -> str:
        with lock:
            return new

    steps = [SimpleNamespace(name="totals", call=max), SimpleNamespace(name="latest", call=latest)]
    with pytest.raises(
        TopologyError, match=r"^What 'latest' calls cannot be sent .*_thread\.lock.* inside the function"
    ):
        pickled(SimpleNamespace(operators=steps))
