"""Spark's own aggregations where a handler keeps failed records aside: two queries read one source, and one tells."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import LogAndContinue, Response, StreamsBuilder, TimeWindows
from streamskit.api.error_handlers import Handlers
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from tests.unit.operators.handlers_harness import BYTES, DEAD_LETTERS, LONG, seen, tell

pytestmark = pytest.mark.spark


def go_on(context: Any, record: Any, exception: Exception) -> Response:
    return Response.resume()


def sums(builder: StreamsBuilder) -> None:
    quotients = builder.stream("in", value=LONG).map_values(lambda v: F.lit(12) / v, name="divide")
    quotients.group_by_key().aggregate(lambda v: F.sum(v), "sums").to_stream().to("out")


def plans_of(**handlers: Any) -> list[Plan]:
    builder = StreamsBuilder()
    sums(builder)
    return plan(builder.build(), "app", QueryOptions(handlers=Handlers(**handlers)))


@pytest.mark.parametrize("kind", ["deserialization", "processing"])
def test_an_aggregation_reads_its_source_itself_and_another_query_tells_of_what_fails(kind: str) -> None:
    native, rest = plans_of(**{kind: DEAD_LETTERS})
    assert (native.topics, rest.topics) == (["in"], ["in"])
    assert not native.handovers
    assert not rest.handovers
    assert (native.tells_failures, rest.tells_failures) == (False, True)


def test_a_function_is_asked_once_about_a_record_and_what_it_leaves_is_handed_over() -> None:
    native, rest = plans_of(processing=go_on)
    assert native.topics == list(rest.handovers.values()) == ["app-divide-handover"]


def test_records_that_are_skipped_without_a_dead_letter_need_no_second_query() -> None:
    (native,) = plans_of(deserialization=LogAndContinue())
    assert native.tells_failures


def test_a_failed_record_leaves_one_dead_letter_however_many_aggregations_read_its_source() -> None:
    def program(builder: StreamsBuilder) -> None:
        values = builder.stream("in", value=LONG).map_values(lambda v: F.lit(12) / v, name="divide")
        grouped = values.filter(lambda v: v > 0, name="positive").group_by_key()
        grouped.aggregate(lambda v: F.sum(v), "sums").to_stream().to("out")
        grouped.windowed_by(TimeWindows.of_size_with_no_grace("1 second")).aggregate(lambda v: F.max(v), "most")
        grouped.count("counts").to_stream().to("counted")

    records = [("a", LONG.serialize(number)) for number in (3, 0, 4, -1)] + [("b", b"short"), ("b", LONG.serialize(12))]
    found = seen(
        program, ("in", records), topics=("out", "counted"), value=BYTES, deserialization_handler=DEAD_LETTERS,
        processing_handler=DEAD_LETTERS,
    )  # fmt: skip
    assert {topic: dict(records) for topic, records in found.out.items()} == {
        "out": {"a": 7.0, "b": 1.0},
        "counted": {"a": 2, "b": 1},
    }
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 1, "divide": 1}
    assert [headers["offset"] for headers in found.letter_headers] == ["1", "4"]


def test_a_skipped_record_counts_once_where_two_queries_read_it() -> None:
    def program(builder: StreamsBuilder) -> None:
        values = builder.stream("in", value=LONG)
        values.group_by_key().aggregate(lambda v: F.sum(v), "sums").to_stream().to("out")
        values.map_values(lambda v: v + 1).to("more")

    records = [("a", LONG.serialize(3)), ("a", b"short"), ("a", LONG.serialize(4))]
    found = seen(
        program, ("in", records), topics=("out", "more"), value=BYTES, deserialization_handler=LogAndContinue()
    )
    assert (found.out["out"][-1], found.out["more"]) == (("a", 7), [("a", 4), ("a", 5)])
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 1}


@pytest.mark.parametrize("handler", [DEAD_LETTERS, tell], ids=["dead letters", "custom"])
def test_an_array_of_which_the_making_fails_adds_nothing_to_an_aggregation(handler: Any) -> None:
    def program(builder: StreamsBuilder) -> None:
        parts = builder.stream("in").flat_map_values(lambda v: F.transform(F.split(v, ","), lambda p: p.cast("long")))
        parts.group_by_key().aggregate(lambda v: F.sum(v), "sums").to_stream().to("out")

    found = seen(program, ("in", [("a", "1,2"), ("a", "3,x"), ("a", "4")]), processing_handler=handler)
    assert found.out["out"][-1] == ("a", 7)
    assert found.dropped == {"KSTREAM-FLATMAPVALUES-0000000001": 1}
    assert len(found.letters) == 1


def test_a_query_that_is_there_for_failures_writes_nothing_where_none_can_happen() -> None:
    def program(builder: StreamsBuilder) -> None:
        every = builder.stream("in", value=LONG).filter(lambda v: F.lit(True))
        every.group_by_key().aggregate(lambda v: F.sum(v), "sums").to_stream().to("out")

    found = seen(program, ("in", [("a", 3), ("a", 4)]), processing_handler=DEAD_LETTERS)
    assert found.out["out"][-1] == ("a", 7)
    assert (found.letters, found.dropped) == ([], {})
