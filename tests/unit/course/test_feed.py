"""A feed that never ends: what it sends, when it stops, and what it says when it cannot go on."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pytest

from streamskit import Serdes, StreamsError
from streamskit.datasets import HOUR, PLAY_SCHEMA, Feed, invoices, plays, quotes, ratings, trades
from streamskit.faults.records import POISON
from streamskit.testing import wait_until


class Topic:
    """A broker that writes down what it gets."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.refuses = ""

    def produce(self, topic: str, records: Iterable[Any]) -> int:
        if self.refuses:
            raise StreamsError(self.refuses)
        before = len(self.records)
        self.records += records
        return len(self.records) - before


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def feed_of(topic: Topic) -> Iterator[Callable[..., Feed]]:
    feeds: list[Feed] = []

    def make(records: Iterable[dict[str, Any]] | None = None, **options: Any) -> Feed:
        feeds.append(Feed(topic, "plays", plays() if records is None else records, **options))
        return feeds[-1]

    yield make
    for feed in feeds:
        feed.stop()


@pytest.mark.parametrize("made", [invoices, plays, quotes, ratings, trades])
def test_data_without_a_count_never_ends_and_begins_with_that_of_any_count(made: Callable[..., Iterator[Any]]) -> None:
    assert list(islice(made(), 2_500)) == list(made(2_500))


def test_what_is_live_goes_on_where_history_ends(topic: Topic, feed_of: Callable[..., Feed]) -> None:
    prices = trades()
    history = list(islice(prices, 1_000))
    feed = feed_of(prices, per_second=0)
    feed.burst(50)
    feed.start()
    feed.stop()
    assert history + topic.records == list(trades(1_050))


def test_a_feed_sends_the_records_in_their_order_and_goes_on_behind_them_after_a_stop(
    topic: Topic, feed_of: Callable[..., Feed]
) -> None:
    feed = feed_of(per_second=200)
    for least in (20, 60):
        with feed:
            wait_until(lambda least=least: len(topic.records) >= least, "some records")  # type: ignore[misc]
        assert not feed.is_running
    assert topic.records == feed.sent == list(plays(len(feed.sent)))


def test_the_pace_may_change_and_0_sends_only_what_is_asked_for(topic: Topic, feed_of: Callable[..., Feed]) -> None:
    with feed_of(per_second=0) as feed:
        feed.burst(300)
        wait_until(lambda: len(topic.records) == 300, "the burst")
        feed.per_second = 1000
        wait_until(lambda: len(topic.records) > 400, "the faster pace")
    with pytest.raises(StreamsError, match="per_second=-1 cannot be sent: choose a number from 0 to 10,000"):
        feed.per_second = -1


def test_late_records_are_older_and_among_those_sent_and_broken_ones_are_not(
    topic: Topic, feed_of: Callable[..., Feed]
) -> None:
    feed = feed_of(per_second=0)
    feed.late(3, by="2 hours")
    feed.poison(2)
    feed.start()
    feed.stop()  # what was asked for is sent first
    expected = list(plays(5))
    assert feed.sent == [each | {"timestamp": each["timestamp"] - 2 * HOUR} for each in expected[:3]]
    assert topic.records[:3] == feed.sent
    assert [(each["key"], each["value"]) for each in topic.records[3:]] == [(e["key"], POISON) for e in expected[3:]]
    assert str(feed) == "stopped; 3 sent, 3 of them late, and 2 broken"


def test_a_stop_sends_first_what_is_missing_of_a_number_and_no_more_of_a_feed_that_is_beyond_it(
    topic: Topic, feed_of: Callable[..., Feed]
) -> None:
    feed = feed_of(per_second=100)
    feed.late(5)
    feed.start()
    wait_until(lambda: len(topic.records) > 10, "the first records")
    feed.stop(at_least=1_000)
    assert len(topic.records) == len(feed.sent) == 1_000
    feed.start()
    feed.stop(at_least=500)
    assert 1_000 <= len(feed.sent) < 1_500


def test_a_feed_stops_by_itself_at_a_number_and_goes_on_without_end_when_it_is_started_again(
    topic: Topic, feed_of: Callable[..., Feed]
) -> None:
    feed = feed_of(per_second=1_000, stop_at=120)
    feed.start()
    wait_until(lambda: not feed.is_running, "the end at the number")
    assert topic.records == feed.sent == list(plays(120))
    with feed:
        wait_until(lambda: len(feed.sent) > 300, "what comes behind it")


def test_what_is_asked_for_is_sent_beyond_the_number_at_which_a_feed_stops(
    topic: Topic, feed_of: Callable[..., Feed]
) -> None:
    feed = feed_of(per_second=0, stop_at=100)
    feed.burst(150)
    feed.start()
    wait_until(lambda: not feed.is_running, "the end")
    assert len(topic.records) == 150


def test_a_feed_that_is_stopped_before_its_number_goes_on_up_to_it(topic: Topic, feed_of: Callable[..., Feed]) -> None:
    feed = feed_of(per_second=0, stop_at=100)
    feed.start()
    feed.stop(at_least=40)
    assert len(topic.records) == 40
    feed.per_second = 1_000
    feed.start()
    wait_until(lambda: not feed.is_running, "the end at the number")
    assert len(topic.records) == 100


def test_values_are_written_with_the_serde(topic: Topic, feed_of: Callable[..., Feed]) -> None:
    serde = Serdes.json(PLAY_SCHEMA)
    feed = feed_of(per_second=0, value=serde)
    feed.burst(2)
    feed.start()
    feed.stop()
    assert [serde.deserialize(each["value"]) for each in topic.records] == [each["value"] for each in plays(2)]


def test_a_feed_whose_records_are_used_up_ends_by_itself(topic: Topic, feed_of: Callable[..., Feed]) -> None:
    feed = feed_of(plays(30), per_second=1000)
    feed.start()
    wait_until(lambda: not feed.is_running, "the end of the records")
    assert (topic.records, feed.trouble) == (list(plays(30)), "")


def test_a_feed_that_the_broker_refuses_stops_says_why_and_can_go_on(
    topic: Topic, feed_of: Callable[..., Feed]
) -> None:
    topic.refuses = "The topic is gone."
    feed = feed_of(per_second=100)
    feed.start()
    wait_until(lambda: not feed.is_running, "the refusal")
    assert (feed.trouble, feed.sent) == ("The topic is gone.", [])
    topic.refuses = ""
    with feed:
        wait_until(lambda: bool(topic.records), "records after the refusal")
    assert feed.trouble == ""
    assert topic.records == feed.sent
