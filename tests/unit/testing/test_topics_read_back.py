"""What a topology writes to a topic that it reads comes back to it in a test driver, however the topic was named."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import KStream, Processor, Record, Serdes, Stores, StreamsBuilder, TopologyError, TopologyTestDriver
from streamskit.state.local import LocalKeyValueStore
from tests.driver_in_micro_batches import DriverInMicroBatches

pytestmark = pytest.mark.spark

Write = Callable[[StreamsBuilder], None]
Piped = Sequence[tuple[Any, ...]]

LONG = Serdes.long()
RECORDS: Piped = [("in", "k", 3, 5), ("in", "j", 1, 9)]

both = pytest.mark.parametrize("driver", [TopologyTestDriver, DriverInMicroBatches])


def numbers(builder: StreamsBuilder, topic: str | re.Pattern[str] = "in") -> KStream:
    return builder.stream(topic, value=LONG)


def to_its_own_topic(stream: KStream) -> None:
    stream.to(lambda k, v: F.concat(F.lit("to-"), k))


def opened(write: Write, driver: type[TopologyTestDriver] = TopologyTestDriver, **options: Any) -> TopologyTestDriver:
    builder = StreamsBuilder()
    write(builder)
    return driver(builder.build(), **options)


def made(driver: TopologyTestDriver, records: Piped = RECORDS, out: str = "out") -> list[tuple[Any, Any, int]]:
    for topic, *record in records:
        driver.create_input_topic(topic).pipe_input(*record)
    return [record[:3] for record in driver.create_output_topic(out, value=LONG).read_records_to_list()]


def row_of(driver: TopologyTestDriver, store: str, key: str) -> Any:
    found = driver.state_store(store)
    assert isinstance(found, LocalKeyValueStore)
    return found.get(key)


def a_topic_that_records_name(builder: StreamsBuilder) -> None:
    to_its_own_topic(numbers(builder))
    numbers(builder, "to-k").map_values(lambda v: v * 10).to("out")


def a_topic_that_matches_a_pattern(builder: StreamsBuilder) -> None:
    numbers(builder).filter(lambda k, v: k == "k").to("to-k")
    numbers(builder, re.compile("to-.*")).map_values(lambda v: v * 10).to("out")


def what_a_pattern_matches(builder: StreamsBuilder) -> None:
    to_its_own_topic(numbers(builder).filter(lambda k, v: k == "k"))
    numbers(builder, re.compile("to-.*")).map_values(lambda v: v * 10).to("out")


def a_table_whose_topic_records_name(builder: StreamsBuilder) -> None:
    table = builder.table("to-k", value=LONG)
    to_its_own_topic(numbers(builder))
    numbers(builder, "again").join(table, lambda one, other: one * other).to("out")


def a_global_table_whose_topic_records_name(builder: StreamsBuilder) -> None:
    table = builder.global_table("to-k", value=LONG)
    to_its_own_topic(numbers(builder))
    numbers(builder, "again").join(table, lambda one, other: one * other, key_selector=lambda k, v: k).to("out")


@both
@pytest.mark.parametrize(
    "write",
    [a_topic_that_records_name, a_topic_that_matches_a_pattern, what_a_pattern_matches],
)
def test_what_is_written_to_a_topic_comes_back_to_its_source(write: Write, driver: type[TopologyTestDriver]) -> None:
    with opened(write, driver) as running:
        assert made(running) == [("k", 30, 5)]


@pytest.mark.parametrize("write", [a_table_whose_topic_records_name, a_global_table_whose_topic_records_name])
def test_what_is_written_to_a_table_s_topic_is_found_by_a_join(write: Write) -> None:
    with opened(write) as running:
        assert made(running, [*RECORDS, ("again", "k", 10, 20)]) == [("k", 30, 20)]


def test_a_record_comes_back_in_the_partition_in_which_it_was_written() -> None:
    with opened(a_topic_that_records_name, partitions={"in": 2, "to-k": 2}) as running:
        running.create_input_topic("in").pipe_input("k", 3, 5)
        written = running.create_output_topic("to-k").read_records_by_partition()
        assert made(running, []) == [("k", 30, 5)]
    assert sorted(len(records) for records in written.values()) == [0, 1]


class Keep(Processor):
    def process(self, record: Record) -> None:
        self.context.state_store("kept").put(record.key, record.value)


def test_a_global_table_and_a_global_store_that_nothing_joins_are_filled_by_their_own_topology() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.global_table("rows", value=LONG, materialized="rows")
        kept = Stores.in_memory_key_value_store("kept", Serdes.string(), LONG).with_logging(False)
        builder.add_global_store(kept, "to-k", Keep, value=LONG)
        numbers(builder).to("rows")
        to_its_own_topic(numbers(builder))

    with opened(write) as running:
        made(running, out="rows")
        assert [row_of(running, "rows", "j"), row_of(running, "kept", "k"), row_of(running, "kept", "j")] == [
            1,
            3,
            None,
        ]


def test_a_global_table_has_a_row_before_other_topics_have_the_records_that_were_written_with_it() -> None:
    def write(builder: StreamsBuilder) -> None:
        table = builder.global_table("rows", value=LONG)
        numbers(builder).to("again")
        numbers(builder).map_values(lambda v: v + 1).to("rows")
        again = numbers(builder, "again")
        again.join(table, lambda one, other: one * 100 + other, key_selector=lambda k, v: k).to("out")

    with opened(write) as running:
        assert made(running) == [("k", 304, 5), ("j", 102, 9)]


def test_the_application_s_own_topics_match_no_pattern() -> None:
    def write(builder: StreamsBuilder) -> None:
        lines = numbers(builder, re.compile("(?!out).*")).select_key(lambda v: F.lit("all"))
        lines.group_by_key().reduce(lambda one, other: one + other, "sums").to_stream().to("out")

    with opened(write) as running:
        assert made(running) == [("all", 3, 5), ("all", 4, 9)]


def test_sinks_with_other_serdes_that_may_write_one_topic_leave_the_choice_to_the_test() -> None:
    def write(builder: StreamsBuilder) -> None:
        to_its_own_topic(numbers(builder))
        to_its_own_topic(builder.stream("words"))

    with opened(write) as running:
        told = (
            r"Records choose the topic 'to-k', .* different serdes for its values: Serdes\.long\(\) of "
            r"KSTREAM-SINK-0000000001 .*, Serdes\.string\(\) of KSTREAM-SINK-0000000003 .*"
            r"create_output_topic\('to-k', value=\.\.\.\)"
        )
        with pytest.raises(TopologyError, match=told):
            running.create_output_topic("to-k")
        running.create_input_topic("words").pipe_input("k", "abc", 5)
        assert running.create_output_topic("to-k", value=Serdes.string()).read_record().value == "abc"
