"""Task operators against plain models, on random records out of order, with state saved at random points."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamskit.api.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from streamskit.operators import (
    BytesVersionedStore,
    OperatorContext,
    Output,
    SessionAggregateOperator,
    StreamJoinOperator,
    SuppressOperator,
)
from streamskit.operators.paged_state import PAGE_BYTES, PagedTable, TimeOrderedMap
from streamskit.serdes import LONG, SessionWindowedSerde, TimeWindowedSerde
from tests.unit.operators.operator_harness import STRING, Harness, Pages, record
from tests.unit.operators.operator_programs import as_record, window_count

KEYS = st.sampled_from([b"a", b"b", b"c"])
FAR = 1_000_000
EVENTS = st.lists(st.tuples(KEYS, st.integers(0, 500)), max_size=40)
BATCHES = st.lists(st.integers(1, 7), min_size=1)
NEVER_LATE = 10_000
unhurried = settings(deadline=None, max_examples=100)
"""A busy machine is no failure."""


def in_batches(records: Sequence[Any], sizes: list[int]) -> Iterable[Sequence[Any]]:
    """Cut records into batches of the given sizes, again and again."""
    position = 0
    while position < len(records):
        for size in sizes:
            yield records[position : position + size]
            position += size


def run(task: Harness, events: Sequence[tuple[bytes, int]], sizes: list[int]) -> list[Output]:
    """Give events, each with a value of 8 bytes, to the first operator of a task."""
    outputs: list[Output] = []
    records = [record(key, number.to_bytes(8, "big"), time) for number, (key, time) in enumerate(events)]
    for batch in in_batches(records, sizes):
        outputs += task.give_all(0, 0, batch)
    return outputs


def table(outputs: Iterable[Output], key: Callable[[bytes | None], Any]) -> dict[Any, int]:
    """Return the rows that a table's updates come to."""
    rows: dict[Any, Any] = {}
    for output in outputs:
        rows[key(output.key)] = LONG.deserialize(output.value)
    return {name: count for name, count in rows.items() if count is not None}


@unhurried
@given(EVENTS, BATCHES, st.integers(1, 60), st.integers(1, 60), st.integers(0, 80))
def test_tumbling_and_hopping_windows_hold_the_records_that_were_in_time(
    events: list[tuple[bytes, int]], sizes: list[int], size: int, advance: int, grace: int
) -> None:
    windows = TimeWindows(size, min(advance, size), grace)
    task = Harness([window_count(windows)])
    made = [(output.key, LONG.deserialize(output.value), output.timestamp) for output in run(task, events, sizes)]

    expected, dropped, held, stream_time = [], 0, defaultdict[tuple[bytes, int], list[int]](list), -1
    for key, time in events:
        stream_time = max(stream_time, time)
        for start in range(0, time + 1, windows.advance):
            if start <= time < start + size:
                if start + size <= stream_time - grace:
                    dropped += 1
                else:
                    held[key, start].append(time)
                    expected.append((key + start.to_bytes(8, "big"), len(held[key, start]), max(held[key, start])))
    assert made == expected
    assert task.dropped == dropped


@unhurried
@given(EVENTS, BATCHES, st.integers(1, 60))
def test_sessions_are_the_runs_of_records_without_a_longer_gap(
    events: list[tuple[bytes, int]], sizes: list[int], gap: int
) -> None:
    windows = SessionWindows(gap, NEVER_LATE)
    fold = SessionAggregateOperator(
        "sessions", STRING, (LONG,), LONG, lambda: 0, (lambda key, value, count: count + 1,),
        windows, NEVER_LATE, merger=lambda key, one, other: one + other,
    )  # fmt: skip
    made = table(run(Harness([fold]), events, sizes), SessionWindowedSerde(STRING).deserialize)

    expected: dict[Any, int] = {}
    for key in {key for key, _ in events}:
        runs: list[list[int]] = []
        for time in sorted(time for other, time in events if other == key):
            if runs and time - runs[-1][-1] <= gap:
                runs[-1].append(time)
            else:
                runs.append([time])
        expected |= {(key.decode(), each[0], each[-1]): len(each) for each in runs}
    assert made == expected


@unhurried
@given(EVENTS, BATCHES, st.integers(1, 120))
def test_sliding_windows_end_at_each_record_and_begin_after_each_one_that_another_follows(
    events: list[tuple[bytes, int]], sizes: list[int], difference: int
) -> None:
    windows = SlidingWindows(difference, NEVER_LATE)
    serde = TimeWindowedSerde(STRING, difference)
    made = table(run(Harness([window_count(windows, 2 * NEVER_LATE)]), events, sizes), serde.deserialize)

    expected: dict[Any, int] = {}
    for key in {key for key, _ in events}:
        times = [time for other, time in events if other == key]
        for time in times:
            for start in (max(time - difference, 0), time + 1):
                count = sum(start <= other <= start + difference for other in times)
                if count:
                    expected[key.decode(), start, start + difference] = count
    assert made == expected


@st.composite
def nearly_in_order(draw: st.DrawFn) -> tuple[list[tuple[int, bytes, int]], int]:
    """Side, key and time of records that come at most so many milliseconds late."""
    disorder, now, made = draw(st.integers(0, 30)), 100, []
    for side, key, step, late in draw(
        st.lists(st.tuples(st.integers(0, 1), KEYS, st.integers(0, 40), st.integers(0, 30)), max_size=40)
    ):
        now += step
        made.append((side, key, max(0, now - min(late, disorder))))
    return made, disorder


@unhurried
@given(nearly_in_order(), BATCHES, st.integers(0, 60), st.integers(0, 60), st.sampled_from(["inner", "left", "outer"]))
def test_a_stream_join_makes_each_pair_once_and_each_unmatched_record_once(
    records: tuple[list[tuple[int, bytes, int]], int], sizes: list[int], before: int, after: int, kind: str
) -> None:
    events, disorder = records
    before, after = max(before, disorder), max(after, disorder)
    windows = JoinWindows(before, after, disorder + before + after)
    outer = (kind != "inner", kind == "outer")
    task, made = Harness([StreamJoinOperator("join", windows, outer)]), Counter[Any]()
    numbered = [(side, record(key, b"%d" % number, time)) for number, (side, key, time) in enumerate(events)]
    end = [(0, record(b"end", b"", FAR)), (1, record(b"end", b"", FAR)), (0, record(b"end", b"", FAR))]
    for batch in in_batches([*numbered, *end], sizes):
        for side, each in batch:
            made.update((out.value, out.other, out.timestamp) for out in task.give(0, side, each) if out.key != b"end")

    lefts = [each for side, each in numbered if side == 0]
    rights = [each for side, each in numbered if side == 1]
    expected, matched = Counter[Any](), set[Any]()
    for left in lefts:
        for right in rights:
            is_near = left.timestamp - before <= right.timestamp <= left.timestamp + after
            if left.key == right.key and is_near:
                expected[left.value, right.value, max(left.timestamp, right.timestamp)] += 1
                matched |= {left.value, right.value}
    if outer[0]:
        expected.update((left.value, None, left.timestamp) for left in lefts if left.value not in matched)
    if outer[1]:
        expected.update((None, right.value, right.timestamp) for right in rights if right.value not in matched)
    assert made == expected


def closed_windows(events: list[tuple[bytes, int]], windows: TimeWindows) -> dict[Any, int]:
    """Return the counts of the windows that have closed by the end, of the records that were in time."""
    counts, stream_time = Counter[Any](), -1
    for key, time in events:
        stream_time = max(stream_time, time)
        start = time - time % windows.size
        if start + windows.size > stream_time - windows.grace:
            counts[key + start.to_bytes(8, "big"), start] += 1
    last = stream_time - windows.grace - windows.size
    return {key: count for (key, start), count in counts.items() if start <= last}


@unhurried
@given(EVENTS, BATCHES, st.integers(1, 60), st.integers(0, 80))
def test_suppress_passes_each_closed_window_on_exactly_once(
    events: list[tuple[bytes, int]], sizes: list[int], size: int, grace: int
) -> None:
    windows = TimeWindows(size, size, grace)
    task, made = Harness([window_count(windows), SuppressOperator("final", windows)]), list[Output]()
    for update in run(task, events, sizes):
        made += task.give(1, 0, as_record(update))
    assert len({output.key for output in made}) == len(made)
    assert {output.key: LONG.deserialize(output.value) for output in made} == closed_windows(events, windows)


@unhurried
@given(EVENTS, BATCHES, st.integers(1, 60), st.integers(0, 80))
def test_each_window_speaks_on_close_exactly_once(
    events: list[tuple[bytes, int]], sizes: list[int], size: int, grace: int
) -> None:
    windows = TimeWindows(size, size, grace)
    made = run(Harness([window_count(windows, NEVER_LATE, on_close=True)]), events, sizes)
    assert len({output.key for output in made}) == len(made)
    assert {output.key: LONG.deserialize(output.value) for output in made} == closed_windows(events, windows)


@unhurried
@given(EVENTS, BATCHES, st.integers(1, 60), st.integers(0, 80))
def test_each_session_speaks_on_close_exactly_once(
    events: list[tuple[bytes, int]], sizes: list[int], gap: int, grace: int
) -> None:
    windows = SessionWindows(gap, grace)

    def fold(on_close: bool) -> SessionAggregateOperator:
        return SessionAggregateOperator(
            "sessions", STRING, (LONG,), LONG, None, (), windows, NEVER_LATE, on_close, counting=True
        )  # fmt: skip

    final = run(Harness([fold(True)]), [*events, (b"end", 2000)], sizes)
    updates = run(Harness([fold(False)]), events, sizes)
    serde = SessionWindowedSerde(STRING)
    assert len({output.key for output in final}) == len(final)
    # A late record may still extend a session that has spoken: then the longer one speaks as well.
    assert table(final, serde.deserialize).items() >= table(updates, serde.deserialize).items()


@unhurried
@given(
    st.lists(st.tuples(st.sampled_from(["put", "pop", "take", "save"]), st.integers(0, 100), KEYS), max_size=60),
    st.integers(1, 40),
)
def test_a_timeline_gives_entries_in_order_whatever_is_saved_in_between(
    steps: list[tuple[str, int, bytes]], width: int
) -> None:
    pages = Pages()
    timeline, model = TimeOrderedMap("waiting", pages, width), dict[Any, int]()
    for number, (what, time, key) in enumerate(steps):
        if what == "put":
            timeline.put((time, key), number)
            model[time, key] = number
        elif what == "pop":
            assert timeline.pop((time, key)) == model.pop((time, key), None)
        elif what == "take":
            assert timeline.first_time() == min(model, default=(None,))[0]
            assert timeline.last_time() == max(model, default=(None,))[0]
            first = timeline.first()
            assert first == min(model, default=None)
            if first is not None:
                assert timeline.pop(first) == model.pop(first)
        else:
            timeline.save()
            timeline = TimeOrderedMap("waiting", pages, width)
    assert list(timeline.in_order()) == sorted(model)
    for entry in sorted(model):
        timeline.pop(entry)
    timeline.save()
    assert not pages


@unhurried
@given(st.lists(st.tuples(KEYS, st.integers(0, 300), st.none() | st.binary(min_size=1, max_size=2)), max_size=40))
@example([(b"a", 1, None), (b"a", 1, None), (b"a", 0, None)])
@example([(b"a", 1, b"x"), (b"a", 1, None), (b"a", 0, b"y")])
def test_a_versioned_store_knows_what_a_row_was_at_a_time(changes: list[tuple[bytes, int, bytes | None]]) -> None:
    history, task = 100, a_task()
    store, kept, latest = BytesVersionedStore(task, "versions", history), dict[Any, bytes | None](), -1
    for key, time, value in changes:
        is_in_time = time >= latest - history
        latest = max(latest, time)
        was = kept.get((key, time))
        if is_in_time:
            kept[key, time] = value
        put = store.put(key, value, time)
        assert put.is_kept == is_in_time
        times = sorted(other for name, other in kept if name == key)
        assert put.is_latest == (is_in_time and time == times[-1])
        if put.is_latest and value is None and was is not None and (len(times) == 1 or kept[key, times[-2]] is None):
            del kept[key, time]  # Kafka Streams does not know any more when this one was deleted
    for key in (b"a", b"b", b"c"):
        versions = sorted((time, value) for (name, time), value in kept.items() if name == key)
        assert store.get(key) == (versions[-1][1] if versions else None)
        for as_of in range(max(latest - history, 0), 301):
            valid = [value for time, value in versions if time <= as_of]
            assert store.get(key, as_of) == (valid[-1] if valid else None)


def a_task() -> OperatorContext:
    harness = Harness([])
    return OperatorContext(harness.stage, 0, "test", lambda *_, **__: None, False)


Change = tuple[int, int]
"""The number of a key, and the length of its new value; 0 deletes it."""


@unhurried
@given(st.lists(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 300)), max_size=150), max_size=12))
def test_a_table_of_pages_holds_what_a_dict_holds_however_it_grows_and_shrinks(batches: list[list[Change]]) -> None:
    pages, known, rows = Pages(), dict[str, Any](), dict[bytes, bytes]()
    for batch in batches:
        table = PagedTable("rows", pages, known=lambda: known)
        for number, length in batch:
            key = b"%d" % number
            assert table.page(key).get(key) == rows.get(key)
            table.changed_page(key)[key] = rows[key] = bytes(length)
            if not length:
                del table.changed_page(key)[key], rows[key]
        table.save()
        assert dict(table.items()) == rows
        assert dict(PagedTable("rows", pages, known=lambda: known).items()) == rows
        assert known.get("bytes", 0) == sum(map(len, pages.values()))


def test_a_batch_writes_about_what_it_changes_whatever_the_table_holds() -> None:
    pages, known = Pages(), dict[str, Any]()

    def written(keys: Iterable[int]) -> int:
        table, before = PagedTable("rows", pages, known=lambda: known), dict(pages)
        for key in (b"k%d" % number for number in keys):
            table.changed_page(key)[key] = os.urandom(200)
        table.save()
        return sum(len(data) for page, data in pages.items() if before.get(page) != data)

    assert written(range(20_000)) > 20_000 * 200
    assert max(map(len, pages.values())) < 8 * PAGE_BYTES
    assert written(range(0, 20_000, 100)) < 5 * 200 * 210


def test_a_table_of_large_rows_has_no_more_pages_than_rows() -> None:
    known: dict[str, Any] = {}
    pages = Pages()
    for batch in range(5):
        table = PagedTable("rows", pages, known=lambda: known)
        for number in range(10):
            key = b"%d-%d" % (batch, number)
            table.changed_page(key)[key] = b"x" * 100_000
        table.save()
    assert known["pages"] <= 51
    assert pages.loads + pages.saves < 400
    assert len(dict(PagedTable("rows", pages, known=lambda: known).items())) == 50
