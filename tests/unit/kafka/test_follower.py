"""A thread that follows topics: what it waits for, and what it says when it cannot go on."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

from streamskit.common.errors import StreamsError
from streamskit.kafka import follower as following
from streamskit.kafka.follower import TopicFollower

IN = TopicPartition("in", 0)


class FakeConsumer:
    """A consumer of one partition that holds the letters of `log`; `plan` says what polls do, one after the other."""

    log = "abc"
    plan: list[Callable[[], Any]]

    def __init__(self, **options: Any) -> None:
        self._at = -1

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0}

    def assign(self, partitions: list[TopicPartition]) -> None:
        assert partitions == [IN]

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._at = offset

    def seek_to_beginning(self, partition: TopicPartition) -> None:
        self._at = 0

    def seek_to_end(self, partition: TopicPartition) -> None:
        self._at = len(self.log)

    def position(self, partition: TopicPartition, timeout_ms: float = 0) -> int:
        return self._at

    def poll(self, timeout_ms: float) -> dict[TopicPartition, list[str]]:
        if self.plan:
            self.plan.pop(0)()
        time.sleep(0.005)
        found, self._at = self.log[self._at : self._at + 1], min(self._at + 1, len(self.log))
        return {IN: [found]} if found else {}

    def close(self, **options: Any) -> None:
        self._at = -1


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> type[FakeConsumer]:
    FakeConsumer.plan = []
    monkeypatch.setattr(following, "KafkaConsumer", FakeConsumer)
    monkeypatch.setattr(following, "RETRY_SECONDS", 0.01)
    return FakeConsumer


class Letters:
    """A follower that gathers letters."""

    def __init__(self, **options: Any) -> None:
        self.seen: list[str] = []
        self.failures: list[StreamsError] = []
        self.follower = TopicFollower(
            "somewhere:9092", ["in"], lambda partition, records: self.seen.extend(records), "The letters",
            failed=self.failures.append, **options
        )  # fmt: skip

    def wait(self, offset: int, seconds: float = 5.0, check: Callable[[], None] = lambda: None) -> None:
        self.follower.wait_for({IN: offset}, time.monotonic() + seconds, check)


@pytest.fixture
def letters(consumer: type[FakeConsumer]) -> Iterator[Letters]:
    made = Letters()
    yield made
    made.follower.stop()


def raising(failure: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise failure

    return fail


def test_records_are_handed_on_from_the_first(letters: Letters) -> None:
    letters.follower.start()
    letters.wait(3)
    assert letters.seen == ["a", "b", "c"]


def test_from_now_on_means_that_older_records_are_left_out(consumer: type[FakeConsumer]) -> None:
    letters = Letters(from_now=True)
    letters.follower.start()
    letters.wait(3)
    letters.follower.stop()
    assert letters.seen == []


def test_a_broker_that_goes_and_comes_back_is_read_on_without_a_gap_or_a_repeat(letters: Letters) -> None:
    FakeConsumer.plan = [lambda: None, raising(KafkaConnectionError("gone")), raising(KafkaConnectionError("gone"))]
    letters.follower.start()
    letters.wait(3)
    assert letters.seen == ["a", "b", "c"]


def test_a_failure_that_will_not_go_away_is_told_to_those_who_wait(letters: Letters) -> None:
    FakeConsumer.plan = [lambda: None, raising(TopicAuthorizationFailedError("in"))]
    letters.follower.start()
    with pytest.raises(StreamsError, match=r"The letters could not be read on from their topics \(in\): "):
        letters.wait(3)
    assert len(letters.failures) == 1


def test_whoever_waits_in_vain_is_told_how_many_are_missing(letters: Letters) -> None:
    letters.follower.start()
    with pytest.raises(StreamsError, match="The letters are still 2 records behind their topics: wait longer"):
        letters.wait(5, seconds=0.3)


def test_a_follower_that_was_stopped_says_so_to_those_who_wait(letters: Letters) -> None:
    letters.follower.start()
    letters.wait(3)
    threading.Timer(0.1, letters.follower.stop).start()
    with pytest.raises(StreamsError, match="The letters are 1 records behind, and stopped"):
        letters.wait(4)


def test_waiting_ends_with_the_error_of_the_check(letters: Letters) -> None:
    letters.follower.start()
    with pytest.raises(StreamsError, match="the application failed"):
        letters.wait(9, check=raising(StreamsError("the application failed")))


def test_without_topics_there_is_nothing_to_wait_for(consumer: type[FakeConsumer]) -> None:
    follower = TopicFollower("somewhere:9092", [], lambda partition, records: None, "Nothing")
    follower.start()
    follower.wait_for({}, time.monotonic())
    follower.stop()
