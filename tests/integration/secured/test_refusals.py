"""Who is not let in, or lacks a right, is told what is missing."""

import re
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streamskit import Serdes, StreamsError
from streamskit.api.client_settings import ClientSettings
from streamskit.broker import ExternalBroker
from streamskit.common.errors import BrokerError
from streamskit.kafka.access import NoRightError, NotLetInError, Right, missing_rights, shown_certificate
from streamskit.kafka.connection import admin_client
from streamskit.queries import Catalogue, Instance, QueryableStore
from streamskit.queries.group.discovery import ask_group
from streamskit.queries.metadata import HostInfo
from streamskit.runtime.purging import Purging
from streamskit.state.stores import Store
from streamskit.testing import wait_until
from tests.integration.secured.application import SECRET, Run, Settings, counting, make_topics
from tests.integration.secured.broker import DAYS, Authority, SecuredBroker

pytestmark = [pytest.mark.broker]


def test_a_wrong_password_is_told_with_the_user_it_is_for(secured: SecuredBroker, scram: Settings) -> None:
    wrong = ExternalBroker(secured.sasl_ssl, scram | {"sasl.password": "not-the-swordfish"})
    with pytest.raises(NotLetInError) as failure:
        wrong.topics()
    assert re.search(r"does not let User:alice in: .*[Aa]uthentication failed.*SCRAM-SHA-512", str(failure.value))
    assert SECRET not in str(failure.value)


def test_a_certificate_that_nobody_signed_is_told(secured: SecuredBroker, scram: Settings, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    with pytest.raises(NotLetInError, match=r"do not trust each other: .*verif.*ssl\.truststore"):
        ExternalBroker(secured.sasl_ssl, scram | {"ssl.truststore.location": str(other.ca)}).topics()


def test_of_a_broker_that_is_not_trusted_the_certificate_is_told(
    secured: SecuredBroker, scram: Settings, tmp_path: Path
) -> None:
    other = str(Authority(tmp_path).ca)
    broker = ExternalBroker(secured.sasl_ssl, scram | {"ssl.truststore.location": other})
    day = rf"{datetime.now(UTC) + timedelta(days=DAYS[0]):%Y-%m-%d} \d\d:\d\d"
    shown = (
        rf"{secured.sasl_ssl} shows a certificate for localhost, 127\.0\.0\.1, signed by CN=streamskit test authority"
    )
    with pytest.raises(NotLetInError, match=rf"{shown}, which is valid from {day} to \S+ \d\d:\d\d UTC\.$"):
        broker.topics()


@pytest.mark.parametrize("days", [(-9, -2), (2, 9)])
def test_of_a_brokers_certificate_that_has_expired_or_does_not_hold_yet_this_is_said(
    tmp_path: Path, days: tuple[int, int]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path).issue("broker", days=days))
    with socket.create_server(("127.0.0.1", 0)) as port, context.wrap_socket(port, server_side=True) as listening:
        threading.Thread(target=listening.accept, daemon=True).start()
        said = shown_certificate(f"127.0.0.1:{listening.getsockname()[1]}")
    begin, end = (f"{datetime.now(UTC) + timedelta(days=each):%Y-%m-%d}" for each in days)
    assert f"which is valid from {begin} " in said
    assert f" to {end} " in said
    assert said.endswith("UTC, and so not today.")


@pytest.mark.parametrize("days", [(-9, -2), (2, 9)])
def test_a_client_whose_certificate_has_expired_or_does_not_hold_yet_is_told_so(
    secured: SecuredBroker, certificates: Settings, days: tuple[int, int]
) -> None:
    path = secured.authority.issue("dora", days=days)
    own = {name: value for name, value in certificates.items() if not name.startswith("ssl.keystore")}
    own |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    dates = " to ".join(f"{datetime.now(UTC) + timedelta(days=each):%Y-%m-%d}.*" for each in days)
    with pytest.raises(NotLetInError, match=rf"own certificate \(ssl\.keystore\.\*\) is valid from {dates} only: get"):
        ExternalBroker(secured.ssl, own).topics()


@pytest.mark.timeout(50)  # to wait for an answer would take a minute
@pytest.mark.parametrize(("kind", "operation"), [("consumer", "Read"), ("producer", "Write")])
def test_a_password_that_is_wrong_for_one_kind_of_clients_is_told_with_the_kind(
    kind: str, operation: str, secured: SecuredBroker, scram: Settings, name: str
) -> None:
    secured.open.create_topics(f"{name}-in")
    servers = ClientSettings.of(secured.sasl_ssl, scram | {f"{kind}.sasl.password": "not-the-swordfish"})
    said = rf"does not let User:alice in as a {kind}: .*failed.*in the client settings, those with {kind}\. in front"
    with pytest.raises(NotLetInError, match=said):
        missing_rights(servers, [Right(operation, "topic", f"{name}-in")])


def test_a_client_without_a_certificate_is_told_what_is_missing(secured: SecuredBroker, certificates: Settings) -> None:
    bare = {name: value for name, value in certificates.items() if not name.startswith("ssl.keystore")}
    with pytest.raises(NotLetInError, match=r"do not trust each other: .*ssl\.keystore\.\* who it is"):
        ExternalBroker(secured.ssl, bare).topics()


@pytest.mark.parametrize("listener", ["ssl", "sasl_plaintext"])
def test_a_client_without_settings_is_told_to_have_some(secured: SecuredBroker, listener: str) -> None:
    refusal = r"does not take clients with security\.protocol=PLAINTEXT: it .*SASL.*client_settings="
    with pytest.raises(NotLetInError, match=refusal), admin_client(getattr(secured, listener), timeout=1):
        pass


@pytest.mark.timeout(60)
def test_a_client_that_only_shows_a_certificate_where_users_are_asked_for_is_told_so(
    secured: SecuredBroker, certificates: Settings
) -> None:
    refusal = r"clients with security\.protocol=SSL: it hangs up on .* who they are \(security\.protocol=SASL_SSL\)"
    with pytest.raises(NotLetInError, match=refusal):
        ExternalBroker(secured.sasl_ssl, certificates).topics()


@pytest.mark.parametrize("protocol", ["SSL", "PLAINTEXT"])
def test_a_client_with_a_password_that_nobody_asks_for_is_told_so(
    secured: SecuredBroker, scram: Settings, protocol: str
) -> None:
    address = secured.ssl if protocol == "SSL" else secured.open.bootstrap_servers
    settings = {name: value for name, value in scram.items() if protocol == "SSL" or not name.startswith("ssl.")}
    key = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(secured.authority.issue("eve"))}
    settings |= {"security.protocol": f"SASL_{protocol}"} | (key if protocol == "SSL" else {})
    refusal = rf"it asks nobody for a user and a password \(security\.protocol={protocol}\)\. Say so in"
    with pytest.raises(NotLetInError, match=refusal):
        ExternalBroker(address, settings).topics()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_clients_and_instances_that_speak_tls_where_nobody_does_are_told_that_it_is_the_protocol(
    secured: SecuredBroker, scram: Settings, certificates: Settings, name: str, protocol: str
) -> None:
    settings = scram if protocol == "SASL_SSL" else certificates
    refusal = rf"does not take clients with security\.protocol={protocol}: it speaks no TLS"
    broker = ExternalBroker(secured.open.bootstrap_servers, settings)
    with pytest.raises(NotLetInError, match=refusal):
        broker.topics()
    stores = Catalogue(name, (QueryableStore(Store("counts", "key-value", Serdes.string(), Serdes.long()), name, 0),))
    with pytest.raises(NotLetInError, match=refusal):
        Instance(stores, broker.connection, HostInfo("127.0.0.1", 9)).start()


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


@pytest.mark.parametrize(
    ("denied", "topic", "said"),
    [
        pytest.param("WRITE", "out", "Write", id="to write"),
        pytest.param("DESCRIBE", "in", "Read", id="to see what is read"),
    ],
)
def test_a_right_that_is_taken_away_stops_the_application_with_its_name(
    secured: SecuredBroker, mallory: Settings, start: Run, name: str, denied: str, topic: str, said: str
) -> None:
    make_topics(secured, name)
    secured.allow_application("User:mallory", name)
    streams = start(counting(name), secured.sasl_ssl, mallory)
    secured.deny("User:mallory", (denied, "topic", f"{name}-{topic}"))
    secured.open.produce(f"{name}-in", [("1", "x")])
    wait_until(lambda: streams.failure is not None, "the failure of the query")
    assert f"does not allow User:mallory {said} on topic '{name}-{topic}'" in str(streams.failure)


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

    wait_until(told, "the warning", 60)  # a slow machine may not answer in time at first
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
    wait_until(lambda: missing in instance.health().waits_for, "the reason why it has no share", 60)
    instance.stop()
