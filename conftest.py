"""For tests and notebooks alike: Spark starts as for lessons; a broker that they have started does not outlive them."""

import os

import pytest

from streamskit.broker import find_shared_broker, stop_shared_broker
from streamskit.environment.session import JAVA_OPTIONS_VARIABLE, LESSON_OPTIONS

os.environ.setdefault(JAVA_OPTIONS_VARIABLE, LESSON_OPTIONS)

_running_before = pytest.StashKey[bool]()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_running_before] = find_shared_broker() is not None


def pytest_sessionfinish(session: pytest.Session) -> None:
    is_one_of_several = hasattr(session.config, "workerinput")
    if not session.config.stash[_running_before] and not is_one_of_several:
        stop_shared_broker()
