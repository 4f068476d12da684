"""A REST server among those who wish it ill: thousands of odd requests, slow clients, streams that are left alone."""

import gc
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from streamskit.queries.rest import connections, events
from tests.unit.queries.rest_harness import STORES, TIME, Cluster, cluster, long, session, windowed

KEYS = ["", "a", "a/b", "..", "käse", "\x00", "%2F", "1", "true", "x" * 8192]
KEPT_OPEN = 25
"""How many connections stay open for a while: those of instances to each other, and the test's own."""

EXPECTED = {200, 400, 404, 405, 414, 431, 503}

FRAGMENTS = [
    *("/", "//", "/state", "/state/", "keyvalue", "keyvalues", "windowed", "windows", "sessions", "instance"),
    *("instances", "stores", "peek", "count", "all", "range", "prefix", "docs", "openapi.json", "health", *STORES),
    *("..", ".", "%2e%2e", "%2E%2E%2F", "%00", "%0d%0aX:1", "%", "%zz", "%ff", "%c0%ae", "%u0041", ";", "\\"),
    *("?", "&", "=", "limit=", "after=", "reverse=true", "from=", "to=", "partial=1", "0", "-1", "1e9", "9" * 40),
    *("NaN", "[" * 500, "{}", "null", "true", "AAAAAA==", "\xff", "\xc3\xa4", "<script>", "' OR 1=1", "a" * 9000),
    *("${jndi:ldap://x}", "~", "*", "#"),
]


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    patched = pytest.MonkeyPatch()
    patched.setattr(connections, "SLOWEST_REQUEST", 1.0)
    patched.setattr(connections, "STALLED_AFTER", 1.0)
    patched.setattr(events, "LOOK_AROUND", 0.2)
    with cluster({0: "active", 1: "active", 2: "standby"}, {2: "active", 3: "active"}) as started:
        for key in KEYS:
            data = key.encode()
            for name in ("counts", "totals"):
                started.group.put(name, data, long(1))
            started.group.put("blobs", data, bytes(100))
            started.group.put("minutes", windowed(key, TIME), long(1))
            started.group.put("visits", session(key, TIME, TIME + 1), long(1))
        yield started
    patched.undo()


@pytest.fixture(scope="module")
def api(made: Cluster) -> Any:
    described = made.get("/openapi.json").json()
    del described["paths"]["/state/stream/{store}"]  # it never ends
    for path in described["paths"].values():
        for parameter in path["get"].get("parameters", []):
            if parameter["name"] == "store":  # any other name would be the end of most requests
                parameter["schema"] = {"enum": [*STORES, "nothing", "..", "a b"]}
    loaded = schemathesis.openapi.from_dict(described)
    loaded.config.update(base_url=made.url())
    return loaded


def test_requests_made_up_from_the_openapi_page_are_answered_as_it_says(api: Any) -> None:
    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]
    asked = 0
    for operation in api.get_all_operations():

        @given(case=operation.ok().as_strategy() | operation.ok().as_strategy(generation_mode=GenerationMode.NEGATIVE))
        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            response = case.call(timeout=20)
            assert response.status_code in EXPECTED - {503}, response.text
            case.validate_response(response, checks=checks)

        ask()
    assert asked > 500


targets = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), min_size=1, max_size=10).map("".join)


@given(targets=st.lists(targets, min_size=10, max_size=30), whole=st.booleans())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_paths_of_any_kind_get_a_short_sentence(made: Cluster, targets: list[str], whole: bool) -> None:
    for target in targets:
        line = ("/" if whole else "") + target.replace(" ", "%20").replace("\r", "").replace("\n", "")
        with socket.create_connection(made.servers[0].address, timeout=10) as connection:
            connection.sendall(
                f"GET {line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1", "replace")
            )
            answer = _read_all(connection)
        status = int(answer.split(b" ")[1])
        assert status in EXPECTED, (line, answer[:500])
        if status != 200:
            said = json.loads(answer.partition(b"\r\n\r\n")[2])
            assert said["error"].endswith("."), (line, said)
            assert said["what_to_do"].endswith("."), (line, said)


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_bytes_of_any_kind_never_break_the_server(made: Cluster, sent: bytes, as_header: bool) -> None:
    before = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " if as_header else b""
    with socket.create_connection(made.servers[0].address, timeout=10) as connection:
        connection.sendall(before + sent + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = _read_all(connection)
    assert not answer or int(answer.split(b" ")[1]) in EXPECTED, answer[:500]
    assert b" 500 " not in answer


def test_slow_and_faithless_clients_hold_up_nobody_and_leave_nothing_behind(made: Cluster) -> None:
    assert made.get("/state/keyvalue/counts/a").status_code == 200
    slowest, memory, threads = 0.0, list[int](), threading.active_count()
    for _ in range(4):
        clients = [client for _ in range(30) for client in _ill_wishers(made)]
        for _ in range(30):
            began = time.monotonic()
            assert made.get("/state/keyvalue/counts/a").json()["value"] == 1
            assert made.get("/state/keyvalues/counts/all").json()["missing"] == []
            slowest = max(slowest, time.monotonic() - began)
        for client in clients:
            with suppress(OSError):
                client.close()
        _await(lambda: all(_open(made, number) <= KEPT_OPEN for number in range(2)))
        gc.collect()
        memory.append(psutil.Process().memory_info().rss)
    assert slowest < 2
    _await(lambda: all(server._app.state.streams == 0 for server in made.servers))
    # A stream counts as ended a moment before it has let go of what it listened to.
    _await(lambda: not any(listeners for instance in made.instances for listeners in instance.listeners.values()))
    _await(lambda: all(not server._server.server_state.tasks for server in made.servers))
    assert memory[-1] - memory[1] < 30_000_000
    assert threading.active_count() < threads + 10


def _ill_wishers(made: Cluster) -> list[socket.socket]:
    """Return a few clients: one says nothing, one speaks slowly, one leaves mid-way, three do not read."""
    host = b"Host: localhost\r\n\r\n"
    sent = [
        b"",
        b"GET /state/keyv",
        b"GET /state/keyvalue/counts/a HTTP/1.1\r\nX-" + bytes(random.choices(b"abc", k=1000)),
        b"GET /state/stream/counts HTTP/1.1\r\n" + host,
        b"GET /state/keyvalues/blobs/all HTTP/1.1\r\n" + host,
        b"GET /health HTTP/1.1\r\nContent-Length: 1000000\r\n" + host + bytes(1000),
    ]
    clients = []
    for number, each in enumerate(sent):
        client = socket.create_connection(made.servers[number % 2].address)
        client.sendall(each)
        clients.append(client)
    clients[2].close()
    return clients


def _read_all(connection: socket.socket) -> bytes:
    answer = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


def _open(made: Cluster, number: int) -> int:
    return len(made.servers[number]._server.server_state.connections)


def _await(holds: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "what was awaited did not come"
        time.sleep(0.05)
