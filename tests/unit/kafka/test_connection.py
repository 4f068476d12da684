"""An admin client of several brokers, of which one has gone."""

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


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    Admin.failures, Admin.made = [], 0
    monkeypatch.setattr(connection, "Admin", Admin)
    monkeypatch.setattr(connection, "_port_open", lambda server: True)


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
