"""Whole applications on a broker that encrypts, asks who one is, and allows only what access control lists give."""

import logging
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import javaproperties
import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import (
    KafkaStreams,
    LogAndContinue,
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsError,
    Topology,
)
from streamskit.api import jaas
from streamskit.broker import ExternalBroker
from streamskit.cli import doctor
from streamskit.common.errors import BrokerError
from streamskit.environment.spark_log import spark_log
from streamskit.execution.sinks import learn_to_ask_for_topics
from streamskit.faults import Driver
from streamskit.kafka.access import NoRightError, NotLetInError, Right, missing_rights
from streamskit.kafka.client_libraries import java_text
from streamskit.kafka.connection import admin_client
from streamskit.kafka.tail import Ends, Tail
from streamskit.queries import Catalogue, Instance, QueryableStore
from streamskit.queries.group.discovery import ask_group
from streamskit.queries.instances import Instances
from streamskit.queries.metadata import HostInfo
from streamskit.runtime.purging import Purging
from streamskit.state.stores import Store
from streamskit.testing import wait_until
from streamskit.views.topic_view import TopicView
from tests.integration.secured_broker import SecuredBroker, secured_broker

pytestmark = [pytest.mark.broker]

PASSWORDS = {"alice": 'swordfish-"\\ 1', "bob": "swordfish-2", "carol": "swordfish-3", "mallory": "swordfish-4"}
SECRET = "swordfish"

Settings = dict[str, str]
Run = Callable[..., KafkaStreams]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured"), {"bob": PASSWORDS["bob"]}) as broker:
        yield broker


@pytest.fixture
def scram(secured: SecuredBroker, name: str) -> Settings:
    settings = secured.user("alice", PASSWORDS["alice"])
    secured.allow_application("User:alice", name)
    return settings


@pytest.fixture
def plain(secured: SecuredBroker, name: str) -> Settings:
    secured.allow_application("User:bob", name)
    return secured.sasl("bob", PASSWORDS["bob"], "PLAIN")


@pytest.fixture
def certificates(secured: SecuredBroker, name: str) -> Settings:
    store = secured.authority.issue("carol", PASSWORDS["carol"]).with_suffix(".p12")
    secured.allow_application("User:CN=carol", name)
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secured.authority.ca),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORDS["carol"],
    }


@pytest.fixture
def mallory(secured: SecuredBroker) -> Settings:
    """The clients of a user who may do nothing until a test allows it."""
    return secured.user("mallory", PASSWORDS["mallory"])


@pytest.fixture
def start(run_on: Run) -> Run:
    """Starts a topology at an address with client settings."""

    def begin(topology: Topology, address: str, settings: Settings, **options: Any) -> KafkaStreams:
        return run_on(ExternalBroker(address), topology, client_settings=settings, **options)

    return begin


class UpperCase(Processor):
    """Keeps the values of a topic in capital letters."""

    def process(self, record: Record) -> None:
        self.context.state_store("names").put(record.key, record.value and record.value.upper())


def counting(name: str) -> Topology:
    """Return a topology with all that talks to a broker.

    That is a repartition topic, a store, a global store, a partitioner, topics that records choose, and a function.
    """
    builder = StreamsBuilder()
    names = Stores.in_memory_key_value_store("names", Serdes.string(), Serdes.string())
    builder.add_global_store(names, f"{name}-names", UpperCase)
    records = builder.stream(f"{name}-in")
    records.peek(lambda key, value: None)
    records.to(lambda k, v: F.concat(F.lit(f"{name}-"), v), partitioner=lambda topic, key, value, count: [0])
    grouped = records.group_by(lambda k, v: v)
    grouped.count("counts").to_stream().to(f"{name}-out")
    return builder.build()


def make_topics(secured: SecuredBroker, name: str) -> None:
    topics = (f"{name}-{end}" for end in ("in", "out", "names", "x", "y"))
    secured.open.create_topics(*topics, partitions=2)
    secured.open.produce(f"{name}-names", [("x", "ex"), ("y", "why")])


def rows(streams: KafkaStreams) -> dict[str, int]:
    return {row.key: row.value for row in streams.store("counts").all()}


def command_lines() -> list[str]:
    """Return the command lines of this process's children, and theirs."""
    lines = []
    for process in psutil.Process().children(recursive=True):
        with_it = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(process.pid)], capture_output=True, text=True)
        lines.append(with_it.stdout)
    assert any("java" in line for line in lines)
    return lines


def found_in(folder: Path) -> list[Path]:
    """Return the files in a folder that hold a secret."""
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


# ---- whole applications ----------------------------------------------------------------------------------------------


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
        wait_until(lambda: len(streams.metadata_for_all_streams_clients()) == 2, "the second instance", 30)
        wait_until(
            lambda: httpx.get(f"{server.url}/state/keyvalue/counts/x").json().get("value") == 5, "the count of x", 30
        )
        assert SECRET not in " ".join(command_lines())
        assert SECRET not in instances.log(server)


# ---- each library, with all that it can be told ----------------------------------------------------------------------


def pem(secured: SecuredBroker) -> Settings:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(secured.authority.issue("carol"))}


def pkcs12(secured: SecuredBroker) -> Settings:
    store = secured.authority.issue("carol", PASSWORDS["carol"]).with_suffix(".p12")
    own = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(store)}
    return own | {"ssl.keystore.password": PASSWORDS["carol"]}


def inline(secured: SecuredBroker) -> Settings:
    key, begin, certificate = secured.authority.issue("carol").read_text().partition("-----BEGIN CERTIFICATE-----")
    return {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": begin + certificate}


@pytest.mark.parametrize("store", [pem, pkcs12, inline])
def test_certificates_in_every_kind_of_store_let_every_client_in(
    secured: SecuredBroker, certificates: Settings, name: str, spark: SparkSession, store: Callable[..., Settings]
) -> None:
    trust = {key: value for key, value in certificates.items() if not key.startswith("ssl.keystore")}
    assert_all_are_let_in(ExternalBroker(secured.ssl, trust | store(secured)), name, spark)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_user_is_let_in_without_encryption_by_every_client(
    secured: SecuredBroker, plain: Settings, scram: Settings, name: str, spark: SparkSession, mechanism: str
) -> None:
    user = plain if mechanism == "PLAIN" else scram
    bare = {key: value for key, value in user.items() if key.startswith("sasl")}
    mine = ExternalBroker(secured.sasl_plaintext, bare | {"security.protocol": "SASL_PLAINTEXT"})
    assert_all_are_let_in(mine, name, spark)


def test_scram_with_the_shorter_hash_lets_every_client_in(
    secured: SecuredBroker, name: str, spark: SparkSession
) -> None:
    secured.allow_application("User:dave", name)
    settings = secured.user("dave", "swordfish-5", "SCRAM-SHA-256")
    assert_all_are_let_in(ExternalBroker(secured.sasl_ssl, settings), name, spark)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_password_with_other_letters_in_a_file_under_a_path_with_a_colon_lets_every_client_in(
    secured: SecuredBroker, scram: Settings, name: str, spark: SparkSession, tmp_path: Path, encoding: str
) -> None:
    own = scram | secured.user("zoe", "swordfish-ü")
    secured.allow_application("User:zoe", name)
    # As Kafka's own clients have it, so that nothing but its letters and its path is in the way of the file.
    own["sasl.jaas.config"] = jaas.line("SCRAM-SHA-512", own.pop("sasl.username"), own.pop("sasl.password"))
    file = tmp_path / "a:b" / "client.properties"
    file.parent.mkdir()
    file.write_text("".join(f"{key}={value}\n" for key, value in own.items()), encoding)
    assert_all_are_let_in(ExternalBroker(secured.sasl_ssl, file), name, spark)


def assert_all_are_let_in(broker: ExternalBroker, name: str, spark: SparkSession) -> None:
    """Let kafka-python make a topic and write to it, librdkafka read it, and Java look for it."""
    broker.create_topics(f"{name}-in")
    assert broker.produce(f"{name}-in", [("1", "x")]) == 1
    assert list(broker.consume(f"{name}-in")["value"]) == ["x"]
    learn_to_ask_for_topics(spark)
    missing: Any = spark._jvm.streamskit.MissingTopic  # type: ignore[union-attr]
    assert missing.isThere(java_text(broker.connection, "admin"), f"{name}-in")
    assert not missing.isThere(java_text(broker.connection, "admin"), f"{name}-out")


def test_clients_of_one_kind_may_be_another_user(
    secured: SecuredBroker, scram: Settings, plain: Settings, mallory: Settings, name: str
) -> None:
    make_topics(secured, name)
    secured.deny("User:alice", ("READ", "topic", name))
    reader = {f"consumer.{key}": value for key, value in plain.items() if key.startswith("sasl")}
    mine = ExternalBroker(secured.sasl_ssl, scram | reader)
    mine.produce(f"{name}-in", [("1", "x")])
    assert list(mine.consume(f"{name}-in")["value"]) == ["x"]
    with pytest.raises(NoRightError, match=rf"does not allow User:alice Read on topic '{name}-in'"):
        ExternalBroker(secured.sasl_ssl, scram).consume(f"{name}-in")
    rights = [Right("Read", "topic", f"{name}-in"), Right("Write", "topic", f"{name}-in")]
    assert missing_rights(mine.connection, rights) == []
    assert missing_rights(ExternalBroker(secured.sasl_ssl, scram).connection, rights) == rights[:1]
    secured.deny("User:bob", ("READ", "topic", name))
    with pytest.raises(NoRightError, match=rf"does not allow User:bob Read on topic '{name}-in'"):
        mine.consume(f"{name}-in")


def test_live_views_reach_a_secured_cluster(secured: SecuredBroker, scram: Settings, name: str) -> None:
    make_topics(secured, name)
    mine = ExternalBroker(secured.sasl_ssl, scram)
    mine.produce(f"{name}-in", [{"key": "1", "value": "x", "partition": 0}])
    tail = Tail(mine.connection, [f"{name}-in"], keep=5)
    tail.look()
    assert [record.value for record in tail.records()] == [b"x"]
    assert TopicView(mine, f"{name}-in").take(None).rows
    assert Ends(mine.connection).ask([f"{name}-in"]) == {f"{name}-in": {0: 1, 1: 0}}


def test_the_doctor_tries_a_cluster(
    secured: SecuredBroker, scram: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(javaproperties.dumps(scram))
    monkeypatch.setattr(doctor, "doctor", lambda: ())
    monkeypatch.setenv("COLUMNS", "500")
    asked = ["--bootstrap-servers", secured.sasl_ssl, "--command-config", str(file)]
    assert doctor.main(asked) == 0
    let_in = "lets User:alice in; brokers: 1, topics that can be seen:"
    assert let_in in " ".join(capsys.readouterr().out.split())
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", f"127.0.0.1:1,{secured.sasl_ssl}")
    monkeypatch.setenv("STREAMSKIT_COMMAND_CONFIG", str(file))
    assert doctor.main() == 0
    assert let_in in " ".join(capsys.readouterr().out.split())
    file.write_text(javaproperties.dumps(scram | {"sasl.password": "wrong"}))
    assert doctor.main(asked) == 1
    assert "does not let User:alice in: " in " ".join(capsys.readouterr().out.split())


# ---- who is not let in -----------------------------------------------------------------------------------------------


def test_a_wrong_password_is_told_with_the_user_it_is_for(secured: SecuredBroker, scram: Settings) -> None:
    wrong = ExternalBroker(secured.sasl_ssl, scram | {"sasl.password": "not-the-swordfish"})
    with pytest.raises(NotLetInError) as failure:
        wrong.topics()
    assert re.search(r"does not let User:alice in: .*[Aa]uthentication failed.*SCRAM-SHA-512", str(failure.value))
    assert SECRET not in str(failure.value)


def test_a_certificate_that_nobody_signed_is_told(secured: SecuredBroker, scram: Settings, tmp_path: Path) -> None:
    from tests.integration.secured_broker import Authority

    other = Authority(tmp_path)
    with pytest.raises(NotLetInError, match=r"do not trust each other: .*verif.*ssl\.truststore"):
        ExternalBroker(secured.sasl_ssl, scram | {"ssl.truststore.location": str(other.ca)}).topics()


def test_a_client_without_a_certificate_is_told_what_is_missing(secured: SecuredBroker, certificates: Settings) -> None:
    bare = {name: value for name, value in certificates.items() if not name.startswith("ssl.keystore")}
    with pytest.raises(NotLetInError, match=r"do not trust each other: .*ssl\.keystore\.\* who it is"):
        ExternalBroker(secured.ssl, bare).topics()


@pytest.mark.parametrize("listener", ["ssl", "sasl_plaintext"])
def test_a_client_without_settings_is_told_to_have_some(secured: SecuredBroker, listener: str) -> None:
    refusal = r"does not take clients with security\.protocol=PLAINTEXT: it .*SASL.*client_settings="
    with pytest.raises(NotLetInError, match=refusal), admin_client(getattr(secured, listener), timeout=1):
        pass


# ---- what is not allowed ---------------------------------------------------------------------------------------------


def test_missing_rights_to_topics_are_named_before_anything_starts(
    secured: SecuredBroker, mallory: Settings, start: Run, name: str
) -> None:
    make_topics(secured, name)
    secured.allow("User:mallory", *(("DESCRIBE", "topic", name), ("READ", "group", name)))
    with pytest.raises(NoRightError) as failure:
        start(counting(name), secured.sasl_ssl, mallory)
    said = str(failure.value)
    assert f"does not allow User:mallory Read on topic '{name}-in', Write on topic '{name}-out'" in said
    assert f"--add --allow-principal User:mallory --operation Write --topic {name}-out" in said


def test_topics_that_one_may_not_even_see_are_told_to_be_there_perhaps(
    secured: SecuredBroker, mallory: Settings, start: Run, name: str
) -> None:
    make_topics(secured, name)
    with pytest.raises(StreamsError, match=r"Or it is there, and User:mallory has no right to see it: Describe"):
        start(counting(name), secured.sasl_ssl, mallory)
    with pytest.raises(BrokerError, match=r"has no topic .* Or it is there, and User:mallory has no right"):
        ExternalBroker(secured.sasl_ssl, mallory).consume(f"{name}-in")


def test_a_right_to_make_topics_a_group_or_transactions_that_is_missing_is_named(
    secured: SecuredBroker, mallory: Settings, start: Run, name: str
) -> None:
    make_topics(secured, name)
    for right in ("READ", "WRITE", "DESCRIBE_CONFIGS"):
        secured.allow("User:mallory", (right, "topic", name))
    run = {"processing_guarantee": "exactly_once"}
    with pytest.raises((StreamsError, BrokerError), match=rf"User:mallory Read on group '{name}-runner'"):
        start(counting(name), secured.sasl_ssl, mallory, **run)
    secured.allow("User:mallory", ("READ", "group", name))
    with pytest.raises((StreamsError, BrokerError), match=rf"User:mallory Create on topic '{name}-\d-transactions'"):
        start(counting(name), secured.sasl_ssl, mallory, **run)
    secured.allow("User:mallory", ("CREATE", "topic", name))
    with pytest.raises((StreamsError, BrokerError), match=rf"User:mallory Write on transactional id '{name}-\d"):
        start(counting(name), secured.sasl_ssl, mallory, **run)
    secured.allow("User:mallory", ("WRITE", "transactional id", name))
    start(counting(name), secured.sasl_ssl, mallory, **run).await_processed("180 seconds")


def test_a_right_that_is_taken_away_stops_the_application_with_its_name(
    secured: SecuredBroker, mallory: Settings, start: Run, name: str
) -> None:
    make_topics(secured, name)
    secured.allow_application("User:mallory", name)
    streams = start(counting(name), secured.sasl_ssl, mallory)
    secured.deny("User:mallory", ("WRITE", "topic", f"{name}-out"))
    secured.open.produce(f"{name}-in", [("1", "x")])
    wait_until(lambda: streams.failure is not None, "the failure of the query", 60)
    assert f"does not allow User:mallory Write on topic '{name}-out'" in str(streams.failure)


def test_records_that_may_not_be_written_read_or_deleted_are_told_with_the_right(
    secured: SecuredBroker, mallory: Settings, name: str
) -> None:
    make_topics(secured, name)
    secured.allow("User:mallory", ("DESCRIBE", "topic", name))
    his = ExternalBroker(secured.sasl_ssl, mallory)
    secured.open.produce(f"{name}-in", [("1", "x")])
    for call, operation in (
        (lambda: his.produce(f"{name}-in", [("1", "x")]), "Write"),
        (lambda: his.consume(f"{name}-in"), "Read"),
        (lambda: his.delete_topics(f"{name}-in"), "Delete"),
    ):
        with pytest.raises(NoRightError, match=rf"does not allow User:mallory {operation} on topic '{name}-in'"):
            call()
    with pytest.raises(NoRightError, match=rf"User:mallory Create on topic '{name}-new'"):
        his.create_topics(f"{name}-new")


def test_who_has_a_certificate_is_named_as_it_says(secured: SecuredBroker, certificates: Settings, name: str) -> None:
    make_topics(secured, name)
    secured.open.produce(f"{name}-in", [("1", "x")])
    secured.deny("User:CN=carol", ("READ", "topic", name))
    with pytest.raises(NoRightError, match=r"allow User:CN=carol Read .* --allow-principal 'User:CN=carol' --op"):
        ExternalBroker(secured.ssl, certificates).consume(f"{name}-in")


def test_records_that_nobody_reads_again_and_that_may_not_be_deleted_are_told_once(
    secured: SecuredBroker, mallory: Settings, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    secured.open.create_topics(f"{name}-in")
    secured.open.produce(f"{name}-in", [("1", "x")] * 1200)
    secured.allow("User:mallory", ("READ", "topic", name))
    mine = ExternalBroker(secured.sasl_ssl, mallory).connection
    purging = Purging(mine, lambda: {f"{name}-in": {0: 1100}}, {})

    def told() -> list[str]:
        purging.turn()
        return [record.getMessage() for record in caplog.records if record.name == "streamskit"]

    wait_until(told, "the warning", 30)  # a slow machine may not answer in time at first
    (said,) = told()
    assert f"does not allow User:mallory Delete on topic '{name}-in'" in said


def test_an_instance_that_may_not_join_its_group_says_so(secured: SecuredBroker, mallory: Settings, name: str) -> None:
    store = Store("counts", "key-value", Serdes.string(), Serdes.long())
    stores = Catalogue(name, (QueryableStore(store, f"{name}-changelog", 0),))
    secured.open.create_topics(f"{name}-changelog")
    secured.allow("User:mallory", ("READ", "topic", name))
    his = ExternalBroker(secured.sasl_ssl, mallory).connection
    with pytest.raises(NoRightError, match=rf"User:mallory Describe on group '{name}'"):
        ask_group(his, stores)
    instance = Instance(stores, his, HostInfo("127.0.0.1", 9))
    instance.start()
    missing = f"does not allow User:mallory Read on group '{name}'"
    wait_until(lambda: missing in instance.health().waits_for, "the reason why it has no share", 30)
    instance.stop()
