"""When a topic counts as created."""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import NotLeaderForPartitionError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError

from streamskit.common.errors import BrokerError
from streamskit.kafka import topics


class FakeAdmin:
    """A broker that tells of a new topic at once, and lets nobody look into its partition before some failures."""

    def __init__(self, failures: list[Exception]) -> None:
        self.failures = failures
        self.made: set[str] = set()

    def create_topics(self, names: Any, raise_errors: bool) -> dict[str, Any]:
        self.made.update(names)
        return {"topics": []}

    def wait_for_topics(self, names: list[str], timeout_ms: float) -> None:
        """All are there."""

    def topics_by_broker(self) -> dict[int, set[str]]:
        return {1: self.made}

    def describe_topics(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "is_internal": False, "topic_id": name, "partitions": [{"partition_index": 0}]}
            for name in self.made
        ]

    def list_partition_offsets(self, asked: dict[Any, Any]) -> dict[Any, Any]:
        if self.failures:
            raise self.failures.pop(0)
        return {partition: SimpleNamespace(offset=0) for partition in asked}


def create_with(failures: list[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def fake(servers: object) -> Iterator[FakeAdmin]:
        yield FakeAdmin(failures)

    monkeypatch.setattr(topics, "admin_client", fake)
    monkeypatch.setattr(topics, "AGAIN_SECONDS", 0)
    monkeypatch.setattr(topics, "SETTLE_SECONDS", 0.05)
    topics.create_topics("127.0.0.1:9092", ("new",), 1, None)


def test_a_topic_is_created_once_its_partitions_can_be_asked_where_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = [UnknownTopicOrPartitionError(), UnknownTopicOrPartitionError()]
    create_with(failures, monkeypatch)
    assert not failures


@pytest.mark.parametrize("failure", [UnknownTopicOrPartitionError(), NotLeaderForPartitionError()])
def test_partitions_that_are_never_made_are_told(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrokerError, match=r"\['new'\] were created, but a broker .* has not made all of their part"):
        create_with([failure] * 1_000_000, monkeypatch)


def test_who_may_create_a_topic_and_not_look_into_it_has_created_it(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = [TopicAuthorizationFailedError()]
    create_with(failures, monkeypatch)
    assert not failures
