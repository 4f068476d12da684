"""Records between the queries of a test driver: they go together where that changes no result, and only there."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from streamskit import KStream, Serdes, StreamsBuilder
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.testing.memory import Raw
from streamskit.testing.waiting import WaitingRecords
from tests.driver_in_micro_batches import DriverInMicroBatches

LETTERS = "abab"


def waiting_for(program: Callable[[KStream, KStream], object], outside: tuple[str, ...] = ()) -> list[list[str]]:
    """Return the batches in which records of two repartition topics go on, written in turns."""
    builder = StreamsBuilder()
    source = builder.stream("in", key=Serdes.string(), value=Serdes.string())
    program(*(source.select_key(lambda key, value: value).repartition(letter) for letter in "ab"))
    waiting = WaitingRecords(plan(builder.build(), "app", QueryOptions(test=True)), outside)
    waiting.extend(Raw(f"app-{letter}-repartition", None, None, time) for time, letter in enumerate(LETTERS))
    found = []
    while waiting:
        found.append([record.topic[4] for record in waiting.next_batch()])
    return found


def each_to_its_own(left: KStream, right: KStream) -> None:
    left.map_values(lambda value: value).to("left")
    right.map_values(lambda value: value).to("right")


def both_to_one(left: KStream, right: KStream) -> None:
    left.to("out")
    right.to("out")


def met_further_down(left: KStream, right: KStream) -> None:
    left.merge(right.select_key(lambda key, value: value).repartition("c")).to("out")


def each_calls(left: KStream, right: KStream) -> None:
    left.foreach(print)
    right.foreach(print)


def where_the_record_says(left: KStream, right: KStream) -> None:
    left.to("out")
    right.to(lambda key, value: value)


def test_records_of_paths_that_never_meet_go_together(spark: SparkSession) -> None:
    assert waiting_for(each_to_its_own) == [["a", "a"], ["b", "b"]]


@pytest.mark.parametrize("program", [both_to_one, met_further_down, each_calls, where_the_record_says])
def test_records_of_paths_that_meet_keep_their_order(spark: SparkSession, program: Callable[..., None]) -> None:
    assert waiting_for(program) == [["a"], ["b"], ["a"], ["b"]]


def test_records_that_fill_a_global_table_keep_their_order(spark: SparkSession) -> None:
    assert waiting_for(each_to_its_own, outside=("left",)) == [["a"], ["b"], ["a"], ["b"]]


def test_a_record_waits_for_older_results_of_the_one_before_it_that_come_back_to_its_query(spark: SparkSession) -> None:
    builder = StreamsBuilder()
    rows = builder.stream("in").select_key(lambda key, value: value).repartition("rows").to_table()
    joined = rows.left_join(builder.table("other"), lambda left, right: left, foreign_key=lambda value: value)
    joined.to_stream().to("out")
    waiting = WaitingRecords(plan(builder.build(), "app", QueryOptions(test=True)))
    waiting.by_time = True
    waiting.extend(Raw("app-rows-repartition", None, None, time) for time in (60, 65))
    assert [record.timestamp for record in waiting.next_batch()] == [60]


def order_of_topics_that_meet(singly: bool) -> list[tuple[str, int]]:
    """Return in which order records of two topics that meet go on, while two others wait with them."""
    builder = StreamsBuilder()
    source = builder.stream("in", key=Serdes.string(), value=Serdes.string())
    a, b, c, d = (source.select_key(lambda key, value: value).repartition(letter) for letter in "abcd")
    for stream, topic in ((a, "left"), (b, "right"), (c.merge(d), "met")):
        stream.map_values(lambda value: value).to(topic)
    waiting = WaitingRecords(plan(builder.build(), "app", QueryOptions(test=True)))
    waiting.by_time = True
    waiting.extend(Raw(f"app-{letter}-repartition", None, None, time) for time in (50, 150, 0) for letter in "abcd")
    found = []
    while waiting:
        found += [(record.topic[4], record.timestamp) for record in waiting.next_batch(singly)]
    return [each for each in found if each[0] in "cd"]


def test_records_that_go_together_leave_the_order_of_other_topics_as_it_is(spark: SparkSession) -> None:
    in_turn = [("d", 50), ("c", 50), ("d", 150), ("d", 0), ("c", 150), ("c", 0)]
    assert order_of_topics_that_meet(singly=True) == in_turn
    assert order_of_topics_that_meet(singly=False) == in_turn


def test_many_records_of_two_aggregations_take_a_micro_batch_for_each_query(spark: SparkSession) -> None:
    builder = StreamsBuilder()
    source = builder.stream("in", key=Serdes.string(), value=Serdes.string())
    for letter in "ab":
        source.select_key(lambda key, value: value).group_by_key().reduce(
            lambda total, value: total, materialized=letter
        )
    with DriverInMicroBatches(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records([("k", f"v{number % 3}", number) for number in range(12)])
        done = [[each for each in query.query.recentProgress if each["numInputRows"]] for query in driver._queries]
        assert dict(driver.state_store("a").all()) == {f"v{number}": f"v{number}" for number in range(3)}
    assert [len(batches) for batches in done] == [1, 1, 1]
