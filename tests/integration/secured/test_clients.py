"""Each client library is let in with all that it can be told; so are live views and the doctor."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import javaproperties
import pytest
from pyspark.sql import SparkSession

from streamskit.api import jaas
from streamskit.broker import ExternalBroker
from streamskit.cli import doctor
from streamskit.execution.sinks import learn_to_ask_for_topics
from streamskit.kafka.access import NoRightError, Right, missing_rights
from streamskit.kafka.client_libraries import java_text
from streamskit.kafka.tail import Ends, Tail
from streamskit.views.topic_view import TopicView
from tests.integration.secured.application import PASSWORDS, Settings, make_topics
from tests.integration.secured.broker import SecuredBroker

pytestmark = [pytest.mark.broker]


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
