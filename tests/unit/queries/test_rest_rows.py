"""Rows over REST, from one instance or several: the same as in one local store of all partitions."""

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamskit.queries import local_store
from streamskit.queries.rest.results import ResultPage, ResultRow, merged
from tests.unit.queries.rest_harness import (
    ALL_ACTIVE,
    STORES,
    TIME,
    Cluster,
    cluster,
    long,
    partition_of,
    session,
    windowed,
)

KEYS = ["", "a", "a/b", "..", ".", "b", "ba", "c?d=e&f", "k%2F", "käse", "\x00", "z 1", "日本", "x" * 5000]


@pytest.fixture(scope="module")
def alone() -> Iterator[Cluster]:
    with cluster(ALL_ACTIVE) as made:
        _fill(made)
        yield made


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(
        {0: "active", 1: "standby"}, {1: "active", 2: "active", 0: "standby"}, {3: "active", 2: "standby"}
    ) as made:
        _fill(made)
        yield made


def _fill(made: Cluster) -> None:
    for number, key in enumerate(KEYS):
        data = key.encode()
        made.group.put("counts", data, long(number))
        made.group.put("totals", data, long(number), partition=number % 4)
        made.group.put("blobs", data + b"\xff", data)
        made.group.put("numbers", long(number - 5), b"\x7f\xf8" + bytes(6))
        made.group.put("orders", json.dumps({"id": number}, separators=(",", ":")).encode(), b'{"size":3}')
        for minute in range(3):
            made.group.put("minutes", windowed(key, TIME + minute * 60_000), long(minute))
            made.group.put("visits", session(key, TIME + minute * 100_000, TIME + minute * 100_000 + 7), long(minute))
    made.group.put("prices", b"KO", b"\x3f\xf0" + bytes(6), 1000)
    made.group.put("prices", b"KO", b"\x40\x00" + bytes(6), 2000)
    made.group.put("everywhere", b"a", b"b")


def path_of(key: str) -> str:
    return {".": "%2E", "..": "%2E%2E"}.get(key, quote(key, safe=""))


@pytest.mark.parametrize("instance", [0, 1, 2])
@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_found_whatever_signs_it_has_and_whomever_one_asks(three: Cluster, key: str, instance: int) -> None:
    answer = three.get(f"/state/keyvalue/counts/{path_of(key)}", instance).json()
    active = {0: 0, 1: 1, 2: 1, 3: 2}[partition_of(key.encode())]
    assert (answer["key"], answer["value"], answer["timestamp"]) == (key, KEYS.index(key), TIME)
    assert (answer["host"], answer["role"], answer["lag"]) == (str(three.instances[active].here), "active", 0)


@pytest.mark.parametrize("key", KEYS)
def test_windows_and_sessions_of_a_key_are_found(three: Cluster, key: str) -> None:
    at = path_of(key)
    start = TIME + 60_000
    found = three.get(f"/state/windowed/minutes/{at}/{start}").json()
    assert (found["key"], found["value"], found["window"]) == (key, 1, {"start": start, "end": start + 60_000})
    rows = three.get(f"/state/windowed/minutes/{at}/{TIME}/{start}?reverse=true").json()["rows"]
    assert [row["value"] for row in rows] == [1, 0]
    sessions = three.get(f"/state/sessions/visits/{at}").json()["rows"]
    assert [(row["key"], row["value"]) for row in sessions] == [(key, 0), (key, 1), (key, 2)]
    one = three.get(f"/state/sessions/visits/{at}?start={TIME}&end={TIME + 7}").json()["rows"]
    assert [row["value"] for row in one] == [0]


@pytest.mark.parametrize(
    ("store", "path"),
    [
        ("counts", "keyvalues/counts/all"),
        ("blobs", "keyvalues/blobs/all"),
        ("totals", "keyvalues/totals/all"),
        ("minutes", "windows/minutes"),
        ("visits", "sessions/visits"),
    ],
)
@pytest.mark.parametrize("limit", [1, 4, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_list_from_three_instances_page_by_page_is_that_of_one(
    alone: Cluster, three: Cluster, store: str, path: str, limit: int, reverse: bool
) -> None:
    whole = alone.get(f"/state/{path}?limit=10000&reverse={reverse}").json()
    assert whole["next"] is None
    assert len(whole["rows"]) >= len(KEYS)
    rows, after = [], ""
    while True:
        page = three.get(f"/state/{path}?limit={limit}&reverse={reverse}{after}", instance=1).json()
        assert len(page["rows"]) <= limit
        assert [heard["partition"] for heard in page["partitions"]] == [0, 1, 2, 3]
        rows += page["rows"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert rows == whole["rows"]


def test_a_list_has_the_rows_that_one_local_store_has(three: Cluster) -> None:
    local = local_store(STORES["counts"])
    for number, key in enumerate(KEYS):
        local.apply(key.encode(), long(number), TIME, number % 4)
    listed = three.get("/state/keyvalues/counts/all").json()["rows"]
    assert [(row["key"], row["value"]) for row in listed] == local.all()


def test_ranges_and_prefixes_are_cut_as_bytes_are_ordered(three: Cluster) -> None:
    def keys(path: str) -> list[str]:
        return [row["key"] for row in three.get(f"/state/keyvalues/counts/{path}").json()["rows"]]

    assert keys("range/a/b") == ["a", "a/b", "b"]
    assert keys("range/a/b?reverse=true") == ["b", "a/b", "a"]
    assert keys("range/b/a") == []
    assert keys("range/a%2Fb/ba") == ["a/b", "b", "ba"]
    assert keys("range//a") == ["", "\x00", ".", "..", "a"]
    assert keys("range?to=.") == ["", "\x00", "."]
    assert keys("range?from=z") == ["z 1", "日本"]
    assert keys("range") == sorted(KEYS, key=str.encode)
    assert keys("prefix/a") == ["a", "a/b"]
    assert keys("prefix/") == sorted(KEYS, key=str.encode)
    assert keys("prefix/4w==?as_bytes=true") == []
    assert keys("prefix/5g==?as_bytes=true") == ["日本"]


def test_windows_of_a_time_and_of_a_range_of_keys(three: Cluster) -> None:
    path = f"/state/windows/minutes/{TIME + 60_000}/{TIME + 60_000}"
    rows = three.get(path).json()["rows"]
    assert [row["key"] for row in rows] == sorted(KEYS, key=str.encode)
    some = three.get(f"{path}?key_from=a&key_to=b&reverse=true").json()["rows"]
    assert [(row["key"], row["value"]) for row in some] == [("b", 1), ("a/b", 1), ("a", 1)]


def test_values_that_json_has_no_word_for_are_text_and_keys_of_any_type_are_asked_for_as_they_are_shown(
    three: Cluster,
) -> None:
    for path in ("numbers", "blobs", "orders"):
        for row in three.get(f"/state/keyvalues/{path}/all").json()["rows"]:
            shown = row["key"] if isinstance(row["key"], str) else json.dumps(row["key"])
            assert three.get(f"/state/keyvalue/{path}/{quote(shown, safe='')}").json()["key"] == row["key"]
    assert three.get("/state/keyvalue/numbers/-5").json()["value"] == "NaN"


def test_a_versioned_store_answers_for_a_time(three: Cluster) -> None:
    versions = {at: three.get(f"/state/keyvalue/prices/KO?as_of={at}") for at in (999, 1000, 1999, 2000)}
    assert versions[999].status_code == 404
    assert [versions[at].json()["value"] for at in (1000, 1999, 2000)] == [1.0, 1.0, 2.0]
    latest = three.get("/state/keyvalue/prices/KO").json()
    assert (latest["value"], latest["timestamp"]) == (2.0, 2000)
    refused = three.get("/state/keyvalue/counts/KO?as_of=1")
    assert (refused.status_code, refused.json()["what_to_do"]) == (400, "Leave as_of out.")


def test_the_versions_of_a_key_are_listed_between_two_times(three: Cluster) -> None:
    def listed(query: str) -> list[tuple[float, int, int | None]]:
        rows = three.get(f"/state/versions/prices/KO?{query}", instance=2).json()["rows"]
        return [(row["value"], row["timestamp"], row.get("valid_to")) for row in rows]

    first, second = (1.0, 1000, 2000), (2.0, 2000, None)
    assert listed("") == [first, second]
    assert listed("reverse=true") == [second, first]
    assert (listed("to=1999"), listed("from=1999"), listed("from=2000")) == ([first], [first, second], [second])
    assert (listed("to=999"), listed("from=1500&to=1500")) == ([], [first])
    page = three.get("/state/versions/prices/KO?limit=1").json()
    assert [row["value"] for row in page["rows"]] == [1.0]
    assert listed(f"after={page['next']}") == [second]
    page = three.get("/state/versions/prices/KO?limit=1&reverse=true").json()
    assert listed(f"reverse=true&after={page['next']}") == [first]


def test_versions_are_refused_of_a_store_that_has_none_and_where_the_times_run_backwards(three: Cluster) -> None:
    refused = three.get("/state/versions/counts/a")
    assert (refused.status_code, refused.json()["error"]) == (400, "'counts' is a key-value store.")
    refused = three.get("/state/versions/prices/KO?from=2&to=1")
    assert (refused.status_code, refused.json()["error"]) == (400, "There are no versions from 2 to 1.")


def test_a_key_that_may_be_anywhere_is_looked_for_everywhere(three: Cluster) -> None:
    for number, key in enumerate(KEYS):
        answer = three.get(f"/state/keyvalue/totals/{path_of(key)}", number % 3).json()
        assert (answer["value"], answer["partition"]) == (number, number % 4)
    missing = three.get("/state/keyvalue/totals/nobody")
    assert missing.status_code == 404
    assert [heard["partition"] for heard in missing.json()["partitions"]] == [0, 1, 2, 3]
    assert three.get("/state/instance/totals/a").status_code == 400


def test_the_table_that_is_everywhere_is_read_here(three: Cluster) -> None:
    for number, instance in enumerate(three.instances):
        answer = three.get("/state/keyvalue/everywhere/a", number).json()
        assert (answer["value"], answer["host"], answer["role"]) == ("b", str(instance.here), "global")
        metadata = three.get("/state/instance/everywhere/a", number).json()
        assert (metadata["partition"], metadata["active_host"]) == (-1, str(instance.here))
        assert len(metadata["standby_hosts"]) == 2


def test_the_rows_are_counted_over_all_instances(three: Cluster) -> None:
    for store, count in (("counts", len(KEYS)), ("minutes", 3 * len(KEYS)), ("prices", 1)):
        assert three.get(f"/state/keyvalues/{store}/count", 2).json()["count"] == count


def test_a_few_rows_to_look_at_are_the_newest_windows_or_the_first_keys(three: Cluster) -> None:
    newest = three.get("/state/peek/minutes?rows=3").json()["rows"]
    assert [(row["key"], row["value"]) for row in newest] == [("", 2), ("\x00", 2), (".", 2)]
    assert [row["key"] for row in three.get("/state/peek/counts?rows=2&search=b").json()["rows"]] == ["b", "ba"]
    exact = three.get('/state/peek/counts?search="b"').json()["rows"]
    assert [row["key"] for row in exact] == ["b"]
    first = [row["key"] for row in three.get("/state/peek/numbers?rows=3").json()["rows"]]
    assert first == [0, 1, 2]  # negative numbers come after: bytes know no sign


pages = st.lists(
    st.tuples(st.lists(st.tuples(st.binary(max_size=2), st.integers(0, 3)), unique=True), st.integers(1, 5)), max_size=4
)


@given(pages, st.integers(1, 6), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_merged_pages_are_the_beginning_of_all_rows_in_order(
    sources: list[tuple[list[tuple[bytes, int]], int]], limit: int, reverse: bool
) -> None:
    everything = sorted((place for places, _ in sources for place in places), reverse=reverse)
    read = []
    for places, at_most in sources:
        ordered = sorted(places, reverse=reverse)
        read.append(ResultPage([ResultRow(*place, "") for place in ordered[:at_most]], len(ordered) > at_most))
    page = merged(read, limit, reverse)
    shown = [(row.row, row.partition) for row in page.rows]
    assert shown == everything[: len(shown)]
    assert len(shown) <= limit
    assert page.more is (len(shown) < len(everything))
    assert shown or not everything


def test_health_says_what_is_dead_and_ready_what_is_waited_for(alone: Cluster) -> None:
    instance, whole = alone.instances[0], alone.instances[0].how
    try:
        assert [alone.get(path).status_code for path in ("/health", "/ready")] == [200, 200]
        assert alone.get("/health").json()["parts"] == {"Spark's Java": True}
        instance.how = replace(whole, waits_for="'app' is REBALANCING.")
        assert [alone.get(path).status_code for path in ("/health", "/ready")] == [200, 503]
        assert alone.get("/ready").json()["error"] == "'app' is REBALANCING."
        instance.how = replace(whole, state="ERROR", failure="Java has ended.", parts={"Spark's Java": False})
        assert [alone.get(path).status_code for path in ("/health", "/ready")] == [503, 503]
        said = alone.get("/health").json()
        assert (said["status"], said["error"], said["parts"]) == ("failed", "Java has ended.", {"Spark's Java": False})
    finally:
        instance.how = whole


def test_lists_leave_out_rows_that_cannot_be_read_and_say_how_many() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}) as made:
        for number, key in enumerate("abcdefgh"):
            made.group.put("counts", key.encode(), b"short" if key in "bceg" else long(number))
        whole = made.get("/state/keyvalues/counts/all").json()
        assert [row["key"] for row in whole["rows"]] == ["a", "d", "f", "h"]
        assert (whole["unreadable"], whole["next"]) == (4, None)
        first = made.get("/state/keyvalues/counts/all?limit=3").json()
        second = made.get(f"/state/keyvalues/counts/all?limit=3&after={first['next']}").json()
        assert [row["key"] for page in (first, second) for row in page["rows"]] == ["a", "d", "f", "h"]
        assert [row["key"] for row in made.get("/state/peek/counts").json()["rows"]] == ["a", "d", "f", "h"]
        assert made.get("/state/keyvalue/counts/a").json()["value"] == 0
        assert made.get("/state/keyvalue/counts/b").status_code >= 500
