"""Stream time in the test driver: which records move it, and by which of their times."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    LogAndContinue,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimestampExtractor,
    TimeWindows,
    TopologyTestDriver,
    UnlimitedWindows,
    Windowed,
)
from streamskit.state.timed import LocalWindowStore
from tests.unit.operators.handlers_harness import DEAD_LETTERS, tell

pytestmark = pytest.mark.spark

EVENT = Serdes.json("ts long")
NEW_YEAR_2100 = 4_102_444_800_000


class Clock(Processor):
    """Tells the stream time with each record, and ticks every 100 ms of it."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)

    def tick(self, now: int) -> None:
        self.context.forward(Record("tick", f"{self.context.current_stream_time_ms()}", now))

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{self.context.current_stream_time_ms()}"))


def told(driver: TopologyTestDriver) -> list[tuple[str, str, int]]:
    return [(made.key, made.value, made.timestamp) for made in driver.create_output_topic("out").read_records_to_list()]


@pytest.mark.parametrize("handler", [LogAndContinue(), DEAD_LETTERS, tell], ids=["continue", "dead letters", "custom"])
def test_only_records_with_a_valid_time_of_their_own_move_stream_time(handler: Any) -> None:
    builder = StreamsBuilder()
    by_value = TimestampExtractor.of(lambda v: v.ts, invalid="skip")
    events = builder.stream("in", value=EVENT, timestamps=by_value)
    events.process(Clock, value=Serdes.string()).to("out")
    with TopologyTestDriver(builder.build(), deserialization_handler=handler) as driver:
        events_in = driver.create_input_topic("in", value=Serdes.byte_array())
        events_in.pipe_input("a", b'{"ts": 100}', 5000)
        assert told(driver) == [("a", "100", 100), ("tick", "100", 100)]
        for value in (b"{oops", b'{"ts": -5}', b"{}"):
            events_in.pipe_input("b", value, 7000)
        events_in.pipe_records([("c", b'{"ts": 150}', 1), ("d", b"{oops", 9000), ("e", b'{"ts": 210}', 2)])
        assert told(driver) == [("c", "150", 150), ("e", "210", 210), ("tick", "210", 210)]
        assert driver.dropped() == 4


class Late(Processor):
    """Ticks once more, by stream time, for each tick of the wall clock."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("10 ms", PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, now: int) -> None:
        self.late = self.context.schedule("1 hour", PunctuationType.STREAM_TIME, self.tell)

    def tell(self, now: int) -> None:
        self.context.forward(Record("late", f"{self.context.current_stream_time_ms()}", now))
        self.late.cancel()

    def process(self, record: Record) -> None:
        self.context.forward(record)


@pytest.mark.parametrize("cache", [False, True])
def test_what_a_tick_of_the_wall_clock_schedules_by_stream_time_is_due_after_the_next_record(cache: bool) -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Late).to("out")
    with TopologyTestDriver(builder.build(), cache=cache) as driver:
        driver.create_input_topic("in").pipe_input("a", "one", 100)
        driver.advance_wall_clock_time(10)
        assert told(driver) == [("a", "one", 100)]
        driver.create_input_topic("in").pipe_input("a", "two", 150)
        assert told(driver) == [("a", "two", 150), ("late", "150", 150)]


def test_a_topic_written_here_and_read_with_an_extractor_moves_no_other_clock_by_the_times_of_its_records() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=EVENT).process(Ahead).to("between")
    by_value = TimestampExtractor.of(lambda v: v.ts)
    builder.stream("between", value=EVENT, timestamps=by_value).map_values(lambda v: v.ts.cast("string")).to("times")
    builder.stream("beside").process(Clock).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", {"ts": 20}, 10)
        driver.create_input_topic("beside").pipe_input("b", "b", 30)
        assert ("b", "30", 30) in told(driver)
        assert driver.create_output_topic("times").read_record()[:3] == ("a", "20", 20)


class Ahead(Processor):
    """Gives records times that are far ahead of their own."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_timestamp(record.timestamp + 5000))


def test_a_record_that_gets_the_time_of_its_partition_moves_stream_time_by_that_time() -> None:
    builder = StreamsBuilder()
    by_value = TimestampExtractor.of(lambda v: v.ts, invalid="skip", missing="partition time")
    events = builder.stream("in", value=EVENT, timestamps=by_value)
    events.process(Clock, value=Serdes.string()).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        events_in = driver.create_input_topic("in")
        for timestamp, ts in ((5000, None), (5000, 100), (7000, None), (1, -3), (1, 250), (9000, None)):
            events_in.pipe_input("a", {"ts": ts}, timestamp)
        assert told(driver) == [
            ("a", "100", 100), ("tick", "100", 100), ("a", "100", 100),
            ("a", "250", 250), ("tick", "250", 250), ("a", "250", 250),
        ]  # fmt: skip
        assert driver.dropped() == 2


def test_a_record_that_a_filter_drops_moves_the_time_of_its_task_but_not_that_of_windows_after_it() -> None:
    builder = StreamsBuilder()
    events = builder.stream("in").filter(lambda v: v != "tick")
    events.process(Clock, value=Serdes.string()).to("out")
    windows = TimeWindows.of_size_with_no_grace("100 ms")
    lists = events.group_by_key().windowed_by(windows).reduce(lambda one, other: one + other, "texts")
    lists.to_stream().map(lambda k, v: (k["key"], v)).to("texts")
    with TopologyTestDriver(builder.build()) as driver:
        events_in = driver.create_input_topic("in")
        events_in.pipe_records([("a", "x", 10), ("b", "tick", 500), ("a", "y", 20)])
        assert told(driver) == [("a", "10", 10), ("tick", "10", 10), ("tick", "500", 500), ("a", "500", 20)]
        texts = driver.create_output_topic("texts").read_records_to_list()
        assert [(made.key, made.value) for made in texts] == [("a", "x"), ("a", "xy")]


def test_the_time_of_a_partition_can_be_used_straight_before_a_native_aggregation() -> None:
    builder = StreamsBuilder()
    events = builder.stream("in", timestamps=TimestampExtractor.use_partition_time_on_invalid()).group_by_key()
    events.count("counts").to_stream().to("counted")
    events.aggregate(lambda v: F.max(v), "highest").to_stream().to("highest")
    windows = TimeWindows.of_size_with_no_grace("100 ms")
    events.windowed_by(windows).aggregate(lambda v: F.max(v), "in-windows").to_stream().to("in-windows")
    with TopologyTestDriver(builder.build()) as driver:
        events_in = driver.create_input_topic("in")
        events_in.pipe_records([("a", "x", 110)])
        events_in.pipe_records([("a", "y", -1)])
        for topic, values in (("counted", [1, 2]), ("highest", ["x", "y"]), ("in-windows", ["x", "y"])):
            made = driver.create_output_topic(topic).read_records_to_list()
            assert [(record.value, record.timestamp) for record in made] == [(value, 110) for value in values], topic


def test_sub_topologies_share_the_stream_time_of_their_one_task() -> None:
    class Holder(Processor):
        """Holds values back until the next tick."""

        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.held: list[Record] = []
            context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)

        def tick(self, now: int) -> None:
            for record in self.held:
                self.context.forward(record.with_timestamp(now))
            self.held = []

        def process(self, record: Record) -> None:
            self.held.append(record)

    builder = StreamsBuilder()
    builder.stream("other").to("copy")
    rekeyed = builder.stream("in").select_key(lambda v: v).repartition()
    rekeyed.process(Holder, key=Serdes.string(), value=Serdes.string()).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records([("a", "x", 10), ("a", "y", 120)])
        # The time moves before the record has come through the repartition topic.
        assert told(driver) == [("x", "x", 120)]
        driver.create_input_topic("other").pipe_input("b", "z", 130)
        assert told(driver) == []
        driver.create_input_topic("other").pipe_input("b", "z", 230)
        assert told(driver) == [("y", "y", 230)]


class Asked(Processor):
    """Tells the stream time with each record, and from the key "go" on also at punctuations."""

    def process(self, record: Record) -> None:
        if record.key == "go":
            self.context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)
        self.context.forward(record.with_value(f"{self.context.current_stream_time_ms()}"))

    def tick(self, now: int) -> None:
        self.context.forward(Record("tick", f"{self.context.current_stream_time_ms()}", now))


def test_a_processor_that_schedules_nothing_at_first_knows_the_stream_time_of_other_sub_topologies() -> None:
    builder = StreamsBuilder()
    builder.stream("other").to("copy")
    rekeyed = builder.stream("in").select_key(lambda v: v).repartition()
    rekeyed.process(Asked, key=Serdes.string(), value=Serdes.string()).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        made = []
        for topic, value, timestamp in (
            ("other", "x", 50), ("in", "x", 10), ("in", "go", 20),
            ("other", "x", 130), ("in", "y", 140), ("other", "x", 230),
        ):  # fmt: skip
            driver.create_input_topic(topic).pipe_input("a", value, timestamp)
            made.append(told(driver))
    assert made == [  # as in Kafka Streams' own test driver
        [], [("x", "50", 10)], [("go", "50", 20), ("tick", "50", 50)], [("tick", "130", 130)], [("y", "140", 140)],
        [("tick", "230", 230)],
    ]  # fmt: skip


def test_a_global_table_that_nothing_joins_does_not_move_stream_time() -> None:
    builder = StreamsBuilder()
    builder.global_table("codes")
    builder.stream("other").to("copy")
    rekeyed = builder.stream("in").select_key(lambda v: v).repartition()
    rekeyed.process(Clock, key=Serdes.string(), value=Serdes.string()).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 10)
        assert told(driver) == [("tick", "10", 10), ("x", "10", 10)]  # the tick before the repartition topic is read
        driver.create_input_topic("codes").pipe_input("b", "z", 500)
        assert told(driver) == []
        driver.create_input_topic("other").pipe_input("b", "z", 230)
        assert told(driver) == [("tick", "230", 230)]


class Times(Processor):
    """Keeps the time of the last record of each key."""

    def process(self, record: Record) -> None:
        self.context.state_store("times").put(record.key, record.timestamp)


class Asking(Processor):
    """Tells what time is kept for a record's key."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{self.context.state_store('times').get(record.key)}"))


def test_a_record_of_a_global_store_keeps_its_own_time_whatever_an_extractor_would_say() -> None:
    times = Stores.in_memory_key_value_store("times", Serdes.string(), Serdes.long())
    builder = StreamsBuilder().add_global_store(times, "codes", Times, value=EVENT, timestamps=lambda v: v.ts)
    builder.stream("in").process(Asking, value=Serdes.string()).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        codes = driver.create_input_topic("codes", value=EVENT)
        codes.pipe_input("a", {"ts": 7}, 500)
        codes.pipe_input("b", {"ts": -1}, 600)
        driver.create_input_topic("in").pipe_records([("a", "", 1), ("b", "", 2)])
        assert told(driver) == [("a", "500", 1), ("b", "600", 2)]


class TotalOfAll(Processor):
    """Tells what the store of an unlimited window holds for a record's key."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(self.context.state_store("joined").fetch(record.key, 1000).value))


def test_an_unlimited_window_takes_whatever_comes_late_and_never_closes() -> None:
    def write(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(UnlimitedWindows.of().start_on(1000))
        joined = windowed.reduce(lambda one, other: one + other, "joined")
        joined.to_stream().to("out")
        builder.stream("asked").process(TotalOfAll, stores=["joined"]).to("told")
        joined.suppress(Suppressed.until_window_closes()).to_stream().to("closed")

    builder = StreamsBuilder()
    write(builder)
    with TopologyTestDriver(builder.build()) as driver:
        for record in [("a", "x", 999), ("a", "y", NEW_YEAR_2100), ("a", "z", 1000)]:
            driver.create_input_topic("in").pipe_input(*record)
        window = Windowed("a", 1000, 2**63 - 1)
        made = driver.create_output_topic("out").read_records_to_list()
        assert [record[:3] for record in made] == [(window, "y", NEW_YEAR_2100), (window, "yz", NEW_YEAR_2100)]
        assert driver.create_output_topic("closed").is_empty()
        store = driver.state_store("joined")
        assert isinstance(store, LocalWindowStore)
        assert store.fetch("a", 1000) == "yz"
        driver.create_input_topic("asked").pipe_input("a", "?")
        assert driver.create_output_topic("told").read_values_to_list() == ["yz"]
        assert driver.dropped() == 0
