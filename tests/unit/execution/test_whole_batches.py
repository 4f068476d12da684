"""Operators that take whole Arrow batches give what they give record by record: the same rows, in the same order."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit.api.error_handlers import Handlers, LogAndContinue
from streamskit.execution.arrow_batches import table_of
from streamskit.execution.row_format import BEGIN, FINISHED, NAMES, OTHER, PORT, SIDES, Row
from streamskit.execution.row_format import KEY as KEY_OF
from streamskit.execution.stage_rows import StageInputs
from streamskit.execution.task_processor import TaskProcessor
from streamskit.operators import Operator, StreamTableJoinOperator
from streamskit.operators.paged_state import MemoryPages
from streamskit.planning.options import QueryOptions
from tests.unit.execution.packed_rows import pack, rows_of

TASK = 7


class RowByRow(StreamTableJoinOperator):
    """A join that takes one record after the other."""

    @property
    def takes_batches(self) -> bool:
        return False


def packed(rows: Sequence[Row], size: int) -> Iterator[bytes]:
    """Yield rows as Spark hands them over, so many in an Arrow batch."""
    for start in range(0, len(rows), size):
        yield pack(rows[start : start + size])


def run(
    operators: Sequence[Operator], micro_batches: Sequence[Sequence[Row]], size: int, inputs: StageInputs,
    options: QueryOptions | None = None,
) -> tuple[list[Row], dict[str, Any]]:  # fmt: skip
    """Return the rows that a stage makes of micro-batches, and the rows that its tables have then."""
    state, made = MemoryPages(), []
    for rows in micro_batches:
        processor = TaskProcessor(operators, range(3, 3 + len(operators)), inputs, options or QueryOptions())
        for results in processor.process(state, TASK, 0, packed(rows, size)):
            made += rows_of(table_of(results), NAMES)
    joins = [StreamTableJoinOperator(operator.name, left=False) for operator in operators]
    look_up = [
        (port, None, key, b"?", None, None, None, 0, None, TASK, -1, number, 0)
        for number, (port, key) in enumerate((port, key) for port in (300, 400) for key in KEYS)
    ]
    processor = TaskProcessor(joins, range(3, 3 + len(joins)), one_origin(len(joins)), QueryOptions())
    kept = [
        (row[PORT], row[KEY_OF], row[OTHER])
        for results in processor.process(state, TASK, 0, packed(look_up, 100))
        for row in rows_of(table_of(results), NAMES)
        if row[PORT] > 0
    ]
    return made, {"rows": kept}


def one_origin(operators: int) -> StageInputs:
    return StageInputs(ports(operators), single=True, tasks=(TASK,))


def ports(operators: int) -> dict[int, tuple[int, int]]:
    """Return which port leads where, of operators with the numbers 3 and so on."""
    return {(3 + place) * SIDES + side: (place, side) for place in range(operators) for side in range(SIDES)}


KEYS = [b"a", b"b", b"c", b"d", b""]
KEY, VALUE = st.none() | st.sampled_from(KEYS), st.none() | st.binary(max_size=2)
HEADERS = st.none() | st.lists(st.fixed_dictionaries({"key": st.just("h"), "value": VALUE}), max_size=2)
PORTS = st.sampled_from([300, 301, 300, 301, 400, 401, 500, BEGIN, FINISHED])
RECORDS = st.lists(
    st.tuples(
        PORTS, st.none() | st.just("out"), KEY, VALUE, VALUE, KEY, VALUE, st.integers(0, 9), HEADERS,
        st.integers(1, 3), st.integers(0, 2),
    ),
    max_size=30,
)  # fmt: skip
BATCHES = st.lists(RECORDS.filter(bool), min_size=1, max_size=3)


def as_rows(records: Sequence[tuple[Any, ...]], *, single: bool) -> list[Row]:
    """Return records as the rows of a task: each topic in order, the topics one after the other."""
    rows = []
    for number, (*fields, origin, steps) in enumerate(records):
        rows += [(*fields, TASK, -1 if single else origin, number, step) for step in range(steps + 1)]
    return rows if single else sorted(rows, key=lambda row: row[10])


@settings(max_examples=60)
@given(BATCHES, st.integers(1, 12), st.booleans(), st.sets(st.integers(1, 3)), st.booleans(), st.booleans())
def test_a_join_with_a_table_gives_the_same_in_batches_as_row_by_row(
    batches: list[list[tuple[Any, ...]]], size: int, single: bool, first: set[int], left: bool, by_extra: bool
) -> None:
    inputs = StageInputs(ports(2), single=single, first=frozenset(first), tasks=(TASK,))
    rows = [as_rows(records, single=single) for records in batches]
    arguments = [("one", left, None, None, by_extra), ("other", not left, None, None, False)]
    whole = run([StreamTableJoinOperator(*each) for each in arguments], rows, size, inputs)
    assert whole == run([RowByRow(*each) for each in arguments], rows, size, inputs)


def test_records_of_a_micro_batch_in_another_order_are_refused_in_batches_too() -> None:
    fields = (300, None, b"a", b"1", None, None, None, 0, None, TASK, -1)
    rows = [(*fields, position, step) for position, step in [(0, 0), (1, 1), (1, 0)]]
    for size in (1, 2, 10):
        with pytest.raises(RuntimeError, match="in another order"):
            run([StreamTableJoinOperator("join", left=True)], [rows], size, one_origin(1))


def test_a_join_goes_row_by_row_where_a_handler_may_ask_for_the_record() -> None:
    options = QueryOptions(handlers=Handlers(processing=LogAndContinue()))
    rows = [(300, None, b"a", b"1", None, None, None, 0, None, TASK, -1, 0, 0)]
    inputs = one_origin(1)
    made, _ = run([StreamTableJoinOperator("join", left=True)], [rows], 10, inputs, options)
    assert [len(row[NAMES.index("headers")]) for row in made if row[PORT] > 0] == [6]
