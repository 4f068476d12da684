"""When a topic counts as created."""

import contextlib
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import NotLeaderForPartitionError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError

from streamskit.common.errors import BrokerError
from streamskit.kafka import topics


class FakeAdmin:
    """A broker that tells of a new topic at once, and lets nobody look into its partition before some failures."""

    def __init__(self, failures: list[Exception], refusals: list[str]) -> None:
        self.failures, self.refusals = failures, refusals
        self.made: set[str] = set()

    def create_topics(self, names: Any, raise_errors: bool) -> dict[str, Any]:
        if self.refusals:
            return {"topics": [{"name": "new", "error_code": 38, "error_message": self.refusals.pop(0)}]}
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


def create_with(failures: list[Exception], monkeypatch: pytest.MonkeyPatch, refusals: Sequence[str] = ()) -> None:
    @contextlib.contextmanager
    def fake(servers: object) -> Iterator[FakeAdmin]:
        yield FakeAdmin(failures, [*refusals])

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


SHUT_OUT = "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log dirs"


def test_a_broker_that_is_shut_out_for_a_moment_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    create_with([], monkeypatch, refusals=[SHUT_OUT, SHUT_OUT])


def test_brokers_that_stay_shut_out_are_told_in_kafkas_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrokerError, match=r"Kafka did not create topic 'new': Unable to replicate .* currently fenced"):
        create_with([], monkeypatch, refusals=[SHUT_OUT] * 1_000)


def test_a_replication_factor_that_is_too_large_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = ["Unable to replicate the partition 3 time(s): only 1 broker(s) are registered."] * 2
    with pytest.raises(BrokerError, match="only 1 broker"):
        create_with([], monkeypatch, refusals=refusals)


def create_existing(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"cleanup.policy": "compact,delete", "retention.ms": "5", "flush.ms": None}
    admin = FakeAdmin([], [])
    admin.made.add("there")

    def described(resources: Any, config_filter: str) -> dict[str, Any]:
        return {"topic": {"there": {name: {"value": value} for name, value in there.items()}}}

    monkeypatch.setattr(admin, "describe_configs", described, raising=False)
    monkeypatch.setattr(topics, "admin_client", lambda servers: contextlib.nullcontext(admin))
    topics.create_topics("127.0.0.1:9092", ("there",), None, config)


def test_an_unknown_setting_is_refused_for_an_existing_topic_too(monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"^Topic 'there' exists\. There is no setting of a topic 'clenup\.policy': did you mean 'cleanup\.policy'\?$"
    with pytest.raises(BrokerError, match=said):
        create_existing({"clenup.policy": "compact"}, monkeypatch)


def test_the_order_of_a_list_does_not_make_it_another_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    create_existing({"cleanup.policy": "delete, compact", "retention.ms": 5}, monkeypatch)
    with pytest.raises(BrokerError, match=r"exists with cleanup\.policy=compact,delete, and compact was asked for"):
        create_existing({"cleanup.policy": "compact"}, monkeypatch)
