"""An instance: which share of the stores it takes up, and what it lets go of whatever happens."""

import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamskit import Serdes, Stores
from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import StateStoreNotAvailableError, StreamsError, StreamsRebalancingError
from streamskit.kafka.topic_partition import TopicPartition, partition_for
from streamskit.queries.group.assignment import Assignment
from streamskit.queries.group.assignor import TaskAssignment
from streamskit.queries.group.catalogue import Catalogue, QueryableStore
from streamskit.queries.hosted_stores import HostedStores
from streamskit.queries.hosted_view import HostedView
from streamskit.queries.instance import Instance
from streamskit.queries.metadata import HostInfo
from streamskit.queries.query_server import QueryServer
from streamskit.queries.rest import server as rest
from streamskit.state.state_folder import StateFolder
from streamskit.state.storage import ChangelogMark, RowChange

STORE = Stores.persistent_key_value_store("counts", Serdes.string(), Serdes.long())
CATALOGUE = Catalogue("app", (QueryableStore(STORE, "app-counts-changelog", 0, partitions=2),))


def at_once(job: Callable[[], Any]) -> Future[Any]:
    """Run what a reader's thread would run."""
    done: Future[Any] = Future()
    done.set_result(job())
    return done


def test_a_share_that_had_to_wait_for_the_broker_does_not_come_back_over_the_one_agreed_on_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = Instance(CATALOGUE, "nowhere:1", HostInfo("127.0.0.1", 8080))
    later: list[Callable[[], None]] = []
    hosted: list[list[int]] = []

    class Timer:
        def __init__(self, seconds: float, job: Callable[[], None]) -> None:
            self.start = lambda: later.append(job)

    def host(places: dict[Any, str]) -> None:
        if not later:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        hosted.append([where.partition for where in places])

    monkeypatch.setattr("streamskit.queries.instance.threading.Timer", Timer)
    monkeypatch.setattr(instance._hosted, "do", at_once)
    monkeypatch.setattr(instance._hosted, "host", host)
    for tasks in (["0_0", "0_1"], ["0_1"]):
        servers = {instance._id: "127.0.0.1:8080", "another": "127.0.0.1:8081"}
        owners = {task: instance._id if task in tasks else "another" for task in CATALOGUE.tasks()}
        instance._learn(Assignment(servers, TaskAssignment(owners)))
    for job in later:
        job()
    assert hosted == [[1]]
    assert instance._roles == {"0_1": "active"}
    assert instance._has_share()


def test_an_instance_lets_go_of_its_folder_also_where_the_disk_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StateFolder(tmp_path / "stores")
    folder.open({"counts": "an id"})
    folder.storage("counts", 0)
    folder.storage("counts", 1)

    def full(*anything: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folder, "note", full)
        with pytest.raises(OSError, match="No space left"):
            folder.close()
    again = StateFolder(tmp_path / "stores")
    again.open({"counts": "an id"})
    assert again.storage("counts", 0).mark().position == 0
    again.close()


def test_copies_of_a_changelog_that_was_made_anew_are_deleted_even_those_that_are_not_in_use(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "stores")
    folder.open({"counts": "an id", "names": "another id"})
    for store, partition in (("counts", 0), ("counts", 1), ("names", 0)):
        folder.storage(store, partition).write([RowChange(0, b"k", b"v")], ChangelogMark(7))
    folder.release("counts", 1)
    folder.begin_anew({"counts": "a new id"})
    assert sorted(each.name for each in (tmp_path / "stores" / "counts").iterdir()) == ["0", "checkpoint.json"]
    assert folder.storage("counts", 1).mark().position == 0
    folder.close([("names", 0)])
    again = StateFolder(tmp_path / "stores")
    again.open({"counts": "a new id", "names": "another id"})
    positions = again.positions({"counts": "app-counts", "names": "app-names"})
    assert positions == {TopicPartition("app-counts", 1): 0, TopicPartition("app-names", 0): 7}
    again.close()


def test_nobody_is_let_in_before_the_start_and_what_is_not_started_can_be_let_go() -> None:
    config = StreamsConfig("app", "nowhere:1", application_server="127.0.0.1:0")
    server = QueryServer(CATALOGUE, config, lambda here: None)
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", server.here.port)) != 0
    server.let_go()
    rest.bind("127.0.0.1", server.here.port).close()


def test_a_port_where_another_program_has_begun_to_listen_since_is_told_at_the_start() -> None:
    bound = rest.bind("127.0.0.1")
    server = rest.Server(Instance(CATALOGUE, "nowhere:1", HostInfo("127.0.0.1", 8080)), bound)
    other = rest.bind("127.0.0.1", bound.getsockname()[1])
    other.listen()
    with pytest.raises(StreamsError, match=r"Nothing can be served at 127\.0\.0\.1:\d+: .*Choose another port"):
        server.start()
    server.stop()
    other.close()


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (StreamsError("The restore listener raised ValueError: no."), "The restore listener raised ValueError: no"),
    ],
)
def test_an_instance_that_cannot_take_up_its_share_says_why_and_is_not_waited_for(
    raised: Exception, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    instance = Instance(CATALOGUE, "nowhere:1", HostInfo("127.0.0.1", 8080))

    def host(places: dict[Any, str]) -> None:
        raise raised

    monkeypatch.setattr(instance._hosted, "do", at_once)
    monkeypatch.setattr(instance._hosted, "host", host)
    owners = dict.fromkeys(CATALOGUE.tasks(), instance._id)
    instance._learn(Assignment({instance._id: "127.0.0.1:8080"}, TaskAssignment(owners)))
    said = (
        f"The instance at 127.0.0.1:8080 could not take up its share of the stores: {why}. "
        "Put that right, then start it again."
    )
    began = time.monotonic()
    with pytest.raises(StreamsError) as refused:
        instance.wait_for({}, began + 60)
    assert str(refused.value) == said
    assert time.monotonic() < began + 30
    assert (instance.stopped, instance.health().failure, instance.lives) == (said, said, False)
    assert instance._hosted.store("counts").stopped == f"No more updates come: {said}"
    assert said in caplog.text
    with pytest.raises(StreamsRebalancingError, match=r"does not answer any more: The instance .* could not take up"):
        instance.local("counts", [0])


def test_a_partition_that_an_instance_has_been_given_and_not_taken_up_is_not_said_to_be_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = Instance(CATALOGUE, "nowhere:1", HostInfo("127.0.0.1", 8080))
    monkeypatch.setattr(instance._hosted, "do", lambda job: Future())
    owners = dict.fromkeys(CATALOGUE.tasks(), instance._id)
    instance._learn(Assignment({instance._id: "127.0.0.1:8080"}, TaskAssignment(owners)))
    with pytest.raises(StreamsRebalancingError, match=r"0 of store 'counts' has just been given to 127\.0\.0\.1:8080"):
        instance.local("counts", [0], for_all=False)


def test_an_instance_that_has_ended_says_so_and_never_that_a_store_is_empty() -> None:
    instance = Instance(CATALOGUE, "nowhere:1", HostInfo("127.0.0.1", 8080))
    view = HostedView(instance, "counts")
    assert (view.all(), view.stopped) == ([], "")
    instance.say_stopped("The query 'a' has failed.")
    for ask in (lambda: view.range("a", "b"), lambda: view.get("k"), lambda: len(view)):
        with pytest.raises(StateStoreNotAvailableError, match=r"not brought up to date any more.*'a' has failed"):
            ask()
    assert view.stopped == "The query 'a' has failed."


def test_a_row_of_a_global_table_may_be_in_any_partition_whatever_its_key() -> None:
    shared, whole = CATALOGUE.entries[0], replace(CATALOGUE.entries[0], is_global=True, partitions=3)
    assert [
        Instance(Catalogue("app", (entry,)), "nowhere:1", HostInfo("127.0.0.1", 8080)).partition_of("counts", b"k")
        for entry in (shared, whole)
    ] == [partition_for(b"k", 2), None]


@pytest.mark.parametrize(
    ("is_ready", "in_touch", "failure", "is_current"),
    [(True, True, "", True), (False, True, "", False), (True, False, "", False), (True, True, "no more", False)],
    ids=["read to its end", "still being restored", "the broker is away", "its reader has failed"],
)
def test_a_copy_counts_as_up_to_date_at_its_close_only_if_all_was_read(
    is_ready: bool, in_touch: bool, failure: str, is_current: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr("streamskit.state.state_folder.time", SimpleNamespace(time=lambda: now[0]))
    where = TopicPartition("app-counts-changelog", 1)
    idle: dict[str, Any] = {"start": lambda: None, "stop": lambda: None, "positions": {}}

    def hosted() -> HostedStores:
        stores = HostedStores(CATALOGUE, "nowhere:1", tmp_path / "stores", lambda *record: True, lambda: None)
        monkeypatch.setattr(stores, "_reader", SimpleNamespace(**idle, is_ready=lambda where: is_ready))
        stores.start({"app-counts-changelog": "an id"})
        return stores

    stores = hosted()
    stores.store("counts").take(1, [(b"k", Serdes.long().serialize(1), 0)], position=7)
    stores.roles, stores.failure = {where: "active"}, failure
    now[0] += 15 * 3600
    stores.stop(in_touch)
    now[0] += 15 * 3600
    again = hosted()
    assert again.position(where) == (7 if is_current else 0)
    again.stop()


def test_a_partition_that_is_being_given_up_has_no_state() -> None:
    stores = HostedStores(CATALOGUE, "nowhere:1", None, lambda topic, key, value: True, lambda: None)
    kept, gone = (TopicPartition("app-counts-changelog", number) for number in (0, 1))
    stores._by_topic = {"app-counts-changelog": [(kept, "active"), (gone, "active")]}
    stores._reader.ends[kept] = 7
    assert [(state.partition, state.end) for state in stores.states("app-counts-changelog")] == [(0, 7)]
