"""A failing query tells a learner which step failed, on which line of the program, and why."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from traceback import format_exc
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    BufferConfig,
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    TimestampExtractor,
    TopologyTestDriver,
)
from streamskit.dsl.grouped_stream import KGroupedStream
from streamskit.operators import OperatorRecord, PageStore, StreamTask
from streamskit.operators.aggregate import AggregateOperator
from streamskit.operators.error_handling import attribute_failure, read_attribution
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.runtime.failures import explain, python_error
from streamskit.serdes import Serde

TEXT, LONG = Serdes.string(), Serdes.long()
HERE = "test_failures.py"


def failure_of(write: Callable[[StreamsBuilder], Any], *records: tuple[Any, ...], topic: str = "in") -> str:
    """Return the sentence with which a program fails on records."""
    builder = StreamsBuilder()
    write(builder)
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(StreamsError) as failed:
        driver.create_input_topic(topic).pipe_records(list(records))
    return str(failed.value)


def grouped(builder: StreamsBuilder, topic: str = "in", value: Serde = LONG) -> KGroupedStream:
    return builder.stream(topic, value=value).group_by_key()


def line_of(function: Callable[..., Any], after: int = 0) -> str:
    return f"{HERE} line {function.__code__.co_firstlineno + after}"


# What a learner's function does wrong.


def divided(total: int, value: int) -> float:
    return total / (value - 3)


PRICES: dict[int, int] = {}


def looked_up(value: int) -> int:
    return PRICES[value]


def plus(key: str, value: int, total: int) -> int:
    return total + value


@pytest.mark.spark
def test_a_failing_reducer_is_named_with_its_line_and_pythons_words() -> None:
    said = failure_of(lambda b: grouped(b).reduce(divided).to_stream().to("out"), ("a", 1), ("a", 3))
    assert said.startswith(f"KSTREAM-REDUCE-0000000002 (written at {HERE} line ")
    assert said.endswith(
        f") failed on a record, at {line_of(divided, 1)}, `return total / (value - 3)`: "
        "ZeroDivisionError: division by zero"
    )


@pytest.mark.spark
def test_a_failure_in_a_function_that_an_aggregator_calls_names_the_line_in_there() -> None:
    def add(key: str, value: int, total: int) -> int:
        return total + looked_up(value)

    said = failure_of(lambda b: grouped(b).aggregate(lambda: 0, add, value=LONG), ("a", 7))
    assert said.startswith("KSTREAM-AGGREGATE-0000000002 (")
    assert f"at {line_of(looked_up, 1)}, " in said
    assert said.endswith(": KeyError: 7")


@pytest.mark.spark
def test_of_the_streams_of_a_cogroup_the_one_that_failed_is_named() -> None:
    def refuse(key: str, value: int, total: int) -> int:
        raise ValueError(f"no {value} here")

    def write(builder: StreamsBuilder) -> None:
        one, two = grouped(builder, "one"), grouped(builder, "two")
        one.cogroup(plus).cogroup(two, refuse).aggregate(lambda: 0, value=LONG, name="both")

    said = failure_of(write, ("a", 5), topic="two")
    assert said.startswith("both-cogroup-agg-1 (")
    assert f"at {line_of(refuse, 1)}, " in said
    assert said.endswith(": ValueError: no 5 here")


@pytest.mark.spark
def test_a_subtractor_that_fails_is_named_though_it_is_wrapped() -> None:
    def take_out(total: int, value: int) -> int:
        return total // 0

    def write(builder: StreamsBuilder) -> None:
        rows = builder.table("in", value=LONG).group_by(lambda k, v: (F.lit("all"), v))
        rows.reduce(lambda total, value: total + value, take_out, "totals")

    said = failure_of(write, ("a", 1), ("a", 2))
    assert said.startswith("KTABLE-REDUCE-")
    assert f"at {line_of(take_out, 1)}, `return total // 0`: ZeroDivisionError: " in said


@pytest.mark.spark
def test_a_failing_user_defined_function_is_found_in_the_step_that_calls_it() -> None:
    halves = F.udf(lambda value: 1 / (value - 3), "double")
    said = failure_of(lambda b: b.stream("in", value=LONG).map_values(lambda v: halves(v)).to("out"), ("a", 3))
    assert f"{HERE} line " in said
    assert "`halves = F.udf(" in said
    assert said.endswith("ZeroDivisionError: division by zero")


@pytest.mark.spark
def test_a_failing_peek_is_named_with_its_line() -> None:
    def look(key: str, value: int) -> None:
        print(1 / (value - 3))

    said = failure_of(lambda b: b.stream("in", value=LONG).peek(look).to("out"), ("a", 3))
    assert said.startswith(f"KSTREAM-PEEK-0000000001 (written at {HERE} line ")
    assert f") failed on a record, at {line_of(look, 1)}, `print(1 / (value - 3))`: ZeroDivisionError: " in said


# What a serde cannot write or read.


@pytest.mark.spark
def test_a_result_that_its_serde_cannot_write_is_shown_with_the_serde() -> None:
    said = failure_of(lambda b: grouped(b).reduce(lambda total, value: "text"), ("a", 1), ("a", 2))
    assert said.startswith(f"KSTREAM-REDUCE-0000000002 (written at {HERE} line ")
    assert (
        "): its function returned 'text', which Serdes.long() cannot write. Serdes.long() cannot write 'text'" in said
    )


class KeepsText(Processor):
    def process(self, record: Record) -> None:
        self.context.state_store("last").put(record.key, "text")


class ChangesItsRecord(Processor):
    def process(self, record: Record) -> None:
        record.value = 3  # type: ignore[misc]


@pytest.mark.spark
def test_a_value_that_a_store_cannot_keep_is_shown_with_the_store() -> None:
    last = Stores.persistent_key_value_store("last", TEXT, LONG)
    said = failure_of(lambda b: b.stream("in", value=LONG).process(KeepsText, [last]), ("a", 1))
    assert "): it gives 'text' to store 'last', which Serdes.long() cannot write. Serdes.long() cannot" in said
    assert said.endswith("or declare it with serdes that fit.")


@pytest.mark.spark
def test_a_record_that_is_changed_in_place_is_told_how_another_is_made() -> None:
    said = failure_of(lambda b: b.stream("in", value=LONG).process(ChangesItsRecord).to("out", value=LONG), ("a", 1))
    assert "a record cannot be changed, as others may have it, too: record.with_value(...) makes another one." in said


@pytest.mark.parametrize(
    ("result", "serde", "shown"),
    [
        (5, TEXT, ("5", "Serdes.string()")),
        ({1}, Serdes.json("array<int>"), ("{1}", "Serdes.json('array<int>')")),
        (2**40, Serdes.integer(), ("1099511627776", "Serdes.integer()")),
    ],
)
def test_each_serde_that_cannot_write_a_result_is_noted_with_it(
    result: Any, serde: Serde, shown: tuple[str, str]
) -> None:
    fold = AggregateOperator("sums", TEXT, (LONG,), serde, lambda: None, (lambda key, value, total: result,))
    with pytest.raises((AttributeError, TypeError, ValueError)) as failed:
        StreamTask([fold], Pages()).process(0, 0, OperatorRecord(b"a", LONG.serialize(1), None, None, 0, None))
    found = read_attribution("\n".join(failed.value.__notes__))
    assert found is not None
    assert (found.value, found.serde, found.verb) == (*shown, "write")


@pytest.mark.spark
def test_an_aggregate_from_before_that_the_serde_cannot_read_is_shown_with_the_serde() -> None:
    builder = StreamsBuilder()
    grouped(builder, value=Serdes.string()).reduce(lambda one, other: other)
    topology = builder.build()
    written, read = (AggregateOperator("KSTREAM-REDUCE-0000000002", TEXT, (TEXT,), serde, None, (plus,))
                     for serde in (TEXT, Serdes.json("n int")))  # fmt: skip
    stage = StreamTask([written, read], Pages())
    stage.process(0, 0, OperatorRecord(b"a", b"{n:", None, None, 0, None))
    try:
        stage.process(1, 0, OperatorRecord(b"a", b"x", None, None, 0, None))
    except ValueError:
        said = str(explain(RuntimeError(format_exc()), plan(topology, "test", QueryOptions(test=True))[0]))
    assert said.startswith(f"KSTREAM-REDUCE-0000000002 (written at {HERE} line ")
    assert "a record or the state from before holds b'{n:', which Serdes.json('n int') cannot read." in said
    assert "Serdes.json('n int') cannot read 3 bytes (7b 6e 3a): it is not JSON" in said
    assert said.endswith("Fix the producer, or read with the serde it was written with.")


# What a task operator refuses.


@pytest.mark.spark
def test_a_full_buffer_says_its_own_sentence_once() -> None:
    held = Suppressed.until_time_limit("1 hour", BufferConfig.max_records(1).shut_down_when_full())
    said = failure_of(lambda b: b.table("in", value=LONG).suppress(held).to_stream().to("out"), ("a", 1), ("b", 1))
    assert said.startswith("KTABLE-SUPPRESS-0000000003 (written at ")
    assert "): the buffer of suppress() is full, with 2 records where 1 may be. " in said
    assert said.count("KTABLE-SUPPRESS") == 1
    assert said.endswith("emit_early_when_full().")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("extractor", "told"),
    [
        (None, "a record of topic in has the timestamp -7, which is not a valid time. "),
        (TimestampExtractor.fail_on_invalid(), "a record of topic in has the timestamp -7, which is not a valid"),
        (TimestampExtractor.use_partition_time_on_invalid(), "a record has the timestamp -7 and its partition has no "),
    ],
)
def test_an_invalid_timestamp_is_told_at_its_source(extractor: TimestampExtractor | None, told: str) -> None:
    said = failure_of(lambda b: b.stream("in", value=LONG, timestamps=extractor).to("out"), ("a", 1, -7))
    assert said.startswith(f"KSTREAM-SOURCE-0000000000 (written at {HERE} line ")
    assert f"): {told}" in said
    assert said.count("KSTREAM-SOURCE") == 1


@pytest.mark.spark
def test_a_record_that_is_no_json_is_told_at_the_source_that_reads_json() -> None:
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=Serdes.json("n int")).map_values(lambda v: v.n.cast("string"))
    builder.stream("texts").merge(trades).group_by_key().count()
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(StreamsError) as failed:
        driver.create_input_topic("trades", value=Serdes.string()).pipe_input("a", "{n:")
    assert str(failed.value).startswith("KSTREAM-SOURCE-0000000000 (written at ")
    said = "a record of topic 'trades' is not what its serde reads. Serdes.json('n int') cannot read "
    assert said in str(failed.value)


@pytest.mark.spark
def test_a_topic_that_records_choose_is_no_hindrance_to_a_good_error() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in", value=LONG).map_values(lambda v: F.lit(1) / (v - 3)).to(lambda k, v: k)

    said = failure_of(write, ("a", 3))
    assert said.startswith("KSTREAM-MAPVALUES-0000000001 (written at ")
    assert "DIVIDE_BY_ZERO" in said


@pytest.mark.spark
def test_a_worker_that_is_gone_without_an_error_is_told_with_what_may_have_ended_it() -> None:
    said = failure_of(lambda b: grouped(b).reduce(lambda one, other: os._exit(3)), ("a", 1), ("a", 2))
    assert said.startswith("Sub-topology 0 of '")
    assert "(KSTREAM-SOURCE-0000000000, KSTREAM-REDUCE-0000000002) lost a Python worker, which ended without" in said
    assert "Give the machine or container more memory" in said


@pytest.mark.spark
def test_a_number_in_brackets_is_not_taken_for_the_sentence_to_tell() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    plans = plan(builder.build(), "test", QueryOptions(test=True))
    said = str(explain(RuntimeError("Job aborted\n+- LocalTableScan [0] key#3\nCaused by: a.b.BadError: no"), plans[0]))
    assert said.endswith("failed: a.b.BadError: no")


def test_an_overflow_for_which_spark_names_no_line_is_blamed_on_the_steps_with_functions() -> None:
    def write(builder: StreamsBuilder) -> None:
        grouped(builder).aggregate(lambda v: F.sum(v)).to_stream().to("out", value=LONG)

    said = failure_of(write, ("a", 2**63 - 1), ("a", 1))
    assert said.startswith(f"KSTREAM-AGGREGATE-0000000002 (written at {line_of(write, 1)}) failed on a record: ")
    assert "[ARITHMETIC_OVERFLOW] overflow. Use 'try_add'" in said


def test_what_cannot_be_cast_is_not_blamed_on_a_topic_of_the_same_name() -> None:
    def write(builder: StreamsBuilder) -> None:
        dates = builder.stream("in").map_values(lambda v: F.to_date(v).cast("string"))
        dates.filter(lambda v: v != "").to("value")

    said = failure_of(write, ("a", "x"))
    first = f"KSTREAM-MAPVALUES-0000000001 (written at {line_of(write, 1)})"
    second = f"KSTREAM-FILTER-0000000002 (written at {line_of(write, 2)})"
    assert said.startswith(f"{first} or {second} failed on a record: [CAST_INVALID_INPUT] The value 'x' of the type ")


LOGICAL_PLAN = "+- Project [key#1, '{}' AS topic#2]"
TOO_LARGE = "org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000089 bytes when serialized."


def test_a_record_too_large_for_a_topic_that_kafka_does_not_name_is_blamed_on_no_sink() -> None:
    builder = StreamsBuilder()
    grouped(builder).count("counts").to_stream().to("out", value=LONG)
    (counted,) = plan(builder.build(), "app", QueryOptions())
    text = f"Job aborted\nCaused by: {TOO_LARGE}\n{LOGICAL_PLAN.format('out')}"
    said = str(explain(RuntimeError(text), counted))
    assert said.startswith("Sub-topology 0 of 'app' (")
    assert "a record could not be written to topic 'app-counts-changelog' or 'out': org.apache.kafka" in said


def test_a_value_that_has_grown_too_large_is_told_with_the_setting_and_without_sparks_words() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    (copied,) = plan(builder.build(), "app", QueryOptions())
    said = f"{TOO_LARGE[:-1]} which is larger than 1048576, which is the value of the max.request.size configuration."
    text = f"[STREAM_FAILED] Query [id = 1] terminated with exception: Lost task 0.0 (executor driver): {said}\nmore"
    told = str(explain(RuntimeError(text), copied))
    assert "topic 'out': org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000089 bytes" in told
    assert "raise max_request_size of the application" in told
    assert "Query [id" not in told


def test_a_query_that_is_not_let_in_any_more_says_why_without_sparks_words() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    (copied,) = plan(builder.build(), "app", QueryOptions())
    text = "[STREAM_FAILED] org.apache.kafka.common.errors.SaslAuthenticationException: wrong password SQLSTATE: XXKST"
    said = str(explain(RuntimeError(f"{text}\nmore"), copied))
    assert "does not let it in any more (wrong password). Give it client settings that hold now" in said


def test_a_topic_that_kafkas_producer_names_is_found_with_its_sink() -> None:
    builder = StreamsBuilder()
    records = builder.stream("in")
    records.to("out")
    records.to("out-of-it")
    (copied,) = plan(builder.build(), "app", QueryOptions())
    missing = "org.apache.kafka.common.errors.TimeoutException: Topic out-of-it not present in metadata after 60000 ms."
    said = str(explain(RuntimeError(f"{missing}\n{LOGICAL_PLAN.format('out')}"), copied))
    assert said.startswith("KSTREAM-SINK-0000000002 (written at ")
    assert "a record could not be written to topic 'out-of-it'" in said


def test_a_topic_that_a_record_chose_and_that_is_not_there_is_told_at_its_sink() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to(lambda k, v: k)
    (copied,) = plan(builder.build(), "app", QueryOptions())
    missing = (
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "This server does not host this topic-partition."
    )
    text = f"[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\nCaused by: {missing}\nmore"
    said = str(explain(RuntimeError(text), copied))
    assert said.startswith("KSTREAM-SINK-0000000001 (written at ")
    assert f"chosen one that is not there ({missing}). Create the topic" in said
    assert "production_handler=LogAndContinue" in said


@pytest.mark.parametrize("before", ["", "NotWritten: a record could not be written to topic 'nope': "])
def test_a_topic_that_a_record_chose_is_named_where_kafkas_producer_has_looked_for_it_in_vain(before: str) -> None:
    builder = StreamsBuilder()
    records = builder.stream("in")
    records.to("out")
    records.to(lambda k, v: k)
    (copied,) = plan(builder.build(), "app", QueryOptions())
    late = "org.apache.kafka.common.errors.TimeoutException: Topic nope not present in metadata after 60000 ms."
    last = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic."
    text = f"[STREAM_FAILED] Query [id = 1] failed: Job aborted\nCaused by: {before}{late}\nCaused by: {last}\nmore"
    said = str(explain(RuntimeError(text), copied))
    assert said.startswith("KSTREAM-SINK-0000000002 (written at ")
    assert f"has chosen 'nope', and there is no topic of that name ({late}). Create the topic" in said


def test_a_topic_that_a_record_chose_is_named_as_our_sink_names_it() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to(lambda k, v: k)
    (copied,) = plan(builder.build(), "app", QueryOptions())
    missing = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: There is no topic 'nope', and none"
    text = f"[STREAM_FAILED] Query [id = 1] failed: Job aborted\nCaused by: {missing} has come in 5 s.\nmore"
    said = str(explain(RuntimeError(text), copied))
    assert f"has chosen 'nope', and there is no topic of that name ({missing} has come in 5 s.). Create the" in said


def test_a_record_that_a_topic_does_not_take_in_time_is_told_with_the_topic_and_what_to_look_at() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out-of-it")
    (copied,) = plan(builder.build(), "app", QueryOptions())
    expired = "org.apache.kafka.common.errors.TimeoutException: Expiring 1 record(s) for out-of-it-0:120001 ms"
    text = f"[STREAM_FAILED] Query [id = 1] terminated with exception: Lost task 0.0 (executor driver): {expired}\nmore"
    said = str(explain(RuntimeError(text), copied))
    assert said.startswith("KSTREAM-SINK-0000000001 (written at ")
    assert "a record could not be written to topic 'out-of-it': Expiring 1 record(s)" in said
    assert "Was the topic deleted" in said
    assert "Query [id" not in said


# How the two ends of it work.


class Pages(PageStore):
    """State in memory."""

    def load(self, page: str) -> bytes | None:
        return None

    def load_all(self) -> Iterable[tuple[str, bytes]]:
        return ()

    def save(self, page: str, data: bytes | None) -> None:
        raise AssertionError(f"{page} is not to be saved after a failure")


def test_an_operator_that_fails_is_noted_on_the_exception_itself() -> None:
    fold = AggregateOperator("both", TEXT, (LONG, LONG), LONG, None, (plus, lambda key, value, total: total["x"]))
    stage = StreamTask([fold], Pages())
    stage.process(0, 0, OperatorRecord(b"a", LONG.serialize(1), None, None, 0, None))
    with pytest.raises(TypeError) as failed:
        stage.process(0, 1, OperatorRecord(b"a", LONG.serialize(1), None, None, 0, None))
    found = read_attribution("\n".join(failed.value.__notes__))
    assert found is not None
    assert (found.operator, found.side, found.verb) == ("both", 1, "")


def test_a_value_too_long_to_show_is_cut() -> None:
    with pytest.raises(ValueError, match="is not a long") as failed:
        LONG.serialize("x" * 500)
    attribute_failure(failed.value, "counts", 0)
    found = read_attribution("\n".join(failed.value.__notes__))
    assert found is not None
    assert found.value == "'" + "x" * 79 + "…"
    assert (found.serde, found.verb) == ("Serdes.long()", "write")


def test_of_several_tracebacks_the_last_exception_is_the_one_to_tell() -> None:
    error = python_error(
        "[PYTHON_EXCEPTION] An exception was thrown:\n"
        "Traceback (most recent call last):\n"
        '  File "/home/ada/app.py", line 3, in add\n    one()\n'
        "KeyError: 'a'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/home/ada/app.py", line 5, in add\n    two()\n'
        "app.Refused: not today\n SQLSTATE: 38000"
    )
    assert error is not None
    assert str(error) == "Refused: not today"
    assert [str(line) for line in error.lines] == ["app.py line 5"]


def test_a_message_without_a_traceback_has_no_python_error() -> None:
    assert python_error("[DIVIDE_BY_ZERO] Division by zero.") is None


def test_an_aggregate_of_columns_that_remembers_something_else_now_is_told_with_the_way_back() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.double()).group_by_key().aggregate(lambda v: F.stddev(v), "deviations")
    text = (
        "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match existing state value schema.\n"
        "existing value_schema StructType(StructField(sum,DoubleType,true),StructField(count,LongType,true))"
    )
    (planned,) = plan(builder.build(), "test", QueryOptions())
    said = str(explain(RuntimeError(text), planned, Path("folder/test/0")))
    assert said.startswith(
        "'test' cannot go on with what is kept in folder/test/0: an aggregate of Columns in sub-topology 0 has changed"
    )
    assert "Write the aggregate as it was; or begin anew with this one: clean_up()" in said
