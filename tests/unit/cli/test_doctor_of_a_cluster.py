"""`python -m streamskit doctor` where it is told of a cluster."""

from typing import Any

import pytest

from streamskit.cli import doctor
from streamskit.environment.diagnosis import Check
from streamskit.kafka import partitioning_check
from streamskit.kafka.partitioning_check import Partitioning

ADDRESS = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def of_a_cluster_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "doctor", lambda: ())
    monkeypatch.delenv("STREAMSKIT_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setenv("COLUMNS", "500")


def test_the_cluster_in_the_environment_is_tried(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert doctor.main() == 0
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", ADDRESS)
    assert doctor.main() == 1
    assert f"Cluster   No Kafka broker answers at {ADDRESS}." in capsys.readouterr().out


def test_an_empty_address_is_no_cluster_that_lets_one_in(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        doctor.main(["--bootstrap-servers", ""])
    assert (
        "--bootstrap-servers is empty, as from a variable that is not set: give host:port." in capsys.readouterr().err
    )


def test_an_empty_variable_names_no_cluster(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", "")
    assert doctor.main() == 0
    assert "Cluster" not in capsys.readouterr().out


def test_a_broker_that_is_away_is_told_once(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", ADDRESS)
    monkeypatch.setattr(doctor, "doctor", lambda: (Check("Broker", "problem", "It is away."),))
    assert doctor.main() == 1
    assert "Cluster" not in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--topics=orders", "--command-config=client.properties"])
def test_what_is_of_a_cluster_needs_one(option: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        doctor.main([option])
    assert "name that cluster with --bootstrap-servers." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            Partitioning("orders", 4, 40, 0.25, 1.0),
            "librdkafka's default partitioner seems to have written 'orders' (4",
        ),
        (Partitioning("orders", 4, 40, 1.0, 0.25), "ok       Topic     'orders' (4 partitions): of 40 keys, 100% lie"),
        (Partitioning("orders", 4, 0, 0.0, 0.0), "ok       Topic     'orders' (4 partitions) has no records with ke"),
        (Partitioning("orders", 1, 0, 0.0, 0.0), "ok       Topic     'orders' has one partition, in which all keys me"),
    ],
)
def test_who_has_written_a_topic_is_told(
    found: Partitioning, said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(doctor, "_cluster", lambda address, file: Check("Cluster", "ok", "It lets you in."))
    monkeypatch.setattr(partitioning_check, "look_at", lambda servers, topic: found)
    assert doctor.main([f"--bootstrap-servers={ADDRESS}", "--topics=orders"]) == 0
    shown = capsys.readouterr().out
    assert said in shown
    assert ("partitioner=murmur2_random" in shown) == found.is_librdkafkas
