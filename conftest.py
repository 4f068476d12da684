"""For tests and notebooks alike: what runs together, and that a broker they have started does not outlive them."""

from pathlib import Path

import pytest

from streamskit.broker import find_shared_broker, stop_shared_broker

_running_before = pytest.StashKey[bool]()

TOGETHER = ("notebooks", "tests/browser", "tests/containers", "tests/integration")
"""Folders whose files stay whole on several processes: the cells of a notebook, and tests that share a broker."""


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_running_before] = find_shared_broker() is not None


def pytest_sessionfinish(session: pytest.Session) -> None:
    is_one_of_several = hasattr(session.config, "workerinput")
    if not session.config.stash[_running_before] and not is_one_of_several:
        stop_shared_broker()


@pytest.hookimpl(tryfirst=True)  # before xdist asks for the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(config.rootpath) and _stays_whole(item.path.relative_to(config.rootpath)):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


def _stays_whole(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in TOGETHER)
