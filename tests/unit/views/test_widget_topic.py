"""The live tail of a topic: which records it shows, and what it reads of a broker."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamskit import BrokerError, Serdes, TopologyError
from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.kafka.tail import Ends, Tail
from streamskit.views import topic_view
from streamskit.views.page import rate
from streamskit.views.topic_view import TopicSnapshot, decoder, topic_snapshot
from streamskit.widgets import TopicView
from tests.unit.views.widget_stores import MICROSECONDS, NINE

TEXT = decoder(None)


def raw(offset: int, key: Any = b"KO", partition: int = 0, value: Any = b"x", **more: Any) -> Any:
    return SimpleNamespace(key=key, value=value, offset=offset, partition=partition, timestamp=NINE + offset,
                           headers=more.get("headers", []))  # fmt: skip


def taken(records: list[Any], previous: TopicSnapshot | None = None, **chosen: Any) -> TopicSnapshot:
    ends = {0: 1 + max((record.offset for record in records), default=-1)}
    return topic_snapshot("trades", records, ends, TEXT, TEXT, chosen.pop("rows", 15), previous=previous, **chosen)


def test_the_newest_record_comes_first_and_no_more_than_asked_for() -> None:
    assert [row.offset for row in taken([raw(number) for number in range(9)], rows=3).rows] == [8, 7, 6]


def test_a_search_finds_the_keys_that_begin_so_and_in_quotes_the_very_key() -> None:
    records = [raw(0, b"KO"), raw(1, b"KOX"), raw(2, None)]
    assert [row.key for row in taken(records, search="KO").rows] == ["KOX", "KO"]
    assert [row.key for row in taken(records, search='"KO"').rows] == ["KO"]
    assert "No key begins with zzz among the last 3." in topic_view.table(taken(records, search="zzz"))


def test_a_record_that_came_since_the_last_look_is_marked() -> None:
    first = taken([raw(0)])
    second = taken([raw(0), raw(1)], first)
    assert [row.is_new for row in first.rows] == [False]
    assert [row.is_new for row in second.rows] == [True, False]
    assert topic_view.table(second).count("●") == 1
    assert "●" not in TopicView.PAGE.saved(second)


def test_a_null_value_headers_and_bytes_can_be_read() -> None:
    html = topic_view.table(taken([raw(0, value=None, headers=[("trace", b"abc"), ("n", b"\x00\x01")])]))
    assert ">null</td>" in html
    assert "trace=abc, n=" in html
    assert "2024-01-02 09:00:00" in html


def test_null_looks_unlike_the_text_null() -> None:
    null, text = (topic_view.table(taken([raw(0, value=value)])) for value in (None, b"null"))
    assert ('<td class="sk-null"' in null, '<td class="sk-null"' in text) == (True, False)
    assert 'title="null, which is not the text null">null</td>' in null


def test_a_record_with_a_time_that_no_calendar_has_shows_its_number() -> None:
    assert ">1,700,000,000,000,000 ms</td>" in topic_view.table(taken([raw(MICROSECONDS - NINE)]))


def test_a_record_that_the_serde_cannot_read_is_shown_as_bytes() -> None:
    assert decoder(Serdes.long())(b"abc") == "b'abc'"
    assert decoder(Serdes.long())(bytes(8)) == "0"
    assert decoder(Serdes.json("price double"))(b'{"price": 1.5}') == '{"price": 1.5}'


def test_the_rate_counts_what_was_written_in_the_last_seconds() -> None:
    snapshot = None
    for second in range(10):
        moment, end = 100.0 + second, {0: second * 50}
        snapshot = topic_snapshot("trades", [], end, TEXT, TEXT, 5, previous=snapshot, clock=lambda at=moment: at)  # type: ignore[misc]
    assert snapshot is not None
    assert (rate(snapshot.history) or 0) == 50


def test_of_many_partitions_the_first_ends_are_shown_and_the_sum_of_all() -> None:
    few, many = (topic_snapshot("trades", [], dict.fromkeys(range(n), 7), TEXT, TEXT, 5) for n in (16, 30))
    assert topic_view.facts(few, True)[1].endswith("14: 7, 15: 7")
    assert topic_view.facts(many, True)[1].endswith("14: 7, 15: 7, …, 210 in all")


def test_only_a_broker_has_topics() -> None:
    with pytest.raises(TypeError, match="with broker = shared_broker"):
        TopicView("localhost:9092", "trades")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"key": "string"}, {"value": str}])
def test_keys_and_values_are_read_by_serdes_only(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"TopicView of 'trades': the serde of (keys|values)"):
        TopicView(EmbeddedBroker(tmp_path / "broker"), "trades", **wrong)


# With a broker.


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    data: Path = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(data_dir=data) as running:
        yield running


@pytest.mark.broker
def test_a_tail_skips_to_the_last_records_and_goes_on_from_there(broker: Broker) -> None:
    broker.create_topics("long", partitions=2)
    broker.produce("long", [{"value": f"v{n}", "partition": n % 2} for n in range(1000)])
    tail = Tail(broker.bootstrap_servers, ["long"], keep=10)
    tail.look()
    assert [record.offset for record in tail.records(1)] == list(range(490, 500))
    assert tail.before(1) == 490
    broker.produce("long", [{"value": "new", "partition": 1}])
    tail.look()
    assert [record.value for record in tail.records(1)][-1] == b"new"
    assert len(tail.records()) == 20
    tail.close()
    broker.produce("long", [{"value": "later", "partition": 0}])
    tail.look()
    assert [record.value for record in tail.records(0)][-1] == b"later"
    tail.close()


@pytest.mark.broker
@pytest.mark.parametrize("count", [1, 5, 8])
def test_a_topic_that_was_made_again_is_read_from_its_beginning(broker: Broker, count: int) -> None:
    name = f"again-{count}"
    broker.create_topics(name)
    broker.produce(name, [("a", "old")] * 5)
    tail = Tail(broker.bootstrap_servers, [name], keep=10)
    tail.look()
    broker.delete_topics(name)
    broker.create_topics(name)
    broker.produce(name, [("a", "new")] * count)
    deadline = time.monotonic() + 20
    while [record.value for record in tail.records()] != [b"new"] * count:
        assert time.monotonic() < deadline, "the record of the new topic did not come"
        try:
            tail.look()
        except BrokerError:
            time.sleep(0.2)  # for a moment there is no such topic
    tail.close()


@pytest.mark.broker
def test_ends_are_those_of_the_topics_that_are_there(broker: Broker) -> None:
    broker.create_topics("here", partitions=2)
    broker.produce("here", [{"value": "x", "partition": 1}] * 3)
    ends = Ends(broker.bootstrap_servers)
    assert ends.ask(["here", "nowhere"]) == {"here": {0: 0, 1: 3}}
    ends.close()


@pytest.mark.broker
def test_a_view_of_a_topic_filters_by_partition_and_stands_still_when_paused(broker: Broker) -> None:
    broker.create_topics("seen", partitions=2)
    broker.produce("seen", [{"key": "KO", "value": f"in {n % 2}", "partition": n % 2} for n in range(6)])
    view = TopicView(broker, "seen")
    view.refresh()
    assert "end offsets 0: 3, 1: 3" in view._header.value
    view._partition.value = 1
    assert "in 1" in view._parts["table"].value
    assert "in 0" not in view._parts["table"].value
    view._pause.value = True
    broker.produce("seen", [{"key": "KO", "value": "too new", "partition": 1}])
    view._search.value = "K"
    assert "too new" not in view._parts["table"].value
    view._pause.value = False
    assert "too new" in view._parts["table"].value
    assert (view._tail._admin, view._tail._reader) == (None, None), "nobody sees it, so that nothing is left open"


@pytest.mark.broker
def test_a_topic_that_is_not_there_is_refused_with_those_that_are(broker: Broker) -> None:
    broker.create_topics("known")
    with pytest.raises(BrokerError, match=r"no topic 'unknown'.*known"):
        TopicView(broker, "unknown")
