"""A TopologyTestDriver whose topics have several partitions: each is a task, with its own state and stream time."""

import re
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
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
    ValueTransformerWithKey,
)
from streamskit.kafka.topic_partition import partition_for
from streamskit.state.local import LocalKeyValueStore
from streamskit.widgets import StoreView

pytestmark = pytest.mark.spark

Write = Callable[[StreamsBuilder], None]

ZERO, ONE = "a", "d"
"""Keys for the two partitions of a topic."""


def driver_of(write: Write, partitions: Any = 2, **settings: Any) -> TopologyTestDriver:
    builder = StreamsBuilder()
    write(builder)
    return TopologyTestDriver(builder.build(), partitions=partitions, **settings)


def by_partition(driver: TopologyTestDriver, topic: str = "out") -> dict[int, list[tuple[Any, Any]]]:
    read = driver.create_output_topic(topic).read_records_by_partition()
    return {number: [(record.key, record.value) for record in records] for number, records in read.items()}


def value_of(driver: TopologyTestDriver, name: str, key: str, partition: int | None = None) -> Any:
    store = driver.state_store(name, partition)
    assert isinstance(store, LocalKeyValueStore)
    return store.get(key)


def counting(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count(materialized="counts").to_stream().to("out", value=Serdes.long())


def reducing(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().reduce(lambda a, b: a + b, materialized="joined").to_stream().to("out")


class TaskOf(Processor):
    """Adds the task's id to each value."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{record.value} {self.context.task_id}"))


class TaskOfRow(ValueTransformerWithKey):
    """Adds the task's id to each row."""

    def transform(self, key: Any, value: Any) -> Any:
        return f"{value} {self.context.task_id}"


class PutTask(Processor):
    """Puts the task's id into a global store."""

    def process(self, record: Record) -> None:
        self.context.state_store("tasks").put(record.key, self.context.task_id)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_processor_is_told_its_task(partitions: int) -> None:
    def write(builder: StreamsBuilder) -> None:
        text = Serdes.string()
        builder.add_global_store(Stores.in_memory_key_value_store("tasks", text, text), "to-all", PutTask)
        repartitioned = builder.stream("in").process(TaskOf).repartition(name="again", value=text)
        repartitioned.to_table().transform_values(TaskOfRow).to_stream().to("out", value=text)

    with driver_of(write, partitions) as driver:
        driver.create_input_topic("to-all").pipe_input("k", "v")
        for key in (ZERO, ONE):
            driver.create_input_topic("in").pipe_input(key, "v")
        last = partitions - 1
        # The global store is sub-topology 0.
        rows = [row for rows in by_partition(driver).values() for row in rows]
        assert rows == [(ZERO, "v 1_0 2_0"), (ONE, f"v 1_{last} 2_{last}")]
        assert value_of(driver, "tasks", "k") == "-1_-1"  # no task: every instance fills it


def test_keys_lie_where_kafkas_partitioner_puts_them() -> None:
    assert (partition_for(ZERO.encode(), 2), partition_for(ONE.encode(), 2)) == (0, 1)
    with driver_of(lambda builder: builder.stream("in").to("out")) as driver:
        for key in (ZERO, ONE, None, None):
            driver.create_input_topic("in").pipe_input(key, "v")
        # Without a key records take turns, going in and coming out.
        assert by_partition(driver) == {0: [(ZERO, "v"), (None, "v")], 1: [(ONE, "v"), (None, "v")]}


@pytest.mark.parametrize(("write", "store", "twice"), [(counting, "counts", 2), (reducing, "joined", "vv")])
def test_each_task_keeps_its_own_state_whatever_the_keys(write: Write, store: str, twice: Any) -> None:
    once = "v" if store == "joined" else 1
    with driver_of(write) as driver:
        orders = driver.create_input_topic("in")
        orders.pipe_input("k", "v", 1, partition=0)
        orders.pipe_input("k", "v", 2, partition=1)
        orders.pipe_input("k", "v", 3, partition=1)
        assert [record.value for record in driver.create_output_topic("out").read_records_to_list()] == [
            once, once, twice
        ]  # fmt: skip
        assert value_of(driver, store, "k", 0) == once
        assert value_of(driver, store, "k", 1) == twice
        assert len(driver.state_store(store)) == 2


@pytest.mark.parametrize("aggregate", ["count", "reduce"])
def test_stream_time_is_that_of_a_task(aggregate: str) -> None:
    def write(builder: StreamsBuilder) -> None:
        windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(10))
        table = windowed.count() if aggregate == "count" else windowed.reduce(lambda a, b: a + b)
        table.to_stream().select_key(lambda k, v: k["key"]).to("out")

    with driver_of(write) as driver:
        piped = driver.create_input_topic("in")
        piped.pipe_input(ZERO, "v", 1000)
        piped.pipe_input(ONE, "v", 5)  # late only for the other task
        assert driver.dropped() == 0
        piped.pipe_input(ZERO, "v", 5)
        assert driver.dropped() == 1
        assert len(driver.create_output_topic("out").read_records_to_list()) == 2


def test_a_repartition_topic_brings_equal_keys_to_one_task_and_has_as_many_partitions_as_asked_for() -> None:
    def write(builder: StreamsBuilder) -> None:
        by_value = builder.stream("in").select_key(lambda k, v: v).repartition(name="by-value", partitions=3)
        by_value.group_by_key().count(materialized="counts").to_stream().to("out", value=Serdes.long())

    with driver_of(write, {"in": 2, "out": 1}) as driver:
        for key in (ZERO, ONE):
            driver.create_input_topic("in").pipe_input(key, "x")
        assert by_partition(driver) == {0: [("x", 1), ("x", 2)]}
        moved = by_partition(driver, "test-by-value-repartition")
        there = partition_for(b"x", 3)
        assert moved == {number: [("x", "x")] * 2 if number == there else [] for number in range(3)}
        assert driver.state_store("counts").partitions == {there}


def test_the_store_of_a_task_that_was_taken_before_the_first_record_has_what_comes_and_learns_of_the_end() -> None:
    with driver_of(counting) as driver:
        store, view = driver.state_store("counts", 0), StoreView(driver.state_store("counts", 0))
        view.refresh()
        for key in (ZERO, ONE, ZERO):
            driver.create_input_topic("in").pipe_input(key, "x")
        assert store.all() == [(ZERO, 2)]
        view.refresh()
        assert f">{ZERO}</td>" in view.seen()["table"]
    view.refresh()
    assert "■ stopped" in view.seen()["header"]


def test_tasks_of_one_batch_meet_in_the_order_of_their_time() -> None:
    def write(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_with_no_grace(10)
        regrouped = builder.stream("in").group_by(lambda k, v: F.lit("all"))
        table = regrouped.windowed_by(windows).reduce(lambda a, b: a + b)
        table.to_stream().select_key(lambda k, v: k["key"]).to("out")

    with driver_of(write) as driver:
        records = [(key, "v", time) for time in (0, 100, 200) for key in (ZERO, ONE)]
        driver.create_input_topic("in").pipe_records(records)
        assert driver.dropped() == 0
        assert [r.value for r in driver.create_output_topic("out").read_records_to_list()] == ["v", "vv"] * 3


def test_a_global_table_is_whole_in_every_task() -> None:
    def write(builder: StreamsBuilder) -> None:
        names = builder.global_table("names", materialized="names")
        builder.stream("in").join(names, lambda v, name: F.concat(v, name), key_selector=lambda k, v: v).to("out")

    with driver_of(write) as driver:
        driver.create_input_topic("names").pipe_input("x", "!", partition=1)
        for key in (ZERO, ONE):
            driver.create_input_topic("in").pipe_input(key, "x")
        assert by_partition(driver) == {0: [(ZERO, "x!")], 1: [(ONE, "x!")]}
        assert value_of(driver, "names", "x") == "!"
        with pytest.raises(TopologyError, match="'names' is whole in every task"):
            driver.state_store("names", partition=1)


class Counting(Processor):
    """Counts records in its task, and tells at each tick of the wall clock."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.seen = context.state_store("seen")
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tell)

    def process(self, record: Record) -> None:
        self.seen.put("n", (self.seen.get("n") or 0) + 1)

    def tell(self, now: int) -> None:
        count = self.seen.get("n") or 0
        self.context.forward(Record(None, str(count), now))


def test_a_processor_runs_once_in_each_task_and_hears_the_wall_clock_in_all() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.add_state_store(Stores.persistent_key_value_store("seen", Serdes.string(), Serdes.long()))
        builder.stream("in").process(Counting, stores=["seen"]).to("out")

    with driver_of(write, {"in": 2}) as driver:
        for key in (ZERO, ONE, ONE):
            driver.create_input_topic("in").pipe_input(key, "v")
        driver.advance_wall_clock_time(10)
        assert by_partition(driver) == {0: [(None, "1"), (None, "2")]}
        assert value_of(driver, "seen", "n", 1) == 2


def test_a_partitioner_is_told_how_many_partitions_there_are() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").to("out", partitioner=lambda topic, key, value, count: count - 1)

    with driver_of(write, {"out": 3}) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        assert by_partition(driver) == {0: [], 1: [], 2: [("k", "v")]}


def test_a_dead_letter_names_the_partition() -> None:
    handler = LogAndContinue("letters")
    write: Write = lambda builder: builder.stream("in", value=Serdes.long()).to("out")  # noqa: E731
    with driver_of(write, deserialization_handler=handler) as driver:
        driver.create_input_topic("in", value=Serdes.string()).pipe_input("k", "no number", partition=1)
        (letter,) = driver.dead_letters("letters").read_records_to_list()
        assert dict(letter.headers)["__streams.errors.partition"] == b"1"


def test_topics_of_a_join_need_the_same_number_of_partitions() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").join(builder.table("rows"), lambda v, row: row).to("out")

    with pytest.raises(StreamsError, match=r"'in' \(2 partitions\) and 'rows' \(1 partitions\)"):
        driver_of(write, {"in": 2})
    with driver_of(write) as driver:
        for key in (ZERO, ONE):
            driver.create_input_topic("rows").pipe_input(key, f"row {key}")
            driver.create_input_topic("in").pipe_input(key, "v")
        assert by_partition(driver) == {0: [(ZERO, "row a")], 1: [(ONE, "row d")]}


def test_topics_that_are_joined_cannot_request_different_numbers_of_partitions_of_a_driver_with_one() -> None:
    def topology(left: int, right: int | None) -> Topology:
        builder = StreamsBuilder()
        one = builder.stream("in").repartition("left", partitions=left)
        other = builder.stream("rows").repartition("right", partitions=right)
        windows = JoinWindows.of_time_difference_with_no_grace(5)
        one.join(other, lambda v, row: F.concat(v, row), windows).to("out")
        return builder.build()

    with pytest.raises(TopologyError, match=r"-left-repartition' \(2 partitions\) and '.*right.*' \(3 partitions\)"):
        TopologyTestDriver(topology(2, 3))
    with TopologyTestDriver(topology(2, None)) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        driver.create_input_topic("rows").pipe_input("k", "w")
        assert driver.create_output_topic("out").read_record().value == "vw"


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        (0, "partitions=0: a topic has 1 partition or more, not 0."),
        ({"in": "2"}, "partitions={'in': '2'}: a topic has 1 partition or more, not '2'."),
        ({"inn": 2}, "partitions= names the topic 'inn', which the topology neither reads nor writes; those that it "
         "does: in, out."),
    ],
)  # fmt: skip
def test_partitions_that_make_no_sense_are_refused(partitions: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=re.escape(said)):
        driver_of(lambda builder: builder.stream("in").to("out"), partitions)


def test_a_partition_that_is_not_there_is_refused() -> None:
    with driver_of(counting) as driver:
        with pytest.raises(
            StreamsError, match=r"Topic 'in' has no partition 2: its partitions are numbered from 0 to 1"
        ):
            driver.create_input_topic("in").pipe_input("k", "v", partition=2)
        with pytest.raises(StreamsError, match="Topic 'test-counts-changelog' has no partition 7"):
            driver.state_store("counts", partition=7)


def test_without_partitions_every_topic_has_one_whatever_a_repartition_asks_for() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").repartition(name="more", partitions=3).to("out")

    with driver_of(write, None) as driver:
        driver.create_input_topic("in").pipe_input("k", "v")
        assert by_partition(driver, "test-more-repartition") == {0: [("k", "v")]}
