"""A thread that follows topics: what it waits for, and what it says when it cannot go on."""

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from streamskit.common.errors import StreamsError
from streamskit.environment.processes import wait_until
from streamskit.kafka import topic_reader
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import PartitionReader, TopicReader

IN = TopicPartition("in", 0)


class FakeMessage:
    """A letter at an offset, or an error."""

    def __init__(
        self, offset: int, letter: str = "", error: KafkaError | None = None, topic: str | None = "in"
    ) -> None:
        self.letter, self._offset, self._error, self._topic = letter, offset, error, topic

    def topic(self) -> str | None:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError | None:
        return self._error


class FakeConsumer:
    """A consumer of one partition that holds the letters of `log`; `plan` says what polls give, one after the other."""

    log, first, there = "abc", 0, True
    plan: list[Callable[[], FakeMessage | None]]

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        self._at = -1

    def list_topics(self, topic: str, timeout: float) -> Any:
        described = SimpleNamespace(error=None if self.there else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        described.partitions = {0: None}
        return SimpleNamespace(topics={topic: described})

    def get_watermark_offsets(self, where: confluent_kafka.TopicPartition, *timeout: float, cached: bool) -> Any:
        return self.first, len(self.log)

    def incremental_assign(self, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self._at = partitions[0].offset

    def incremental_unassign(self, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self._at = -1

    def poll(self, timeout: float) -> FakeMessage | None:
        if self.plan and self._at >= 0 and (planned := self.plan.pop(0)()) is not None:
            return planned
        time.sleep(0.005)
        if 0 <= self._at < self.first:
            return FakeMessage(self._at, error=KafkaError(KafkaError._AUTO_OFFSET_RESET))
        if not 0 <= self._at < len(self.log):
            return None
        self._at += 1
        return FakeMessage(self._at - 1, self.log[self._at - 1])

    def consume(self, number: int, timeout: float) -> list[FakeMessage]:
        return []

    def close(self) -> None:
        self._at = -1


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> type[FakeConsumer]:
    FakeConsumer.plan = []
    monkeypatch.setattr(topic_reader, "Consumer", FakeConsumer)
    return FakeConsumer


class Letters:
    """A reader that gathers letters."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.failures: list[StreamsError] = []
        self.restarts: list[TopicPartition] = []
        self.reader = TopicReader[str](
            "somewhere:9092",
            lambda partition, records, *more: self.seen.extend(records),
            "The letters",
            letter_of,
            restart=self.restarts.append,
            failed=self.failures.append,
        )

    def wait(self, offset: int, seconds: float = 5.0, check: Callable[[], None] = lambda: None) -> None:
        self.reader.wait_for({IN: offset}, time.monotonic() + seconds, check)


def letter_of(message: Message) -> str:
    assert isinstance(message, FakeMessage)
    return message.letter


@pytest.fixture
def letters(consumer: type[FakeConsumer]) -> Iterator[Letters]:
    made = Letters()
    yield made
    made.reader.stop()


def raising(failure: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise failure

    return fail


def telling(error: int, topic: str | None = "in") -> Callable[[], FakeMessage]:
    return lambda: FakeMessage(0, error=KafkaError(error), topic=topic)


def test_records_are_handed_on_from_the_first(letters: Letters) -> None:
    letters.reader.start(["in"])
    letters.wait(3)
    assert letters.seen == ["a", "b", "c"]


def test_who_asks_what_has_moved_finds_the_last_records_counted_even_where_all_come_in_one_portion(
    consumer: type[FakeConsumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rest_at_once(self: FakeConsumer, number: int, timeout: float) -> list[FakeMessage]:
        rest = [FakeMessage(self._at + number, letter) for number, letter in enumerate(self.log[self._at :])]
        self._at = len(self.log)
        end = FakeMessage(self._at, error=KafkaError(KafkaError._PARTITION_EOF))
        return [*rest, end]

    monkeypatch.setattr(consumer, "consume", rest_at_once)
    ready: list[bool] = []

    def look() -> None:
        ready.append(reader.is_ready(IN))

    reader = TopicReader[str]("somewhere:9092", lambda *portion: None, "The letters", letter_of, moved=look)
    reader.start(["in"])
    reader.wait_for({IN: 3}, time.monotonic() + 30)
    reader.stop()
    assert ready == [True]


def test_a_partition_that_gets_its_leader_in_a_moment_is_asked_again(
    consumer: type[FakeConsumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION), KafkaError(KafkaError.LEADER_NOT_AVAILABLE), (2, 5)]

    def answer(*asked: Any, cached: bool) -> Any:
        if isinstance(said := answers.pop(0), KafkaError):
            raise KafkaException(said)
        return said

    monkeypatch.setattr(consumer, "get_watermark_offsets", answer)
    reader = PartitionReader[str]("somewhere:9092", letter_of)
    assert reader.extent(IN) == (2, 5)
    assert answers == []


def test_a_partition_that_was_added_is_followed_once_the_client_has_learned_of_it(
    consumer: type[FakeConsumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {0}

    def list_topics(self: FakeConsumer, topic: str, timeout: float) -> Any:
        known.add(1)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=dict.fromkeys(known))})

    def extent(self: FakeConsumer, where: confluent_kafka.TopicPartition, *timeout: float, cached: bool) -> Any:
        if where.partition not in known:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return 0, 3

    monkeypatch.setattr(consumer, "get_watermark_offsets", extent)
    letters = Letters()
    letters.reader.start(["in"])
    known.clear()
    known.add(0)
    monkeypatch.setattr(consumer, "list_topics", list_topics)
    letters.reader.widen({"in": 2})
    letters.reader.do(lambda: None).result(5)
    assert letters.reader.ends.keys() == {IN, TopicPartition("in", 1)}
    letters.reader.stop()
    with pytest.raises(KafkaException, match="UNKNOWN_PARTITION"):
        PartitionReader[str]("somewhere:9092", letter_of).extent(TopicPartition("in", 7))


def test_reading_begins_with_the_offsets_that_are_given(consumer: type[FakeConsumer]) -> None:
    letters = Letters()
    letters.reader.start(["in"], {IN: 1})
    letters.wait(3)
    letters.reader.stop()
    assert letters.seen == ["b", "c"]


def test_a_broker_that_goes_and_comes_back_is_read_on_without_a_gap_or_a_repeat(letters: Letters) -> None:
    gone = [telling(KafkaError._TRANSPORT, None), telling(KafkaError._ALL_BROKERS_DOWN, None)]
    FakeConsumer.plan = [lambda: None, *gone, lambda: None, telling(KafkaError._TRANSPORT)]
    letters.reader.start(["in"])
    letters.wait(3)
    assert letters.seen == ["a", "b", "c"]


def test_a_failure_that_will_not_go_away_is_told_to_those_who_wait(letters: Letters) -> None:
    FakeConsumer.plan = [lambda: None, telling(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    letters.reader.start(["in"])
    with pytest.raises(StreamsError, match=r"The letters could not be read on from their topics \(in\): "):
        letters.wait(3)
    assert len(letters.failures) == 1


def test_whoever_waits_in_vain_is_told_how_many_are_missing(letters: Letters) -> None:
    letters.reader.start(["in"])
    with pytest.raises(StreamsError, match="The letters are still 2 records behind their topics: wait longer"):
        letters.wait(5, seconds=0.3)


def test_a_reader_that_was_stopped_says_so_to_those_who_wait(letters: Letters) -> None:
    letters.reader.start(["in"])
    letters.wait(3)
    threading.Timer(0.1, letters.reader.stop).start()
    with pytest.raises(StreamsError, match="The letters are 1 record behind, and stopped"):
        letters.wait(4)


def test_waiting_ends_with_the_error_of_the_check(letters: Letters) -> None:
    letters.reader.start(["in"])
    with pytest.raises(StreamsError, match="the application failed"):
        letters.wait(9, check=raising(StreamsError("the application failed")))


def test_what_the_partition_does_not_hold_any_more_is_begun_anew_at_its_first_record(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeConsumer, "first", 1)
    letters.reader.start(["in"])
    letters.wait(3)
    assert letters.seen == ["b", "c"]
    assert letters.restarts == [IN]


def test_whoever_waits_while_a_partition_begins_anew_waits_until_it_is_read_again(consumer: type[FakeConsumer]) -> None:
    read: list[int] = []
    reader = TopicReader[str](
        "somewhere:9092",
        lambda *portion: None,
        "The letters",
        letter_of,
        restart=lambda where: read.append(reader.positions[where]),
    )
    reader.start(["in"])
    reader.wait_for({IN: 3}, time.monotonic() + 30)
    consumer.plan = [telling(KafkaError._AUTO_OFFSET_RESET)]
    deadline = time.monotonic() + 5
    while not read and time.monotonic() < deadline:
        time.sleep(0.01)
    reader.wait_for({IN: 3}, time.monotonic() + 30)
    reader.stop()
    assert read == [0]


def test_a_topic_that_was_made_anew_with_fewer_records_counts_as_read_when_those_are(
    letters: Letters, consumer: type[FakeConsumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.reader.start(["in"])
    letters.wait(3)
    monkeypatch.setattr(FakeConsumer, "log", "d")
    consumer.plan = [telling(KafkaError._AUTO_OFFSET_RESET)]
    wait_until(lambda: letters.seen == ["a", "b", "c", "d"], "the record of the new topic", 10)
    wait_until(lambda: letters.reader.is_ready(IN), "the news that all is read", 10)
    assert (letters.reader.ends, letters.restarts) == ({IN: 1}, [IN])


def test_a_partition_is_begun_anew_on_demand_also_where_the_broker_does_not_answer_the_first_time(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.reader.start(["in"])
    letters.wait(3)
    with monkeypatch.context() as patch:
        away = KafkaException(KafkaError(KafkaError._TRANSPORT))
        patch.setattr(FakeConsumer, "get_watermark_offsets", lambda *asked, cached: raising(away)())
        with pytest.raises(KafkaException):
            letters.reader.do(lambda: letters.reader.begin_anew([IN])).result(10)
        assert not letters.reader.is_ready(IN)
    monkeypatch.setattr(FakeConsumer, "log", "defg")
    letters.reader.do(lambda: letters.reader.begin_anew([IN])).result(10)
    letters.wait(4)
    assert letters.seen == [*"abc", *"defg"]
    assert letters.reader.is_ready(IN)


def test_a_topic_that_is_not_there_is_told_to_who_starts(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeConsumer, "there", False)
    with pytest.raises(StreamsError, match=r"The letters: the broker at somewhere:9092 does not say .*\(in\): "):
        letters.reader.start(["in"])


def test_without_topics_there_is_nothing_to_wait_for(letters: Letters) -> None:
    letters.reader.start()
    letters.wait(0)
    letters.reader.stop()


def test_a_reader_that_cannot_be_made_says_so_to_whoever_starts_it(
    monkeypatch: pytest.MonkeyPatch, letters: Letters
) -> None:
    def none(settings: dict[str, Any], logger: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "no such certificate"))

    monkeypatch.setattr(topic_reader, "Consumer", none)
    told: list[BaseException] = []

    def start() -> None:
        try:
            letters.reader.start(["in"])
        except StreamsError as failure:
            told.append(failure)

    starting = threading.Thread(target=start, daemon=True)
    starting.start()
    starting.join(5)
    assert [str(each) for each in told] == [str(each) for each in letters.failures]
    assert "The letters could not be read on from their topics: " in str(told[0])
    assert "no such certificate" in str(told[0])


def test_what_is_asked_of_a_reader_that_has_ended_is_answered(letters: Letters) -> None:
    letters.reader.start(["in"])
    letters.reader.stop()
    with pytest.raises(StreamsError, match="The letters are not read any more"):
        letters.reader.do(lambda: None).result(5)


def test_a_reader_goes_on_after_a_job_that_was_cancelled(letters: Letters) -> None:
    letters.reader.start(["in"])
    going_on, done = threading.Event(), list[str]()
    letters.reader.do(lambda: going_on.wait(30))
    cancelled = letters.reader.do(lambda: done.append("cancelled"))
    assert cancelled.cancel()
    last = letters.reader.do(lambda: done.append("last"))
    going_on.set()
    last.result(30)
    assert done == ["last"]
    letters.wait(3)
    assert letters.failures == []
