"""Updates of a store as server-sent events: from all instances, each once, and none that holds up another."""

import asyncio
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamskit.api.windows import Windowed
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.queries.client import QueryClient
from streamskit.queries.group.catalogue import Catalogue, QueryableStore
from streamskit.queries.instance import Instance
from streamskit.queries.metadata import HostInfo, Hosts
from streamskit.queries.queryable_instance import StoreUpdate
from streamskit.queries.rest import events, routes_common
from streamskit.queries.rest.events import Mailbox
from streamskit.queries.rest.json_codec import dumps
from streamskit.queries.rest.protocol import Event, EventReader
from streamskit.serdes import Serdes
from streamskit.state.rows import Span
from streamskit.state.stores import Store
from tests.unit.queries.rest_harness import ALL_ACTIVE, TIME, Cluster, cluster, long, windowed


class Listener:
    """Collects the events of a stream in a thread."""

    def __init__(self, made: Cluster, path: str, instance: int = 0) -> None:
        self.events: list[Event] = []
        self._line = open_stream(made, path, instance)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        await_that(lambda: bool(self.of("open")))

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def close(self) -> None:
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._line.close()

    def _listen(self) -> None:
        reader = EventReader()
        with self._line.makefile(encoding="utf-8") as lines:
            for line in lines:
                event = reader.read(line.rstrip("\r\n"))
                if event is not None:
                    self.events.append(event)


def open_stream(made: Cluster, path: str, instance: int = 0, room: int | None = None) -> socket.socket:
    """Ask for a stream in HTTP 1.0, which has no chunks."""
    line = socket.socket()
    if room is not None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    line.connect(made.servers[instance].address)
    line.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    return line


def await_that(holds: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "what was awaited did not come"
        time.sleep(0.02)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(events, "LOOK_AROUND", 0.2)
    with cluster({0: "active", 1: "active", 2: "standby"}, {2: "active", 3: "active", 0: "standby"}) as made:
        yield made


def test_updates_of_all_instances_come_once_each_with_their_place(two: Cluster) -> None:
    listener = Listener(two, "/state/stream/counts")
    await_that(lambda: bool(listener.of("joined")))
    for number in range(40):
        two.group.put("counts", str(number).encode(), long(number))
    two.group.put("counts", b"7", None)
    await_that(lambda: len(listener.of("update")) == 41)
    told = [event.json() for event in listener.of("update")]
    assert sorted(each["value"] for each in told if each["value"] is not None) == list(range(40))
    deleted = next(each for each in told if each["value"] is None)
    assert (deleted["key"], deleted["timestamp"]) == ("7", TIME)
    for event in listener.of("update"):
        assert event.identifier == f"{event.json()['partition']}-{event.json()['offset']}"
    for partition in range(4):
        offsets = [each["offset"] for each in told if each["partition"] == partition]
        assert offsets == list(range(len(offsets)))
    listener.close()


def test_windows_have_their_times(two: Cluster) -> None:
    listener = Listener(two, "/state/stream/minutes")
    two.group.put("minutes", windowed("a", TIME), long(1), partition=0)
    two.instances[0].listeners["minutes"][0](StoreUpdate(Windowed("b", TIME, TIME + 60_000), 2, TIME, 0, 1))
    await_that(lambda: len(listener.of("update")) == 2)
    assert listener.of("update")[1].json()["window"] == {"start": TIME, "end": TIME + 60_000}
    listener.close()


def test_an_instance_that_goes_is_named_and_one_that_comes_is_followed(two: Cluster) -> None:
    listener = Listener(two, "/state/stream/counts")
    await_that(lambda: bool(listener.of("joined")))
    two.servers[1].stop()
    await_that(lambda: bool(listener.of("missing")))
    assert listener.of("missing")[0].json()["server"] == str(two.instances[1].here)
    time.sleep(1)
    assert len(listener.of("missing")) == 1
    listener.close()


def test_an_update_that_both_the_old_and_the_new_instance_tell_comes_once(two: Cluster) -> None:
    listener = Listener(two, "/state/stream/counts")
    await_that(lambda: bool(listener.of("joined")))
    here, there = two.instances
    there.roles[0] = "active"  # it takes over while the first has not let go yet
    for number in range(20):
        two.group.put("counts", b"d", long(number), partition=0)
    del here.roles[0]
    two.group.hosts[0] = Hosts(there.here)
    two.group.put("counts", b"d", long(99), partition=0)
    await_that(lambda: any(event.json()["value"] == 99 for event in listener.of("update")))
    values = [event.json()["value"] for event in listener.of("update")]
    assert values == [*range(20), 99]
    listener.close()


def test_updates_that_nobody_told_while_a_partition_moved_are_counted(two: Cluster) -> None:
    listener = Listener(two, "/state/stream/counts")
    await_that(lambda: bool(listener.of("joined")))
    here, there = two.instances
    two.group.put("counts", b"d", long(0), partition=0)
    await_that(lambda: len(listener.of("update")) == 1)
    here.roles[0] = "standby"
    for number in (1, 2, 3):
        two.group.put("counts", b"d", long(number), partition=0)
    there.roles[0] = "active"
    two.group.put("counts", b"d", long(4), partition=0)
    await_that(lambda: len(listener.of("update")) == 2)
    assert [event.json()["updates"] for event in listener.of("lost")] == [3]
    listener.close()


@pytest.mark.parametrize(("previous", "lost"), [(0, []), (None, [1]), (1, [1])])
def test_offsets_without_an_update_are_not_lost_where_a_partition_moved(
    previous: int | None, lost: list[int], two: Cluster
) -> None:
    listener = Listener(two, "/state/stream/counts")
    await_that(lambda: bool(listener.of("joined")))
    here, there = two.instances
    here.listeners["counts"][0](StoreUpdate("d", 0, TIME, 0, 0))
    await_that(lambda: len(listener.of("update")) == 1)
    # A transaction ended at offset 1.
    there.listeners["counts"][0](StoreUpdate("d", 1, TIME, 0, 2, previous=previous))
    await_that(lambda: len(listener.of("update")) == 2)
    assert [event.json()["updates"] for event in listener.of("lost")] == lost
    assert [event.json()["previous"] for event in listener.of("update")] == [None, previous]
    listener.close()


def test_a_slow_reader_loses_the_oldest_and_is_told_how_many_and_the_store_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "MOST_WAITING", 100)
    with cluster(ALL_ACTIVE) as made, open_stream(made, "/state/stream/blobs", room=4096) as line:
        await_that(lambda: bool(made.instances[0].listeners.get("blobs")))
        for number in range(600):
            made.group.put("blobs", long(number), bytes(30_000), partition=0)
            time.sleep(0.0005)
        assert made.get("/health").status_code == 200
        reader, told, lost, last = EventReader(), 0, 0, -1
        line.settimeout(240)
        deadline = time.monotonic() + 240
        with line.makefile(encoding="utf-8") as lines:
            while last < 599:
                assert time.monotonic() < deadline, f"update 599 did not come in four minutes; the last was {last}"
                event = reader.read(next(lines).rstrip("\r\n"))
                if event is not None and event.kind == "lost":
                    lost += event.json()["updates"]
                elif event is not None and event.kind == "update":
                    told, last = told + 1, event.json()["offset"]
        assert lost > 0
        assert lost + told == 600


def test_a_quiet_stream_sends_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_AROUND", 0.1)
    monkeypatch.setattr(events, "KEEP_ALIVE", 0.3)
    with (
        cluster(ALL_ACTIVE) as made,
        httpx.stream("GET", made.url() + "/state/stream/counts", trust_env=False, timeout=5) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        assert next(line for line in response.iter_lines() if line.startswith(":")) == ": nothing new"


def test_streams_that_are_left_alone_are_forgotten(monkeypatch: pytest.MonkeyPatch, two: Cluster) -> None:
    for _ in range(5):
        listeners = [Listener(two, "/state/stream/counts", number % 2) for number in range(6)]
        for listener in listeners:
            listener.close()
    await_that(lambda: not two.instances[0].listeners["counts"] and not two.instances[1].listeners["counts"])
    await_that(lambda: all(server._app.state.streams == 0 for server in two.servers))


def test_more_streams_than_are_served_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes_common, "MOST_STREAMS", 2)
    with cluster(ALL_ACTIVE) as made:
        listeners = [Listener(made, "/state/stream/counts") for _ in range(2)]
        refused = made.get("/state/stream/counts")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        for listener in listeners:
            listener.close()


def test_a_stream_takes_a_place_at_the_instance_that_is_asked_and_at_no_other(
    monkeypatch: pytest.MonkeyPatch, two: Cluster
) -> None:
    monkeypatch.setattr(routes_common, "MOST_STREAMS", 1)
    listeners = [Listener(two, "/state/stream/counts", number) for number in (0, 1)]
    for listener in listeners:
        await_that(lambda listener=listener: bool(listener.of("joined")))  # type: ignore[misc]
    assert two.get("/state/stream/counts").status_code == 503
    for listener in listeners:
        listener.close()


def test_a_server_that_stops_ends_its_streams() -> None:
    with cluster(ALL_ACTIVE) as made:
        listener = Listener(made, "/state/stream/counts")
        began = time.monotonic()
        made.servers[0].stop()
        assert time.monotonic() - began < 6
        assert made.servers[0]._thread.is_alive() is False
        listener.close()


@given(st.lists(st.integers()), st.integers(1, 5))
def test_a_mailbox_keeps_the_latest_and_counts_what_it_lost(news: list[int], most: int) -> None:
    async def run() -> tuple[int, list[int]]:
        mailbox = Mailbox[int](most)
        for each in news:
            mailbox.put(each)
        return await mailbox.fetch(0.01 if not news else 5)

    lost, kept = asyncio.run(run())
    assert kept == news[-most:]
    assert lost + len(kept) == len(news)


def test_a_mailbox_takes_news_from_any_thread_and_outlives_its_loop() -> None:
    async def run() -> tuple[Mailbox[int], list[int]]:
        mailbox, read = Mailbox[int](10_000), list[int]()
        thread = threading.Thread(target=lambda: deque(map(mailbox.put, range(5000)), 0))
        thread.start()
        deadline = time.monotonic() + 240
        while len(read) < 5000:
            assert time.monotonic() < deadline, f"only {len(read)} of 5000 came in four minutes"
            read += (await mailbox.fetch(5))[1]
        return mailbox, read

    mailbox, read = asyncio.run(run())
    assert read == list(range(5000))
    mailbox.put(1)


def test_an_update_that_cannot_be_read_is_told_and_ends_no_stream(two: Cluster) -> None:
    listener = Listener(two, "/state/stream/counts")
    await_that(lambda: bool(listener.of("joined")))
    places = [two.group.put("counts", key.encode(), b"short" if key in "ac" else long(1)) for key in "abcd"]
    await_that(lambda: len(listener.of("update")) + len(listener.of("unreadable")) == 4)
    assert sorted(event.json()["key"] for event in listener.of("update")) == ["b", "d"]
    told = [event.json() for event in listener.of("unreadable")]
    assert sorted(each["partition"] for each in told) == sorted([places[0], places[2]])
    assert all("Serdes.long() cannot read 5 bytes" in each["error"] for each in told)
    listener.close()


def test_an_instance_tells_of_an_update_that_cannot_be_read_and_reads_on() -> None:
    store = QueryableStore(Store("counts", "key-value", Serdes.string(), Serdes.long()), "app-counts-changelog")
    instance = Instance(Catalogue("app", (store,)), "localhost:1", HostInfo("127.0.0.1", 1))
    told = list[StoreUpdate]()
    instance.subscribe("counts", told.append)
    where = TopicPartition("app-counts-changelog", 0)
    instance._hosted.roles, instance._hosted._reader._goals = {where: "active"}, {where: 0}
    instance._hosted._take(where, [(b"a", b"short", 7), (b"b", long(1), 8)], [0, 1], 2)
    assert [(update.key, update.value, update.offset) for update in told] == [(None, None, 0), ("b", 1, 1)]
    assert "cannot read 5 bytes" in told[0].error
    instance._hosted._take(where, [(b"c", long(1), 9)], [3], 5)  # a transaction ended at offset 2
    assert [update.previous for update in told] == [None, 0, 1]
    assert [entry.key for entry in instance._hosted.store("counts").entries(Span())] == ["b", "c"]


ENDS_OF_LINES = "".join(map(chr, (10, 11, 12, 13, 28, 29, 30, 0x85, 0x2028, 0x2029)))


@pytest.mark.parametrize("end", ENDS_OF_LINES)
def test_an_event_has_one_line_for_each_field_whatever_it_holds(end: str) -> None:
    said = {"note": f"a{end}data: forged{end}", "price": 1}
    event = Event(f"update{end}data: forged", dumps(said), f"1-2{end}data: forged")
    lines = event.text().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["id", "event", "data", ""]
    reader = EventReader()
    read = next(filter(None, map(reader.read, lines)))
    assert read.json() == said


def test_a_value_with_ends_of_lines_comes_whole_from_every_instance(two: Cluster) -> None:
    note = f"one{ENDS_OF_LINES}data: {{}}"
    with QueryClient(two.url()) as client:
        heard: list[StoreUpdate] = []
        listening = threading.Thread(target=lambda: heard.extend(islice(client.updates("everywhere"), 1)), daemon=True)
        listening.start()
        await_that(lambda: bool(two.instances[0].listeners.get("everywhere")))
        two.group.put("everywhere", note.encode(), note.encode())
        listening.join(30)
    assert [(update.key, update.value) for update in heard] == [(note, note)]
    listener = Listener(two, "/state/stream/orders")
    await_that(lambda: bool(listener.of("joined")))
    two.group.put("orders", b'{"id":1}', dumps({"size": 1, "note": note}).encode(), partition=3)
    await_that(lambda: bool(listener.of("update")))
    assert listener.of("update")[0].json()["value"]["note"] == note
    listener.close()
