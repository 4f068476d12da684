"""What is refused, and how: tokens, names of hosts, odd paths, parameters that are none, slow and greedy clients."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from streamskit.common.errors import StreamsError
from streamskit.queries.metadata import HostInfo
from streamskit.queries.rest import connections
from streamskit.queries.rest.auth import host_name, is_loopback
from streamskit.queries.rest.server import Server, bind, serve
from tests.unit.queries.rest_harness import ALL_ACTIVE, Cluster, FakeInstance, Group, cluster, long


@pytest.fixture(scope="module")
def alone() -> Iterator[Cluster]:
    with cluster(ALL_ACTIVE) as made:
        made.group.put("counts", b"a", long(1))
        yield made


def exchange(made: Cluster, *sent: bytes) -> bytes:
    """Return what the server answers to bytes as they are, until it ends the connection or says nothing more."""
    with socket.create_connection(made.servers[0].address, timeout=5) as line:
        for each in sent:
            line.sendall(each)
        return read_all(line)


def read_all(line: socket.socket) -> bytes:
    answer = b""
    line.settimeout(1)
    try:
        while chunk := line.recv(65536):
            answer += chunk
    except (TimeoutError, ConnectionResetError):
        pass
    return answer


def body(answer: bytes) -> Any:
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def test_without_the_token_nothing_is_answered() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}, token="secret") as made:
        for number in range(8):
            made.group.put("counts", str(number).encode(), long(number))
        assert made.get("/state/keyvalues/counts/count").json()["count"] == 8  # instances send it to each other
        for path in ("/state/keyvalue/counts/1", "/state/stream/counts", "/openapi.json", "/docs", "/health", "/x"):
            for headers in ({}, {"authorization": "Bearer secre"}, {"authorization": "secret"}):
                answer = httpx.get(made.url() + path, headers=headers, trust_env=False)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
                assert "token" in answer.json()["error"]


def test_an_address_that_others_can_reach_wants_a_token() -> None:
    bound = bind("0.0.0.0")
    with pytest.raises(StreamsError, match=r"'0\.0\.0\.0' can be reached from other machines, and no token guards it"):
        Server(FakeInstance(Group(), HostInfo("0.0.0.0", 1)), bound)
    bound.close()


@pytest.mark.parametrize("token", ["secret\n", " secret", " ", "sécret"])
def test_a_token_that_no_client_could_send_is_refused_where_it_is_to_be_asked_for(token: str) -> None:
    with pytest.raises(StreamsError, match=r"No client could send the token: it has blanks or a line end around it"):
        serve(FakeInstance(Group(), HostInfo("127.0.0.1", 1)), token=token)


def test_a_port_that_is_taken_is_said_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StreamsError, match=r"Nothing can be served at 127\.0\.0\.1:\d+: .*Choose another port"):
            bind("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize("host", ["there.is.no.such.host.invalid", "192.0.2.1", "é" * 70])
def test_a_host_that_is_not_this_machine_is_no_matter_of_the_port(host: str) -> None:
    with pytest.raises(StreamsError, match=rf"Nothing can be served at {host}:8123: .*Give an address of this machine"):
        bind(host, 8123)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_on_loopback_a_page_that_pretends_to_be_this_host_is_refused(alone: Cluster, host: str) -> None:
    answer = alone.get("/state/keyvalue/counts/a", host=host)
    assert (answer.status_code, answer.json()["what_to_do"][:32]) == (400, "Ask it as http://127.0.0.1 or ht")


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "127.0.0.1", "[::1]:8080"])
def test_the_names_of_loopback_are_answered(alone: Cluster, host: str) -> None:
    assert alone.get("/state/keyvalue/counts/a", host=host).status_code == 200


def test_the_page_of_the_api_and_all_it_loads_come_from_here(alone: Cluster) -> None:
    base = alone.servers[0].address.url
    page = httpx.get(f"{base}/docs")
    assert page.status_code == 200
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(loaded) >= 2
    assert all(each.startswith("/") for each in loaded)
    assert {httpx.get(base + each).status_code for each in loaded} == {200}


def test_addresses_are_told_apart() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")] == [True] * 5
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5
    assert [host_name(host) for host in ("A:1", "[::1]:1", "::1", "a")] == ["a", "[::1]", "::1", "a"]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/state/keyvalue/nothing/a", 404, "has no store 'nothing'; it has: blobs, counts"),
        ("/state/keyvalue/counts/b", 404, "Store 'counts' has no key 'b'."),
        ("/state/windowed/minutes/a/0", 404, "Store 'minutes' has no window of key 'a' that starts at 0."),
        ("/state/keyvalue/minutes/a", 400, "'minutes' is a window store."),
        ("/state/windows/counts", 400, "'counts' is a key-value store."),
        ("/state/sessions/minutes/a", 400, "'minutes' is a window store."),
        ("/state/keyvalue/numbers/abc", 400, "'abc' is not a key of this store: write a whole number."),
        ("/state/keyvalue/numbers/9223372036854775808", 400, "Serdes.long() cannot write 9223372036854775808"),
        ("/state/keyvalue/orders/" + "[" * 5000, 400, "is not a key of this store: write JSON"),
        ("/state/keyvalues/counts/all?limit=0", 400, "Parameter 'limit'"),
        ("/state/keyvalues/counts/all?limit=10001", 400, "Parameter 'limit'"),
        ("/state/keyvalues/counts/all?after=zz!", 400, "after='zz!' is not a position in a list."),
        ("/state/keyvalues/counts/all?after=AAA=", 400, "is not a position in a list."),
        ("/state/keyvalues/counts/all?revers=true", 400, "There is no parameter 'revers' here."),
        ("/state/keyvalues/counts/prefix/a+b?as_bytes=1", 400, "The prefix is not bytes"),
        ("/state/windowed/minutes/a/x/1", 400, "Parameter 'from'"),
        ("/state/windowed/minutes/a/0/99999999999999999999", 400, "Parameter 'to'"),
        ("/state/sessions/visits/a?start=1", 400, "A session has a start and an end."),
        ("/state/keyvalue/counts/%ff", 400, "A part of the path is not UTF-8."),
        ("/state/keyvalue/counts/" + "a" * 8193, 414, "A part of the path has 8193 bytes"),
        ("/state/keyvalue/counts/" + "%61" * 25_000, 414, "more than 65536 bytes"),
        ("/state/keyvalue/counts", 404, "There is nothing at this path."),
        ("//state//keyvalue/counts/a", 404, "There is nothing at this path."),
        ("/state/../state/stores", 404, "There is nothing at this path."),
    ],
)
def test_a_request_that_asks_for_nothing_is_told_why(alone: Cluster, path: str, status: int, says: str) -> None:
    answer = exchange(alone, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer.split(b" ")[1] == str(status).encode()
    said = body(answer)
    assert says in said["error"]
    assert said["what_to_do"].endswith(".")


def test_all_that_changes_something_is_refused(alone: Cluster) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = alone.http.request(method, alone.url() + "/state/keyvalue/counts/a", content=b"1")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01 no http\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nx: " + b"y" * 70_000, b"431"),
        (b"GET /" + b"y" * 70_000, b"414"),
    ],
)
def test_what_is_no_request_gets_a_short_answer_and_no_more(alone: Cluster, sent: bytes, status: bytes) -> None:
    answer = exchange(alone, sent)
    assert answer.split(b" ")[1] == status
    assert body(answer)["error"].endswith(".")


def test_a_request_with_a_body_or_an_upgrade_is_answered_as_if_it_had_none(alone: Cluster) -> None:
    upgrade = b"Connection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    for extra in (b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", upgrade + b"\r\n"):
        answer = exchange(alone, b"GET /state/keyvalue/counts/a HTTP/1.1\r\nHost: localhost\r\n" + extra)
        assert body(answer)["value"] == 1


def test_a_client_that_does_not_finish_its_request_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SLOWEST_REQUEST", 0.5)
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with cluster(ALL_ACTIVE) as made:
        for beginnings in ([], [b"GET /hea"], [whole, b"GET /hea"], [whole[:-2] + b"Content-Length: 9\r\n\r\nhel"]):
            with socket.create_connection(made.servers[0].address) as line:
                for each in beginnings:
                    line.sendall(each)
                    time.sleep(0.05)
                line.settimeout(3)
                began = time.monotonic()
                try:
                    while line.recv(65536):
                        pass
                except ConnectionResetError:
                    pass
                assert time.monotonic() - began < 2
        assert made.get("/health").status_code == 200


def test_a_client_that_does_not_read_its_answer_is_cut_off_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "STALLED_AFTER", 0.5)
    with cluster(ALL_ACTIVE) as made:
        for number in range(300):
            made.group.put("blobs", long(number), bytes(50_000))
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(made.servers[0].address)
            line.sendall(b"GET /state/keyvalues/blobs/all HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.2)
            assert made.get("/health").status_code == 200
            _await(lambda: len(made.servers[0]._server.server_state.connections) == 1)


def test_connections_beyond_the_limit_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    with cluster(ALL_ACTIVE) as made:
        lines = [socket.create_connection(made.servers[0].address) for _ in range(3)]
        answer = exchange(made)
        assert (answer.split(b" ")[1], body(answer)["what_to_do"]) == (b"503", "Ask again in a moment.")
        assert b"retry-after: 1" in answer
        for line in lines:
            line.close()
        _await(lambda: _answers(made))


def test_a_server_that_stops_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with cluster(ALL_ACTIVE, ALL_ACTIVE) as made:
        for number in range(20):
            made.group.put("counts", str(number).encode(), long(number))
        made.get("/state/keyvalues/counts/all")
        assert threading.active_count() > before
    _await(lambda: threading.active_count() == before)
    with pytest.raises(httpx.ConnectError):
        httpx.get(made.url() + "/health", trust_env=False)


def _answers(made: Cluster) -> bool:
    try:
        return made.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def _await(holds: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "what was awaited did not come"
        time.sleep(0.05)
