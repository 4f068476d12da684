"""What instances send each other is signed: the token stays where it is, and what was sent is of no use to others."""

import http.server
import threading
import time
from collections.abc import Iterator
from typing import ClassVar

import httpx
import pytest

from streamskit.queries.metadata import HostInfo
from streamskit.queries.rest import signing
from streamskit.queries.rest.signing import APPLICATION, FORWARDED, SIGNATURE, SignatureCheck, Signer
from tests.unit.queries.rest_harness import ALL_ACTIVE, Cluster, FakeInstance, cluster, long

TOKEN = "a-long-secret-of-the-course"


@pytest.fixture
def made() -> Iterator[Cluster]:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}, token=TOKEN) as made:
        for number in range(8):
            made.group.put("counts", str(number).encode(), long(number))
        yield made


def ask(made: Cluster, target: str, headers: dict[str, str], method: str = "GET") -> httpx.Response:
    return httpx.request(method, made.url() + target, headers=headers, trust_env=False)


def signed(made: Cluster, target: str, token: str = TOKEN, partitions: str = "0,1") -> dict[str, str]:
    """Return the headers with which another instance asks the first one."""
    headers = {APPLICATION: "app", FORWARDED: partitions}
    return {**headers, SIGNATURE: Signer(token, "app").sign(str(made.servers[0].address), target, headers.values())}


class Thief(http.server.BaseHTTPRequestHandler):
    """Keeps what is sent to it."""

    got: ClassVar[list[tuple[str, dict[str, str]]]] = []

    def do_GET(self) -> None:
        self.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.send_response(503)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


def test_who_joins_the_group_is_sent_nothing_that_is_of_use(made: Cluster) -> None:
    Thief.got.clear()
    server = http.server.HTTPServer(("127.0.0.1", 0), Thief)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.group.members.append(FakeInstance(made.group, HostInfo("127.0.0.1", server.server_port)))
    instances = made.get("/state/instances").json()["instances"]
    with made.http.stream("GET", made.url() + "/state/stream/counts") as updates:
        lines = updates.iter_lines()
        deadline = time.monotonic() + 240
        while len(Thief.got) < 2:
            assert time.monotonic() < deadline, f"only {len(Thief.got)} of 2 requests came in four minutes"
            next(lines)
    server.shutdown()
    server.server_close()
    assert [each["reachable"] for each in instances].count(False) == 1
    for path, headers in Thief.got:
        assert TOKEN not in path + repr(headers)
        stolen = {name: headers[name] for name in (APPLICATION, FORWARDED, SIGNATURE)}
        assert ask(made, path, stolen).status_code == 401


def test_instances_answer_each_other(made: Cluster) -> None:
    assert made.get("/state/keyvalues/counts/count").json()["count"] == 8
    answers = [made.get(f"/state/keyvalue/counts/{number}", number % 2).json()["value"] for number in range(8)]
    assert answers == list(range(8))


def test_a_signed_request_is_answered_once(made: Cluster) -> None:
    target = "/state/keyvalues/counts/all?limit=10"
    headers = signed(made, target)
    assert ask(made, target, headers).status_code == 200
    again = ask(made, target, headers)
    assert (again.status_code, again.headers["www-authenticate"]) == (401, "Bearer")
    assert "used before" in again.json()["error"]


def test_a_signature_holds_for_one_question(made: Cluster) -> None:
    target = "/state/keyvalues/counts/all?limit=10"
    of_another_server = Signer(TOKEN, "app").sign(str(made.servers[1].address), target, ["app", "0,1"])
    for asked, headers in [
        (target.replace("10", "11"), signed(made, target)),
        (target, signed(made, target) | {FORWARDED: "0"}),
        (target, signed(made, target) | {APPLICATION: "other"}),
        (target, signed(made, target, token="guessed")),
        (target, signed(made, target) | {SIGNATURE: of_another_server}),
        (target, signed(made, target) | {SIGNATURE: "1 2 3"}),
        (target, signed(made, target) | {SIGNATURE: ""}),
        (target, {}),
    ]:
        assert ask(made, asked, headers).status_code == 401
    assert ask(made, target, signed(made, target)).status_code == 200


@pytest.mark.parametrize(("seconds", "said"), [(-3600, "from 3600 s ago"), (3600, "from 3600 s ahead")])
def test_a_signature_holds_for_a_minute(
    made: Cluster, monkeypatch: pytest.MonkeyPatch, seconds: int, said: str
) -> None:
    clock = time.time_ns
    with monkeypatch.context() as patched:
        patched.setattr("streamskit.queries.rest.signing.time.time_ns", lambda: clock() + seconds * 10**9)
        headers = signed(made, "/state/instances", partitions="")
    answer = ask(made, "/state/instances", headers)
    assert (answer.status_code, said in answer.json()["error"]) == (401, True)


def test_a_signature_that_is_forgotten_is_not_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "MOST_REMEMBERED", 3)
    check, signer = SignatureCheck(TOKEN, "app", "a:1"), Signer(TOKEN, "app")
    headers = []
    for _ in range(5):
        headers.append(signer.sign("a:1", "/x", []))
        time.sleep(0.002)
    assert [check.fault("/x", each, []) for each in headers] == [None] * 5
    assert all("used before" in str(check.fault("/x", each, [])) for each in headers)
    restarted = SignatureCheck(TOKEN, "app", "a:1")
    assert "older than this instance" in str(restarted.fault("/x", headers[-1], []))


def test_a_clock_that_is_set_back_shuts_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    check, signer = SignatureCheck(TOKEN, "app", "a:1"), Signer(TOKEN, "app")
    clock = time.time_ns
    monkeypatch.setattr("streamskit.queries.rest.signing.time.time_ns", lambda: clock() - 3600 * 10**9)
    assert check.fault("/x", signer.sign("a:1", "/x", []), []) is None


def test_without_a_token_nothing_is_signed_and_all_is_answered() -> None:
    with cluster(ALL_ACTIVE) as made:
        made.group.put("counts", b"a", long(1))
        assert ask(made, "/state/keyvalue/counts/a", {}).status_code == 200
