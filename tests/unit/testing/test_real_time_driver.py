"""A test driver has Spark process one record after the other, in a batch that stays open or in micro-batches."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    LogAndContinue,
    Processor,
    PunctuationType,
    Record,
    Response,
    Serdes,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    TopologyTestDriver,
    spark_session,
)
from streamskit.testing.memory import MemoryQuery
from streamskit.testing.real_time import RealTimeQuery
from tests.driver_in_micro_batches import DriverInMicroBatches

pytestmark = pytest.mark.spark

LONG = Serdes.long()
Write = Callable[[StreamsBuilder], None]
Told = tuple[list[tuple[Any, Any, int]], dict[str, int]]
"""The records that came out because of one, and how many each node has dropped by then."""

RECORDS: list[tuple[str, tuple[Any, ...]]] = [
    ("left", ("ada", 5, 1_000, ())),
    ("right", ("ada", 7, 2_000, (("from", b"right"),))),
    ("left", (None, 1, 3_000, ())),
    ("right", ("bob", 2, 500, ())),
    ("left", ("bob", 4, 70_000, ())),
    ("right", ("ada", None, 71_000, ())),
    ("right", (None, 3, 72_000, ())),
    ("left", ("ada", 6, 4_000, ())),
    ("left", ("bob", 3, 140_000, ())),
]
"""Of two topics, out of order, without a key, without a value, and late."""


def built(write: Write) -> Any:
    builder = StreamsBuilder()
    write(builder)
    return builder.build()


def told(driver: TopologyTestDriver, is_cut: bool = False) -> list[Told]:
    """Return what comes of each of the records, of which each may have a batch of its own."""
    found: list[Told] = []
    with driver:
        out = driver.create_output_topic("out")
        for topic, record in RECORDS:
            driver.create_input_topic(topic).pipe_input(*record)
            found.append(([made[:3] for made in out.read_records_to_list()], driver.metrics()))
            for query in driver._queries if is_cut else ():
                assert isinstance(query, RealTimeQuery)
                query._topics.finish(query.query._jsq.streamingQuery())
    return found


def kinds(driver: TopologyTestDriver) -> set[type]:
    return {type(query) for query in driver._queries}


def two_streams(builder: StreamsBuilder) -> tuple[Any, Any]:
    return builder.stream("left", value=LONG), builder.stream("right", value=LONG)


def stateless(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    left.merge(right).flat_map_values(lambda v: F.array(v, v + 1)).filter(lambda v: v % 2 == 0).to("out")


def a_reducer(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    left.merge(right).group_by_key().reduce(lambda total, new: total + new).to_stream().to("out")


def a_count_that_spark_makes_elsewhere(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    right.to("other")
    left.group_by_key().count().to_stream().to("out")


def windows_with_late_records(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    windows = TimeWindows.of_size_and_grace("1 minute", "5 seconds")
    counts = left.merge(right).group_by_key().windowed_by(windows).count()
    counts.to_stream().map(lambda k, v: (k["key"], v)).to("out", value=LONG)


def a_join_of_streams(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    windows = JoinWindows.of_time_difference_with_no_grace("10 seconds")
    left.left_join(right, lambda one, two: one + F.coalesce(two, F.lit(0)), windows).to("out")


def a_join_with_a_table(builder: StreamsBuilder) -> None:
    left = builder.stream("left", value=LONG)
    left.join(builder.table("right", value=LONG), lambda one, two: one * two).to("out")


def two_sub_topologies(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    right.to("other")
    by_value = left.flat_map_values(lambda v: F.array(v, v + 1)).group_by(lambda k, v: (v % 2).cast("string"))
    by_value.reduce(lambda total, new: total + new).to_stream().to("out")


def a_global_table(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left", value=LONG), builder.global_table("right", value=LONG)
    left.left_join(right, lambda one, two: one + F.coalesce(two, F.lit(0)), key_selector=lambda k, v: k).to("out")


def a_table_and_a_stream_with_another_key(builder: StreamsBuilder) -> None:
    left = builder.stream("left", value=LONG).select_key(lambda k, v: F.coalesce(k, F.lit("bob")))
    left.join(builder.table("right", value=LONG), lambda one, two: one * two).to("out")


def columns_over_a_repartition_topic(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    sums = left.merge(right).flat_map_values(lambda v: F.array(v, v + 1)).group_by_key().aggregate(F.sum)
    sums.to_stream().to("out", value=LONG)


class Late(Processor):
    """Passes a record on ten seconds of stream time later."""

    def init(self, context: Any) -> None:
        self.context, self.kept = context, list[Record]()
        context.schedule("10 seconds", PunctuationType.STREAM_TIME, self.release)

    def process(self, record: Record) -> None:
        self.kept.append(record)

    def release(self, time: int) -> None:
        for record in self.kept:
            self.context.forward(record)
        self.kept = []


def a_processor_that_punctuates(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    left.merge(right).process(Late, value=LONG).to("out")


PROGRAMS = [
    stateless,
    a_reducer,
    a_count_that_spark_makes_elsewhere,
    windows_with_late_records,
    a_join_of_streams,
    a_join_with_a_table,
    two_sub_topologies,
    a_global_table,
    a_table_and_a_stream_with_another_key,
    a_processor_that_punctuates,
]
CACHED = [a_reducer, windows_with_late_records, two_sub_topologies]


@pytest.mark.parametrize(
    ("write", "cache"), [*((write, False) for write in PROGRAMS), *((write, True) for write in CACHED)]
)
def test_both_of_sparks_modes_tell_the_same_of_each_record(write: Write, cache: bool) -> None:
    driver = TopologyTestDriver(built(write), cache=cache)
    assert kinds(driver) == {RealTimeQuery}
    assert told(driver) == told(DriverInMicroBatches(built(write), cache=cache))


@pytest.mark.parametrize("write", [a_reducer, windows_with_late_records, a_processor_that_punctuates])
def test_state_goes_on_from_one_batch_to_the_next(write: Write) -> None:
    assert told(TopologyTestDriver(built(write)), is_cut=True) == told(TopologyTestDriver(built(write)))


def test_a_program_may_have_more_queries_than_spark_has_slots() -> None:
    slots = spark_session().sparkContext.defaultParallelism
    builder = StreamsBuilder()
    stream = builder.stream("in", value=LONG)
    for _ in range(slots + 1):
        stream = stream.group_by(lambda k, v: k).reduce(lambda total, new: total + new).to_stream()
    stream.to("out")
    with TopologyTestDriver(builder.build()) as driver:
        assert len(driver._queries) > slots
        topic, out = driver.create_input_topic("in"), driver.create_output_topic("out")
        for _ in range(2):
            topic.pipe_input("a", 1)
        assert [record.value for record in out.read_records_to_list()] == [1, slots + 2]


def test_a_driver_that_is_left_alone_keeps_no_slot() -> None:
    drivers = [TopologyTestDriver(built(a_reducer)) for _ in range(3)]
    try:
        for driver in drivers:
            driver.create_input_topic("left").pipe_input("a", 1)
        tracker, deadline = spark_session().sparkContext.statusTracker(), time.monotonic() + 20
        while (running := tracker.getActiveStageIds()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not running, "A driver's task still ran 20 s after its last record."
    finally:
        for driver in drivers:
            driver.close()


def test_drivers_of_several_threads_share_the_slots() -> None:
    found: dict[int, list[Told]] = {}

    def tell(number: int) -> None:
        found[number] = told(TopologyTestDriver(built(two_sub_topologies), f"app-{number}"))

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(found) == [0, 1, 2], "A driver has not come to its end within two minutes."
    assert found[0] == found[1] == found[2]


def fails_on_seven(builder: StreamsBuilder) -> None:
    def add(total: int, new: int) -> int:
        if new == 7:
            raise ValueError("seven is too many")
        return total + new

    left, right = two_streams(builder)
    left.merge(right).group_by_key().reduce(add).to_stream().to("out")


@pytest.mark.parametrize("partitions", [None, 1])
def test_a_record_that_fails_is_told_at_once_and_later_ones_that_the_driver_has_failed(partitions: int | None) -> None:
    with TopologyTestDriver(built(fails_on_seven), partitions=partitions) as driver:
        left = driver.create_input_topic("left")
        left.pipe_input("a", 1)
        with pytest.raises(StreamsError, match=r"^KSTREAM-REDUCE.*seven is too many"):
            left.pipe_input("a", 7)
        for _ in range(2):
            with pytest.raises(StreamsError, match=r"^Nothing was processed: .* earlier .*seven is too many"):
                left.pipe_input("a", 2)
        with pytest.raises(StreamsError, match="Open a new driver"):
            driver.advance_wall_clock_time("1s")


class Locked(Processor):
    """Holds what no application can keep from one micro-batch to the next."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.lock = threading.Lock()

    def process(self, record: Record) -> None:
        self.context.forward(record)


def locked(builder: StreamsBuilder) -> None:
    builder.stream("left", value=LONG).process(Locked, value=LONG).to("out")


def test_what_a_processor_cannot_keep_is_told_when_the_driver_is_closed() -> None:
    driver = TopologyTestDriver(built(locked))
    driver.create_input_topic("left").pipe_input("a", 1)
    assert not driver.create_output_topic("out").is_empty()
    with pytest.raises(StreamsError, match="its field 'lock' is a lock, which cannot be kept"):
        driver.close()


def test_what_a_processor_cannot_keep_is_told_of_the_next_record_when_a_batch_has_ended() -> None:
    with TopologyTestDriver(built(locked)) as driver:
        driver.create_input_topic("left").pipe_input("a", 1)
        time.sleep(3)
        with pytest.raises(StreamsError, match="its field 'lock' is a lock, which cannot be kept"):
            driver.create_input_topic("left").pipe_input("a", 1)


def test_the_settings_of_the_session_hold_as_they_are_when_a_driver_is_opened() -> None:
    builder = StreamsBuilder()
    builder.stream("left", value=LONG).map_values(lambda v: F.hour(F.timestamp_millis(v)).cast("bigint")).to("out")
    spark = spark_session()
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    hours = []
    try:
        for each in ("UTC", "Asia/Tokyo"):
            spark.conf.set("spark.sql.session.timeZone", each)
            with TopologyTestDriver(builder.build()) as driver:
                driver.create_input_topic("left").pipe_input("a", 0)
                hours.append(driver.create_output_topic("out").read_record().value)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert hours == [0, 9]


def a_filter(builder: StreamsBuilder) -> None:
    builder.stream("left", value=LONG).filter(lambda v: v > 0).to("out")


@pytest.mark.parametrize("write", [a_reducer, a_filter])
def test_a_driver_that_was_closed_says_so(write: Write) -> None:
    driver = TopologyTestDriver(built(write))
    driver.close()
    driver.close()
    with pytest.raises(StreamsError, match="closed"):
        driver.create_input_topic("left").pipe_input("a", 1)
    with pytest.raises(StreamsError, match="closed"):
        driver.advance_wall_clock_time("1 second")


def a_udf(builder: StreamsBuilder) -> None:
    twice = F.udf(lambda v: 2 * v, "bigint")
    builder.stream("left", value=LONG).map_values(lambda v: twice(v)).to("out")
    builder.stream("right", value=LONG).to("other")


def the_time_of_day(builder: StreamsBuilder) -> None:
    builder.stream("left", value=LONG).map_values(lambda v: F.unix_millis(F.current_timestamp())).to("out")
    builder.stream("right", value=LONG).to("other")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("write", "kind"), [(a_udf, MemoryQuery), (the_time_of_day, RealTimeQuery)])
def test_a_udf_runs_in_micro_batches_and_the_time_of_day_goes_on_in_an_open_batch(write: Write, kind: type) -> None:
    with TopologyTestDriver(built(write)) as driver:
        assert kinds(driver) == {kind}
        topic, out = driver.create_input_topic("left"), driver.create_output_topic("out")
        topic.pipe_input("a", 1)
        time.sleep(0.01)
        topic.pipe_input("a", 2)
        first, second = (record.value for record in out.read_records_to_list())
        assert first < second


def test_a_record_that_a_handler_goes_on_without_is_counted_and_quoted_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with TopologyTestDriver(built(a_reducer), deserialization_handler=LogAndContinue()) as driver:
        assert kinds(driver) == {RealTimeQuery}
        driver.create_input_topic("left", value=Serdes.byte_array()).pipe_input("a", b"no long")
        assert driver.dropped() == 1
        assert "KSTREAM-SOURCE-0000000000 went on without 1 record, such as left-0@0: the value" in caplog.text
        caplog.clear()
        driver.create_input_topic("left").pipe_input("a", 1)
        assert driver.dropped() == 1
        assert "went on" not in caplog.text


def test_a_handler_that_is_a_function_has_its_queries_run_in_micro_batches() -> None:
    def go_on(context: object, record: object, exception: Exception) -> Response:
        return Response.resume()

    with TopologyTestDriver(built(a_reducer), deserialization_handler=go_on) as driver:
        assert kinds(driver) == {MemoryQuery}
