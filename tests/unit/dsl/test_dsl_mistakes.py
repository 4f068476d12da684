"""What a beginner writes by mistake is told when the step is written, with its name, its place and what to write."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    BufferConfig,
    JoinWindows,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamPartitioner,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
    UnlimitedWindows,
)
from streamskit.dsl.materialized import EmitStrategy
from streamskit.serdes import StringSerde

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

JOIN = JoinWindows.of_time_difference_with_no_grace("10 seconds")
TUMBLING = TimeWindows.of_size_with_no_grace("5 seconds")
SESSIONS = SessionWindows.of_inactivity_gap_with_no_grace("5 seconds")
SLIDING = SlidingWindows.of_time_difference_with_no_grace("5 seconds")
NO_SERDE: Any = int
TRADE = Serdes.json("symbol string, price double, items array<string>")

Step = Callable[[Any], Any]


def stream(builder: StreamsBuilder) -> Any:
    return builder.stream("trades", value=TRADE)


def grouped(builder: StreamsBuilder) -> Any:
    return stream(builder).group_by_key()


def table(builder: StreamsBuilder) -> Any:
    return builder.table("customers", value=TRADE)


def numbers(builder: StreamsBuilder) -> Any:
    return builder.stream("numbers", key=Serdes.long())


def concat(one: Any, other: Any) -> Any:
    return F.concat(F.to_json(one), F.to_json(other))


class ToTheFirst(StreamPartitioner):
    def partitions(self, topic: str, key: Any, value: Any, num_partitions: int) -> int:
        return 0


def refused(step: Step, told: str) -> None:
    with pytest.raises(TopologyError, match=told):
        step(StreamsBuilder())


STREAM_MISTAKES: dict[str, tuple[Step, str]] = {
    "a value where a function is due": (
        lambda b: stream(b).filter(F.lit(True)),
        r"filter \(KSTREAM-FILTER-0000000001\) at test_dsl_mistakes\.py line \d+: give a function .*lambda k, v",
    ),
    "too many arguments": (
        lambda b: stream(b).map_values(lambda k, v, t: v),
        r"map_values .*takes 3 arguments; write lambda v: \.\.\. or lambda k, v: \.\.\.",
    ),
    "no arguments": (lambda b: stream(b).map_values(lambda: F.lit(1)), r"takes no argument; write lambda v"),
    "a filter that makes no truth": (lambda b: stream(b).filter_not(lambda v: v.price), "filter_not .*true or false"),
    "a map that makes one Column": (lambda b: stream(b).map(lambda k, v: v), "map .*must return two Columns"),
    "a flat_map_values that makes no array": (
        lambda b: stream(b).flat_map_values(lambda v: v.symbol),
        r"flat_map_values .*has to return an array, but returns a string: F\.split",
    ),
    "a flat_map that makes no pairs": (
        lambda b: stream(b).flat_map(lambda v: v.items),
        "flat_map .*structs with two fields, key and value, but returns an array of string",
    ),
    "an action that takes one argument": (
        lambda b: stream(b).peek(lambda v: None),
        r"peek .*the action is called with 2 arguments, as plain Python values.*lambda key, value",
    ),
    "a mapper to print that takes one argument": (
        lambda b: stream(b).print(mapper=lambda v: v),
        r"print .*the mapper is called with 2 arguments, as plain Python values.*lambda key, value",
    ),
    "a file to print to in a folder that does not exist": (
        lambda b: stream(b).print(file="no such folder/trades.txt"),
        r"print \(KSTREAM-PRINTER-0000000001\) at test_dsl_mistakes\.py line \d+: .*No such file .*Give a file",
    ),
    "a topic that is no text": (
        lambda b: stream(b).to(lambda v: v.price),
        "has to return the topic's name, but returns a double",
    ),
    "a merge of other values": (lambda b: stream(b).merge(b.stream("b")), "merge .*the value here is symbol string"),
    "a merge with a table": (lambda b: stream(b).merge(table(b)), "only a stream can be merged in, not a KTable"),
    "a chain that returns no stream": (
        lambda b: stream(b).split("x-").branch(lambda v: v.price > 0, "hi", chain=lambda branch: 5),
        r"branch \(x-hi\) at test_dsl_mistakes\.py line \d+: chain= returned 5\. Return the stream",
    ),
    "a chain that returns several streams": (
        lambda b: stream(b).split().default_branch(chain=lambda branch: [branch]),
        "chain= returned .*Return the stream",
    ),
    "a function where a branch has its name": (
        lambda b: stream(b).split("x-").branch(lambda v: v.price > 0, lambda branch: branch.to("dear")),
        r"branch \(x-\) at test_dsl_mistakes\.py line \d+: a branch's name has to be a text, .* is chain=",
    ),
    "a branch by its own name alone": (
        lambda b: stream(b).split("x-").branch(lambda v: v.price > 0, "hi").no_default_branch()["hi"],
        "There is no branch 'hi'; there are: 'x-hi'.*begins with that of the split",
    ),
    "a branch of a split without an end": (
        lambda b: stream(b).split("x-").branch(lambda v: v.price > 0, "hi")["x-hi"],
        "The split 'x-' is not at its end.*return the branches by name",
    ),
    "a branch that makes no truth": (lambda b: stream(b).split().branch(lambda v: v.symbol), "branch .*true or false"),
    "a name that cannot be part of a topic": (
        lambda b: stream(b).filter(lambda v: v.price > 0, name="my filter"),
        "'my filter' cannot be a name",
    ),
    "a store's name that cannot be part of a topic": (
        lambda b: b.table("t", materialized="my store"),
        "'my store' cannot be a name",
    ),
    "a repartition topic's name that cannot be one": (
        lambda b: stream(b).select_key(lambda v: v.symbol).group_by_key("by symbol").count(),
        "'by symbol' cannot be a name",
    ),
    "a name given twice": (
        lambda b: stream(b).filter(lambda v: v.price > 0, name="f").filter(lambda v: v.price > 1, name="f"),
        r"Two steps are named 'f': the first is at test_dsl_mistakes\.py line \d+",
    ),
    "a name given to two sources": (
        lambda b: [b.stream("in", name="source"), b.stream("other", name="source")],
        r"Two steps are named 'source': the first is at test_dsl_mistakes\.py line \d+, the second at",
    ),
    "a name that the source of a table has": (
        lambda b: [b.table("in", name="rows"), b.stream("other", name="rows-source")],
        "Two steps are named 'rows-source'",
    ),
    "a time that is no number": (
        lambda b: b.stream("in", value=TRADE, timestamps=lambda v: v.symbol),
        r"timestamps= .*milliseconds since 1970.*returns a string.*F\.unix_millis",
    ),
    "a repartition with another serde": (lambda b: stream(b).repartition(value=Serdes.long()), "the value is symbol"),
    "texts that are added": (
        lambda b: stream(b).map_values(lambda v: v.symbol + "!"),
        r"map_values .*`\+` adds numbers only, where a Column is text: write F\.concat\(a, b\)",
    ),
    "the name of a serde": (
        lambda b: b.stream("in", value="string"),
        r"KSTREAM-SOURCE-0000000000 at test_dsl_mistakes\.py line \d+: value= must be a serde, .*not 'string'",
    ),
    "the name of a serde, beside a time": (
        lambda b: b.stream("in", value="string", timestamps=lambda v: v.time),
        r"timestamps= .*value= must be a serde",
    ),
    "a serde that is not called": (
        lambda b: stream(b).to("out", value=Serdes.string),
        r"to\('out'\) .*value= is the function Serdes\.string itself; call it: Serdes\.string\(\)\.",
    ),
    "a serde that is not called, and needs to be told more": (
        lambda b: b.table("in", value=Serdes.json),
        r"value= is the function Serdes\.json itself; call it: Serdes\.json\(\.\.\.\)\.",
    ),
    "the class of a serde": (
        lambda b: stream(b).repartition(key=StringSerde),
        r"repartition .*key= is the class StringSerde; give an object of it: StringSerde\(\)\.",
    ),
    "a Python type for a store's serde": (
        lambda b: Stores.persistent_key_value_store("counts", Serdes.string(), NO_SERDE),
        "Store 'counts': the serde of its values must be a serde.*not <class 'int'>",
    ),
    "a Python type for a table's serde": (
        lambda b: Materialized("counts", value=NO_SERDE),
        r"Materialized\('counts'\): value= must be a serde",
    ),
    "a list of nothing that is a serde": (
        lambda b: Serdes.list(NO_SERDE),
        r"Serdes\.list\(\): the serde of the entries must",
    ),
    "a partitioner that takes the key alone": (
        lambda b: stream(b).to("out", partitioner=lambda key: 0),
        r"to\('out'\) .*the partitioner is called with 4 arguments, .*lambda topic, key, value, num_partitions: \.\.\.",
    ),
    "partitioners of a join by the same key": (
        lambda b: table(b).join(b.table("others", value=TRADE), concat, partitioner=ToTheFirst()),
        r"join .*partitioners are for a join by a foreign key, .*to_stream\(\)\.repartition\(",
    ),
    "the class of a partitioner": (
        lambda b: stream(b).repartition(partitioner=ToTheFirst),
        r"repartition .*the partitioner is the class ToTheFirst; give an object of it: ToTheFirst\(\.\.\.\)",
    ),
    "a number for a partitioner": (
        lambda b: stream(b).to("out", partitioner=3),
        r"the partitioner has to be a Python function, lambda topic, .*, and is a int",
    ),
}

AGGREGATION_MISTAKES: dict[str, tuple[Step, str]] = {
    "a Column function that is no aggregate": (lambda b: grouped(b).aggregate(lambda v: v.price), "aggregate"),
    "no aggregator": (lambda b: grouped(b).aggregate(lambda: 0), "takes no argument"),
    "no serde": (
        lambda b: grouped(b).aggregate(lambda: 0, lambda key, value, aggregate: 1),
        "say which serde writes the aggregates",
    ),
    "an aggregator of two arguments": (
        lambda b: grouped(b).aggregate(lambda: 0, lambda value, aggregate: 1, value=Serdes.long()),
        r"the aggregator is called with 3 arguments.*lambda key, value, aggregate.*takes \(value, aggregate\)",
    ),
    "a reducer of one argument": (
        lambda b: grouped(b).reduce(lambda v: v),
        r"reduce \(KSTREAM-REDUCE-0000000002\) .*lambda aggregate, value: \.\.\.",
    ),
    "a Column for a reducer": (lambda b: grouped(b).reduce(F.lit(1)), "reducer has to be a Python function"),
    "sessions without a merger": (
        lambda b: grouped(b).windowed_by(SESSIONS).aggregate(lambda: 0, lambda k, v, a: 1, value=Serdes.long()),
        "sessions need a merger=",
    ),
    "a merger without sessions": (
        lambda b: grouped(b).aggregate(lambda: 0, lambda k, v, a: 1, merger=lambda k, a, b: a, value=Serdes.long()),
        "only session windows are merged and need a merger",
    ),
    "Spark's functions in sessions": (
        lambda b: grouped(b).windowed_by(SESSIONS).aggregate(lambda v: F.count("*")),
        r"cannot run in sessions or sliding windows. Write Python functions: aggregate\(lambda: 0",
    ),
    "Spark's functions in sliding windows": (
        lambda b: grouped(b).windowed_by(SLIDING).aggregate(lambda v: F.count("*")),
        "cannot run in sessions or sliding windows",
    ),
    "Spark's functions in an unlimited window": (
        lambda b: grouped(b).windowed_by(UnlimitedWindows.of()).aggregate(lambda v: F.count("*")),
        "cannot run in unlimited windows. Write Python functions",
    ),
    "Spark's functions sent at the close": (
        lambda b: (
            grouped(b)
            .windowed_by(TUMBLING)
            .emit_strategy(EmitStrategy.on_window_close())
            .aggregate(lambda v: F.count("*"))
        ),
        r"cannot run with EmitStrategy\.on_window_close\(\)",
    ),
    "windows of joins": (lambda b: grouped(b).windowed_by(JOIN), "give TimeWindows.*JoinWindows are for joins"),
    "two fields of one name": (
        lambda b: b.stream("in").map_values(lambda v: F.array(F.struct(v.alias("a"), F.upper(v).alias("a")))),
        r"map_values \(.*two fields called 'a', of which one would be lost: give each a name of its own",
    ),
    "two fields of one name in a key": (
        lambda b: b.stream("in").map(lambda v: (F.struct(v.alias("a"), v.alias("a")), v)),
        "two fields called 'a'",
    ),
    "two fields of one name in a value of several": (
        lambda b: b.stream("in").flat_map(lambda v: F.array(F.struct(v, F.struct(v.alias("a"), v.alias("a"))))),
        "two fields called 'a'",
    ),
    "a map by structs": (
        lambda b: b.stream("in").map_values(lambda v: F.create_map(F.struct(v), v)),
        r"a map with keys of type struct<.*>, which JSON cannot hold: make them text, F\.to_json\(key\)",
    ),
    "sliding windows without a length": (
        lambda b: grouped(b).windowed_by(SlidingWindows.of_time_difference_with_no_grace(0)),
        r"begin and end at the same time, .* refuses at the first record. Give 1 ms or more",
    ),
    "a text for windows": (lambda b: grouped(b).windowed_by("5 seconds"), "not '5 seconds'"),
    "a text for an emit strategy": (
        lambda b: grouped(b).windowed_by(TUMBLING).emit_strategy("on close"),
        r"give EmitStrategy\.on_window_close\(\)",
    ),
    "results on close of a window that never closes": (
        lambda b: grouped(b).windowed_by(UnlimitedWindows.of()).emit_strategy(EmitStrategy.on_window_close()),
        "an unlimited window never closes, so nothing would come out",
    ),
    "a count that is no long": (
        lambda b: grouped(b).count(Materialized("n", value=Serdes.string())),
        "the count is bigint, and the serde given writes string",
    ),
    "versions of windows": (
        lambda b: grouped(b).windowed_by(TUMBLING).count(Materialized.versioned("v", "1 hour")),
        "a windowed table keeps a row for each window, not versions",
    ),
    "a stream in a cogroup": (
        lambda b: grouped(b).cogroup(lambda k, v, a: a).cogroup(stream(b), lambda k, v, a: a),
        r"give a grouped stream, such as sales\.group_by_key\(\), not a KStream",
    ),
    "a cogroup of other keys": (
        lambda b: grouped(b).cogroup(lambda k, v, a: a).cogroup(numbers(b).group_by_key(), lambda k, v, a: a),
        "need the same type, and are string .* and bigint",
    ),
}

JOIN_MISTAKES: dict[str, tuple[Step, str]] = {
    "two streams without a window": (
        lambda b: stream(b).join(b.stream("b"), concat),
        r"two streams are joined within a window of time; add JoinWindows",
    ),
    "two streams with windows of an aggregation": (
        lambda b: stream(b).join(b.stream("b"), concat, TUMBLING),
        "two streams are joined within a window of time",
    ),
    "two streams by a foreign key": (
        lambda b: stream(b).join(b.stream("b"), concat, JOIN, key_selector=lambda k, v: v.symbol),
        "a join with a stream has no key_selector=",
    ),
    "a table with a window": (lambda b: stream(b).join(table(b), concat, JOIN), "a join with a table has no windows="),
    "a table, outer": (lambda b: stream(b).outer_join(table(b), concat), "only two streams, or two tables"),
    "a topic's name": (lambda b: stream(b).join("customers", concat), "not with a str"),
    "a global table without a key": (
        lambda b: stream(b).join(b.global_table("g"), concat),
        r"say which key to look up in the global table: key_selector=lambda",
    ),
    "a global table in Java's order": (
        lambda b: stream(b).left_join(b.global_table("g"), lambda k, v: k, concat),
        r"takes the joiner second, and the key to look up by its name: left_join\(table, .*key_selector=lambda",
    ),
    "a global table by a number": (
        lambda b: stream(b).join(b.global_table("g"), concat, key_selector=lambda v: v.price),
        "key_selector makes a double, and the keys of the global table are string",
    ),
    "other keys": (
        lambda b: stream(b).join(numbers(b), concat, JOIN),
        "the keys are string here and bigint in KSTREAM-SOURCE-0000000001.* select_key",
    ),
    "a joiner of one value": (
        lambda b: stream(b).join(table(b), lambda v: v),
        r"write lambda left, right: \.\.\. or lambda k, left, right",
    ),
    "a joiner with a mistake": (
        lambda b: stream(b).join(table(b), lambda trade, row: row.town),
        "there is no field 'town' in right; it has: symbol string",
    ),
    "grace without versions": (
        lambda b: stream(b).join(table(b), concat, grace="1 second"),
        r"has to keep versions: builder\.table\(..., materialized=Materialized\.versioned",
    ),
    "grace longer than the versions are kept": (
        lambda b: stream(b).join(
            b.table("t", materialized=Materialized.versioned("v", "1 second")), lambda v, row: row, grace="2 seconds"
        ),
        "grace of 2000 ms is longer than the table keeps old versions",
    ),
    "a table with a stream": (lambda b: table(b).join(stream(b), concat), r"write stream\.join\(table, joiner\)"),
    "a foreign key of another type": (
        lambda b: table(b).join(b.table("t"), concat, foreign_key=lambda v: v.price),
        "foreign_key makes a double, and the keys of KTABLE-SOURCE-0000000005 are string",
    ),
}

TABLE_MISTAKES: dict[str, tuple[Step, str]] = {
    "a group of one Column": (lambda b: table(b).group_by(lambda k, v: v.symbol), "must return two Columns"),
    "a subtractor of one argument": (
        lambda b: table(b).group_by(lambda k, v: (v.symbol, v)).reduce(lambda a, v: a, lambda v: v),
        "the subtractor is called with 2 arguments",
    ),
    "an aggregate without a serde": (
        lambda b: (
            table(b).group_by(lambda k, v: (v.symbol, v)).aggregate(lambda: 0, lambda k, v, a: a, lambda k, v, a: a)
        ),
        "say which serde writes the aggregates",
    ),
    "no windows that close": (
        lambda b: table(b).suppress(Suppressed.until_window_closes()),
        r"no windows that could close.*Suppressed\.until_time_limit",
    ),
    "windows counted by another key that close": (
        lambda b: (
            table(b)
            .to_stream()
            .group_by_key()
            .windowed_by(TimeWindows.of_size_with_no_grace(10))
            .count()
            .group_by(lambda k, v: (F.lit("all"), v))
            .count()
            .suppress(Suppressed.until_window_closes())
        ),
        "rows have no windows that could close.*keep the windowed keys",
    ),
    "a text to suppress": (lambda b: table(b).suppress("5 seconds"), r"give Suppressed\.until_window_closes\(\)"),
    "versions suppressed": (
        lambda b: b.table("t", materialized=Materialized.versioned("v", "1 hour")).suppress(
            Suppressed.until_time_limit("1 second")
        ),
        "a versioned table cannot be suppressed",
    ),
    "a versioned global table": (
        lambda b: b.global_table("g", materialized=Materialized.versioned("v", "1 hour")),
        "a global table cannot be versioned",
    ),
}


@pytest.mark.parametrize("mistake", STREAM_MISTAKES)
def test_a_mistake_in_a_stream_is_told(mistake: str) -> None:
    refused(*STREAM_MISTAKES[mistake])


@pytest.mark.parametrize("mistake", AGGREGATION_MISTAKES)
def test_a_mistake_in_an_aggregation_is_told(mistake: str) -> None:
    refused(*AGGREGATION_MISTAKES[mistake])


@pytest.mark.parametrize("mistake", JOIN_MISTAKES)
def test_a_mistake_in_a_join_is_told(mistake: str) -> None:
    refused(*JOIN_MISTAKES[mistake])


@pytest.mark.parametrize("mistake", TABLE_MISTAKES)
def test_a_mistake_in_a_table_is_told(mistake: str) -> None:
    refused(*TABLE_MISTAKES[mistake])


def test_a_final_result_cannot_be_sent_early() -> None:
    for early in (BufferConfig.max_records(2).emit_early_when_full(), BufferConfig.max_bytes(2)):
        with pytest.raises(ValueError, match=r"promises one final result.*add \.shut_down_when_full\(\)"):
            Suppressed.until_window_closes(early)
    strict = BufferConfig.max_bytes(2).shut_down_when_full().with_max_records(3)
    assert Suppressed.until_window_closes(strict).buffer == BufferConfig(records=3, bytes=2, emit_early=False)


def test_a_buffer_with_a_limit_emits_early_unless_it_is_told_to_stop() -> None:
    bare, unlimited = BufferConfig.max_records(2), BufferConfig.unbounded()
    assert bare == bare.emit_early_when_full() != bare.shut_down_when_full()
    assert bare.with_max_bytes(9) == BufferConfig.max_bytes(9).with_max_records(2)
    assert unlimited.with_max_records(2) == bare.shut_down_when_full()
