"""Who is asked when an instance is gone, restoring, or no longer what the others think it is."""

import asyncio
import socket
import time
from typing import Any

import anyio
import pytest

from streamskit.queries.metadata import HostInfo, Hosts
from streamskit.queries.rest.peers import TO_CONNECT
from tests.unit.queries.rest_harness import ALL_ACTIVE, PARTITIONS, Cluster, cluster, long, partition_of


def key_of(partition: int) -> str:
    """Return a key that is in a partition."""
    return next(chr(code) for code in range(97, 123) if partition_of(bytes([code])) == partition)


def filled(made: Cluster) -> Cluster:
    for partition in range(PARTITIONS):
        made.group.put("counts", key_of(partition).encode(), long(partition))
        made.group.put("totals", key_of(partition).encode(), long(partition))
    return made


def test_a_standby_answers_for_an_instance_that_died_and_says_how_far_behind_it_is() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}, {2: "standby"}) as made:
        filled(made).instances[2].behind[2] = 7
        made.servers[1].stop()
        answer = made.get(f"/state/keyvalue/counts/{key_of(2)}").json()
        assert (answer["value"], answer["role"], answer["lag"]) == (2, "standby", 7)
        assert answer["host"] == str(made.instances[2].here)


def test_a_key_that_nobody_has_is_a_503_and_never_a_404() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}) as made:
        filled(made)
        made.servers[1].stop()
        for key in (key_of(2), key_of(2) + "dddd"):  # one that is there, and one that never was
            answer = made.get(f"/state/keyvalue/counts/{key}")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["missing"] == [{"partition": 2, "why": f"{made.instances[1].here} cannot be reached."}]
        assert made.get(f"/state/keyvalue/counts/{key_of(1)}").status_code == 200


def test_a_key_that_may_be_anywhere_is_missing_only_when_all_have_said_so() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}) as made:
        filled(made)
        assert made.get("/state/keyvalue/totals/nobody").status_code == 404
        made.servers[1].stop()
        assert made.get("/state/keyvalue/totals/nobody").status_code == 503
        assert made.get(f"/state/keyvalue/totals/{key_of(1)}").json()["value"] == 1


def test_a_row_is_not_answered_while_a_partition_before_it_may_have_another_of_that_key() -> None:
    with cluster({2: "active", 3: "active"}, {0: "active", 1: "active"}) as made:
        made.group.put("totals", b"sum", long(10), partition=0)
        made.group.put("totals", b"sum", long(13), partition=3)
        assert made.get("/state/keyvalue/totals/sum").json()["value"] == 10
        made.servers[1].stop()
        assert made.get("/state/keyvalue/totals/sum").status_code == 503


def test_a_list_with_missing_partitions_is_a_503_unless_that_is_allowed() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}) as made:
        filled(made)
        made.servers[1].stop()
        for path in ("keyvalues/counts/all", "keyvalues/counts/count", "peek/counts", "keyvalues/counts/range"):
            refused = made.get(f"/state/{path}")
            assert refused.status_code == 503
            assert "partitions 2, 3 of store 'counts'" in refused.json()["error"]
            partial = made.get(f"/state/{path}?partial=true").json()
            assert [each["partition"] for each in partial["missing"]] == [2, 3]
            assert [each["partition"] for each in partial["partitions"]] == [0, 1]
        rows = made.get("/state/keyvalues/counts/all?partial=true").json()["rows"]
        assert sorted(row["partition"] for row in rows) == [0, 1]


def test_an_instance_that_has_no_longer_what_it_is_asked_for_gives_no_answer() -> None:
    with cluster({0: "active", 1: "active", 2: "active"}, {3: "active"}) as made:
        filled(made)
        moved = made.instances[1]
        del moved.roles[3]  # and the others have not heard of it yet
        answer = made.get(f"/state/keyvalue/counts/{key_of(3)}")
        assert answer.status_code == 503
        assert answer.json()["missing"][0]["why"] == f"Partition 3 of store 'counts' is not at {moved.here}."


def test_a_store_that_is_being_restored_is_a_503_here_and_elsewhere() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}) as made:
        filled(made)
        for instance in made.instances:
            instance.restoring = {0, 2}
        for partition, expected in ((0, 503), (1, 200), (2, 503), (3, 200)):
            assert made.get(f"/state/keyvalue/counts/{key_of(partition)}").status_code == expected
        partial = made.get("/state/keyvalues/counts/all?partial=true").json()
        assert [each["partition"] for each in partial["missing"]] == [0, 2]
        assert [row["partition"] for row in partial["rows"]] == sorted([1, 3], key=key_of)


def test_a_partition_that_nobody_hosts_is_a_503() -> None:
    with cluster({0: "active", 1: "active", 2: "active"}) as made:
        filled(made)
        answer = made.get(f"/state/keyvalue/counts/{key_of(3)}")
        assert answer.status_code == 503
        assert "No instance has it at the moment." in answer.json()["error"]
        metadata = made.get(f"/state/instance/counts/{key_of(3)}").json()
        assert (metadata["partition"], metadata["active_host"]) == (3, None)


def test_a_refusal_says_once_that_one_is_to_ask_again() -> None:
    for restoring in ({0}, set[int]()):  # the first says so itself; of the others nobody hosts one
        with cluster(dict.fromkeys(range(4 if restoring else 3), "active")) as made:
            made.instances[0].restoring = restoring
            said = made.get("/state/keyvalues/counts/all").json()
            assert f"{said['error']} {said['what_to_do']}".count("Ask again in a moment.") == 1


def test_an_instance_that_takes_too_long_is_passed_over_within_two_seconds() -> None:
    with cluster({0: "active"}, {0: "standby", 1: "active", 2: "active", 3: "active"}) as made, socket.socket() as mute:
        filled(made)
        mute.bind(("127.0.0.1", 0))
        mute.listen()  # takes the call, and says nothing
        standby = made.instances[1].here
        made.group.hosts[0] = Hosts(HostInfo(*mute.getsockname()), (standby,))
        began = time.monotonic()
        answer = made.get(f"/state/keyvalue/counts/{key_of(0)}", 1).json()
        assert time.monotonic() - began < 3.5
        assert (answer["role"], answer["host"]) == ("standby", str(standby))


def test_an_instance_that_stands_still_while_it_connects_does_not_take_the_other_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect, paused = anyio.connect_tcp, list[float]()

    async def paused_once(*arguments: Any, **options: Any) -> Any:
        if not paused:
            asyncio.get_running_loop().call_soon(time.sleep, 2 * TO_CONNECT)  # as a garbage collection does
            paused.append(time.monotonic())
        return await connect(*arguments, **options)

    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}) as made:
        filled(made)
        monkeypatch.setattr(anyio, "connect_tcp", paused_once)
        assert made.get(f"/state/keyvalue/counts/{key_of(2)}").json()["value"] == 2
        assert paused


def test_an_instance_of_another_application_that_took_the_port_gives_no_answer() -> None:
    with cluster({0: "active", 1: "active", 2: "active"}, {3: "active"}) as made:
        filled(made)
        made.instances[1].application_id = "another"
        answer = made.get(f"/state/keyvalue/counts/{key_of(3)}")
        assert answer.status_code == 503
        assert "This is an instance of application 'another'." in answer.json()["error"]


def test_a_forwarded_request_is_not_forwarded_again() -> None:
    with cluster({0: "active"}, {1: "active", 2: "active", 3: "active"}) as made:
        filled(made)
        sent = {"streamskit-application": "app", "streamskit-partitions": "0,1"}
        answer = made.http.get(made.url() + "/state/keyvalues/counts/all", headers=sent).json()
        assert [each["partition"] for each in answer["partitions"]] == [0]
        assert list(answer["missing"]) == ["1"]


@pytest.mark.parametrize("partitions", ["x", "4", "-1", "0,,1", "99999999999", "²"])
def test_a_forwarded_request_for_no_partitions_of_the_store_is_refused(partitions: str) -> None:
    with cluster(ALL_ACTIVE) as made:
        sent = [(b"streamskit-application", b"app"), (b"streamskit-partitions", partitions.encode())]
        answer = made.http.get(made.url() + "/state/keyvalues/counts/all", headers=sent)
        assert answer.status_code == 400


def test_each_instance_reports_its_partitions_and_one_that_cannot_be_reached_is_named() -> None:
    with cluster({0: "active", 1: "standby"}, {1: "active", 2: "active", 3: "active"}) as made:
        filled(made)
        reports = made.get("/state/instances/counts").json()["instances"]
        by_server = {report["server"]: report for report in reports}
        mine = by_server[str(made.instances[0].here)]["stores"]["counts"]
        assert [(each["partition"], each["role"], each["lag"], each["ready"]) for each in mine] == [
            (0, "active", 0, True),
            (1, "standby", 0, True),
        ]
        made.servers[1].stop()
        lost = next(each for each in made.get("/state/instances").json()["instances"] if not each["reachable"])
        there = made.instances[1].here
        assert (lost["server"], lost["error"], lost["stores"]) == (str(there), f"{there} cannot be reached.", {})


def test_the_metadata_of_a_key_name_its_active_instance_and_its_standbys() -> None:
    with cluster({0: "active", 1: "standby"}, {1: "active", 2: "active", 3: "active"}) as made:
        answer = made.get(f"/state/instance/counts/{key_of(1)}").json()
        assert (answer["partition"], answer["active_host"]) == (1, str(made.instances[1].here))
        assert answer["standby_hosts"] == [str(made.instances[0].here)]
