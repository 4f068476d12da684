"""The rows of a task come in the order in which Kafka Streams would take its records."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from streamskit.execution.arrow_batches import table_of
from streamskit.execution.row_format import CLOCK, NAMES, TIMESTAMP, Row
from streamskit.execution.stage_rows import CLOCK_ORIGIN, StageInputs, in_order
from tests.unit.execution.packed_rows import pack, rows_of

TIMES = st.lists(st.integers(-1, 9), max_size=8)


def rows_of_topic(origin: int, times: Sequence[int]) -> list[Row]:
    """Return the rows of a topic, whose offsets grow; every other record has made two rows."""
    port = CLOCK if origin == CLOCK_ORIGIN else 0
    return [
        (port, None, None, None, None, None, None, time, None, 7, origin, offset, step)
        for offset, time in enumerate(times)
        for step in range(1 + offset % 2)
    ]


def as_kafka_streams_takes(topics: dict[int, list[Row]], first: set[int]) -> list[Row]:
    """Return rows one by one: of the topic whose next row is the earliest, as `PartitionGroup` chooses."""
    taken = [row for origin in sorted(topics) if origin in {CLOCK_ORIGIN, *first} for row in topics[origin]]
    left = {origin: rows[:] for origin, rows in topics.items() if origin not in {CLOCK_ORIGIN, *first} and rows}
    while left:
        origin = min(left, key=lambda each: (left[each][0][TIMESTAMP], each))
        taken.append(left[origin].pop(0))
        left = {each: rows for each, rows in left.items() if rows}
    return taken


@given(
    st.dictionaries(st.integers(CLOCK_ORIGIN, 3), TIMES, min_size=1),
    st.sets(st.integers(1, 3)),
    st.integers(1, 5),
    st.randoms(),
)
def test_the_topic_whose_next_record_is_the_earliest_goes_on(
    times: dict[int, list[int]], first: set[int], size: int, chance: Random
) -> None:
    topics = {origin: rows_of_topic(origin, each) for origin, each in times.items()}
    pieces = [rows[start : start + size] for rows in topics.values() for start in range(0, len(rows), size)]
    chance.shuffle(pieces)
    tables = in_order(
        (table_of(pack(piece)) for piece in pieces), StageInputs({}, single=False, first=frozenset(first))
    )
    assert [row for table in tables for row in rows_of(table, NAMES)] == as_kafka_streams_takes(topics, first)


@given(TIMES, st.integers(1, 5))
def test_the_rows_of_one_topic_pass_as_they_come(times: list[int], size: int) -> None:
    rows = rows_of_topic(1, times)
    packs = [pack(rows[start : start + size]) for start in range(0, len(rows), size)]
    tables = list(in_order(map(table_of, packs), StageInputs({}, single=True)))
    assert len(tables) == len(packs)
    assert [row for table in tables for row in rows_of(table, NAMES)] == rows
