"""What the state of operators costs: pages that are loaded and saved, and what goes away."""

import pickle
from collections.abc import Iterator
from zlib import crc32

import pytest

from streamskit.api.windows import JoinWindows, SessionWindows, TimeWindows
from streamskit.operators import (
    AggregateOperator,
    CountOperator,
    LatestValueOperator,
    Operator,
    PartitionTimeOperator,
    ResponseJoinOperator,
    SessionAggregateOperator,
    StreamJoinOperator,
    StreamTableJoinOperator,
    StreamTask,
    SubscriptionJoinOperator,
    SubscriptionSendOperator,
    SuppressOperator,
    TableAggregateOperator,
    TableJoinOperator,
)
from streamskit.operators.paged_state import PAGE_BYTES, VISITS, MemoryPages, PagedTable
from streamskit.serdes import LONG
from tests.unit.operators.operator_harness import STRING, Harness, Pages, record
from tests.unit.operators.operator_programs import window_count

EVERY_OPERATOR: list[Operator] = [
    LatestValueOperator("a"),
    LatestValueOperator("b", 100),
    CountOperator("c"),
    AggregateOperator("d", STRING, (LONG,), LONG, None, (max,)),
    window_count(TimeWindows.of_size_with_no_grace(10)),
    TableAggregateOperator("e", STRING, LONG, LONG, None, max, min),
    SessionAggregateOperator("f", STRING, (LONG,), LONG, None, (max,), SessionWindows(1, 1), 2, merger=max),
    StreamJoinOperator("g", JoinWindows.of_time_difference_with_no_grace(1), (True, True)),
    StreamTableJoinOperator("h", True),
    TableJoinOperator("i", (True, True)),
    SuppressOperator("j", None, 5),
    SubscriptionSendOperator("k", "rows"),
    SubscriptionJoinOperator("l", True),
    ResponseJoinOperator("m", "rows", True),
    PartitionTimeOperator("n", "skip"),
]


def test_a_stage_whose_operators_get_no_record_touches_no_state() -> None:
    pages = Pages()
    stage = StreamTask(EVERY_OPERATOR, pages, cache=True)
    stage.finish()
    assert (pages.loads, pages.saves) == (0, 0)


@pytest.mark.parametrize("operator", [each for each in EVERY_OPERATOR if "counts" not in each.name],
                         ids=lambda each: type(each).__name__)  # fmt: skip
def test_operators_can_be_sent_to_workers(operator: Operator) -> None:
    assert pickle.loads(pickle.dumps(operator)) == operator


def test_a_batch_loads_and_saves_the_pages_of_its_keys_only() -> None:
    task = Harness([LatestValueOperator("rows")])
    task.give_all(0, 0, [record(b"%d" % number, b"x", number) for number in range(5000)])
    assert len(task.pages) > 50
    task.pages.loads = task.pages.saves = 0
    task.give_all(0, 0, [record(b"7", b"y", number) for number in range(1000)])
    assert (task.pages.loads, task.pages.saves) == (2, 2)  # the row's page, and what is known of the table


@pytest.mark.parametrize(
    "operator",
    [
        window_count(TimeWindows.of_size_with_no_grace(100).advance_by(20)),
        window_count(TimeWindows.of_size_with_no_grace(100), 200, on_close=True),
        SessionAggregateOperator("s", STRING, (STRING,), LONG, None, (), SessionWindows(50, 10), 60, True, True),
        StreamJoinOperator("j", JoinWindows.of_time_difference_with_no_grace(50), (True, True)),
        LatestValueOperator("v", 100),
        SuppressOperator("h", None, 100),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_has_passed_its_retention_goes_away(operator: Operator) -> None:
    task, sizes = Harness([operator]), []
    for batch in range(60):
        times = range(batch * 5000, (batch + 1) * 5000, 50)
        task.give_all(0, 0, [record(b"%d" % (time % 7), b"x", time) for time in times])
        sizes.append(sum(len(data) for data in task.pages.values()))
    # Sessions are kept for a segment of 60 seconds longer, as in Kafka Streams.
    assert max(sizes[40:]) <= 1.5 * max(sizes[20:40])


def test_windows_of_keys_that_are_never_seen_again_go_away_too() -> None:
    task = Harness([window_count(TimeWindows.of_size_with_no_grace(100))])
    task.give_all(0, 0, [record(b"%d" % number, b"x", 0) for number in range(1000)])
    full = sum(len(data) for data in task.pages.values())
    for batch in range(2 * VISITS):
        task.give_all(0, 0, [record(b"later", b"x", 1000 + batch)])
    assert sum(len(data) for data in task.pages.values()) < full / 20


def test_pages_are_told_apart_by_a_hash_that_is_the_same_everywhere() -> None:
    task = Harness([LatestValueOperator("rows")])
    task.give_all(0, 0, [record(b"%d" % number, bytes(200), 0) for number in range(12)])
    pages = {page: sorted(pickle.loads(data)) for page, data in task.pages.items() if page.startswith("rows/")}
    assert pages == {
        "rows/0": [b"4"],
        "rows/1": [b"0", b"10"],
        "rows/2": [b"7"],
        "rows/3": [b"1", b"11", b"3", b"8"],
        "rows/4": [b"6"],
        "rows/5": [b"2", b"9"],
        "rows/6": [b"5"],
    }


def keys_of(page: int, pages: int) -> Iterator[bytes]:
    """Yield keys whose hash leads to a page, where there are so many: a power of two."""
    return (key for number in range(100_000) if crc32(key := b"%d" % number) % pages == page)


def test_a_row_that_is_alone_in_its_page_is_found_after_the_page_was_looked_at_twice_while_the_table_grew() -> None:
    store, known = MemoryPages(), dict[str, int]()
    table = PagedTable("t", store, known=lambda: known)
    alone = next(keys_of(10, 16))  # in page 2 of six, and in page 10 of eleven
    others = [key for page in (4, 5) for key, _ in zip(keys_of(page, 8), range(6), strict=False)]
    for key in (alone, *others[:4]):
        table.changed_page(key)[key] = b"x" * PAGE_BYTES
    table.save()
    assert known["pages"] == 6
    for key in others[4:9]:
        table.changed_page(key)[key] = b"x" * PAGE_BYTES
    table.save()
    assert known["pages"] == 11
    reopened = PagedTable("t", store, known=lambda: known)
    assert [key for key in (alone, *others[:9]) if key not in reopened.page(key)] == []
