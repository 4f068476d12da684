"""The record cache of a stream task: which updates it folds, how much room they take, and what passes it by."""

from streamskit.api.windows import SessionWindows
from streamskit.operators import (
    AggregateOperator,
    CountOperator,
    LatestValueOperator,
    SessionAggregateOperator,
    StreamTableJoinOperator,
    StreamTask,
)
from streamskit.operators.record_cache import ENTRY_BYTES
from streamskit.operators.records import BEGIN_ROW, SOURCE_ROW, Output, SourceRecord, source_output
from streamskit.serdes import LONG, SessionWindowedSerde
from tests.unit.operators.operator_harness import STRING, Harness, Pages, long, record, values


def test_sessions_keep_the_headers_of_a_record_in_a_cache_only() -> None:
    sessions = SessionWindows.of_inactivity_gap_and_grace("10 ms", "50 ms")
    operator = SessionAggregateOperator("sessions", STRING, (STRING,), LONG, lambda: 0, (), sessions, 60, counting=True)
    with_headers = record(b"a", b"1", 100)._replace(headers=[{"key": "h", "value": b"1"}])
    for cache, headers in ((False, None), (True, with_headers.headers)):
        made = Harness([operator], cache=cache).give(0, 0, with_headers)
        assert [output.headers for output in made] == [headers]


def test_in_a_cache_a_deletion_has_the_time_of_its_record() -> None:
    fold = AggregateOperator("last", STRING, (STRING,), STRING, None, (lambda key, value, last: None,))
    for cache, time in ((False, 20), (True, 10)):
        task = Harness([fold], cache=cache)
        task.give(0, 0, record(b"a", b"1", 20))
        assert [output.timestamp for output in task.give(0, 0, record(b"a", b"2", 10))] == [time]


def test_the_row_before_the_first_one_is_the_initial_aggregate_but_none_with_a_cache() -> None:
    for cache, before in ((False, long(0)), (True, None)):
        assert [made.old for made in Harness([CountOperator("n")], cache=cache).give(0, 0, record(b"a", b"x", 1))] == [
            before
        ]


def test_the_cache_makes_one_update_of_those_of_a_key_and_keeps_the_value_from_before_them() -> None:
    task = Harness([CountOperator("n")], cache=True)
    task.give_all(0, 0, [record(b"a", b"x", 1)])
    made = task.give_all(0, 0, [record(key, b"x", time) for key, time in ((b"a", 5), (b"b", 6), (b"a", 3), (b"b", 7))])
    assert [(each.key, LONG.deserialize(each.value), each.timestamp) for each in made] == [(b"a", 3, 5), (b"b", 2, 7)]
    assert [each.old for each in made] == [long(1), None]


def test_a_cache_that_is_full_passes_its_updates_on_at_once() -> None:
    task = StreamTask([CountOperator("n")], Pages(), cache=True, cache_bytes=1)
    for key in (b"a", b"b", b"a"):
        task.process(0, 0, record(key, b"", 1))
    made = [(each.key, each.value, each.old) for each in task.take_outputs()]
    assert made == [(b"a", long(1), None), (b"b", long(1), None), (b"a", long(2), long(1))]


def test_the_caches_of_a_task_share_their_room_and_the_one_that_gets_an_update_makes_it() -> None:
    task = StreamTask([CountOperator("n"), CountOperator("m")], Pages(), cache=True, cache_bytes=2 * ENTRY_BYTES + 40)
    for operator, key in ((0, b"a"), (1, b"b")):
        task.process(operator, 0, record(key, b"", 1))
    assert not task.take_outputs()
    task.process(1, 0, record(b"c", b"", 1))
    assert [each.key for each in task.take_outputs()] == [b"b", b"c"]
    task.process(1, 0, record(b"d", b"", 1))  # there is room again
    assert not task.take_outputs()
    task.finish()
    assert [(each.operator, each.key) for each in task.take_outputs()] == [(0, b"a"), (1, b"d")]


def test_a_value_that_grows_takes_more_room_and_one_that_shrinks_gives_some_back() -> None:
    task = StreamTask([LatestValueOperator("rows")], Pages(), cache=True, cache_bytes=2 * ENTRY_BYTES)
    for key, size in ((b"a", ENTRY_BYTES // 2), (b"a", 1), (b"b", ENTRY_BYTES // 4)):
        task.process(0, 0, record(key, b"x" * size, 1))
    assert [each.key for each in task.take_outputs()] == [b"a", b"b"]
    for size in (1, ENTRY_BYTES - 1):
        task.process(0, 0, record(b"a", b"x" * size, 2))
        assert not task.take_outputs()
    task.process(0, 0, record(b"a", b"x" * ENTRY_BYTES, 2))
    assert [len(each.value or b"") for each in task.take_outputs()] == [ENTRY_BYTES]


SOURCES = [SourceRecord("in", 0, number, 10 * number, b"k", b"v", None) for number in range(4)]
BEGUN = [source_output(BEGIN_ROW, source) for source in SOURCES]
FROM = [source_output(SOURCE_ROW, source) for source in SOURCES]


def told(*keys: bytes, cache_bytes: int = 1_000_000) -> list[Output | tuple[bytes | None, bytes | None]]:
    """Return what a task makes of records with these keys, and says of where it comes from; results as key and value.

    It has a cache, and passes its updates on after the last record.
    """
    task = StreamTask([CountOperator("n")], Pages(), cache=True, cache_bytes=cache_bytes, tells=True)
    for source, key in zip(SOURCES, keys, strict=False):
        task.begin(source)
        task.process(0, 0, record(key, b"", source.timestamp))
    task.flush()
    return [each if each.operator < 0 else (each.key, each.value) for each in task.take_outputs()]


def test_each_merged_update_comes_of_the_record_that_made_it_last() -> None:
    b, a, c = (b"b", long(1)), (b"a", long(2)), (b"c", long(1))
    assert told(b"a", b"b", b"a", b"c") == [*BEGUN, FROM[1], b, FROM[2], a, FROM[3], c, FROM[3]]


def test_what_follows_a_cache_that_was_full_comes_of_the_record_in_hand_again() -> None:
    a, b, c = (b"a", long(1)), (b"b", long(1)), (b"c", long(1))
    full = [BEGUN[0], BEGUN[1], FROM[0], a, FROM[1], b, FROM[1]]
    assert told(b"a", b"b", b"c", cache_bytes=ENTRY_BYTES + 20) == [*full, BEGUN[2], FROM[2], c, FROM[2]]


def test_updates_that_come_of_one_record_stand_together_behind_it() -> None:
    task = StreamTask([CountOperator("n")], Pages(), cache=True, tells=True)
    task.begin(SOURCES[0])
    for key in (b"a", b"b"):
        task.process(0, 0, record(key, b"", 0))
    task.flush()
    begun, source, *updates, again = task.take_outputs()
    assert (begun, source, again) == (BEGUN[0], FROM[0], FROM[0])
    assert [update.key for update in updates] == [b"a", b"b"]


def test_where_nobody_asks_a_task_says_nothing_of_where_its_outputs_come_from() -> None:
    task = StreamTask([CountOperator("n")], Pages(), cache=True)
    task.begin(SOURCES[0])
    task.process(0, 0, record(b"a", b"", 0))
    task.flush()
    assert [output.operator for output in task.take_outputs()] == [0]


def test_an_operator_whose_store_is_not_cached_passes_on_each_update_and_the_others_fold_theirs() -> None:
    task = StreamTask([CountOperator("n"), CountOperator("m")], Pages(), cache=True, uncached=frozenset({"m"}))
    for operator in (0, 1, 0, 1):
        task.process(operator, 0, record(b"a", b"", 1))
    assert [(each.operator, each.value) for each in task.take_outputs()] == [(1, long(1)), (1, long(2))]
    task.finish()
    assert [(each.operator, each.value, each.old) for each in task.take_outputs()] == [(0, long(2), None)]


def test_an_operator_that_is_looked_into_passes_on_each_update_at_once_and_once_more_what_the_cache_makes_of_them() -> (
    None
):
    task = StreamTask([CountOperator("n"), CountOperator("m")], Pages(), cache=True, looked_into=frozenset({"m"}))
    for operator in (0, 1, 0, 1):
        task.process(operator, 0, record(b"a", b"", 1))
    assert [(each.operator, each.value) for each in task.take_outputs()] == [(3, long(1)), (3, long(2))]
    task.finish()
    assert [(each.operator, each.value) for each in task.take_outputs()] == [(0, long(2)), (1, long(2))]


def test_a_row_that_comes_and_goes_within_a_flush_leaves_no_trace() -> None:
    task = Harness([LatestValueOperator("rows")], cache=True)
    assert not task.give_all(0, 0, [record(b"a", b"x", 1), record(b"a", None, 2)])
    task.give_all(0, 0, [record(b"a", b"x", 3)])
    assert values(task.give_all(0, 0, [record(b"a", b"y", 4), record(b"a", None, 5)])) == [None]


def test_a_session_that_grows_within_a_flush_takes_nothing_back() -> None:
    fold = SessionAggregateOperator("s", STRING, (STRING,), LONG, None, (), SessionWindows(10, 0), 10, counting=True)
    made = Harness([fold], cache=True).give_all(0, 0, [record(b"a", b"x", 1), record(b"a", b"x", 5)])
    assert [SessionWindowedSerde(STRING).deserialize(each.key) for each in made] == [("a", 1, 5)]


def test_records_of_a_stream_pass_a_cache_one_by_one() -> None:
    task = Harness([StreamTableJoinOperator("join", True)], cache=True)
    assert len(task.give_all(0, 0, [record(b"a", b"x", 1), record(b"a", b"y", 2)])) == 2
