"""What a restore listener is told while partitions are read."""

from typing import Any

import pytest

from streamskit import StateRestoreListener, StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.queries.restore_listener import Restorations

WHERE = TopicPartition("app-counts-changelog", 2)


class Telling(StateRestoreListener):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        self.told.append(("start", topic_partition, store_name, starting_offset, ending_offset))

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        self.told.append(("batch", topic_partition, store_name, batch_end_offset, num_restored))

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self.told.append(("end", topic_partition, store_name, total_restored))

    def on_restore_suspended(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self.told.append(("suspended", topic_partition, store_name, total_restored))


@pytest.fixture
def restorations() -> Restorations:
    made = Restorations(lambda where: ["counts"])
    made.listener = Telling()
    return made


def told(restorations: Restorations) -> list[tuple[Any, ...]]:
    assert isinstance(restorations.listener, Telling)
    heard = restorations.listener.told
    assert {each[1:3] for each in heard} <= {(WHERE, "counts")}
    return [(each[0], *each[3:]) for each in heard]


def test_a_partition_is_told_of_from_its_start_to_its_end_and_not_beyond(restorations: Restorations) -> None:
    restorations.begin(WHERE, 3, 10)
    restorations.take(WHERE, [3, 5], 6)  # the others are gone: a changelog is compacted
    restorations.take(WHERE, [8, 9, 10, 11], 12)  # two of them have been written since
    restorations.take(WHERE, [12], 13)
    assert told(restorations) == [("start", 3, 10), ("batch", 5, 2), ("batch", 9, 2), ("end", 4)]


def test_a_partition_without_records_is_restored_at_once(restorations: Restorations) -> None:
    restorations.begin(WHERE, 7, 7)
    assert told(restorations) == [("start", 7, 7), ("end", 0)]


def test_offsets_without_records_end_it_too(restorations: Restorations) -> None:
    restorations.begin(WHERE, 0, 10)
    restorations.take(WHERE, [], 10)  # the last ones are the marks of transactions
    assert told(restorations) == [("start", 0, 10), ("end", 0)]


def test_what_is_given_up_on_the_way_is_suspended_and_what_is_restored_is_not(restorations: Restorations) -> None:
    restorations.begin(WHERE, 0, 10)
    restorations.take(WHERE, [0, 1], 2)
    restorations.suspend(WHERE)
    restorations.suspend(WHERE)
    restorations.take(WHERE, [2], 3)
    assert told(restorations) == [("start", 0, 10), ("batch", 1, 2), ("suspended", 2)]


def test_each_store_that_a_partition_fills_is_told_of_and_nobody_without_a_listener() -> None:
    restorations = Restorations(lambda where: ["one", "two"])
    restorations.begin(WHERE, 0, 0)
    restorations.listener = listener = Telling()
    restorations.begin(WHERE, 0, 0)
    assert [(what, store) for what, _, store, *_ in listener.told] == [
        ("start", "one"), ("start", "two"), ("end", "one"), ("end", "two")
    ]  # fmt: skip


def test_what_a_listener_raises_is_a_sentence_with_the_store_and_the_partition() -> None:
    class Broken(Telling):
        def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
            raise ValueError("no room")

    restorations = Restorations(lambda where: ["counts"])
    restorations.listener = Broken()
    said = r"The restore listener raised ValueError: no room \(store 'counts', partition 2 of app-counts-changelog\)"
    with pytest.raises(StreamsError, match=said):
        restorations.begin(WHERE, 0, 0)
