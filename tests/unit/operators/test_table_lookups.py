"""What a join finds when it looks up a row of a table: its time, and nothing once its window is too old."""

from streamskit.operators import LatestValueOperator, Output, RowRetention, StreamTableJoinOperator, TableJoinOperator
from streamskit.operators.records import with_row_time
from streamskit.operators.table_join import STORED
from tests.unit.operators.operator_harness import Harness, record


def windowed(start: int) -> bytes:
    return b"a" + start.to_bytes(8, "big")


def session(start: int, end: int) -> bytes:
    return b"a" + end.to_bytes(8, "big") + start.to_bytes(8, "big")


def pairs(outputs: list[Output]) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(each.value, each.other, each.timestamp) for each in outputs]


def test_a_joined_row_is_as_old_as_those_of_its_two_rows_that_are_there() -> None:
    task = Harness([TableJoinOperator("join", (True, True), tells_row_times=True)])
    task.give(0, 0, record(b"a", b"l", 10))
    task.give(0, 1, record(b"a", b"r", 5))
    (made,) = task.give(0, 0, record(b"a", None, 50))
    assert (made.other, made.timestamp, made.other_old) == (b"r", 50, with_row_time(b"r", 5))


def test_a_row_has_the_time_that_it_is_said_to_have_and_the_update_its_own() -> None:
    task = Harness([TableJoinOperator("join", (True, True))])
    assert pairs(task.give(0, 0, record(b"a", b"l", 50, extra=(5).to_bytes(8, "big")))) == [(b"l", None, 50)]
    assert pairs(task.give(0, 1, record(b"a", b"r", 7))) == [(b"l", b"r", 7)]


def test_the_value_before_is_what_the_table_told_where_it_tells_one() -> None:
    task = Harness([TableJoinOperator("join", (True, False), tells_old=(True, False))])
    assert [each.old for each in task.give(0, 0, record(b"a", b"1", 1, old=b"0"))] == [b"0"]
    assert pairs(task.give(0, 0, record(b"b", None, 2, old=b"0"))) == [(None, None, 2)]
    assert task.give(0, 0, record(b"c", None, 3)) == []


def test_windows_that_are_too_old_are_not_found_and_each_table_has_its_own_time() -> None:
    short, long = RowRetention(100, False), RowRetention(1000, False)
    task = Harness([TableJoinOperator("join", (True, False), retention=(long, short))])
    task.give(0, 1, record(windowed(0), b"r", 0))
    assert pairs(task.give(0, 0, record(windowed(0), b"l", 0))) == [(b"l", b"r", 0)]
    task.give(0, 1, record(windowed(99), b"later", 99))
    assert pairs(task.give(0, 0, record(windowed(0), b"l", 1))) == [(b"l", b"r", 1)]
    task.give(0, 1, record(windowed(100), b"later", 100))
    assert pairs(task.give(0, 0, record(windowed(0), b"l", 2))) == [(b"l", None, 2)]


def test_windows_in_a_cache_become_old_by_those_that_have_gone_out() -> None:
    cached = RowRetention(100, False, from_close=True)
    task = Harness([TableJoinOperator("join", (False, False), retention=(cached, cached), on_close=(True, True))])
    for start in (0, 1000):  # the second is still open
        task.give(0, STORED, record(windowed(start), b"l", start))
        task.give(0, STORED + 1, record(windowed(start), b"r", start))
    assert pairs(task.give(0, 0, record(windowed(0), b"l", 0))) == [(b"l", b"r", 0)]
    task.give(0, 0, record(windowed(1000), b"l", 1000))
    task.give(0, 1, record(windowed(1000), b"r", 1000))
    assert pairs(task.give(0, 1, record(windowed(0), b"r", 0))) == []


def test_sessions_are_forgotten_by_their_ends() -> None:
    join = StreamTableJoinOperator("join", True, retention=RowRetention(100, True))
    task = Harness([join])
    task.give(0, 1, record(session(0, 50), b"row", 50))
    task.give(0, 1, record(session(120, 149), b"row", 149))
    assert pairs(task.give(0, 0, record(session(0, 50), b"v", 200))) == [(b"v", b"row", 200)]
    task.give(0, 1, record(session(120, 150), b"row", 150))
    assert pairs(task.give(0, 0, record(session(0, 50), b"v", 201))) == [(b"v", None, 201)]


def test_a_left_join_keeps_a_record_whose_mapped_key_is_null() -> None:
    task = Harness([StreamTableJoinOperator("join", True, by_extra=True)])
    assert pairs(task.give(0, 0, record(b"a", b"v", 1))) == [(b"v", None, 1)]
    assert pairs(task.give(0, 0, record(None, b"v", 2))) == [(b"v", None, 2)]
    assert (task.give(0, 0, record(b"a", None, 3)), task.dropped) == ([], 1)


def test_a_row_that_never_was_and_is_not_now_is_no_news_to_a_filter() -> None:
    task = Harness([LatestValueOperator("filter", skips_absent=True)])
    values = (None, b"x", None, None)
    made = [task.give(0, 0, record(b"a", value, time)) for time, value in enumerate(values)]
    assert [[(each.value, each.old) for each in outputs] for outputs in made] == [
        [],
        [(b"x", None)],
        [(None, b"x")],
        [],
    ]
