"""Who hosts what, as the consumer group of an application tells it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from streamskit.queries.group import discovery
from streamskit.queries.group.assignment import Assignment
from streamskit.queries.group.assignor import TaskAssignment
from streamskit.queries.group.catalogue import Catalogue
from streamskit.queries.group.discovery import ask_group
from streamskit.queries.metadata import HostInfo

AGREED = Assignment({"a": "127.0.0.1:8080"}, TaskAssignment({"0_0": "a"}))
CATALOGUE = Catalogue("app", ())


class Admin:
    """Describes a group that goes through some states; while it rebalances, it tells nothing of its members."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)

    def describe_groups(self, names: list[str]) -> dict[str, Any]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        assignment = {"user_data": AGREED.to_bytes()} if state == "Stable" else None
        return {names[0]: {"group_state": state, "members": [{"member_assignment": assignment}]}}


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the states in which the group is found, one after another; the last one stays."""
    admin = Admin()

    @contextmanager
    def client(bootstrap_servers: str) -> Iterator[Admin]:
        yield admin

    monkeypatch.setattr(discovery, "admin_client", client)
    return admin.states


def test_who_asks_while_the_group_rebalances_gets_what_it_then_agrees_on(states: list[str]) -> None:
    states += ["PreparingRebalance", "CompletingRebalance", "Stable"]
    assert ask_group("localhost:9092", CATALOGUE).members == (HostInfo("127.0.0.1", 8080),)


def test_who_asks_a_group_that_does_not_agree_gets_no_hosts_after_a_while(
    states: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "REBALANCE_SECONDS", 0.3)
    states += ["PreparingRebalance"]
    assert ask_group("localhost:9092", CATALOGUE).members == ()


def test_nobody_is_waited_for_in_a_group_without_members(states: list[str]) -> None:
    states += ["Empty"]
    assert ask_group("localhost:9092", CATALOGUE).members == ()
