"""Behind a table: which record a step is told that an update comes of, when a cache or a punctuation passes it on."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    BufferConfig,
    FixedKeyProcessor,
    FixedKeyRecord,
    KStream,
    LogAndContinue,
    Materialized,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    Suppressed,
    TopologyTestDriver,
)
from streamskit.operators.record_cache import ENTRY_BYTES
from tests.driver_in_micro_batches import DriverInMicroBatches

pytestmark = pytest.mark.spark

in_both_modes = pytest.mark.parametrize("driver", [TopologyTestDriver, DriverInMicroBatches])

RECORDS = [(key, value, time, (("was", value.encode()),)) for key, value, time in (
    ("a", "1", 10), ("b", "2", 20), ("a", "3", 130), ("c", "4", 40),
)]  # fmt: skip
"""Piped together: key "a" has two updates, which a cache merges."""


class Source(Processor):
    """Adds to each value which record it comes of."""

    def process(self, record: Record) -> None:
        source = self.context.record_metadata()
        self.context.forward(record.with_value(f"{record.value} of {source.topic}@{source.offset}"))


class SourceAndTicks(Source):
    """Also forwards the time, every 100 ms of stream time."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)

    def tick(self, now: int) -> None:
        self.context.forward(Record("tick", f"at {now}", now))


class Refuse(Processor):
    def process(self, record: Record) -> None:
        raise ValueError(f"{record.key} is refused")


def texts(builder: StreamsBuilder, before: Any = None) -> KStream:
    """All values of each key, one behind the other; a processor may come before that."""
    values = builder.stream("in") if before is None else builder.stream("in").process_values(before)
    return values.group_by_key().reduce(lambda text, value: text + value, "texts").to_stream()


def run(driver: Any, stream: Any, records: list[tuple[Any, ...]] = RECORDS, **options: Any) -> list[tuple[str, str]]:
    """Return the keys and values that a stream, made with a builder, makes of records that are piped together."""
    builder = StreamsBuilder()
    stream(builder).to("out")
    with driver(builder.build(), **options) as opened:
        opened.create_input_topic("in").pipe_records(records)
        return [record[:2] for record in opened.create_output_topic("out").read_records_to_list()]


@in_both_modes
def test_a_processor_behind_a_cache_is_told_of_the_record_that_made_each_update(driver: Any) -> None:
    made = run(driver, lambda builder: texts(builder).process(Source), cache=True)
    assert made == [("b", "2 of in@1"), ("a", "13 of in@2"), ("c", "4 of in@3")]


@in_both_modes
def test_what_a_full_cache_passes_on_comes_before_what_is_due_by_the_record_that_filled_it(driver: Any) -> None:
    made = run(driver, lambda builder: texts(builder).process(SourceAndTicks), [("a", "1", 10), ("b", "2", 250)],
               cache=True, statestore_cache_max_bytes=ENTRY_BYTES + 20)  # fmt: skip
    assert made == [("tick", "at 10"), ("a", "1 of in@0"), ("b", "2 of in@1"), ("tick", "at 250")]


@in_both_modes
def test_what_is_due_by_stream_time_comes_before_the_updates_of_a_commit(driver: Any) -> None:
    made = run(driver, lambda builder: texts(builder).process(SourceAndTicks), cache=True)
    assert made == [
        ("tick", "at 10"), ("tick", "at 130"), ("b", "2 of in@1"), ("a", "13 of in@2"), ("c", "4 of in@3"),
    ]  # fmt: skip


@in_both_modes
def test_each_cached_update_that_a_processor_fails_on_leaves_the_record_that_made_it_as_a_dead_letter(
    driver: Any,
) -> None:
    builder = StreamsBuilder()
    texts(builder).process(Refuse).to("out")
    with driver(builder.build(), cache=True, processing_handler=LogAndContinue("letters")) as opened:
        opened.create_input_topic("in").pipe_records(RECORDS)
        letters = opened.dead_letters("letters").read_records_to_list()
    told = [(letter.key, letter.value, dict(letter.headers)) for letter in letters]
    assert [(key, value, headers["was"], headers["__streams.errors.offset"]) for key, value, headers in told] == [
        (b"b", b"2", b"2", b"1"), (b"a", b"3", b"3", b"2"), (b"c", b"4", b"4", b"3"),
    ]  # fmt: skip


@in_both_modes
def test_the_record_and_stream_time_reach_a_processor_through_any_number_of_steps_with_state(driver: Any) -> None:
    def joined(builder: StreamsBuilder) -> KStream:
        table = builder.stream("in").group_by_key().reduce(lambda text, value: text + value, "texts")
        both = builder.stream("in").join(table, lambda value, text: F.concat(value, F.lit(" in "), text))
        return both.process(SourceAndTicks)

    assert run(driver, joined) == [
        ("a", "1 in 1 of in@0"), ("tick", "at 10"), ("b", "2 in 2 of in@1"),
        ("a", "3 in 13 of in@2"), ("tick", "at 130"), ("c", "4 in 4 of in@3"),
    ]  # fmt: skip


class Late(FixedKeyProcessor):
    """Holds each record back until the next punctuation, every 100 ms of stream time."""

    held: FixedKeyRecord | None = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)

    def tick(self, now: int) -> None:
        if self.held is not None:
            self.context.forward(self.held)

    def process(self, record: FixedKeyRecord) -> None:
        self.held = record


@in_both_modes
@pytest.mark.parametrize(("cache", "values"), [(False, ["1 of None@-1", "13 of None@-1"]), (True, ["13 of None@-1"])])
def test_behind_a_table_too_what_a_punctuation_forwards_comes_of_no_record(
    driver: Any, cache: bool, values: list[str]
) -> None:
    made = run(driver, lambda builder: texts(builder, Late).process(Source), cache=cache)
    assert made == [("a", value) for value in values]


@in_both_modes
def test_an_update_that_suppress_has_held_back_comes_of_the_record_that_made_it(driver: Any) -> None:
    builder = StreamsBuilder()
    table = builder.stream("in").group_by_key().reduce(lambda text, value: text + value, "texts")
    held_back = table.suppress(Suppressed.until_time_limit("50 ms", BufferConfig.unbounded()))
    held_back.to_stream().process(Source).to("out")
    with driver(builder.build()) as opened:
        for record in RECORDS:  # each in a micro-batch of its own, so that the buffer is kept in between
            opened.create_input_topic("in").pipe_input(*record)
        made = [record[:2] for record in opened.create_output_topic("out").read_records_to_list()]
    assert made == [("a", "13 of in@2"), ("b", "2 of in@1"), ("c", "4 of in@3")]


@in_both_modes
def test_a_record_that_a_join_with_grace_has_held_back_comes_of_itself(driver: Any) -> None:
    builder = StreamsBuilder()
    rows = builder.table("rows", materialized=Materialized.versioned("rows", "1 minute"))
    joined = builder.stream("in").left_join(rows, lambda value, row: value, grace="50 ms")
    joined.process(Source).to("out")
    joined.process(Refuse)
    with driver(builder.build(), processing_handler=LogAndContinue("letters")) as opened:
        for record in RECORDS:  # each in a micro-batch of its own, so that the buffer is kept in between
            opened.create_input_topic("in").pipe_input(*record)
        made = [record[:2] for record in opened.create_output_topic("out").read_records_to_list()]
        letters = opened.dead_letters("letters").read_records_to_list()
    assert made == [("a", "1 of in@0"), ("b", "2 of in@1"), ("c", "4 of in@3")]
    assert [(letter.key, letter.value) for letter in letters] == [(b"a", b"1"), (b"b", b"2"), (b"c", b"4")]
