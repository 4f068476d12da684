"""An admin client of several brokers, of which one has gone."""

import socket
import time
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest
from kafka.errors import (
    KafkaConnectionError,
    LeaderNotAvailableError,
    UnknownBrokerIdError,
    UnknownTopicOrPartitionError,
)

from streamskit.common.errors import BrokerError
from streamskit.kafka import connection
from streamskit.kafka.connection import admin_client


class Admin:
    """A client whose first requests fail."""

    failures: ClassVar[list[Exception]] = []
    made = 0

    def __init__(self, **settings: Any) -> None:
        Admin.made += 1

    def describe_cluster(self) -> str:
        if Admin.failures:
            raise Admin.failures.pop(0)
        return "described"

    def close(self) -> None:
        pass


PORT_OPEN = connection._port_open


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    Admin.failures, Admin.made = [], 0
    monkeypatch.setattr(connection, "Admin", Admin)
    monkeypatch.setattr(connection, "_port_open", lambda server, seconds: True)


def test_where_one_of_several_brokers_has_gone_another_one_is_asked() -> None:
    Admin.failures = [KafkaConnectionError("gone"), KafkaConnectionError("gone")]
    with admin_client("a:1,b:1,c:1") as client:
        assert client.describe_cluster() == "described"
    assert Admin.made == 3


@pytest.mark.parametrize("failure", [LeaderNotAvailableError(), UnknownBrokerIdError(-1)])
def test_a_broker_that_leads_nothing_for_a_moment_is_asked_again(failure: Exception) -> None:
    Admin.failures = [failure]
    with admin_client("a:1") as client:
        assert client.describe_cluster() == "described"


def test_where_none_of_several_brokers_answers_in_time_a_sentence_says_so() -> None:
    Admin.failures = [KafkaConnectionError("gone")] * 100
    with pytest.raises(BrokerError, match="failed a request"), admin_client("a:1,b:1", timeout=0.5) as client:
        client.describe_cluster()


def test_what_the_brokers_refuse_is_not_asked_again() -> None:
    Admin.failures = [UnknownTopicOrPartitionError("no such topic")]
    with pytest.raises(BrokerError, match="no such topic"), admin_client("a:1,b:1") as client:
        client.describe_cluster()
    assert Admin.made == 1


def test_a_single_broker_that_has_gone_is_told_of_at_once() -> None:
    Admin.failures = [KafkaConnectionError("gone")]
    with pytest.raises(BrokerError, match="gone"), admin_client("a:1") as client:
        client.describe_cluster()


def test_a_broker_that_takes_no_connection_and_refuses_none_does_not_use_up_the_time_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_port_open", PORT_OPEN)
    with ExitStack() as opened:
        full, ready = (opened.enter_context(socket.socket()) for _ in range(2))
        for one, waiting in ((full, 0), (ready, 5)):
            one.bind(("127.0.0.1", 0))
            one.listen(waiting)
        mute, other = (f"127.0.0.1:{one.getsockname()[1]}" for one in (full, ready))
        for _ in range(3):  # its queue is full then, and what comes is left without an answer
            one = opened.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        assert not PORT_OPEN(mute, 0.2)
        began = time.monotonic()
        with admin_client(f"{mute},{other}") as client:
            assert client.describe_cluster() == "described"
        assert time.monotonic() - began < connection.CONNECT_SECONDS
