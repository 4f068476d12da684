"""`ClientSettings`, and how the three libraries are told of them; nothing secret is shown."""

import json
import logging
import pickle
import re
import stat
import subprocess
import traceback
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from confluent_kafka import KafkaException, Producer

import streamskit
from streamskit import StreamsConfig
from streamskit.api import client_settings, jaas
from streamskit.api.client_settings import ClientSettings
from streamskit.common.errors import StreamsError
from streamskit.common.secret import Secret
from streamskit.kafka.client_libraries import for_java, for_kafka_python, for_librdkafka, java_text
from streamskit.kafka.key_material import key_material
from tests.integration.secured.broker import Authority

HUSH = 'h"u\\s h;'
SASL = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "alice",
    "sasl.password": HUSH,
}


def settings(**changes: str) -> ClientSettings:
    return ClientSettings.of("broker:9093", SASL | {name.replace("__", "."): value for name, value in changes.items()})


def lines(given: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in given.items())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


# ---- what is taken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sasl.mechanisms": "PLAIN"}, "There is no client setting 'sasl.mechanisms': did you mean 'sasl.mechanism'?"),
        ({"consumer.ssl.keystore.locatio": "x"}, "did you mean 'consumer.ssl.keystore.location'?"),
        ({"acks": "all"}, "There is no client setting 'acks'"),
        ({"consumer.linger.ms": "5"}, "There is no client setting 'consumer.linger.ms'"),
        ({"producer.compresion.type": "lz4"}, "did you mean 'producer.compression.type'?"),
        ({"ssl.truststore.type": "PEM"}, "have ssl.truststore.type and no security.protocol, without which"),
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS'; give PLAINTEXT or SSL or SASL_PLAINTEXT or"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing in the client settings: give PLAIN or"),
        (
            SASL | {"sasl.mechanism": "GSSAPI"},
            "'GSSAPI', and librdkafka, which reads stores and watches topics here,",
        ),
        (
            SASL | {"sasl.mechanism": "OAUTHBEARER"},
            "'OAUTHBEARER', and streamskit does not hand tokens to its clients",
        ),
        (
            SASL | {"sasl.mechanism": "DIGEST"},
            "'DIGEST', and not all clients that streamskit has can show that to a",
        ),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "do not say who to be with PLAIN: give sasl"),
        (SASL | {"sasl.jaas.config": "x y z;"}, "name a user twice: in sasl.username and in sasl.jaas.config."),
        ({name: SASL[name] for name in SASL if name != "sasl.password"}, "sasl.password is missing."),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "consumer.sasl.password": "hush"},
            "have one of consumer.sasl.username and consumer.sasl.password: consumer.sasl.username is missing.",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no/where"}, "and there is no such file."),
        ({"security.protocol": "SSL", "ssl.keystore.type": "BKS"}, "ssl.keystore.type is 'BKS'; give JKS or PKCS12 or"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "k"}, "holds text in PEM: set ssl.keystore.type=PEM."),
        ({"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.key": "k"}, "belong together: give bo"),
        ({"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.password": "k"}, "has no password: le"),
        ({"security.protocol": "SSL", "ssl.protocol": "SSLv3"}, "ssl.protocol is 'SSLv3'; give TLSv1.2 or TLSv1.3."),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"},
            "algorithm has to be https, or empty",
        ),
        ({"client.dns.lookup": "default"}, "client.dns.lookup is 'default'; give use_all_dns_ips or resolve_canonical"),
        ({"security.protocol": 5}, "The client setting security.protocol is not text"),
    ],
)
def test_wrong_settings_are_answered_with_what_to_write(given: dict[str, Any], said: str) -> None:
    with pytest.raises(StreamsError) as failure:
        ClientSettings.of("broker:9093", given)
    assert said in str(failure.value)


def test_one_kind_of_clients_may_have_a_password_of_its_own_for_the_user_of_all() -> None:
    given = settings(consumer__sasl__password="other", producer__sasl__username="bob")
    lines = [given.revealed(role)["sasl.jaas.config"] for role in ("admin", "consumer", "producer")]
    shown = [(found.username, found.password.reveal()) for found in map(jaas.credentials, lines)]
    assert shown == [("alice", HUSH), ("alice", "other"), ("bob", HUSH)]


@pytest.mark.parametrize("line", ["hush", "Module required", 'M required username="hush"', 'M required username="a" x'])
def test_a_line_that_names_no_user_is_refused_without_being_shown(line: str) -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": line}
    with pytest.raises(StreamsError, match=r"sasl\.jaas\.config does not name a user\. It has to be in one") as failure:
        ClientSettings.of("broker:9093", given)
    assert "hush" not in str(failure.value)


@pytest.mark.parametrize("password", ["hush", HUSH, 'a"', "a\\", "ä\tb", "=;#"])
def test_a_password_travels_through_the_line_for_java_as_it_is(password: str) -> None:
    assert jaas.credentials(jaas.line("PLAIN", "alice", password)) == ("alice", Secret(password))


@pytest.mark.parametrize(
    ("options", "username", "password"),
    [
        (r"""username='KEY' password='SE "C\' ;RET'""", "KEY", """SE "C' ;RET"""),
        ("username='al\"ice' password=\"it's\"", 'al"ice', "it's"),
        (r'username="alice" password="x\101\53\0\7777\a\v\q"', "alice", "xA+\0?77\a\vq"),
        ("username=alice password=1234", "alice", "1234"),
        ('user-$.name="x" username="alice" password="hush"', "alice", "hush"),
    ],
)
def test_a_line_is_read_as_java_reads_it(options: str, username: str, password: str) -> None:
    assert jaas.credentials(f"{jaas.MODULES['PLAIN']} required {options};") == (username, Secret(password))


@pytest.mark.parametrize("options", ["username='a\" password='hush'", "username=a password=hu'sh", "username='a"])
def test_a_line_with_a_quotation_mark_that_is_left_open_is_refused(options: str) -> None:
    with pytest.raises(StreamsError, match="does not name a user") as failure:
        jaas.credentials(f"{jaas.MODULES['PLAIN']} required {options};")
    assert "hush" not in str(failure.value)


def test_what_is_for_clients_of_one_kind_goes_before_what_is_for_all() -> None:
    made = settings(client__id="all", producer__client__id="mine", main__consumer__client__id="theirs")
    assert made.of_role("admin")["client.id"] == "all"
    assert made.of_role("producer")["client.id"] == "mine"
    assert made.of_role("consumer")["client.id"] == "theirs"


def test_the_librdkafka_that_is_installed_has_no_kerberos() -> None:
    told = {"bootstrap.servers": "b:9", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(KafkaException, match="GSSAPI"):
        Producer(told)


# ---- where they come from --------------------------------------------------------------------------------------------


def test_a_properties_file_of_kafkas_tools_is_read_and_its_other_settings_are_left_to_others(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=broker:9093\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nacks=all\n"
        f'sasl.jaas.config={jaas.MODULES["PLAIN"]} required username="alice" password="hush";\n'
    )
    made = ClientSettings.of("broker:9093", file)
    assert made.principal == "User:alice"
    assert made.path == file
    assert for_java(made, "consumer")["sasl.jaas.config"] == f"${{file:{file}:sasl.jaas.config}}"


def test_the_environment_names_a_cluster_and_the_file_of_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client.properties").write_text(lines(SASL))
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", "broker:9093")
    monkeypatch.setenv("STREAMSKIT_COMMAND_CONFIG", str(tmp_path / "client.properties"))
    assert StreamsConfig("app", "broker:9093").connection.principal == "User:alice"
    assert not StreamsConfig("app", "localhost:9092").connection.properties


@pytest.mark.parametrize("address", ["b:9093, A:9093", "a:9093", "b:9093,c:9093"])
def test_the_file_in_the_environment_is_for_every_list_with_one_of_its_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    (tmp_path / "client.properties").write_text(lines(SASL))
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", "a:9093,b:9093")
    monkeypatch.setenv("STREAMSKIT_COMMAND_CONFIG", str(tmp_path / "client.properties"))
    assert ClientSettings.of(address).principal == "User:alice"


@pytest.mark.parametrize(("named", "said"), [("a:9093", "are a:9093"), (None, "is not set")])
def test_a_file_in_the_environment_that_is_not_used_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, named: str | None, said: str
) -> None:
    monkeypatch.setattr(client_settings, "_told", set())
    monkeypatch.setenv("STREAMSKIT_COMMAND_CONFIG", "/home/alice/client.properties")
    monkeypatch.delenv("STREAMSKIT_BOOTSTRAP_SERVERS", raising=False)
    if named is not None:
        monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", named)
    with caplog.at_level(logging.WARNING, "streamskit"):
        assert not ClientSettings.of("other:9093").properties
        assert not ClientSettings.of("other:9093").properties
    assert [record.getMessage() for record in caplog.records] == [
        "STREAMSKIT_COMMAND_CONFIG is set, and clients of the brokers at other:9093 do not use it: it is for the "
        f"brokers in STREAMSKIT_BOOTSTRAP_SERVERS, which {said}."
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_every_client_gets_the_same_password_whatever_its_file_is_written_in(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "".join(f"{name}={value}\n" for name, value in (SASL | {"sasl.password": "Müsli"}).items()), encoding
    )
    assert for_librdkafka(ClientSettings.of("b:9", file), "admin")["sasl.password"] == "Müsli"
    line = jaas.line("PLAIN", "alice", "Müsli")
    own = {name: value for name, value in SASL.items() if not name.startswith("sasl.")} | {"sasl.mechanism": "PLAIN"}
    file.write_text(
        "".join(f"{name}={value}\n" for name, value in (own | {"sasl.jaas.config": line}).items()), encoding
    )
    made = ClientSettings.of("broker:9093", file)
    assert for_kafka_python(made, "admin")["sasl_plain_password"] == "Müsli"
    assert made.path != file  # Java would read UTF-8 in it
    assert made.path.read_bytes().isascii()
    assert ClientSettings.of("broker:9093", made.path) == made


def test_a_file_under_a_path_that_kafka_would_cut_is_copied(tmp_path: Path) -> None:
    for number, folder in enumerate(("a:b", "a}b")):
        file = tmp_path / folder / "client.properties"
        file.parent.mkdir()
        line = jaas.line("PLAIN", "alice", f"hush{number}")
        file.write_text(f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={line}\n")
        told = for_java(ClientSettings.of("broker:9093", file), "admin")["sasl.jaas.config"]
        (found,) = re.findall(r"^\$\{file:([^:}]*):sasl\.jaas\.config\}$", told)
        assert ClientSettings.of("broker:9093", found) == ClientSettings.of("broker:9093", file)


def test_a_backslash_that_begins_no_character_is_told_without_what_follows_it(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.password=hun\\unter2\n")
    for read in (
        lambda: ClientSettings.of("broker:9093", file),
        lambda: StreamsConfig.from_properties(file),
    ):
        with pytest.raises(StreamsError, match=r"^client\.properties, line 3: .*; write a backslash as") as failure:
            read()
        shown = "".join(traceback.format_exception(failure.value, chain=True)) + repr(failure.value.__context__)
        assert "unter" not in shown


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match=r"The file with client settings, .*nowhere, cannot be read: No such file"):
        ClientSettings.of("broker:9093", tmp_path / "nowhere")


# ---- how they are told -----------------------------------------------------------------------------------------------


def test_java_is_told_where_secrets_stand_and_not_what_they_are() -> None:
    made = settings(producer__sasl__username="bob", producer__sasl__password="hush2")
    for role, name in (("consumer", "sasl.jaas.config"), ("producer", "producer.sasl.jaas.config")):
        told = for_java(made, role)  # type: ignore[arg-type]
        assert told == {
            "bootstrap.servers": "broker:9093",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f"${{file:{made.path}:{name}}}",
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        }
    assert java_text("broker:9092", "admin") == "broker:9092"


def test_the_file_for_java_can_be_read_by_its_user_alone() -> None:
    path = settings().path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert ClientSettings.of("broker:9093", path) == settings()
    assert settings().path == path


def test_the_file_goes_with_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    program = (
        "from streamskit.common.private_files import write_private\nimport sys, os\n"
        "print(write_private('client.properties', 'hush'), flush=True)\n"
        "if sys.argv[1] == 'killed': os.kill(os.getpid(), 9)"
    )
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for fate, left in (("killed", 1), ("ended", 0)):  # the second one also removes what the first has left
        subprocess.run([sys.executable, "-c", program, fate], capture_output=True, timeout=60)
        assert len(list(tmp_path.rglob("*client.properties"))) == left


def test_the_clients_in_python_are_told_the_user_by_value() -> None:
    python, librd = for_kafka_python(settings(client__id="me"), "admin"), for_librdkafka(settings(), "consumer")
    assert python.pop("ssl_context").check_hostname
    assert python == {
        "bootstrap_servers": ["broker:9093"], "security_protocol": "SASL_SSL", "client_id": "me",
        "sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "alice", "sasl_plain_password": HUSH,
    }  # fmt: skip
    assert librd == {
        "bootstrap.servers": "broker:9093", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice", "sasl.password": HUSH, "ssl.endpoint.identification.algorithm": "https",
    }  # fmt: skip


@pytest.mark.parametrize("tell", [for_java, for_kafka_python, for_librdkafka])
def test_each_client_is_told_its_name_and_how_to_look_brokers_up(tell: Any) -> None:
    own = {"client.id": "me", "client.dns.lookup": "resolve_canonical_bootstrap_servers_only"}
    told = tell(ClientSettings.of("broker:9092", own), "consumer")
    spelled = {name.replace("_", "."): value for name, value in told.items()}
    assert {name: spelled.get(name) for name in own} == own


def test_brokers_under_other_names_are_allowed_to_all_clients_or_to_none() -> None:
    other = settings(ssl__endpoint__identification__algorithm="")
    assert not for_kafka_python(other, "admin")["ssl_context"].check_hostname
    assert for_librdkafka(other, "admin")["ssl.endpoint.identification.algorithm"] == "none"
    assert for_java(other, "admin")["ssl.endpoint.identification.algorithm"] == ""


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "inline"])
def test_certificates_reach_the_clients_in_python_whatever_holds_them(authority: Authority, kind: str) -> None:
    pem = authority.issue("carol")
    ca = authority.ca.read_text()
    key, begin, certificate = pem.read_text().partition("-----BEGIN CERTIFICATE-----")
    given = {
        "PEM": {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem)},
        "PKCS12": {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(pem.with_suffix(".p12")),
                   "ssl.keystore.password": "changeit"},
        "inline": {"ssl.keystore.type": "PEM", "ssl.keystore.key": key,
                   "ssl.keystore.certificate.chain": begin + certificate},
    }[kind]  # fmt: skip
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ca}
    made = ClientSettings.of("broker:9093", {"security.protocol": "SSL"} | trust | given)
    assert for_kafka_python(made, "admin")["ssl_context"].get_ca_certs()[0]["subject"][0][0][1].startswith("streamskit")
    files = key_material(made.revealed("admin"))
    assert ("ENCRYPTED PRIVATE KEY" in (files.key or pem).read_text()) == (kind == "PKCS12")
    assert certificate.split()[0] in (files.certificates or pem).read_text()
    assert for_librdkafka(made, "admin").get("ssl.key.password") == ("changeit" if kind == "PKCS12" else None)


def test_a_new_client_gets_the_certificate_of_a_store_that_was_replaced_in_its_place(authority: Authority) -> None:
    store = authority.issue("carol").with_suffix(".p12")
    given = {"security.protocol": "SSL", "ssl.keystore.location": str(store), "ssl.keystore.password": "changeit"}
    made = ClientSettings.of("broker:9093", given)
    first = key_material(made.revealed("admin"))
    assert key_material(made.revealed("admin")) == first
    renewed = authority.issue("carol").read_text()
    files = key_material(made.revealed("admin"))
    assert files.certificates is not None
    assert files.certificates.read_text().splitlines()[1] in renewed


def test_a_store_of_another_kind_than_its_type_says_is_told(authority: Authority) -> None:
    pem = authority.issue("carol")
    for store, type_, said in (
        (pem, {}, "which is in PEM: set ssl.keystore.type=PEM."),
        (pem.with_suffix(".p12"), {"ssl.keystore.type": "PEM"}, "is not in PEM: set it to PKCS12"),
    ):
        given = {"security.protocol": "SSL", "ssl.keystore.location": str(store)} | type_
        with pytest.raises(StreamsError) as failure:
            ClientSettings.of("broker:9093", given)
        assert said in str(failure.value)


def test_a_key_that_java_could_not_decrypt_is_refused_with_the_command_that_converts_it(authority: Authority) -> None:
    pem = authority.issue("carol", password="hush")
    given = {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem)}
    with pytest.raises(StreamsError, match=r"encrypted with PBES2, which Java's clients do not read.*openssl pkcs12"):
        ClientSettings.of("broker:9093", given | {"ssl.key.password": "hush"})


def test_a_store_of_javas_own_kind_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    made = ClientSettings.of("b:9", {"security.protocol": "SSL", "ssl.truststore.location": store})
    with pytest.raises(StreamsError, match=r"a store in JKS, which only Java reads.*keytool -importkeystore -srckeyst"):
        for_librdkafka(made, "admin")


def test_a_store_with_another_password_is_named_and_the_password_is_not(authority: Authority) -> None:
    store = authority.issue("carol", password="hush").with_suffix(".p12")
    given = {"security.protocol": "SSL", "ssl.keystore.location": str(store), "ssl.keystore.password": "wrong one"}
    with pytest.raises(StreamsError, match=r"carol.p12, and it does not open with ssl\.keystore\.password") as failure:
        for_kafka_python(ClientSettings.of("b:9", given), "admin")
    assert "wrong one" not in str(failure.value)


def test_every_client_in_the_package_is_told_of_the_settings() -> None:
    clients = re.compile(r"(?<!\w)(?<!class )(Kafka)?(AdminClient|Consumer|Producer)\(\s*(?P<told>.*)")
    package = Path(streamskit.__file__).parent
    sources = {path: path.read_text() for path in package.rglob("*.py")}
    made = [(path.name, call["told"]) for path, text in sources.items() for call in clients.finditer(text)]
    assert len(made) > 8
    assert [call for call in made if not re.match(r"(\*\*)?for_(librdkafka|kafka_python)\(", call[1])] == []
    # A config knows its address alone, and with what its clients show: who is told of the first is not let in.
    bare = [path.name for path, text in sources.items() if re.search(r"config\.bootstrap_servers\b", text)]
    assert bare == ["streams.py"]
    scala = "".join(path.read_text() for path in package.rglob("*.scala"))
    assert "BOOTSTRAP_SERVERS_CONFIG" not in scala.replace((package / "jvm" / "ClientSettings.scala").read_text(), "")


# ---- what is not shown -----------------------------------------------------------------------------------------------


def test_no_secret_is_shown() -> None:
    config = StreamsConfig("app", "broker:9093", client_settings=SASL)
    for shown in (
        repr(config), str(config), repr(config.connection), repr(config.connection.properties), repr(settings()),
        str(pickle.dumps(config)), str(for_java(config.connection, "consumer")), repr(config.as_properties()),
        repr(for_kafka_python(config.connection, "admin")), repr(for_librdkafka(config.connection, "admin")),
        repr(config.connection.revealed("admin")),
        repr(jaas.credentials(config.connection.revealed("admin")["sasl.jaas.config"])),
    ):  # fmt: skip
        assert "u\\s h" not in shown.replace("\\\\", "\\")
        assert HUSH not in shown
    assert repr(config.connection) == "ClientSettings('broker:9093', SASL_SSL, SCRAM-SHA-512, 'User:alice')"


def test_a_secret_is_hidden_wherever_a_value_is_turned_into_text() -> None:
    for name, secret in StreamsConfig("app", "b:9", token="hush", client_settings=SASL).as_properties().items():
        if name not in ("streamskit.token", "sasl.jaas.config"):
            continue
        frame = pd.DataFrame([{"name": name, "value": secret}])
        shown = [
            str(secret),
            repr(secret),
            f"{secret}",
            f"{secret:>20}",
            json.dumps(secret, default=str),
        ]
        for text in (*shown, frame.to_html(), frame.to_csv(), frame.to_json(default_handler=str), str(frame)):
            assert "hidden" in text
            assert not re.search(r"hush|u\\+s h", text)
        with pytest.raises(TypeError):
            json.dumps(secret)
        with pytest.raises(TypeError):
            "".join([secret])  # type: ignore[list-item]
        assert pickle.loads(pickle.dumps(secret)) == secret


def test_settings_travel_to_another_process_by_their_file() -> None:
    made = pickle.loads(pickle.dumps(settings()))
    assert made == settings()
    assert hash(made) == hash(settings())
    assert pickle.loads(pickle.dumps(ClientSettings("broker:9092"))) == ClientSettings("broker:9092")


# ---- as keys of a StreamsConfig --------------------------------------------------------------------------------------


def test_they_stand_in_a_properties_file_as_for_kafka_streams(tmp_path: Path) -> None:
    file = tmp_path / "streams.properties"
    made = StreamsConfig("app", "broker:9093", client_settings=SASL | {"consumer.client.id": "c"})
    made.to_properties(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert StreamsConfig.from_properties(file) == made
    assert StreamsConfig.from_properties(made.as_properties()) == made
    assert made.connection.bootstrap_servers == "broker:9093"


def test_a_wrong_one_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "streams.properties"
    file.write_text("application.id=app\nbootstrap.servers=b:9\nsecurity.protocol=SSL\nssl.trustore.type=PEM\n")
    with pytest.raises(StreamsError, match=r"^streams\.properties, line 4: There is no client setting 'ssl\.trustore"):
        StreamsConfig.from_properties(file)
    file.write_text("application.id=app\nbootstrap.servers=b:9\nsecurity.protocol=SASL_SSL\nsasl.username=hush\n")
    with pytest.raises(StreamsError, match=r"^streams\.properties, line 3: The client settings have one of") as failure:
        StreamsConfig.from_properties(file)
    assert "hush" not in str(failure.value)


def test_a_file_of_their_own_may_be_named(tmp_path: Path) -> None:
    own = tmp_path / "client.properties"
    own.write_text("security.protocol=SSL\n")
    named = {"application.id": "app", "bootstrap.servers": "b:9", "streamskit.client.settings": str(own)}
    assert StreamsConfig.from_properties(named).connection.path == own
    with pytest.raises(StreamsError, match=r"ssl\.protocol is set beside a file with client settings: leave one\."):
        StreamsConfig.from_properties(named | {"ssl.protocol": "TLSv1.3"})


def test_an_address_can_be_changed_in_a_copy() -> None:
    made = StreamsConfig("app", "broker:9093", client_settings=SASL)
    moved = StreamsConfig.of(made, "other:9093")
    assert (moved.connection.bootstrap_servers, moved.connection.principal) == ("other:9093", "User:alice")


def test_something_else_than_settings_is_refused_without_being_shown() -> None:
    with pytest.raises(
        StreamsError, match=r"client_settings is of type list; give the settings of Kafka's clients"
    ) as failure:
        StreamsConfig("app", "broker:9093", client_settings=[("sasl.password", "hush")])  # type: ignore[arg-type]
    assert "hush" not in str(failure.value)
