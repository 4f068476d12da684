"""Instances that share the stores of an application: they restore, hand over, and are found, on a real broker."""

import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from kafka.net.connection import KafkaConnection

from streamskit import Instances, QueryClient, Serdes, StreamsConfig, StreamsError, TimeWindows
from streamskit.broker import Broker
from streamskit.broker.settings import free_port
from streamskit.common.errors import (
    StateStoreMigratedError,
    StateStoreNotAvailableError,
    StreamsRebalancingError,
    UnknownStateStoreError,
)
from streamskit.environment.processes import alive, wait_until
from streamskit.kafka.connection import admin_client
from streamskit.kafka.topic_partition import partition_for
from streamskit.queries import Catalogue, Instance, QueryableStore
from streamskit.queries.group.discovery import ask_group, metadata_for_key, metadata_of
from streamskit.queries.group.shutdown import shut_down_instances
from streamskit.queries.hosted_view import HostedView
from streamskit.queries.metadata import HostInfo
from streamskit.queries.query_server import QueryServer
from streamskit.state.stores import Store
from tests.unit.queries.test_restore_listener import Telling

pytestmark = [pytest.mark.broker]

PARTITIONS = 4
KEYS = [f"key-{number}" for number in range(200)]
COUNTS = Store("counts", "key-value", Serdes.string(), Serdes.long())
WINDOWS = Store(
    "windows",
    "window",
    Serdes.string(),
    Serdes.long(),
    TimeWindows.of_size_with_no_grace(1000),
    10**9,
    persistent=False,
)
COUNTRIES = Store("countries", "key-value", Serdes.string(), Serdes.string())

Start = Callable[..., Instance]


@pytest.fixture
def catalogue(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Catalogue]:
    name = f"app{abs(hash(request.node.name))}"
    entries = (
        QueryableStore(COUNTS, f"{name}-counts-changelog", 0),
        QueryableStore(WINDOWS, f"{name}-windows-changelog", 0),
        QueryableStore(COUNTRIES, f"{name}-countries", -1, is_global=True),
    )
    for entry in entries:
        broker.create_topics(entry.changelog, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    yield Catalogue(name, entries)
    broker.delete_topics(*(entry.changelog for entry in entries))


@pytest.fixture
def start(broker: Broker, catalogue: Catalogue, tmp_path: Path) -> Iterator[Start]:
    started: list[Instance] = []

    def begin(port: int, standbys: int = 0, on_disk: bool = False) -> Instance:
        instance = Instance(
            catalogue,
            broker.bootstrap_servers,
            HostInfo("127.0.0.1", port),
            state_dir=tmp_path / str(port) if on_disk else None,
            num_standby_replicas=standbys,
            session_timeout="2 seconds",
        )
        started.append(instance)
        instance.start()
        return instance

    yield begin
    for instance in started:
        if not instance.stopped:
            instance.stop()


def fill(broker: Broker, catalogue: Catalogue, value: int = 1, keys: list[str] = KEYS) -> None:
    name = catalogue.application_id
    counts = [{"key": key.encode(), "value": struct.pack(">q", value), "timestamp": value} for key in keys]
    broker.produce(f"{name}-counts-changelog", counts)
    windows = [
        {
            "key": key.encode() + struct.pack(">qi", value * 1000, 0),
            "value": struct.pack(">q", value),
            "timestamp": value * 1000,
            "partition": partition_for(key.encode(), PARTITIONS),
        }
        for key in keys
    ]
    broker.produce(f"{name}-windows-changelog", windows)


def until(wanted: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def active(instance: Instance, store: str = "counts") -> set[int]:
    """Return the partitions that an instance answers for, and could answer for now."""
    found = {state.partition for state in instance.states(store) if state.role == "active" and state.ready}
    try:
        instance.local(store, found)
    except (StreamsRebalancingError, StateStoreMigratedError):  # it may have given one away since
        return set()
    return found


def share_everything(*instances: Instance, store: str = "counts") -> bool:
    held = [active(instance, store) for instance in instances]
    return set().union(*held) == set(range(PARTITIONS)) and sum(map(len, held)) == PARTITIONS


def value(instance: Instance, key: str) -> int | None:
    partition = instance.partition_of("counts", key.encode())
    assert partition is not None
    found: int | None = instance.local("counts", [partition]).get(key)  # type: ignore[attr-defined]
    return found


def test_one_instance_restores_every_store_and_follows_its_changelog(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    fill(broker, catalogue)
    broker.produce(f"{catalogue.application_id}-countries", [{"key": b"fr", "value": b"France"}])
    instance = start(1)
    until(lambda: share_everything(instance))
    assert {value(instance, key) for key in KEYS} == {1}
    assert len(instance.local("windows", range(PARTITIONS))) == len(KEYS)
    assert instance.local("countries", range(PARTITIONS)).all() == [("fr", "France")]
    fill(broker, catalogue, 2)
    until(lambda: {value(instance, key) for key in KEYS} == {2})
    assert all(state.lag == 0 for state in instance.states("counts"))


def test_two_share_the_partitions_and_every_answer_comes_from_one_of_them_while_they_do(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    fill(broker, catalogue)
    first = start(1)
    until(lambda: share_everything(first))
    second = start(2)
    answered = 0
    deadline = time.monotonic() + 30
    # Each is asked at a moment of its own: the first one may hear a little later than the second that it has less.
    while not share_everything(first, second) or len(active(first)) != 2 or len(active(second)) != 2:
        assert time.monotonic() < deadline, "the partitions were not shared out equally"
        for key in KEYS[:20]:
            found = []
            for instance in (first, second):
                try:
                    found.append(value(instance, key))
                except (StateStoreMigratedError, StreamsRebalancingError):
                    continue
            assert set(found) <= {1}
            answered += bool(found)
    assert {len(active(first)), len(active(second))} == {2}
    for key in KEYS:
        owner, other = (first, second) if value_is_here(first, key) else (second, first)
        assert value(owner, key) == 1
        with pytest.raises(StateStoreMigratedError, match="ask there"):
            value(other, key)


def value_is_here(instance: Instance, key: str) -> bool:
    return instance.partition_of("counts", key.encode()) in active(instance)


def test_one_that_reads_slowly_takes_over_although_nothing_comes_after_the_records_it_caught_up_with(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a portion takes longer than the broker waits to say that a partition has ended: the end comes
    # in one portion with the last records.
    changelog = "slowly-counts-changelog"
    broker.create_topics(changelog, partitions=2)
    broker.produce(changelog, [{"key": f"{number}".encode(), "value": bytes(8)} for number in range(8000)])
    catalogue = Catalogue("slowly", (QueryableStore(COUNTS, changelog, 0),))
    quick, slow = (
        Instance(catalogue, broker.bootstrap_servers, HostInfo("127.0.0.1", port), session_timeout="2 seconds")
        for port in (1, 2)
    )
    quick.start()
    until(lambda: active(quick) == {0, 1})
    take = slow._hosted._reader._take

    def take_slowly(*portion: Any) -> None:
        time.sleep(0.8)
        take(*portion)

    monkeypatch.setattr(slow._hosted._reader, "_take", take_slowly)
    slow.start()
    until(lambda: len(active(slow)) == 1 == len(active(quick)))
    slow.stop()
    quick.stop()


def test_what_one_leaves_the_others_take_over(broker: Broker, catalogue: Catalogue, start: Start) -> None:
    fill(broker, catalogue)
    first, second = start(1), start(2)
    until(lambda: share_everything(first, second) and bool(active(first)) and bool(active(second)))
    first.stop()
    with pytest.raises(StreamsRebalancingError, match="does not answer"):
        value(first, KEYS[0])
    until(lambda: share_everything(second))
    assert {value(second, key) for key in KEYS} == {1}


def test_a_standby_replica_answers_at_once_for_one_that_has_gone(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    fill(broker, catalogue)
    first, second = start(1, standbys=1), start(2, standbys=1)

    def all_ready() -> bool:
        states = [state for instance in (first, second) for state in instance.states("counts")]
        return len(states) == 2 * PARTITIONS and all(state.ready for state in states)

    until(lambda: all_ready() and share_everything(first, second))
    first.stop()
    standby = second.states("counts")
    assert len(standby) == PARTITIONS
    assert {value(second, key) for key in KEYS} == {1}


def test_a_restart_reads_only_what_it_missed(broker: Broker, catalogue: Catalogue, start: Start) -> None:
    fill(broker, catalogue)
    first = start(1, on_disk=True)
    until(lambda: share_everything(first))
    first.stop()
    fill(broker, catalogue, 2, KEYS[:3])
    again = start(1, on_disk=True)
    until(lambda: share_everything(again))
    assert {value(again, key) for key in KEYS[:3]} == {2}
    assert {value(again, key) for key in KEYS[3:]} == {1}
    assert again._hosted.store("counts").updates == 3


def test_instances_find_together_within_seconds_when_the_broker_leaves_requests_without_an_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So does a broker that stood still, which was then counted out and forgot what it had been asked.
    first, second = start(1), start(2)
    until(lambda: share_everything(first, second))
    deaf: set[KafkaConnection] = set()
    hear = KafkaConnection.data_received
    monkeypatch.setattr(KafkaConnection, "data_received", lambda self, data: None if self in deaf else hear(self, data))
    for instance in (first, second):
        assert instance._membership._member is not None
        deaf.update(instance._membership._member._consumer._manager._conns.values())
    assert len(deaf) == 4  # each has one to the broker, and one to the group's coordinator
    until(lambda: not share_everything(first, second), 5)
    until(lambda: share_everything(first, second), 20)


@pytest.mark.soak
def test_a_changelog_that_was_made_anew_is_read_from_its_start(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    fill(broker, catalogue)
    first = start(1, on_disk=True)
    until(lambda: share_everything(first))
    first.stop()
    topic = catalogue.entries[0].changelog
    broker.delete_topics(topic)
    broker.create_topics(topic, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    fill(broker, catalogue, 7, KEYS[:1])
    again = start(1, on_disk=True)
    until(lambda: share_everything(again))
    assert value(again, KEYS[0]) == 7
    assert [value(again, key) for key in KEYS[1:]] == [None] * (len(KEYS) - 1)


def test_who_hosts_what_is_read_from_the_group(broker: Broker, catalogue: Catalogue, start: Start) -> None:
    first, second = start(1, standbys=1), start(2, standbys=1)
    until(lambda: share_everything(first, second) and bool(active(first)) and bool(active(second)))
    until(lambda: first.placement() == second.placement() == ask_group(broker.bootstrap_servers, catalogue))
    described = {each.host_info: each for each in metadata_of(first.placement(), catalogue)}
    assert set(described) == {first.here, second.here}
    mine = described[first.here]
    assert mine.state_store_names == {"counts", "windows", "countries"}
    assert {where.partition for where in mine.topic_partitions} == active(first)
    assert {where.partition for where in mine.standby_topic_partitions} == active(second)
    counted = catalogue.with_partitions(broker.topics())
    found = metadata_for_key(first.placement(), counted, "counts", KEYS[0])
    assert found.partition == partition_for(KEYS[0].encode(), PARTITIONS)
    assert {found.active_host, *found.standby_hosts} == {first.here, second.here}


def test_updates_are_told_as_they_land_but_not_what_is_restored(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    fill(broker, catalogue)
    instance = start(1)
    told: list[tuple[str, int]] = []
    end = instance.subscribe("counts", lambda update: told.append((update.key, update.value)))
    until(lambda: share_everything(instance))
    fill(broker, catalogue, 5, KEYS[:4])
    until(lambda: len(told) == 4)
    assert sorted(told) == sorted((key, 5) for key in KEYS[:4])
    end()
    fill(broker, catalogue, 6, KEYS[:4])
    until(lambda: {value(instance, key) for key in KEYS[:4]} == {6})
    assert len(told) == 4


def members(broker: Broker, catalogue: Catalogue) -> set[int]:
    return {host.port for host in ask_group(broker.bootstrap_servers, catalogue).members}


def test_one_that_stays_in_the_group_keeps_its_share_for_a_quick_start_and_one_that_leaves_gives_it_away_at_once(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    one, two = start(1), start(2)
    until(lambda: share_everything(one, two))
    shares = active(one), active(two)
    one.stop(leave_group=False)
    assert members(broker, catalogue) == {1, 2}
    assert active(two) == shares[1]
    again = start(1)
    until(lambda: share_everything(again, two))
    assert (active(again), active(two)) == shares
    again.stop()
    until(lambda: members(broker, catalogue) == {2}, 1.5)  # a session lasts two seconds
    until(lambda: share_everything(two))


def test_a_listener_hears_of_what_an_instance_answers_for_and_not_of_what_it_keeps_for_others(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    fill(broker, catalogue)
    one = start(1, standbys=1)
    until(lambda: share_everything(one))
    two = Instance(catalogue, broker.bootstrap_servers, HostInfo("127.0.0.1", 2), session_timeout="2 seconds",
                   num_standby_replicas=1)  # fmt: skip
    two.restorations.listener = listener = Telling()
    two.start()
    try:
        until(lambda: share_everything(one, two))
        topic = f"{catalogue.application_id}-counts-changelog"
        ended = {told[1].partition for told in listener.told if told[0] == "end" and told[1].topic == topic}
        assert ended == active(two)
        one.stop()
        until(lambda: share_everything(two))
        until(lambda: len([told for told in listener.told if told[0] == "end" and told[1].topic == topic]) == 4)
    finally:
        two.stop()


def test_when_the_application_is_shut_down_every_instance_stops_and_says_why_and_a_later_one_starts(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    one, two = start(1), start(2)
    until(lambda: share_everything(one, two))
    assert shut_down_instances(broker.bootstrap_servers, catalogue, "the oven is cold.")
    for instance in (one, two):
        until(lambda each=instance: bool(each.stopped))  # type: ignore[misc]
        assert instance.stopped == "The application was shut down: the oven is cold."
        with pytest.raises(StateStoreNotAvailableError, match="the application has stopped: the oven is cold"):
            instance.local("counts", [0])
        instance.stop()
    later = start(3)
    until(lambda: share_everything(later))
    assert not later.stopped


def test_to_shut_down_where_no_instance_is_takes_no_time(broker: Broker, catalogue: Catalogue) -> None:
    began = time.monotonic()
    assert shut_down_instances(broker.bootstrap_servers, catalogue, "it is over.")
    assert time.monotonic() - began < 3


def test_a_store_that_is_not_there_and_an_application_that_never_ran_are_told(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    instance = start(1)
    with pytest.raises(UnknownStateStoreError, match="its stores are: countries, counts, windows"):
        instance.local("sums", [0])
    stranger = Catalogue("never-ran", (QueryableStore(COUNTS, "never-ran-counts-changelog", 0),))
    with pytest.raises(StreamsError, match="was 'never-ran' started"):
        Instance(stranger, broker.bootstrap_servers, HostInfo("127.0.0.1", 9)).start()


def test_in_its_own_process_an_instance_answers_though_it_has_lost_touch_with_its_group(
    broker: Broker, catalogue: Catalogue, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, catalogue)
    alone = start(7001)
    until(lambda: share_everything(alone))
    monkeypatch.setattr(type(alone._membership), "in_touch", False)
    assert HostedView(alone, "counts").get(KEYS[0]) == 1
    with pytest.raises(StreamsRebalancingError, match="lost touch with its group"):
        alone.local("counts", [0])  # what it would tell others


def test_of_two_instances_that_name_one_address_the_older_says_so_and_goes_on_when_the_other_has_left(
    broker: Broker, catalogue: Catalogue, start: Start
) -> None:
    fill(broker, catalogue)
    older = start(7002)
    until(lambda: share_everything(older))
    newer = start(7002)
    until(lambda: share_everything(newer))
    until(lambda: "says that it answers at 127.0.0.1:7002 as well" in older.health().waits_for)
    with pytest.raises(StreamsRebalancingError, match="Each needs an application_server of its own"):
        older.local("counts", [0])
    newer.stop()
    until(lambda: share_everything(older))
    until(lambda: older.health().waits_for == "")  # the other stores are restored after the one asked for


def test_an_instance_may_listen_at_another_address_than_the_one_where_others_find_it(
    broker: Broker, catalogue: Catalogue
) -> None:
    port = free_port()
    config = StreamsConfig(
        catalogue.application_id,
        broker.bootstrap_servers,
        application_server="tunnel.example:80",
        listen=f"127.0.0.1:{port}",
    )
    server = QueryServer(catalogue, config, lambda here: None)
    server.start()
    try:
        until(lambda: share_everything(server.instance))
        placement = ask_group(broker.bootstrap_servers, catalogue)
        assert placement.members == (server.here,) == (HostInfo("tunnel.example", 80),)
        for name in ("tunnel.example", "127.0.0.1"):
            with urlopen(Request(f"http://127.0.0.1:{port}/ready", headers={"Host": name}), timeout=60) as answer:
                assert answer.status == 200
        with pytest.raises(HTTPError, match="400"):
            urlopen(Request(f"http://127.0.0.1:{port}/ready", headers={"Host": "elsewhere.example"}), timeout=60)
    finally:
        server.stop()


def test_partitions_that_are_added_to_a_global_table_are_read_by_an_instance_in_its_own_process(
    broker: Broker, catalogue: Catalogue, tmp_path: Path
) -> None:
    name = catalogue.application_id
    catalogue.save(tmp_path / name)
    with Instances(name, broker.bootstrap_servers, applications=tmp_path) as instances:
        server = instances.start()
        with admin_client(broker.bootstrap_servers) as admin:
            admin.create_partitions({f"{name}-countries": PARTITIONS + 1})
        broker.produce(f"{name}-countries", [{"key": "CH", "value": "Switzerland", "partition": PARTITIONS}])
        with QueryClient(server.url, retry="30 seconds") as client:
            until(lambda: client.store("countries").get("CH") == "Switzerland")


@pytest.mark.parametrize("more", [3, len(KEYS)])
def test_an_instance_in_its_own_process_begins_anew_with_the_application_after_a_clean_up(
    more: int, broker: Broker, catalogue: Catalogue, tmp_path: Path
) -> None:
    name, topic = catalogue.application_id, catalogue.entries[0].changelog
    catalogue.save(tmp_path / name)
    fill(broker, catalogue)
    broker.produce(f"{name}-countries", [("CH", "Switzerland")])
    with Instances(name, broker.bootstrap_servers, applications=tmp_path) as instances:
        with QueryClient(instances.start().url, retry="30 seconds") as client:
            until(lambda: len(list(client.store("counts").all())) == len(KEYS))
        with QueryClient(next(iter(instances)).url, retry=0) as client:
            broker.delete_topics(topic, f"{name}-countries")

            def refused() -> str:
                try:
                    client.store("counts").get(KEYS[0])
                except StreamsRebalancingError as failure:
                    return str(failure)
                return ""

            until(lambda: f"Topic '{topic}', which fills stores of '{name}', was deleted" in refused())
            assert set(client.store("windows").fetch(KEYS[0], 0, 10_000)) == {(1_000, 1)}
            broker.create_topics(topic, f"{name}-countries", partitions=PARTITIONS)
            keys = [f"new-{number}" for number in range(more)]
            rows = [{"key": key.encode(), "value": struct.pack(">q", 7)} for key in [*keys, *keys, *keys]]
            broker.produce(topic, rows)
            broker.produce(f"{name}-countries", [("AT", "Austria")])
            until(lambda: not refused())
            assert {row.key: row.value for row in client.store("counts").all()} == dict.fromkeys(keys, 7)
            until(lambda: [row.key for row in client.store("countries").all()] == ["AT"])


def test_an_instance_ends_with_a_sentence_where_a_changelog_was_made_anew_with_other_partitions(
    broker: Broker, catalogue: Catalogue, tmp_path: Path
) -> None:
    name, topic = catalogue.application_id, catalogue.entries[0].changelog
    catalogue.save(tmp_path / name)
    with Instances(name, broker.bootstrap_servers, applications=tmp_path) as instances:
        server = instances.start()
        broker.delete_topics(topic)
        broker.create_topics(topic, partitions=PARTITIONS - 1)
        until(lambda: not list(instances))
        said = f"Topic '{topic}', which fills store 'counts', was made anew and has 3 partitions now, not 4. Start the"
        assert said in instances.log(server)


def test_instances_with_a_token_of_their_own_answer_only_those_who_show_it(
    broker: Broker, catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAMSKIT_TOKEN", raising=False)
    name = catalogue.application_id
    broker.produce(f"{name}-counts-changelog", [{"key": b"KO", "value": struct.pack(">q", 7), "timestamp": 1}])
    catalogue.save(tmp_path / name)
    with Instances(name, broker.bootstrap_servers, applications=tmp_path, token="open sesame") as instances:
        server = instances.start()
        with QueryClient(server.url, token="open sesame", retry="30 seconds") as client:
            assert client.store("counts").get("KO") == 7
        assert [each.alive for each in instances.instances()] == [True]
        with QueryClient(server.url, retry=0) as stranger, pytest.raises(StreamsError, match="token"):
            stranger.store("counts").get("KO")


def test_after_all_are_stopped_others_can_start_and_a_log_that_went_with_them_is_told(
    broker: Broker, catalogue: Catalogue, tmp_path: Path
) -> None:
    name = catalogue.application_id
    catalogue.save(tmp_path / name)
    with Instances(name, broker.bootstrap_servers, applications=tmp_path) as instances:
        first = instances.start()
        instances.stop()
        with pytest.raises(StreamsError, match=f"There is no log of an instance at {first}"):
            instances.log(first)
        second = instances.start()
        assert [*instances] == [second]
        assert "answers at" in instances.log(second)


BEGINS_ONE_AND_DIES = """
import os, sys
from pathlib import Path
from streamskit import Instances

name, servers, folder = sys.argv[1:]
instances = Instances(name, servers, applications=Path(folder))
instances._await = lambda server: (print(instances._processes[server].pid, flush=True), os._exit(0))
instances.start()
"""


def test_an_instance_ends_although_the_process_that_started_it_was_gone_before_it_had_begun(
    broker: Broker, catalogue: Catalogue, tmp_path: Path
) -> None:
    name = catalogue.application_id
    catalogue.save(tmp_path / name)
    said = subprocess.run(
        [sys.executable, "-c", BEGINS_ONE_AND_DIES, name, broker.bootstrap_servers, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    orphan = psutil.Process(int(said.stdout))
    wait_until(lambda: not alive(orphan), "the end of the instance without a parent")
