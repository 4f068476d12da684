"""What processors give to their context and their stores is checked there, and never leads to a wrong answer."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from streamskit import (
    Processor,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsError,
    TopologyError,
    ValueAndTimestamp,
    Windowed,
)
from streamskit.api.processor import ProcessorContext
from streamskit.queries import VersionedRecord
from streamskit.serdes import SerdeError
from tests.unit.operators.processor_harness import LONG, STRING, OneStore, Task, key_value

STREAM_TIME = PunctuationType.STREAM_TIME


def doing(act: Callable[[ProcessorContext, Record], object]) -> Callable[[], Processor]:
    """Return what makes a processor that does one thing with each record."""

    class Doing(Processor):
        def process(self, record: Record) -> None:
            act(self.context, record)

    return Doing


# ---- forward ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["x", None, {"key": "k", "value": "v"}, ("k", "v", 1)])
def test_only_records_are_forwarded(given: Any) -> None:
    task = Task(doing(lambda context, record: context.forward(given)))
    with pytest.raises(
        StreamsError, match=r"processor-1: forward\(\) passes on a record, and .* is none: write forward\("
    ):
        task.run(("k", "v", 1))


def test_the_time_in_hand_is_its_own_again_after_a_processor_has_caught_what_the_next_one_raised() -> None:
    def fail(context: ProcessorContext, record: Record) -> None:
        raise ValueError(record.value)

    def catch(context: ProcessorContext, record: Record) -> None:
        with pytest.raises(ValueError, match="v"):
            context.forward(record.with_timestamp(99))
        rows = context.state_store("rows")
        rows.put(record.key, f"{context.timestamp()} {context.record_metadata().offset}")

    task = Task(doing(catch), doing(fail), stores=[key_value()])
    assert task.run(("k", "v", 7)) == [("rows", b"k", b"7 0", 7)]


# ---- punctuations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("0 ms", STREAM_TIME, print), "a punctuation every 0 ms is impossible; give 1 ms or more"),
        ((10, "stream time", print), r"PunctuationType\.WALL_CLOCK_TIME, and not by 'stream time'"),
        ((10, None, print), "one of two clocks, .* and not by None"),
        ((10, STREAM_TIME, None), "a function that is called later, and None is none"),
        ((10, STREAM_TIME, "tick"), "a function that is called later, and 'tick' is none"),
        ((10, STREAM_TIME, lambda: 0), r"called with the time in milliseconds, and <lambda> takes \(\)"),
        (
            (10, STREAM_TIME, lambda context, time: 0),
            r"<lambda> takes \(context, time\): write def on_time\(self, time\)",
        ),
    ],
)
def test_what_cannot_be_scheduled_is_refused_where_it_is_scheduled(arguments: Any, said: str) -> None:
    with pytest.raises(StreamsError, match=said):
        Task(doing(lambda context, record: context.schedule(*arguments))).run(("k", "v", 1))


@pytest.mark.parametrize("interval", [-1, "soon", None])
def test_an_interval_is_a_duration(interval: Any) -> None:
    with pytest.raises(ValueError, match="interval"):
        Task(doing(lambda context, record: context.schedule(interval, STREAM_TIME, print))).run(("k", "v", 1))


# ---- stores ----------------------------------------------------------------------------------------------------------


def refused(store: OneStore, method: str, *arguments: Any, said: str) -> None:
    with pytest.raises(StreamsError, match=f"Store '{store.store.name}'.*{said}"):
        store.do(method, *arguments)


@pytest.fixture
def rows() -> OneStore:
    store = OneStore(key_value())
    store.do("put_all", [("a", "1"), ("b", "2")])
    return store


def test_a_prefix_of_none_is_refused_and_not_every_row(rows: OneStore) -> None:
    refused(rows, "prefix_scan", None, said=r"prefix_scan\(\) needs a prefix; for all rows write all\(\)")
    assert rows.do("prefix_scan", "") == [("a", "1"), ("b", "2")]


def test_many_rows_are_given_as_pairs(rows: OneStore) -> None:
    for entries in ({"cd": "3"}, ["cd"], [("c",)]):
        refused(rows, "put_all", entries, said=r"put_all\(\) takes pairs of a key and a value, and .* is none")
    assert rows.do("all") == [("a", "1"), ("b", "2")]


def test_of_many_rows_none_is_put_if_one_is_refused(rows: OneStore) -> None:
    refused(rows, "put_all", [("c", "3"), (None, "4")], said="a row cannot have the key None")
    with pytest.raises(SerdeError, match="cannot write 5"):
        rows.do("put_all", [("c", "3"), ("d", 5)])
    assert rows.do("all") == [("a", "1"), ("b", "2")]


def test_a_key_of_another_type_is_refused_by_its_serde(rows: OneStore) -> None:
    for method, arguments in (("get", (5,)), ("range", ("a", 5)), ("range", (5, "z")), ("prefix_scan", (5,))):
        with pytest.raises(SerdeError, match=r"Serdes\.string\(\) cannot write 5"):
            rows.do(method, *arguments)


def windows() -> OneStore:
    store = OneStore(Stores.persistent_window_store("windows", "1 hour", 10, STRING, STRING))
    store.do("put", "a", "text", 0)
    return store


def sessions() -> OneStore:
    store = OneStore(Stores.persistent_session_store("sessions", "1 hour", STRING, LONG))
    store.do("put", Windowed("a", 0, 10), 1)
    store.do("put", Windowed("b", 5, 20), 2)
    return store


def versions() -> OneStore:
    store = OneStore(Stores.persistent_versioned_key_value_store("versions", "1 hour", STRING, STRING))
    store.do("put", "a", "1", 5)
    return store


NO_TIMES = (None, "5", 5.5, True, 2**63, datetime(1970, 1, 1, tzinfo=UTC))

TIMES: list[tuple[Callable[[], OneStore], str, Callable[[Any], tuple[Any, ...]], str]] = [
    (windows, "put", lambda time: ("a", "x", time), "start"),
    (windows, "fetch", lambda time: ("a", time), "time_from"),
    (windows, "fetch", lambda time: ("a", time, 10), "time_from"),
    (windows, "backward_fetch", lambda time: ("a", 0, time), "time_to"),
    (windows, "fetch_range", lambda time: ("a", "b", time, 10), "time_from"),
    (windows, "fetch_all", lambda time: (0, time), "time_to"),
    (sessions, "put", lambda time: (Windowed("a", time, 10), 1), "the start of a session"),
    (sessions, "remove", lambda time: (Windowed("a", 0, time),), "its end"),
    (sessions, "fetch_session", lambda time: ("a", time, 10), "start"),
    (sessions, "find_sessions", lambda time: ("a", time, 10), "earliest_end"),
    (sessions, "find_sessions_range", lambda time: (None, "b", 0, time), "latest_start"),
    (versions, "put", lambda time: ("a", "x", time), "the time of a row"),
    (versions, "delete", lambda time: ("a", time), "the time of a row"),
]


@pytest.mark.parametrize(("made", "method", "arguments", "named"), TIMES)
def test_a_time_is_a_whole_number_of_milliseconds(made: Any, method: str, arguments: Any, named: str) -> None:
    store = made()
    for time in NO_TIMES:
        refused(store, method, *arguments(time), said=rf"{named} is .*, and has to be a whole number of milliseconds")


def test_a_time_may_be_a_number_of_numpy_s() -> None:
    store, moment = windows(), np.int64(20)
    store.do("put", "a", "more", moment)
    assert store.do("fetch", "a", 0, moment) == [(0, "text"), (20, "more")]
    assert versions().do("get", "a", np.int64(7)) == VersionedRecord("1", 5)


def test_a_time_that_lets_a_version_be_read_may_be_left_out() -> None:
    store = versions()
    assert store.do("get", "a", None) == store.do("get", "a") == VersionedRecord("1", 5)
    for time in ("5", 5.5):
        refused(store, "get", "a", time, said="as_of is")


def test_times_and_keys_the_wrong_way_round_select_nothing_as_in_kafka_streams() -> None:
    assert windows().do("fetch", "a", 10, 0) == []
    assert windows().do("fetch_all", 10, 0) == []
    assert windows().do("fetch_range", "b", "a", 0, 10) == []
    assert sessions().do("find_sessions_range", "b", "a", 0, 10) == []


def test_the_sessions_of_no_key_are_refused_and_not_those_of_all() -> None:
    refused(sessions(), "fetch", None, said="the key None")
    refused(sessions(), "find_sessions", None, 0, 10, said="the key None")
    assert len(sessions().do("fetch_range", None, None)) == 2


@pytest.mark.parametrize(("start", "end"), [(10, 1), (-5, 1)])
def test_a_session_starts_in_1970_or_later_and_does_not_end_before_it(start: int, end: int) -> None:
    refused(sessions(), "put", Windowed("a", start, end), 1, said=f"no session starts at {start} and ends at {end}")


@pytest.mark.parametrize("time", ["5", None, 5.5, -1])
def test_the_time_of_a_row_is_one_that_a_changelog_can_have(time: Any) -> None:
    timed = OneStore(Stores.persistent_timestamped_key_value_store("timed", STRING, STRING))
    refused(timed, "put", "a", ValueAndTimestamp("x", time), said="the time of a row is .*, and has to be a whole")
    assert timed.do("get", "a") is None
    refused(versions(), "put", "a", "x", time, said="the time of a row")


def test_a_store_without_a_changelog_may_have_times_before_1970_as_in_kafka_streams() -> None:
    timed = OneStore(Stores.persistent_timestamped_key_value_store("timed", STRING, STRING).with_logging(False))
    timed.do("put", "a", ValueAndTimestamp("x", -1))
    assert timed.do("get", "a") == ("x", -1)


def test_the_serde_of_a_prefix_is_a_serde(rows: OneStore) -> None:
    with pytest.raises(TopologyError, match=r"Store 'rows': the serde of a prefix must be a serde.*not 'text'"):
        rows.do("prefix_scan", "a", "text")
    assert rows.do("prefix_scan", b"a", Serdes.bytes()) == [("a", "1")]
