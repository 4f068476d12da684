"""What the vectors do not show: the results of task operators in corners, and what goes with each."""

from typing import Any

import pytest

from streamskit.api.windows import JoinWindows, SessionWindows, TimeWindows
from streamskit.common.errors import StreamsError
from streamskit.operators import (
    STORE_ONLY,
    AggregateOperator,
    CountOperator,
    LatestValueOperator,
    OperatorRecord,
    Output,
    PartitionTimeOperator,
    ResponseJoinOperator,
    RowRetention,
    SessionAggregateOperator,
    SourceRecord,
    StreamJoinOperator,
    StreamTableJoinOperator,
    StreamTask,
    SubscriptionJoinOperator,
    SubscriptionSendOperator,
    SuppressOperator,
    TableAggregateOperator,
    TableJoinOperator,
    WindowAggregateOperator,
)
from streamskit.operators.records import BEGIN_ROW, NO_TIMESTAMP, SOURCE_ROW, source_output
from streamskit.serdes import LONG, SessionWindowedSerde
from tests.unit.operators.operator_harness import JSON, STRING, Harness, Pages, decode, long, record, values
from tests.unit.operators.operator_programs import as_record, one, regrouped, window_count


def counts(outputs: list[Output]) -> list[Any]:
    return [LONG.deserialize(output.value) for output in outputs]


# ---- folds -----------------------------------------------------------------------------------------------------------


def test_each_side_of_a_cogroup_has_its_own_serde_and_function() -> None:
    fold = AggregateOperator(
        "both", STRING, (STRING, LONG), JSON, list,
        (lambda key, value, seen: [*seen, value], lambda key, value, seen: [*seen, -value]),
    )  # fmt: skip
    task = Harness([fold])
    task.give(0, 0, record(b"a", b"left", 1))
    made = task.give(0, 1, record(b"a", long(7), 2))
    assert JSON.deserialize(made[0].value) == ["left", -7]


def pair_of_windows() -> WindowAggregateOperator:
    """A cogroup of two streams in windows of 100 ms, with 50 ms of grace, that makes lists."""

    def listed(key: str, value: str, values: list[str]) -> list[str]:
        return [*values, value]

    windows = TimeWindows.of_size_and_grace("100 ms", "50 ms")
    return WindowAggregateOperator("both", STRING, (STRING, STRING), JSON, list, (listed, listed), windows, 150)


def test_each_side_of_a_windowed_cogroup_has_a_stream_time_of_its_own() -> None:
    task = Harness([pair_of_windows()])
    task.give(0, 0, record(b"a", b"1", 210))
    assert [JSON.deserialize(made.value) for made in task.give(0, 1, record(b"a", b"2", 120))] == [["2"]]
    task.give(0, 1, record(b"b", b"3", 260))
    assert task.give(0, 1, record(b"a", b"4", 130)) == []
    assert [JSON.deserialize(made.value) for made in task.give(0, 0, record(b"a", b"5", 130))] == [["2", "5"]]
    assert task.dropped == 1


def test_a_cogroup_begins_a_window_anew_that_another_stream_has_put_out_of_sight() -> None:
    task = Harness([pair_of_windows()])
    task.give(0, 0, record(b"a", b"1", 110))
    task.give(0, 1, record(b"b", b"2", 300))  # the store keeps 150 ms: it shows windows from 151 on
    assert [JSON.deserialize(made.value) for made in task.give(0, 0, record(b"a", b"3", 120))] == [["3"]]
    assert task.dropped == 0
    task.give(0, 1, record(b"b", b"4", 200_000))  # now the segment is deleted, too
    assert [JSON.deserialize(made.value) for made in task.give(0, 0, record(b"a", b"5", 130))] == [["5"]]
    assert task.dropped == 1


def test_a_session_that_cannot_be_merged_stays_as_it_was() -> None:
    def refuse(key: str, one: str, other: str) -> str:
        raise ValueError("no")

    sessions = SessionWindows.of_inactivity_gap_and_grace("10 ms", "50 ms")
    operator = SessionAggregateOperator(
        "sessions",
        STRING,
        (STRING,),
        STRING,
        lambda: "",
        (lambda key, value, text: value,),
        sessions,
        60,
        merger=refuse,
    )
    task = Harness([operator])
    task.give(0, 0, record(b"a", b"1", 100))
    with pytest.raises(ValueError, match="no"):
        task.give(0, 0, record(b"a", b"2", 105))
    assert task.stage.take_outputs() == []


def test_a_result_carries_the_headers_of_the_record_that_made_it() -> None:
    task = Harness([LatestValueOperator("rows")])
    made = task.give(0, 0, OperatorRecord(b"a", b"x", None, None, 1, [("source", b"test")]))
    assert made[0].headers == [("source", b"test")]


def test_a_json_null_is_no_value() -> None:
    task = Harness([AggregateOperator("n", STRING, (JSON,), LONG, lambda: 0, (lambda key, value, n: n + 1,))])
    assert not task.give(0, 0, record(b"a", b"null", 1))
    assert task.dropped == 1


# ---- windows ---------------------------------------------------------------------------------------------------------


def test_a_reduce_of_sessions_starts_with_the_first_value_and_merges_with_the_reducer() -> None:
    fold = SessionAggregateOperator(
        "s", STRING, (STRING,), STRING, None, (lambda key, value, aggregate: aggregate + value,),
        SessionWindows(10, 100), 110, merger=lambda key, one, other: one + other,
    )  # fmt: skip
    task = Harness([fold])
    made = [output for value, time in ((b"x", 0), (b"y", 20), (b"z", 10)) for output in
            task.give(0, 0, record(b"a", value, time))]  # fmt: skip
    assert values(made) == ["x", "y", None, None, "xyz"]


def test_hopping_windows_speak_on_close_in_order_of_start_and_key() -> None:
    windows = TimeWindows.of_size_with_no_grace(10).advance_by(5)
    task = Harness([window_count(windows, 1000, on_close=True)])
    for key, time in ((b"b", 6), (b"a", 7), (b"a", 12)):
        made = task.give(0, 0, record(key, b"x", time))
    assert [(each.key[:1], each.key[-1], LONG.deserialize(each.value)) for each in made if each.key] == [
        (b"a", 0, 1), (b"b", 0, 1)
    ]  # fmt: skip
    made = task.give(0, 0, record(b"z", b"x", 40))
    assert [(each.key[:1], each.key[-1], LONG.deserialize(each.value)) for each in made if each.key] == [
        (b"a", 5, 2), (b"b", 5, 1), (b"a", 10, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("emit_interval", [0, 1000])
def test_a_window_that_closes_after_a_long_silence_speaks_if_there_is_a_record_cache(
    cache: bool, emit_interval: int
) -> None:
    # As in Kafka Streams, whose store has deleted it by then, and whose cache has not.
    windows = TimeWindows.of_size_with_no_grace(1000)
    task = Harness([window_count(windows, 1000, on_close=True)], cache=cache, emit_interval=emit_interval)
    assert task.give_all(0, 0, [record(b"a", b"x", 0), record(b"a", b"x", 900)]) == []
    made = [output for time in (1_000_000, 1_000_001) for output in _a_second_later(task, record(b"b", b"x", time))]
    assert [(each.key[:1], LONG.deserialize(each.value)) for each in made if each.key] == ([(b"a", 2)] if cache else [])


def _a_second_later(task: Harness, given: OperatorRecord) -> list[Output]:
    made = task.give(0, 0, given)
    task.advance(1000)
    return made


def test_updates_that_wait_for_their_window_to_close_come_out_for_the_changelog_where_there_is_one() -> None:
    windows = TimeWindows.of_size_with_no_grace(10)
    fold = WindowAggregateOperator(
        "w", STRING, (STRING,), LONG, None, (max,), windows, 100, on_close=True, counting=True, logged=True
    )
    task = Harness([fold])
    made = [(each.other, LONG.deserialize(each.value)) for time in (1, 2, 10) for each in
            task.give(0, 0, record(b"a", b"x", time))]  # fmt: skip
    assert made == [(STORE_ONLY, 1), (STORE_ONLY, 2), (STORE_ONLY, 1), (None, 2)]


def test_suppress_holds_a_session_back_until_its_gap_and_grace_have_passed() -> None:
    windows = SessionWindows(100, 50)
    fold = SessionAggregateOperator("s", STRING, (STRING,), LONG, None, (), windows, 150, counting=True)
    task, made = Harness([fold, SuppressOperator("final", windows)]), []
    for key, time in ((b"a", 1000), (b"a", 1080), (b"b", 1229), (b"b", 1230)):
        for update in task.give(0, 0, record(key, b"x", time)):
            made.append((time, task.give(1, 0, as_record(update))))
    final = [(time, SessionWindowedSerde(STRING).deserialize(each.key), LONG.deserialize(each.value))
             for time, outputs in made for each in outputs]  # fmt: skip
    assert final == [(1230, ("a", 1000, 1080), 2)]


def test_suppress_passes_an_update_on_with_the_headers_that_it_came_with() -> None:
    task, headers = Harness([SuppressOperator("held", None, 10)]), [{"key": "h", "value": b"1"}]
    assert not task.give(0, 0, record(b"a", b"x", 1)._replace(headers=headers))
    made = task.give(0, 0, record(b"b", b"y", 11))  # in another micro-batch
    assert [(each.key, each.headers) for each in made] == [(b"a", headers)]


def test_an_update_that_was_held_back_before_records_were_kept_comes_of_the_record_in_hand() -> None:
    pages, held, source = Pages(), SuppressOperator("held", None, 10), SourceRecord("in", 0, 7, 11)
    before = StreamTask([held], pages)
    before.process(0, 0, record(b"a", b"x", 1))
    before.finish()
    task = StreamTask([held], pages, tells=True)
    task.begin(source)
    task.process(0, 0, record(b"b", b"y", 11))
    told = source_output(SOURCE_ROW, source)
    made = [each if each.operator < 0 else each.key for each in task.take_outputs()]
    assert made == [source_output(BEGIN_ROW, source), told, b"a", told]


def test_a_full_suppress_buffer_says_how_to_go_on() -> None:
    task = Harness([SuppressOperator("final", None, 1000, max_records=1)])
    task.give(0, 0, record(b"a", b"x", 1))
    with pytest.raises(StreamsError, match=r"final: the buffer .* with 2 records where 1 may be.*emit_early_when_full"):
        task.give(0, 0, record(b"b", b"x", 2))


def test_a_full_buffer_of_final_results_is_not_told_to_emit_them_early() -> None:
    windows = TimeWindows.of_size_and_grace("10 ms", "1 hour")
    task = Harness([SuppressOperator("final", windows, None, max_records=1)])
    first, second = (b"a" + start.to_bytes(8, "big") + (start + 10).to_bytes(8, "big") for start in (0, 10))
    task.give(0, 0, record(first, b"x", 1))
    with pytest.raises(StreamsError, match=r"Let it hold more, or let windows close sooner: a shorter grace\."):
        task.give(0, 0, record(second, b"x", 12))


def test_a_suppress_buffer_counts_bytes_as_kafka_streams_does() -> None:
    task = Harness([SuppressOperator("held", None, 1000, max_bytes=2 * (8 + 1 + 3 + 20), emit_early=True)])
    assert not task.give(0, 0, record(b"a", b"abc", 1))
    assert not task.give(0, 0, record(b"b", b"abc", 2))
    assert [each.key for each in task.give(0, 0, record(b"b", b"abcd", 3))] == [b"a"]


def test_a_suppress_buffer_counts_the_bytes_of_headers_and_forgets_them_with_the_record() -> None:
    task = Harness([SuppressOperator("held", None, 1000, max_bytes=2 * (8 + 1 + 3 + 20) + 4, emit_early=True)])
    large = record(b"a", b"abc", 1)._replace(headers=[{"key": "h", "value": b"123"}])
    assert not task.give(0, 0, large)
    assert not task.give(0, 0, record(b"b", b"abc", 2))
    larger = record(b"b", b"abc", 3)._replace(headers=[{"key": "h", "value": None}])
    assert [each.key for each in task.give(0, 0, larger)] == [b"a"]
    assert not task.give(0, 0, record(b"c", b"abc", 4))


# ---- tables and joins ------------------------------------------------------------------------------------------------


def test_a_left_table_join_shows_a_row_without_a_partner_and_not_the_partner_alone() -> None:
    task = Harness([TableJoinOperator("join", (True, False))])
    assert not task.give(0, 1, record(b"a", b"r", 1))
    steps = [(0, b"l", 2), (1, None, 3), (0, None, 4), (0, None, 5)]
    made = [[each[1:7] for each in task.give(0, side, record(b"a", value, time))] for side, value, time in steps]
    assert made == [
        [(b"a", b"l", None, b"r", None, 2)],
        [(b"a", b"l", b"l", None, b"r", 3)],
        [(b"a", None, b"l", None, None, 4)],
        [],
    ]


def test_a_grouped_tables_row_needs_a_key() -> None:
    fold = TableAggregateOperator("n", STRING, LONG, LONG, None, max, min)
    with pytest.raises(StreamsError, match="n: a row of the grouped table has no key"):
        Harness([fold]).give(0, 0, record(None, long(1), 1))


def test_a_row_that_moves_to_another_group_is_taken_out_of_the_first() -> None:
    add, subtract = (lambda key, row, total: total + row), (lambda key, row, total: total - row)
    task = Harness(
        [LatestValueOperator("rows"), TableAggregateOperator("sum", STRING, LONG, LONG, lambda: 0, add, subtract)]
    )
    made = []
    for key, value, time in ((b"a", 5, 1), (b"b", 6, 2), (b"a", 8, 3)):
        for update in task.give(0, 0, record(key, long(value), time)):
            for part in regrouped(update, lambda data: (b"odd" if data[-1] % 2 else b"even", data)):
                made += task.give(1, 0, part)
    assert [(each.key, LONG.deserialize(each.value)) for each in made] == [
        (b"odd", 5), (b"even", 6), (b"odd", 0), (b"even", 14)
    ]  # fmt: skip


def test_a_left_join_with_grace_lets_a_record_without_a_key_pass_at_once() -> None:
    task = Harness([StreamTableJoinOperator("join", True, history=1000, grace=50)])
    assert values(task.give(0, 0, record(None, b"s", 100))) == ["s"]


def test_waiting_records_of_one_time_go_out_in_order_of_key_and_arrival() -> None:
    task = Harness([StreamTableJoinOperator("join", True, history=1000, grace=50)])
    for key, value in ((b"b", b"1"), (b"a", b"2"), (b"b", b"3")):
        task.give(0, 0, record(key, value, 100))
    assert values(task.give(0, 0, record(b"z", b"4", 150))) == ["2", "1", "3"]


def test_a_stream_joined_with_itself_pairs_a_record_with_itself_once() -> None:
    task = Harness([StreamJoinOperator("join", JoinWindows.of_time_difference_with_no_grace(10), (False, False))])
    made = [each for side in (0, 1) for each in task.give(0, side, record(b"a", b"x", 1))]
    assert [(each.value, each.other) for each in made] == [(b"x", b"x")]


def foreign_key_join(left: bool) -> Any:
    operators = [SubscriptionSendOperator("register", "orders", left), SubscriptionJoinOperator("answer", left),
                 ResponseJoinOperator("resolve", "orders", left)]  # fmt: skip
    task = Harness(operators)

    def order(key: bytes, value: bytes | None, customer: bytes | None, time: int) -> list[Any]:
        subscriptions = task.give(0, 0, record(key, value, time, extra=customer))
        answers = [answer for each in subscriptions for answer in task.give(1, 0, as_record(each))]
        return [(*out[1:3], out.other) for answer in answers for out in task.give(2, 0, as_record(answer))]

    def customer(key: bytes, value: bytes | None, time: int) -> list[Any]:
        return [
            (*out[1:3], out.other)
            for answer in task.give(1, 1, record(key, value, time))
            for out in task.give(2, 0, as_record(answer))
        ]

    return task, order, customer


def test_a_left_foreign_key_join_has_a_result_for_every_order() -> None:
    task, order, customer = foreign_key_join(left=True)
    assert order(b"o1", b"1", b"c1", 1) == [(b"o1", b"1", None)]
    assert customer(b"c1", b"Ann", 2) == [(b"o1", b"1", b"Ann")]
    assert order(b"o1", b"2", None, 3) == [(b"o1", b"2", None)]
    assert order(b"o1", b"3", b"c1", 4) == [(b"o1", b"3", b"Ann")]
    assert order(b"o1", b"3", b"c2", 5) == [(b"o1", b"3", None)]
    assert not customer(b"c1", b"Anna", 6)
    assert order(b"o1", None, None, 7) == [(b"o1", None, None)]
    assert not order(b"o1", None, None, 8)
    assert order(b"o2", b"1", None, 9) == [(b"o2", b"1", None)]
    assert task.dropped == 0


def test_a_foreign_key_join_of_a_windowed_table_responds_only_to_windows_that_are_still_kept() -> None:
    retention = RowRetention(15, is_session=False)
    send = SubscriptionSendOperator("register", "counts", retention=retention)
    answer, resolve = (
        SubscriptionJoinOperator("answer", False),
        ResponseJoinOperator("resolve", "counts", False, retention),
    )
    task = Harness([send, answer, resolve])
    for start in (0, 10, 20):
        for message in task.give(0, 0, record(b"a" + start.to_bytes(8, "big"), b"1", start, extra=b"k1")):
            task.give(1, 0, record(message.key, message.value, start))
    responses = task.give(1, 1, record(b"k1", b"right", 30))
    results = [out for each in responses for out in task.give(2, 0, record(each.key, each.value, 30))]
    assert [int.from_bytes((out.key or b"")[1:], "big") for out in results] == [10, 20]
    assert task.dropped == 1


def test_an_inner_foreign_key_join_drops_an_order_that_never_had_a_customer() -> None:
    task, order, _ = foreign_key_join(left=False)
    assert not order(b"o1", b"1", None, 1)
    assert task.dropped == 1
    assert not order(b"o1", None, None, 2)
    assert task.dropped == 2


def test_an_order_that_keeps_a_customer_who_is_not_there_had_no_result_to_delete() -> None:
    send = Harness([SubscriptionSendOperator("send", "rows")])
    answer = Harness([SubscriptionJoinOperator("answer", False)])
    answered = []
    for value, customer in ((b"1", b"c1"), (b"2", b"c1"), (b"3", b"c2")):
        for message in send.give(0, 0, record(b"o", value, 1, extra=customer)):
            answered += [value] * len(answer.give(0, 0, record(message.key, message.value, 1)))
    assert answered == [b"3"]


def test_an_answer_to_a_row_that_has_changed_since_is_dropped() -> None:
    task, order, _ = foreign_key_join(left=True)
    [subscription] = task.give(0, 0, record(b"o1", b"1", 1, extra=b"c1"))
    order(b"o1", b"2", b"c1", 2)
    [answer] = task.give(1, 0, as_record(subscription))
    assert not task.give(2, 0, as_record(answer))
    assert task.dropped == 1


# ---- time ------------------------------------------------------------------------------------------------------------


def test_a_negative_timestamp_fails_with_a_way_out() -> None:
    with pytest.raises(StreamsError, match=r"source: a record has the timestamp -1\. .*log_and_skip_on_invalid"):
        Harness([PartitionTimeOperator("source", "fail")]).give(0, 0, record(b"a", b"x", -1))


def test_without_an_earlier_record_a_partition_has_no_time() -> None:
    with pytest.raises(StreamsError, match="its partition has no earlier record"):
        Harness([PartitionTimeOperator("source", "partition time")]).give(0, 0, record(b"a", b"x", -1))


def test_a_missing_time_is_replaced_and_one_of_minus_one_is_skipped() -> None:
    task = Harness([PartitionTimeOperator("source", "partition time", "skip")])
    times = (100, NO_TIMESTAMP, -1)
    given = [task.give(0, 0, record(b"a", b"x", time, extra=b"0")) for time in times]
    assert [[output.timestamp for output in each] for each in given] == [[100], [100], []]
    assert task.dropped == 1


def test_each_partition_has_its_own_time() -> None:
    task = Harness([PartitionTimeOperator("source", "partition time")])
    task.give(0, 0, record(b"a", b"x", 100, extra=b"0"))
    task.give(0, 0, record(b"a", b"x", 7, extra=b"1"))
    made = [each for part in (b"0", b"1") for each in task.give(0, 0, record(b"a", b"x", -5, extra=part))]
    assert [each.timestamp for each in made] == [100, 7]


# ---- programs --------------------------------------------------------------------------------------------------------


def test_a_count_needs_no_program_at_all() -> None:
    program = one(CountOperator("n"), decode(LONG))
    rows = list(program.route(Harness(program.operators), "in", record(b"a", b"not a number", 3)))
    assert rows == [("out", {"key": "a", "value": 1, "timestamp": 3})]


def test_a_window_fold_of_none_deletes_the_window() -> None:
    windows = TimeWindows.of_size_with_no_grace(10)
    fold = WindowAggregateOperator("w", STRING, (LONG,), LONG, None, (lambda key, value, total: None,), windows, 10)
    task = Harness([fold])
    made = [each for time in (1, 2, 3) for each in task.give(0, 0, record(b"a", long(time), time))]
    assert counts(made) == [1, None, 3]
