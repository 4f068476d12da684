"""Aggregates that keep versions, and aggregates whose store has given up the time that a record is for."""

from typing import Any

import pytest

from streamskit.api.windows import SessionWindows, SlidingWindows
from streamskit.operators import (
    OUT_OF_ORDER,
    AggregateOperator,
    CountOperator,
    SessionAggregateOperator,
    SlidingWindowAggregateOperator,
    TableAggregateOperator,
)
from streamskit.serdes import LONG
from tests.unit.operators.operator_harness import STRING, Harness, long, record, text


def made(task: Harness, *records: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return key, value, old value, time and note of what a task makes of records of (key, value, time, old)."""
    outputs = [output for each in records for output in task.give(0, 0, record(*each))]
    return [(each.key, each.value, each.old, each.timestamp, each.other) for each in outputs]


def test_a_count_with_versions_drops_what_is_older_than_its_history_and_passes_nothing_on() -> None:
    task = Harness([CountOperator("n", history=100)])
    assert made(task, (b"a", b"", 1000), (b"b", b"", 0)) == [(b"a", long(1), long(0), 1000, None)]
    assert task.dropped == 1
    assert made(task, (b"b", b"", 900)) == [(b"b", long(1), long(0), 900, None)]


def concatenation() -> AggregateOperator:
    """Return an aggregate of values one after the other, which the value "x" deletes."""
    add = (lambda key, value, total: None if value == "x" else total + value,)
    return AggregateOperator("all", STRING, (STRING,), STRING, lambda: "", add, history=100)


def test_a_value_older_than_the_deletion_of_its_aggregate_is_kept_as_history_and_said_to_be_out_of_order() -> None:
    task = Harness([concatenation()])
    made(task, (b"k", b"a", 10), (b"k", b"x", 50))
    assert made(task, (b"k", b"b", 20)) == [(b"k", b"b", b"", 20, OUT_OF_ORDER)]
    assert made(task, (b"k", b"c", 60)) == [(b"k", b"c", b"", 60, None)]


def test_an_aggregate_with_versions_has_no_cache() -> None:
    task = Harness([concatenation()], cache=True)
    assert [row[1] for row in made(task, (b"k", b"a", 1), (b"k", b"b", 2))] == [b"a", b"ab"]
    together = Harness([concatenation()], cache=True)
    outputs = together.give_all(0, 0, [record(b"k", b"a", 1), record(b"k", b"b", 2)])
    assert [output.value for output in outputs] == [b"a", b"ab"]


def test_a_grouped_table_whose_aggregate_has_versions_drops_what_is_older_than_their_history() -> None:
    def add(key: str, value: str, count: int) -> int:
        return count + 1

    fold = TableAggregateOperator("n", STRING, STRING, LONG, lambda: 0, add, lambda key, value, n: n - 1, history=100)
    task = Harness([fold])
    assert made(task, (b"a", b"x", 1000), (b"b", b"y", 0)) == [(b"a", long(1), None, 1000, None)]
    assert task.dropped == 1
    assert made(task, (b"a", b"z", 950, b"x")) == [(b"a", long(1), long(1), 1000, None)]


def joined(key: str, one: str, other: str) -> str:
    return one + other


@pytest.mark.parametrize("kind", ["sessions", "sliding windows"])
def test_a_stream_of_a_cogroup_that_is_far_behind_the_other_drops_what_the_store_has_no_segment_for(kind: str) -> None:
    add = (lambda key, value, total: total + value, lambda key, value, total: total + value)
    serdes = STRING, (STRING, STRING), STRING, lambda: "", add
    task = Harness(
        [SessionAggregateOperator("c", *serdes, SessionWindows(gap=5, grace=10), 20, merger=joined)]
        if kind == "sessions"
        else [SlidingWindowAggregateOperator("c", *serdes, SlidingWindows(time_difference=5, grace=10), 20)]
    )
    task.give(0, 0, record(b"k", b"a", 200_000))
    # It goes on all the same, as in Kafka Streams, whose store counts a record that it does not keep.
    assert [text(output.value) for output in task.give(0, 1, record(b"k", b"b", 100_000))] == ["b"]
    assert task.dropped == 1
    assert [text(output.value) for output in task.give(0, 1, record(b"k", b"c", 199_990))] == ["c"]
    assert task.dropped == 1
