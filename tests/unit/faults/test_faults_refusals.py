"""Faults leave alone what is not this program's own; and a cluster refuses what it cannot be."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from streamskit import Cluster, faults
from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.broker.external import ExternalBroker
from streamskit.common.errors import BrokerError, SetupError, StreamsError
from streamskit.faults import Driver
from streamskit.faults.records import POISON
from streamskit.queries.instances import Instances
from streamskit.serdes import Serde, SerdeError, Serdes

BREAKS: list[Any] = [
    lambda broker: faults.kill_broker(broker=broker),
    lambda broker: faults.pause_broker(broker=broker),
    lambda broker: faults.poison("trades", broker),
]


@pytest.mark.parametrize("break_it", BREAKS, ids=["kill", "pause", "poison"])
def test_a_broker_of_others_is_left_alone(break_it: Any) -> None:
    with pytest.raises(BrokerError, match=r"kafka.example.org:9092 is not this project's broker"):
        break_it(ExternalBroker("kafka.example.org:9092"))


@pytest.mark.parametrize("break_it", BREAKS, ids=["kill", "pause", "poison"])
def test_the_broker_that_the_environment_names_is_left_alone(break_it: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    with pytest.raises(BrokerError, match=r"127.0.0.1:9 is not this project's broker.*STREAMSKIT_BOOTSTRAP_SERVERS"):
        break_it(None)


@pytest.mark.parametrize("break_it", BREAKS, ids=["kill", "pause", "poison"])
@pytest.mark.usefixtures("empty_project")
def test_where_no_broker_runs_there_is_nothing_to_break(break_it: Any) -> None:
    with pytest.raises(BrokerError, match="No shared broker runs"):
        break_it(None)


def test_a_broker_that_does_not_run_cannot_be_broken(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="is not running, so there is nothing to break"):
        faults.kill_broker(broker=EmbeddedBroker(tmp_path / "broker"))


@pytest.mark.parametrize("fault", [faults.kill_broker, faults.pause_broker])
@pytest.mark.parametrize(
    "seconds", ["soon", "-1 second", -5, float("nan"), float("inf"), 1e300, "9999999999999 days", True]
)
def test_a_broker_is_left_alone_if_nobody_can_say_for_how_long_it_would_be_broken(fault: Any, seconds: Any) -> None:
    broker = Mock(spec=Broker, is_running=True)
    with pytest.raises(ValueError, match="seconds"):
        fault(seconds, broker)
    assert not broker.kill.called
    assert not broker.pause.called


@pytest.mark.parametrize("fault", [faults.kill_broker, faults.pause_broker])
def test_a_broker_that_is_given_in_place_of_the_seconds_is_left_alone_and_its_place_is_told(fault: Any) -> None:
    broker = Mock(spec=Broker, is_running=True)
    with pytest.raises(ValueError, match=r"second argument, after the seconds: write .*\(20, broker\)"):
        fault(broker, 5)
    assert not broker.kill.called
    assert not broker.pause.called


@pytest.mark.parametrize("seconds", ["20 seconds", 20, 20.0, timedelta(seconds=20)])
def test_a_broker_is_broken_for_a_number_of_seconds_or_a_duration(seconds: Any) -> None:
    broker = Mock(spec=Broker, is_running=True, bootstrap_servers="127.0.0.1:9")
    for fault in (faults.kill_broker(seconds, broker), faults.pause_broker(seconds, broker)):
        assert ", for 20 s" in fault.description
        assert 0 < (fault.seconds_left or 0) <= 20
        fault.undo()
    assert (broker.kill.called, broker.start.called) == (True, True)
    assert (broker.pause.called, broker.resume.called) == (True, True)


@pytest.mark.parametrize(
    "serde",
    [Serdes.long(), Serdes.double(), Serdes.integer(), Serdes.uuid(), Serdes.json("price double")],
    ids=repr,
)
def test_no_serde_that_checks_its_bytes_reads_poison(serde: Serde) -> None:
    with pytest.raises(SerdeError):
        serde.deserialize(POISON)


def test_no_process_but_a_drivers_can_be_killed() -> None:
    with pytest.raises(
        StreamsError, match="this is a int: killing the process of this notebook would lose the notebook"
    ):
        faults.kill_driver(1)  # type: ignore[arg-type]
    with pytest.raises(StreamsError, match="is not running: call start"):
        faults.kill_driver(Driver(lambda: None, "app", "127.0.0.1:9"))  # type: ignore[arg-type, return-value]


def test_executors_of_a_cluster_elsewhere_are_left_alone() -> None:
    with pytest.raises(StreamsError, match="'spark://other:7077': others may need what runs elsewhere"):
        faults.kill_executor("spark://other:7077")  # type: ignore[arg-type]
    with pytest.raises(StreamsError, match="is not running: call start"):
        faults.kill_executor(Cluster())


def test_instances_that_were_not_started_here_are_left_alone() -> None:
    with Instances("app", "127.0.0.1:9") as instances:
        with pytest.raises(StreamsError, match="none runs that could be killed"):
            faults.kill_instance(instances)
        with pytest.raises(StreamsError, match=re.escape("No instance that was started here runs at h:1")):
            faults.kill_instance(instances, "h:1")
    with pytest.raises(StreamsError, match="kills one of the Instances that this program has started"):
        faults.kill_instance("h:1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"workers": 0}, "workers=0 is not a whole number of at least 1"),
        ({"cores": True}, "cores=True is not a whole number of at least 1"),
        ({"memory": "100m"}, "memory='100m' is not enough for an executor, or not an amount: write '1g' or more"),
        ({"memory": "2 GB"}, "memory='2 GB' is not enough for an executor, or not an amount"),
    ],
)
def test_a_cluster_says_what_it_cannot_be(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=re.escape(said)):
        Cluster(**arguments)


def test_a_cluster_that_does_not_run_says_so() -> None:
    cluster = Cluster()
    assert repr(cluster) == "<Cluster: stopped>"
    for ask in (lambda: cluster.master_url, cluster.workers, cluster.executors, cluster.add_worker):
        with pytest.raises(StreamsError, match="is not running: call start"):
            ask()
    cluster.stop()
