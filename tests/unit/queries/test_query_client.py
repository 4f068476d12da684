"""`QueryClient` and its stores: the methods and results of the local ones, over REST."""

import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from streamskit import Serdes
from streamskit.common.errors import StreamsError, StreamsRebalancingError, UnknownStateStoreError
from streamskit.environment.processes import wait_until
from streamskit.queries.client import QueryClient, calls
from streamskit.queries.client import stores as remote_stores
from streamskit.queries.instances import Instances
from streamskit.queries.metadata import HostInfo, KeyQueryMetadata
from streamskit.state.stores import ValueAndTimestamp
from tests.unit.queries.rest_harness import ALL_ACTIVE, TIME, Cluster, cluster, long, session, windowed
from tests.unit.queries.test_rest_rows import KEYS, _fill

LATER = TIME + 60_000


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}) as started:
        _fill(started)
        for key in ("a", "b"):
            for minute in range(5):
                started.group.put("minutes", windowed(key, TIME + minute * 60_000), long(minute + 10))
                started.group.put("visits", session(key, TIME, TIME + minute), long(minute))
        yield started


@pytest.fixture(scope="module")
def client(made: Cluster) -> Iterator[QueryClient]:
    with QueryClient(made.url()) as asking:
        yield asking


CALLS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("counts", "get", ("a/b",)), ("counts", "get", ("..",)), ("counts", "get", ("",)), ("counts", "get", ("none",)),
    ("counts", "all", ()), ("counts", "reverse_all", ()), ("counts", "range", ("a", "b")),
    ("counts", "range", ("", "a")),
    ("counts", "range", (None, "a")), ("counts", "range", ("b", None)), ("counts", "range", ("b", "a")),
    ("counts", "range", ()), ("counts", "reverse_range", ("a", "b")), ("counts", "prefix_scan", ("a",)),
    ("counts", "prefix_scan", (b"\xe6", Serdes.bytes())), ("counts", "approximate_num_entries", ()),
    ("counts", "peek", (3,)), ("counts", "peek", (3, lambda key: "b" in key)),
    ("numbers", "get", (3,)), ("numbers", "range", (0, 4)), ("blobs", "get", (b"a\xff",)), ("blobs", "all", ()),
    ("orders", "get", ({"id": 3},)), ("orders", "all", ()),
    ("prices", "get", ("KO",)), ("prices", "get", ("KO", 1000)), ("prices", "get", ("KO", 10)), ("prices", "all", ()),
    ("prices", "versions", ("KO",)), ("prices", "versions", ("KO", None, 1999)),
    ("prices", "versions", ("KO", datetime.fromtimestamp(2, UTC), 5000)), ("prices", "versions", ("PEP",)),
    ("prices", "backward_versions", ("KO", 0, 2000)),
    ("minutes", "fetch", ("a", TIME)), ("minutes", "fetch", ("a", TIME + 1)), ("minutes", "fetch", ("a", TIME, LATER)),
    ("minutes", "fetch", ("a", datetime.fromtimestamp(TIME / 1000, UTC), LATER)),
    ("minutes", "backward_fetch", ("a", TIME, LATER)), ("minutes", "fetch_range", ("a", "b", TIME, LATER)),
    ("minutes", "backward_fetch_range", ("a", None, TIME, LATER)), ("minutes", "fetch_all", (TIME, TIME)),
    ("minutes", "backward_fetch_all", (TIME, LATER)), ("minutes", "all", ()), ("minutes", "backward_all", ()),
    ("minutes", "peek", (3,)), ("minutes", "approximate_num_entries", ()),
    ("visits", "fetch", ("a",)), ("visits", "backward_fetch", ("a",)),
    ("visits", "fetch_session", ("a", TIME, TIME + 2)),
    ("visits", "fetch_session", ("a", TIME, TIME + 9)), ("visits", "find_sessions", ("a", TIME + 3, TIME)),
    ("visits", "fetch_range", ("a", "b")), ("visits", "fetch_range", (None, "a")), ("visits", "all", ()),
    ("visits", "backward_all", ()), ("visits", "backward_fetch_range", ("a", "b")),
    ("visits", "backward_find_sessions", ("a", TIME, LATER)),
    ("visits", "find_sessions_range", ("a", "b", TIME + 3, LATER)),
    ("visits", "backward_find_sessions_range", (None, "b", TIME, LATER)),
]  # fmt: skip


@pytest.mark.parametrize(("store", "method", "arguments"), CALLS, ids=lambda it: re.sub(" at 0x.*", "", str(it))[:30])
def test_a_remote_store_answers_as_the_local_one_of_all_partitions(
    made: Cluster,
    client: QueryClient,
    monkeypatch: pytest.MonkeyPatch,
    store: str,
    method: str,
    arguments: tuple[Any, ...],
) -> None:
    monkeypatch.setattr(remote_stores, "PAGE", 4)
    remote, local = client.store(store), made.group.whole[store]
    assert repr(getattr(remote, method)(*arguments)) == repr(getattr(local, method)(*arguments))
    if method in ("get", "fetch", "all", "range") and store != "prices":
        timed = getattr(remote.with_timestamps(), method)(*arguments)
        assert repr(timed) == repr(getattr(local.with_timestamps(), method)(*arguments))


def test_a_long_list_is_read_page_by_page_as_it_is_wanted(made: Cluster, client: QueryClient) -> None:
    store = client.store("counts")
    assert [pair.key for pair in islice(store.each(reverse=True), 2)] == sorted(KEYS, key=str.encode)[:-3:-1]
    assert store.search("b", 1) == [("b", KEYS.index("b"))]
    assert [pair.key for pair in store.search('"b"')] == ["b"]


def test_a_store_says_who_answered_and_how_long_that_took(made: Cluster, client: QueryClient) -> None:
    store = client.store("counts")
    assert str(store.answered_by) == "None"
    store.get("a")
    here, there = (str(instance.here) for instance in made.instances)
    assert str(store.answered_by) == f"{here} (active)"
    assert 0 < store.took < 5
    store.all()
    assert store.answered_by.hosts == (here, there)
    made.instances[1].behind[2] = 3
    store.get("b")
    assert str(store.answered_by) == f"{there} (active, 3 updates behind)"
    assert store.get("bddd") is None
    assert store.answered_by.hosts == (there,)
    made.instances[1].behind.clear()


def test_metadata_and_instances(made: Cluster, client: QueryClient) -> None:
    assert client.metadata_for_key("counts", "b") == KeyQueryMetadata(made.instances[1].here, (), 2)
    assert [each["reachable"] for each in client.instances()] == [True, True]
    assert "counts" in client.stores()
    with pytest.raises(StreamsError, match="a processor puts keys where it runs"):
        client.metadata_for_key("totals", "b")


def test_what_does_not_exist_is_named(client: QueryClient) -> None:
    with pytest.raises(UnknownStateStoreError, match=r"Application 'app' has no store 'nope'; it has: blobs, counts"):
        client.store("nope")
    with pytest.raises(UnknownStateStoreError, match="nope"):
        next(client.updates("nope"))
    with pytest.raises(ValueError, match="has no row with the key None"):
        client.store("counts").get(None)
    with pytest.raises(StreamsError, match="write a whole number"):
        client.store("numbers").get("text")


def test_an_address_where_nobody_answers_is_named_with_what_to_do() -> None:
    with pytest.raises(
        StreamsError,
        match=r"No instance answers at http://127\.0\.0\.1:9 \(connection refused\)\. Is the application running",
    ):
        QueryClient("127.0.0.1:9").stores()
    for url in ("", "ftp://a", "http://"):
        with pytest.raises(ValueError, match=r'write "http://127\.0\.0\.1:8080"'):
            QueryClient(url)
    with pytest.raises(ValueError, match="at least one URL"):
        QueryClient([])


@pytest.mark.parametrize("url", [None, 8080, object()])
def test_what_is_no_url_at_all_is_told_so_and_not_that_it_is_not_iterable(url: Any) -> None:
    with pytest.raises(ValueError, match="is not the URL of an instance: write"):
        QueryClient(url)


def test_the_next_url_is_asked_when_an_instance_has_gone() -> None:
    with cluster(ALL_ACTIVE, {0: "standby", 1: "standby", 2: "standby", 3: "standby"}) as made:
        made.group.put("counts", b"a", long(1))
        with QueryClient([made.url(0), made.url(1)]) as client:
            store = client.store("counts")
            assert (store.get("a"), store.answered_by.roles) == (1, ("active",))
            made.servers[0].stop()
            assert (store.get("a"), store.answered_by.roles) == (1, ("standby",))


def test_a_503_is_asked_again_until_the_time_is_over() -> None:
    with cluster(ALL_ACTIVE) as made:
        made.group.put("counts", b"a", long(1))
        instance = made.instances[0]
        with QueryClient(made.url(), retry="10 seconds") as client:
            store, instance.restoring = client.store("counts"), {1}
            threading.Timer(1.5, instance.restoring.clear).start()
            began = time.monotonic()
            assert store.get("a") == 1
            assert 1 < time.monotonic() - began < 8
        instance.restoring = {1}
        with (
            QueryClient(made.url(), retry="1500 ms") as client,
            pytest.raises(
                StreamsRebalancingError, match=r"Partition 1 of store 'counts' is being restored\. Ask again"
            ),
        ):
            client.store("counts").get("a")


def test_the_token_is_sent() -> None:
    with cluster(ALL_ACTIVE, token="secret") as made:
        made.group.put("counts", b"a", long(1))
        assert QueryClient(made.url(), token="secret").store("counts").get("a") == 1
        with pytest.raises(StreamsError, match=r"This server asks for a token\. Send it in the header"):
            QueryClient(made.url()).store("counts")


def test_instances_that_ask_for_the_token_of_the_environment_are_seen_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_TOKEN", "secret")
    with cluster(ALL_ACTIVE, token="secret") as made, Instances("app", "127.0.0.1:9") as instances:
        running: Any = SimpleNamespace(poll=lambda: None)
        monkeypatch.setattr(instances, "_processes", {made.instances[0].here: running})
        [state] = instances.instances()
        monkeypatch.setattr(instances, "_processes", {})
    assert state.alive
    assert {task.store for task in state.tasks} >= {"counts"}


def test_a_server_that_is_something_else_is_no_empty_store() -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *said: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(StreamsError, match="answered with status 404 and is no instance of an application"):
        QueryClient(f"http://127.0.0.1:{server.server_port}").store("counts")
    server.shutdown()
    server.server_close()


def test_updates_come_as_they_land() -> None:
    with cluster(ALL_ACTIVE) as made, QueryClient(made.url()) as client:
        updates = client.updates("numbers")
        put = threading.Thread(target=_put_when_heard, args=(made,))
        put.start()
        first, second = next(updates), next(updates)
        put.join(60)
        assert (first.key, first.value, first.timestamp, first.offset) == (0, 1.5, TIME, 0)
        assert (second.key, second.value) == (1, None)
        updates.close()  # type: ignore[attr-defined]


def _put_when_heard(made: Cluster) -> None:
    wait_until(lambda: made.instances[0].listeners.get("numbers"), "a listener", 10)
    made.group.put("numbers", long(0), b"\x3f\xf8" + bytes(6))
    made.group.put("numbers", long(1), None)


def test_a_host_is_read_from_what_an_instance_says() -> None:
    assert HostInfo.of("127.0.0.1:80") == ("127.0.0.1", 80)
    assert ValueAndTimestamp(1, 2) == (1, 2)


@pytest.mark.parametrize("token", ["s3cret\n", " s3cret", "p\u00e4ssword", "s3\0cret", "s3\ncret"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match=r"The token cannot be sent: .* read it with \.strip\(\)") as refused:
        QueryClient("http://127.0.0.1:9", token=token)
    assert token.strip() not in str(refused.value)
    assert "cret" not in str(refused.value)


def test_an_empty_token_is_none() -> None:
    with cluster(ALL_ACTIVE) as made, QueryClient(made.url(), token="") as client:
        assert "counts" in client.stores()


def test_what_a_library_says_of_a_header_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*anything: Any, **more: Any) -> None:
        raise httpx.LocalProtocolError("Illegal header value b'Bearer s3cret'")

    with QueryClient("http://127.0.0.1:9", token="s3cret") as client:
        monkeypatch.setattr(client._calls._http, "get", refuse)
        with pytest.raises(StreamsError, match=r"127\.0\.0\.1:9 \(the request cannot be sent\)") as failure:
            client.stores()
    assert "s3cret" not in str(failure.value)


def test_a_key_that_fits_into_no_url_is_a_sentence(client: QueryClient) -> None:
    store = client.store("counts")
    for length in (9_000, 70_000):
        with pytest.raises(StreamsError, match="Read long keys with a list or a range"):
            store.get("k" * length)


def test_threads_that_share_a_client_never_see_its_urls_half_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = calls.Calls(["http://a", "http://b"], None, 1, 0)
    first = asking.urls

    def answer(url: str) -> httpx.Response:
        if url.startswith("http://a"):
            raise httpx.ConnectError("no")
        return httpx.Response(200)

    monkeypatch.setattr(asking._http, "get", answer)
    asking._first_answer("/health")
    assert (first, asking.urls) == (["http://a", "http://b"], ["http://b", "http://a"])
