"""Records that cannot be read, that a step of Columns fails on, or that cannot be written: in the test driver."""

import re
from dataclasses import dataclass
from time import time as now
from typing import Any

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import (
    DeadLetter,
    ErrorHandlerContext,
    LogAndContinue,
    LogAndFail,
    Processor,
    Record,
    Response,
    Serde,
    Serdes,
    StreamsBuilder,
    TopologyTestDriver,
)
from streamskit.common.errors import TopologyError
from tests.unit.operators.handlers_harness import BYTES, DEAD_LETTERS, LETTERS, LONG, TEXT, failure_of, seen, tell

pytestmark = pytest.mark.spark

KAFKA = "org.apache.kafka.common.errors."
ORDER = Serdes.json("id int")
HERE = r"written at test_error_handlers_in_columns.py line \d+"


def number(value: Column) -> Column:
    return value.cast("long")


# Records that cannot be read.


def copied(builder: StreamsBuilder) -> None:
    builder.stream("in", key=LONG, value=ORDER).to("out")


KEY = [LONG.serialize(key) for key in range(5)]
UNREADABLE = ("in", [
    (KEY[0], b'{"id": 0}', 10), (KEY[1], b"{oops", 11, (("trace", b"t1"), ("span", b"s1"))),
    (b"short", b'{"id": 2}', 12), (KEY[3], None, 13), (KEY[4], b'{"id": 4}', 14),
])  # fmt: skip
READABLE = [(0, {"id": 0}), (3, None), (4, {"id": 4})]
BAD_VALUE = f"{ORDER} cannot read 5 bytes (7b 6f 6f 70 73): "
BAD_KEY = "Serdes.long() cannot read 5 bytes (73 68 6f 72 74): a long is 8 bytes long."


@pytest.mark.parametrize("handler", [None, LogAndFail()], ids=str)
def test_a_record_that_cannot_be_read_fails_with_its_source_topic_and_bytes(handler: Any) -> None:
    bad = ("in", [UNREADABLE[1][0], UNREADABLE[1][1]])
    said = failure_of(copied, bad, key=BYTES, value=BYTES, deserialization_handler=handler)
    assert re.match(rf"KSTREAM-SOURCE-0000000000 \({HERE}\): a record of topic 'in' is not what its serde reads", said)
    assert BAD_VALUE in said
    assert said.endswith("deserialization_handler=LogAndContinue('a-dead-letter-topic').")


def test_a_dead_letter_of_a_record_without_a_time_has_that_of_now() -> None:
    bad = ("in", [(KEY[1], b"{oops", -1)])
    for handler in (DEAD_LETTERS, tell):
        found = seen(copied, bad, key=BYTES, value=BYTES, deserialization_handler=handler)
        (letter,) = found.letters
        assert now() - 60 < letter.timestamp / 1000 < now() + 1


def test_records_that_cannot_be_read_are_counted_and_the_batch_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    found = seen(copied, UNREADABLE, key=BYTES, value=BYTES, deserialization_handler=LogAndContinue())
    assert found.out["out"] == READABLE
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 2}
    assert not found.letters
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "streamskit"]
    assert warning.startswith("'test': KSTREAM-SOURCE-0000000000 went on without 2 records, such as in-0@")


def test_records_that_cannot_be_read_are_kept_as_they_were_in_a_dead_letter_topic() -> None:
    found = seen(copied, UNREADABLE, key=BYTES, value=BYTES, deserialization_handler=DEAD_LETTERS)
    assert found.out["out"] == READABLE
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 2}
    kept = [(letter.key, letter.value, letter.timestamp) for letter in found.letters]
    assert kept == [(KEY[1], b"{oops", 11), (b"short", b'{"id": 2}', 12)]
    written = re.search(HERE, found.stack_traces[1])
    assert written is not None
    at = f"KSTREAM-SOURCE-0000000000 ({written[0]})"
    assert found.stack_traces[1] == f"{KAFKA}SerializationException: the key: {BAD_KEY}\n\tat {at}"
    value, key = found.letter_headers
    assert value.pop("message").startswith(f"the value: {BAD_VALUE}")
    place = {"exception": f"{KAFKA}SerializationException", "topic": "in", "partition": "0"}
    assert value == {"trace": "t1", "span": "s1", "offset": "1", **place}
    assert key == {"message": f"the key: {BAD_KEY}", "offset": "2", **place}


def test_a_handler_of_ones_own_sees_the_bytes_of_a_record_that_cannot_be_read() -> None:
    found = seen(copied, UNREADABLE, key=BYTES, value=BYTES, deserialization_handler=tell)
    assert found.out["out"] == READABLE
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 2}
    value, key = [(letter.value.decode(), letter.headers) for letter in found.letters]
    place = "KSTREAM-SOURCE-0000000000 in-0@{}, {} ms: RawRecord "
    assert value[0].startswith(place.format(1, 11) + f"b'{{oops': the value: {BAD_VALUE}")
    assert value[1] == (("trace", b"t1"), ("span", b"s1"))
    assert key == (place.format(2, 12) + f"""b'{{"id": 2}}': the key: {BAD_KEY}""", ())


def test_a_table_reads_on_and_its_old_value_stays() -> None:
    def table(builder: StreamsBuilder) -> None:
        builder.table("in", value=ORDER, materialized="orders").to_stream().to("out")

    records = [("a", b'{"id": 1}'), ("a", b"{oops"), ("b", b'{"id": 2}')]
    found = seen(table, ("in", records), value=BYTES, deserialization_handler=DEAD_LETTERS)
    assert found.out["out"] == [("a", {"id": 1}), ("b", {"id": 2})]
    assert [(letter.key, letter.value) for letter in found.letters] == [(b"a", b"{oops")]


# Steps of Columns that fail.


@pytest.mark.parametrize(
    ("handler", "letters"),
    [
        (LogAndContinue(), []),
        (DEAD_LETTERS, [(b"b", b"x")]),
        (
            tell,
            [(b"b", b"KSTREAM-MAPVALUES-0000000001 in-0@1, 0 ms: Record 'x': SparkNumberFormatException: "
              b"""[CAST_INVALID_INPUT] The value 'x' of the type "STRING" cannot be cast to "BIGINT" because it is """
              b"malformed. Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate "
              b"malformed input and return NULL instead.")],
        ),
    ],
    ids=["continue", "dead letters", "custom"],
)  # fmt: skip
def test_a_cast_that_fails_costs_that_record_only(handler: Any, letters: list[Any]) -> None:
    found = seen(
        lambda b: b.stream("in").map_values(number).to("out"),
        ("in", [("a", "1"), ("b", "x"), ("c", "3")]),
        processing_handler=handler,
    )
    assert found.out["out"] == [("a", 1), ("c", 3)]
    assert found.dropped == {"KSTREAM-MAPVALUES-0000000001": 1}
    assert [(letter.key, letter.value) for letter in found.letters] == letters


def every_step(builder: StreamsBuilder) -> None:
    """Steps that fail on text that is no number, each on a way of its own."""
    stream = builder.stream("in")
    stream.filter(lambda v: number(v) > 1, name="filter").to("filtered")
    stream.filter_not(lambda v: number(v) > 1, name="filter-not").to("left")
    stream.select_key(lambda k, v: number(v), name="select-key").to("by-number")
    stream.map(lambda k, v: (number(v), k), name="map").to("mapped")
    pairs = stream.flat_map(lambda k, v: F.array(F.struct(k.alias("key"), number(v).alias("value"))), name="flat-map")
    pairs.to("flat")
    parts = stream.flat_map_values(lambda v: F.split(v, ","), name="parts").map_values(number, name="in-parts")
    parts.map_values(lambda v: v + 1).to("parts-out")
    stream.to(lambda k, v: F.when(number(v) > 0, "chosen"), name="choose")


STEPS = ("filtered", "left", "by-number", "mapped", "flat", "parts-out", "chosen")


@pytest.mark.parametrize("handler", [DEAD_LETTERS, tell], ids=["dead letters", "custom"])
def test_each_kind_of_step_drops_what_it_fails_on_and_the_others_go_on(handler: Any) -> None:
    records = [("a", "1"), ("b", "x"), ("c", "2,y,3"), ("d", "4")]
    found = seen(every_step, ("in", records), topics=STEPS, processing_handler=handler)
    assert found.out == {
        "filtered": [("d", "4")],
        "left": [("a", "1")],
        "by-number": [(1, "1"), (4, "4")],
        "mapped": [(1, "a"), (4, "d")],
        "flat": [("a", 1), ("d", 4)],
        "parts-out": [("a", 2), ("c", 3), ("c", 4), ("d", 5)],
        "chosen": [("a", "1"), ("d", "4")],
    }
    whole = ("filter", "filter-not", "select-key", "map", "flat-map", "choose")
    assert found.dropped == dict.fromkeys(whole, 2) | {"in-parts": 2}
    assert len(found.letters) == sum(found.dropped.values())
    assert {letter.key for letter in found.letters} == {b"b", b"c"}


def splits(builder: StreamsBuilder) -> None:
    branches = builder.stream("in").split(name="split-")
    branches.branch(lambda k, v: v == "x", name="odd", chain=lambda branch: branch.to("odd"))
    branches.branch(lambda k, v: number(v) > 1, name="large", chain=lambda branch: branch.to("large"))
    branches.default_branch(name="rest", chain=lambda branch: branch.to("rest"))


def test_a_predicate_is_not_asked_about_a_record_that_an_earlier_branch_took() -> None:
    found = seen(
        splits, ("in", [("a", "1"), ("b", "x"), ("c", "2")]), topics=("odd", "large", "rest"),
        processing_handler=DEAD_LETTERS,
    )  # fmt: skip
    assert found.out == {"odd": [("b", "x")], "large": [("c", "2")], "rest": [("a", "1")]}
    assert found.dropped == {}


def test_a_split_whose_predicate_fails_drops_the_record_once_and_no_branch_gets_it() -> None:
    found = seen(
        splits, ("in", [("a", "1"), ("b", "y")]), topics=("odd", "large", "rest"), processing_handler=DEAD_LETTERS
    )
    assert found.out == {"odd": [], "large": [], "rest": [("a", "1")]}
    assert found.dropped == {"split-": 1}
    assert [(letter.key, letter.value) for letter in found.letters] == [(b"b", b"y")]


def test_a_null_among_the_records_of_a_flat_map_is_an_error_of_that_record() -> None:
    def write(builder: StreamsBuilder) -> None:
        words = builder.stream("in").flat_map(
            lambda k, v: F.transform(F.split(v, " "), lambda word: F.when(word != "x", F.struct(word, k)))
        )
        words.to("out")

    records = ("in", [("k", "a b"), ("k", "c x d"), ("k", "e")])
    said = failure_of(write, records)
    assert said.startswith("KSTREAM-FLATMAP-0000000001 (written at test_error_handlers_in_columns.py line ")
    assert said.endswith("): its array has a null where a struct of key and value belongs. "
                         "Leave it out: F.array_compact(...).")  # fmt: skip
    found = seen(write, records, processing_handler=LogAndContinue())
    assert found.out["out"] == [("a", "k"), ("b", "k"), ("e", "k")]
    assert found.dropped == {"KSTREAM-FLATMAP-0000000001": 1}


def test_a_count_of_spark_itself_counts_what_is_left() -> None:
    def program(builder: StreamsBuilder) -> None:
        values = builder.stream("in", value=LONG).map_values(lambda v: F.lit(12) / v)
        values.group_by_key().count("counts").to_stream().to("out")

    records = [("a", LONG.serialize(3)), ("a", LONG.serialize(0)), ("a", b"short"), ("b", LONG.serialize(4))]
    found = seen(
        program, ("in", records), value=BYTES, deserialization_handler=DEAD_LETTERS, processing_handler=DEAD_LETTERS
    )
    assert dict(found.out["out"]) == {"a": 1, "b": 1}
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 1, "KSTREAM-MAPVALUES-0000000001": 1}
    assert [headers["offset"] for headers in found.letter_headers] == ["1", "2"]


def test_what_follows_an_aggregate_of_columns_fails_for_that_result_only() -> None:
    def program(builder: StreamsBuilder) -> None:
        sums = builder.stream("in", value=LONG).group_by_key().aggregate(lambda v: F.sum(v), "sums")
        sums.to_stream().map_values(lambda v: F.lit(12) / v).to("out")

    found = seen(program, ("in", [("a", 4), ("b", 0)]), processing_handler=tell)
    assert found.out["out"] == [("a", 3.0)]
    (letter,) = found.letters
    assert letter.value.startswith(b"KSTREAM-MAPVALUES-0000000003 None--1@-1, 0 ms: Record 0: ")


def test_a_row_that_is_deleted_is_no_question_for_a_mapper() -> None:
    def program(builder: StreamsBuilder) -> None:
        rows = builder.table("in").map_values(lambda v: F.coalesce(v, F.lit("none")).cast("long"))
        rows.to_stream().to("out")

    found = seen(program, ("in", [("a", "1"), ("a", None)]), processing_handler=DEAD_LETTERS)
    assert found.out["out"][-1] == ("a", None)
    assert found.dropped == {}


def halve(value: int) -> tuple[int, int]:
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value // 2, value


def test_a_python_function_in_a_column_costs_the_records_that_it_fails_on_only() -> None:
    halved, plus_one = F.udf(halve, "struct<half long, whole long>"), F.udf(lambda value: value + 1, "long")

    def program(builder: StreamsBuilder) -> None:
        numbers = builder.stream("in").filter(lambda v: F.length(v) == 1, name="short")
        halves = numbers.map_values(lambda v: halved(plus_one(number(v)) - 1), name="halve")
        halves.select_key(lambda k, v: F.when(v.whole != 2, halved(v.half).half), name="quarter").to("out")

    records = [("a", "8"), ("b", "3"), ("c", "x"), ("d", "2"), ("e", "long"), ("f", "6")]
    found = seen(program, ("in", records), processing_handler=tell)
    assert found.out["out"] == [(2, {"half": 4, "whole": 8}), (None, {"half": 1, "whole": 2})]
    assert found.dropped == {"halve": 2, "quarter": 1}
    odd, letter, quarter = sorted((letter.value or b"").decode() for letter in found.letters)
    assert odd == "halve in-0@1, 0 ms: Record '3': ValueError: 3 is odd"
    assert letter.startswith("halve in-0@2, 0 ms: Record 'x': SparkNumberFormatException: ")
    assert quarter == "quarter in-0@5, 0 ms: Record {'half': 3, 'whole': 6}: ValueError: 3 is odd"


def test_a_python_function_that_is_called_for_batches_fails_the_query_and_says_where_such_work_belongs() -> None:
    parsed = F.pandas_udf(lambda texts: texts.astype(int), "long")  # type: ignore[call-overload]
    said = failure_of(
        lambda b: b.stream("in").map_values(lambda v: parsed(v)).to("out"), ("in", [("a", "x")]),
        processing_handler=LogAndContinue(),
    )  # fmt: skip
    assert "ValueError: invalid literal for int()" in said
    assert said.endswith("(F.pandas_udf): use F.udf, or do that work in a Processor, with process().")


@pytest.mark.parametrize("handler", [LogAndContinue(), tell], ids=["continue", "custom"])
def test_with_a_handler_a_value_that_no_step_reads_is_read_all_the_same(handler: Any) -> None:
    def program(builder: StreamsBuilder) -> None:
        builder.stream("in", value=ORDER).group_by_key().count("counts").to_stream().to("out")

    records = [("a", b'{"id": 1}'), ("a", b"{oops"), ("a", b'{"id": 2}')]
    found = seen(program, *(("in", [each]) for each in records), value=BYTES, deserialization_handler=handler)
    assert found.out["out"] == [("a", 1), ("a", 2)]
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 1}


def everything(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
    """Go on, and write all that the handler was told into a dead letter."""
    return Response.resume(DeadLetter(LETTERS, None, repr((context, record)).encode()))


class Dated(Processor):
    """Gives records another time and headers."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_timestamp(record.timestamp + 5).with_headers((("h", b"2"),)))


def test_handlers_are_told_what_the_node_was_given_beside_the_source_record() -> None:
    def program(builder: StreamsBuilder) -> None:
        upper = builder.stream("in").map_values(lambda v: F.upper(v)).process(Dated, name="dated")
        upper.map_values(number, name="parse").to("out")
        upper.map_values(lambda v: F.lower(v)).to("served", value=Picky(), name="serve")
        numbers = upper.filter(lambda v: v == "POISON").group_by_key(name="again")
        numbers.reduce(lambda one, other: one // other, "reduced", name="reduce").to_stream().to("out-2")

    headers = (("h", b"1"),)
    records = [("a", "1", 10), ("b", "poison", 20, headers), ("b", "poison", 21)]
    found = seen(program, ("in", records), processing_handler=everything, production_handler=everything)
    place = "topic='in', partition=0, offset={}, timestamp={}, headers=(('h', b'2'),), source_raw_key=b'b', "
    place += "source_raw_value=b'poison', task_id='0_0')"
    told = sorted((letter.value or b"").decode() for letter in found.letters)
    expected = []
    for offset, time in ((1, 25), (2, 26)):
        where, when = place.format(offset, time), f"timestamp={time}, headers=(('h', b'2'),))"
        expected += [
            f"(ErrorHandlerContext(processor_node_id='parse', {where}, Record(key='b', value='POISON', {when})",
            f"(ErrorHandlerContext(processor_node_id='serve', {where}, "
            f"ProducerRecord(topic='served', key='b', value='poison', {when})",
        ]
    reduced = "topic='test-again-repartition', partition=0, offset=1, timestamp=26, headers=(('h', b'2'),), "
    reduced += "source_raw_key=b'b', source_raw_value=b'POISON', task_id='1_0')"
    expected.append(
        f"(ErrorHandlerContext(processor_node_id='reduce', {reduced}, "
        "Record(key='b', value='POISON', timestamp=26, headers=(('h', b'2'),)))"
    )
    assert told == sorted(expected)


# Records that cannot be written.


@dataclass(frozen=True)
class Picky(Serde):
    """A text serde that refuses to write 'poison'."""

    @property
    def data_type(self) -> Any:
        return TEXT.data_type

    def serialize(self, value: str | None) -> bytes | None:
        if value == "poison":
            raise self.cannot_write(value, "that would be unhealthy")
        return TEXT.serialize(value)

    def deserialize(self, data: bytes | None) -> str | None:
        return TEXT.deserialize(data)


POISON = ("in", [("a", "wine"), ("b", "poison"), ("c", "water")])
REFUSED = "Picky() cannot write 'poison': that would be unhealthy."


def served(builder: StreamsBuilder) -> None:
    builder.stream("in").to("out", value=Picky())


def test_a_value_that_cannot_be_written_fails_with_the_sink_and_the_serdes_words() -> None:
    said = failure_of(served, POISON)
    assert re.match(rf"KSTREAM-SINK-0000000001 \({HERE}\): a record is not what its serde writes. ", said)
    assert REFUSED in said


@pytest.mark.parametrize(
    ("handler", "letters"),
    [
        (LogAndContinue(), []),
        (DEAD_LETTERS, [(b"b", b"poison")]),
        (tell, [(b"b", f"KSTREAM-SINK-0000000001 in-0@1, 0 ms: ProducerRecord 'poison': {REFUSED}".encode())]),
    ],
    ids=["continue", "dead letters", "custom"],
)
def test_a_value_that_cannot_be_written_costs_that_record_only(handler: Any, letters: list[Any]) -> None:
    found = seen(served, POISON, production_handler=handler)
    assert found.out["out"] == [("a", "wine"), ("c", "water")]
    assert found.dropped == {"KSTREAM-SINK-0000000001": 1}
    assert [(letter.key, letter.value) for letter in found.letters] == letters


def repartitioned(builder: StreamsBuilder) -> None:
    stream = builder.stream("in").select_key(lambda key, value: value).repartition("by-value", key=Picky())
    stream.to("out", key=TEXT)


def grouped(builder: StreamsBuilder) -> None:
    groups = builder.table("in").group_by(lambda key, value: (F.lit("all"), value), value=Picky())
    groups.reduce(lambda total, value: total + value, lambda total, value: total, "joined").to_stream().to("out")


@pytest.mark.parametrize(
    ("program", "out"),
    [(repartitioned, [("wine", "wine"), ("water", "water")]), (grouped, [("all", "wine"), ("all", "winewater")])],
)
@pytest.mark.parametrize("handler", [LogAndContinue(), DEAD_LETTERS], ids=["continue", "dead letters"])
def test_a_record_that_a_repartition_topic_cannot_take_costs_that_record_only(
    program: Any, out: list[Any], handler: Any
) -> None:
    found = seen(program, POISON, production_handler=handler)
    assert found.out["out"] == out
    assert sum(found.dropped.values()) == 1
    assert [letter.value for letter in found.letters] == [b"poison"] * (handler == DEAD_LETTERS)


LARGE = ("in", [("a", "x"), ("b", "y" * 1_100_000), ("c", "z")])


def test_a_record_that_is_too_large_to_write_leaves_a_dead_letter_without_its_value() -> None:
    found = seen(lambda b: b.stream("in").to("out"), LARGE, production_handler=DEAD_LETTERS)
    assert [key for key, _ in found.out["out"]] == ["a", "c"]
    (letter,), (headers,) = found.letters, found.letter_headers
    assert (letter.key, letter.value) == (b"b", None)
    assert headers["exception"] == f"{KAFKA}RecordTooLargeException"
    assert headers["message"].startswith("a record of 1100001 bytes for topic out is larger than the 1048576 that a ")
    assert headers["__streamskit.value.left.out"] == "1100000 bytes"


def test_an_error_that_quotes_a_large_record_is_cut_short() -> None:
    found = seen(lambda b: b.stream("in").map_values(number).to("out"), LARGE, processing_handler=DEAD_LETTERS)
    assert [len(headers["message"]) < 1_001 for headers in found.letter_headers] == [True] * 3
    assert found.letters[1].value is None


def chosen(builder: StreamsBuilder) -> None:
    builder.stream("in").to(lambda k, v: F.when(v != "nowhere", v))


NOWHERE = ("in", [("a", "out"), ("b", "nowhere"), ("c", "out")])


@pytest.mark.parametrize("processing", [None, LogAndContinue()], ids=str)
def test_a_record_for_no_topic_fails_with_a_sentence_whatever_the_other_handlers_are(processing: Any) -> None:
    said = failure_of(chosen, NOWHERE, processing_handler=processing)
    assert re.match(rf"KSTREAM-SINK-0000000001 \({HERE}\): the function that chooses a record's topic chose none", said)


def test_a_record_for_no_topic_is_kept_aside() -> None:
    found = seen(chosen, NOWHERE, production_handler=DEAD_LETTERS)
    assert found.out["out"] == [("a", "out"), ("c", "out")]
    assert [(letter.key, letter.value) for letter in found.letters] == [(b"b", b"nowhere")]
    assert found.letter_headers[0]["exception"] == f"{KAFKA}InvalidTopicException"


# Handlers that do not do their part.


def careless(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
    raise LookupError("which record?")


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (careless, "the error handler itself raised LookupError: which record?. It was asked about: Spark"),
        (lambda context, record, exception: None, "the error handler returned None, and has to return Response.resume"),
        (lambda context, record, exception: Response.fail(), "The handler said that the application has to fail."),
    ],
    ids=["raises", "returns nothing", "says fail"],
)
def test_a_handler_that_does_not_continue_fails_the_query_at_the_node(handler: Any, said: str) -> None:
    program = lambda b: b.stream("in").map_values(number).to("out")  # noqa: E731
    failure = failure_of(program, ("in", [("a", "x")]), processing_handler=handler)
    assert re.match(rf"KSTREAM-MAPVALUES-0000000001 \({HERE}\): ", failure)
    assert said in failure
    assert "The value 'x'" in failure


def test_a_class_in_place_of_a_handler_is_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with pytest.raises(TopologyError, match=r"processing_handler is <class .*LogAndContinue'>; give LogAnd"):
        TopologyTestDriver(builder.build(), processing_handler=LogAndContinue)  # type: ignore[arg-type]
