"""What is sent to the Python workers, and the error if it cannot be."""

import threading
from types import SimpleNamespace

import pytest

from streamskit.common.errors import TopologyError
from streamskit.jvm.python_task import pickled
from streamskit.operators.aggregate import AggregateOperator
from streamskit.serdes import Serdes


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


def test_the_function_and_the_variable_that_cannot_be_sent_are_named() -> None:
    lock = threading.Lock()

    def locked(new: str) -> str:
        with lock:
            return new

    text = Serdes.string()
    step = AggregateOperator("latest", text, (text,), text, None, (lambda key, new, old: locked(new),))
    said = r"'locked' \(test_python_task\.py line \d+\) uses 'lock' from outside of it, an object of type lock\."
    with pytest.raises(TopologyError, match=said):
        pickled(SimpleNamespace(operators=[step]))
