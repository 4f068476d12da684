"""Whole applications on a secured cluster: exactly once, rebuilt, in a process of its own, and instances."""

import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from streamskit import KafkaStreams, LogAndContinue, StreamsBuilder, Topology
from streamskit.broker import ExternalBroker
from streamskit.environment.spark_log import spark_log
from streamskit.faults import Driver
from streamskit.queries.instances import Instances
from streamskit.testing import wait_until
from tests.integration.secured.application import (
    PASSWORDS,
    SECRET,
    Run,
    Settings,
    command_lines,
    counting,
    found_in,
    make_topics,
    rows,
)
from tests.integration.secured.broker import SecuredBroker

pytestmark = [pytest.mark.broker]


@dataclass
class Running:
    """An application that runs exactly once over SASL_SSL with SCRAM, and all that was logged since it began."""

    name: str
    broker: ExternalBroker
    settings: Settings
    state_dir: Path
    streams: KafkaStreams
    log: Path

    def restart(self) -> None:
        """Close it, and start it again."""
        self.streams.close()
        self.streams = _started(self.name, self.settings, self.broker, self.state_dir)


def _started(name: str, settings: Settings, broker: ExternalBroker, state_dir: Path) -> KafkaStreams:
    streams = KafkaStreams(
        counting(name), name, broker.bootstrap_servers, client_settings=settings, state_dir=state_dir,
        processing_guarantee="exactly_once",
        production_handler=LogAndContinue(),  # so that Java asks whether a record's topic is there
    )  # fmt: skip
    streams.start()
    return streams


@pytest.fixture(scope="module")
def running(secured: SecuredBroker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    name, folder = "secured-app", tmp_path_factory.mktemp("running")
    settings = secured.user("alice", PASSWORDS["alice"])
    secured.allow_application("User:alice", name)
    make_topics(secured, name)
    broker = ExternalBroker(secured.sasl_ssl, settings)
    broker.produce(f"{name}-in", [("1", "x"), ("2", "y"), ("3", "x")])
    handler, everything = logging.FileHandler(folder / "python.log"), logging.getLogger()
    level = everything.level
    everything.addHandler(handler)
    everything.setLevel(logging.DEBUG)
    spark.conf.set("spark.sql.debug.maxToStringFields", "10000")
    spark.sparkContext.setLogLevel("INFO")
    streams = _started(name, settings, broker, folder / "state")
    application = Running(name, broker, settings, folder / "state", streams, folder / "python.log")
    application.streams.await_processed("180 seconds")
    everything.setLevel(level)
    everything.removeHandler(handler)
    spark.sparkContext.setLogLevel("WARN")
    yield application
    application.streams.close()
    spark.conf.unset("spark.sql.debug.maxToStringFields")


def test_an_application_runs_exactly_once_over_sasl_ssl_with_scram(running: Running) -> None:
    name, broker = running.name, running.broker
    assert rows(running.streams) == {"x": 2, "y": 1}
    assert running.streams.store("names").get("y") == "WHY"
    assert list(broker.consume(f"{name}-x", isolation="read_committed")["value"]) == ["x", "x"]
    broker.create_topics(f"{name}-z")  # Python workers and Java have to ask the cluster for it
    broker.produce(f"{name}-in", [("4", "z")])
    running.streams.await_processed("180 seconds")
    assert list(broker.consume(f"{name}-z", isolation="read_committed")["value"]) == ["z"]


def test_no_secret_is_in_a_plan_a_log_a_file_or_a_command_line(
    running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = running.streams
    print(streams, repr(streams.config), streams.config.connection, streams.explain(), streams.topology.describe())
    plans = [query._jsq.explainInternal(True) for query in streams.queries()]
    progress = [str(query.lastProgress) for query in streams.queries()]
    assert any("client.properties:sasl.jaas.config" in plan for plan in plans)  # where Java finds it
    logs = [running.log.read_text(errors="replace"), spark_log().read_text(errors="replace")]
    assert all("sasl" in log for log in logs)
    for shown in (capsys.readouterr().out, *logs, *plans, *progress, " ".join(command_lines())):
        assert SECRET not in shown
    assert (streams.folder / "topology.json").is_file()
    assert (streams.folder / "stores.json").is_file()
    assert not found_in(running.state_dir)


def test_a_folder_that_is_gone_is_rebuilt_from_a_secured_cluster(running: Running) -> None:
    before = rows(running.streams)
    running.streams.close()
    shutil.rmtree(running.state_dir)
    running.broker.produce(f"{running.name}-in", [("5", "y")])
    running.restart()
    running.streams.await_processed("180 seconds")
    assert rows(running.streams) == before | {"y": before["y"] + 1}


@pytest.mark.soak
def test_an_application_runs_over_sasl_ssl_with_plain_in_a_process_of_its_own(
    secured: SecuredBroker, plain: Settings, name: str, state_dir: Path
) -> None:
    make_topics(secured, name)
    ExternalBroker(secured.sasl_ssl, plain).produce(f"{name}-in", [("1", "x"), ("2", "y"), ("3", "x")])

    def program() -> Topology:
        builder = StreamsBuilder()
        builder.stream(f"{name}-in").group_by(lambda k, v: v).count("counts")
        return builder.build()

    with Driver(program, name, secured.sasl_ssl, client_settings=plain, state_dir=state_dir) as driver:
        driver.await_processed()
        assert sorted(driver.rows("counts")) == [("x", 2), ("y", 1)]
        assert SECRET not in " ".join(command_lines())
        assert SECRET not in driver.log()
    assert not found_in(state_dir)


def test_instances_answer_over_certificates_on_both_sides(
    secured: SecuredBroker, certificates: Settings, start: Run, name: str, state_dir: Path
) -> None:
    make_topics(secured, name)
    mine = ExternalBroker(secured.ssl, certificates)
    mine.produce(f"{name}-in", [(str(number), f"{'xy'[number % 2]}") for number in range(10)])
    streams = start(counting(name), secured.ssl, certificates, application_server="127.0.0.1:0")
    streams.await_processed("180 seconds")
    assert streams.store("names").get("x") == "EX"
    with Instances(
        name, secured.ssl, client_settings=certificates, applications=state_dir, in_memory=True
    ) as instances:
        server = instances.start()
        wait_until(lambda: len(streams.metadata_for_all_streams_clients()) == 2, "the second instance", 60)
        wait_until(
            lambda: httpx.get(f"{server.url}/state/keyvalue/counts/x").json().get("value") == 5, "the count of x", 30
        )
        assert SECRET not in " ".join(command_lines())
        assert SECRET not in instances.log(server)
