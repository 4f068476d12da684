"""Topics that are joined and were written by different partitioners: what is said of them, and when."""

import logging

import pytest

from streamskit import KafkaStreams, StreamsBuilder, Topology
from streamskit.kafka.partitioning_check import Partitioning
from streamskit.runtime import co_partitioning
from streamskit.runtime.co_partitioning import Meeting, warnings, watch_out

WHERE = "JOIN (written at shop.py:7)"


def crc32(topic: str) -> Partitioning:
    return Partitioning(topic, 4, 40, 0.25, 1.0)


def murmur2(topic: str) -> Partitioning:
    return Partitioning(topic, 4, 40, 1.0, 0.25)


def test_topics_of_two_partitioners_that_are_joined_are_named_with_what_to_do() -> None:
    meetings = [Meeting(WHERE, ["a", "b"], ["a", "b"])]
    (said,) = warnings(meetings, {"a": crc32("a"), "b": murmur2("b")})
    assert said.startswith(
        f"{WHERE} brings together 'a' and 'b', and librdkafka's default partitioner seems to have written 'a' (4 "
        "partitions): of 40 keys, 25% lie where murmur2 puts them, 100% where CRC32 does. Records with the same key"
    )
    assert "partitioner=murmur2_random" in said
    assert warnings([Meeting(WHERE, ["a", "repartitioned"], ["a"])], {"a": crc32("a")})


def test_topics_of_one_partitioner_meet() -> None:
    meetings = [Meeting(WHERE, ["a", "b"], ["a", "b"])]
    assert warnings(meetings, {"a": crc32("a"), "b": crc32("b")}) == []
    assert warnings(meetings, {"a": murmur2("a"), "b": murmur2("b")}) == []


def test_a_look_that_fails_is_no_ones_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(servers: str, topic: str) -> Partitioning:
        raise OSError("away")

    monkeypatch.setattr(co_partitioning, "look_at", fail)
    with caplog.at_level(logging.DEBUG, "streamskit"):
        thread = watch_out("b:9", [Meeting(WHERE, ["a", "b"], ["a"])])
        assert thread is not None
        thread.join(10)
    assert [(each.levelname, "away" in each.getMessage()) for each in caplog.records] == [("DEBUG", True)]


def test_nothing_is_read_where_nothing_is_joined() -> None:
    assert watch_out("b:9", []) is None
    assert watch_out("b:9", [Meeting(WHERE, ["a", "b"], [])]) is None


def joining() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders").join(builder.table("customers"), lambda order, customer: order)
    by_city = orders.group_by(lambda k, v: v).count("cities")
    by_city.join(builder.table("towns"), lambda count, town: count)
    builder.stream("alone").to("out")
    return builder.build()


def test_what_meets_is_known_from_the_topology() -> None:
    meetings = KafkaStreams(joining(), "shop", "b:9")._application.topics.meetings
    assert [sorted(each.of_others) for each in meetings] == [["customers", "orders"], ["towns"]]
    assert all("test_co_partitioning.py" in each.where for each in meetings)
    assert len(meetings[1].topics) == 2
