"""The schema registry: ids, workers that know them, a real registry over HTTP, and changes that are refused."""

import base64
import json
import logging
import pickle
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import Serdes
from streamskit.serdes import RegistryError, SchemaRegistry
from streamskit.serdes.compatibility import why_incompatible
from tests.unit.serdes.serdes_schemas import SHOP, TRADE, message_class, trade_class

KO = {"symbol": "KO", "price": 1.0, "note": None}


@pytest.fixture
def registry() -> SchemaRegistry:
    """A registry of the test's own."""
    return SchemaRegistry(f"mock://{uuid4()}")


def test_a_mock_registry_of_one_name_is_the_same_everywhere_in_the_process(registry: SchemaRegistry) -> None:
    assert registry.register("a", '"string"', "AVRO") == 1
    again = SchemaRegistry(registry.url)
    assert again == registry
    assert again.schema(1, "AVRO") == '"string"'
    assert again.register("a", '"string"', "AVRO") == 1
    assert again.register("b", '"long"', "AVRO") == 2


def test_a_copy_in_another_process_knows_what_was_there_when_it_left(registry: SchemaRegistry) -> None:
    registry.register("a", '"string"', "AVRO")
    copied = pickle.loads(pickle.dumps(registry))
    registry.register("b", '"long"', "AVRO")
    assert copied.schema(1, "AVRO") == '"string"'
    with pytest.raises(
        ValueError, match=r"its schema id is 2, and .* has no such schema, as it was when the query started"
    ):
        copied.schema(2, "AVRO")
    assert pickle.loads(pickle.dumps(copied)).schema(1, "AVRO") == '"string"'


@pytest.mark.spark
def test_an_unknown_id_is_an_error_of_its_record(spark: SparkSession, registry: SchemaRegistry) -> None:
    serde = Serdes.avro(TRADE, registry, topic="trades")
    good = serde.serialize(KO) or b""
    rows = spark.createDataFrame([(bytearray(good),), (bytearray(b"\x00\x00\x00\x00\x09" + good[5:]),)], "data binary")
    tried = [row.tried for row in rows.select(serde.try_from_bytes(F.col("data")).alias("tried")).collect()]
    assert (tried[0].value.symbol, tried[0].error) == ("KO", None)
    assert tried[1].value is None
    assert "its schema id is 9, and SchemaRegistry('mock://" in tried[1].error


def test_an_id_of_another_kind_of_schema_is_an_error(registry: SchemaRegistry) -> None:
    avro = Serdes.avro(TRADE, registry, topic="trades")
    protobuf = Serdes.protobuf(trade_class(), registry, topic="protobuf-trades")
    with pytest.raises(ValueError, match="its schema id is 1, a schema of kind AVRO, not PROTOBUF"):
        protobuf.deserialize(avro.serialize(KO))


def test_a_subject_keeps_its_kind(registry: SchemaRegistry) -> None:
    Serdes.avro(TRADE, registry, topic="trades")
    with pytest.raises(RegistryError, match="of kind AVRO, and this is JSON"):
        Serdes.json_schema(SHOP, registry, topic="trades")


def protobuf_text(fields: dict[str, str], name: str = "Trade") -> str:
    file = FileDescriptorProto()
    message_class("trade.proto", name, fields).DESCRIPTOR.file.CopyToProto(file)
    return base64.b64encode(file.SerializeToString()).decode()


def json_text(**changes: Any) -> str:
    return json.dumps({**SHOP, **changes})


OLD_PROTOBUF = protobuf_text({"symbol": "STRING", "price": "DOUBLE"})


@pytest.mark.parametrize(
    ("kind", "new", "old", "why"),
    [
        ("PROTOBUF", protobuf_text({"symbol": "STRING", "price": "DOUBLE", "size": "INT32"}), OLD_PROTOBUF, None),
        ("PROTOBUF", protobuf_text({"symbol": "STRING"}), OLD_PROTOBUF, None),
        ("PROTOBUF", protobuf_text({"symbol": "STRING", "cost": "DOUBLE"}), OLD_PROTOBUF, None),
        (
            "PROTOBUF",
            protobuf_text({"symbol": "INT32", "price": "DOUBLE"}),
            OLD_PROTOBUF,
            "field 1 of 'shop.Trade', 'symbol'",
        ),
        ("PROTOBUF", protobuf_text({"symbol": "STRING"}, "Other"), OLD_PROTOBUF, "message 'shop.Trade' is gone"),
        ("JSON", json_text(properties={**SHOP["properties"], "size": {"type": "integer"}}), json_text(), None),
        (
            "JSON",
            json_text(required=["symbol", "price", "size"]),
            json_text(),
            "property 'size' of the schema is now required",
        ),
        (
            "JSON",
            json_text(properties={"symbol": {"type": "integer"}}),
            json_text(),
            "property 'symbol' was of type string",
        ),
        (
            "JSON",
            json_text(properties={"symbol": {"type": "string"}}, additionalProperties=False),
            json_text(),
            "property 'price' of the schema is no longer allowed",
        ),
        ("JSON", '{"items": {"type": "number"}}', '{"items": {"type": "integer"}}', None),
        ("JSON", '{"items": {"type": "integer"}}', '{"items": {"type": "number"}}', "was of type number"),
    ],
)
def test_a_change_that_cannot_read_old_records_is_told_why(kind: str, new: str, old: str, why: str | None) -> None:
    said = why_incompatible(kind, new, old)
    assert (said is None) == (why is None)
    assert why is None or (said is not None and why in said)


class _Registry(BaseHTTPRequestHandler):
    """As much of a registry's REST interface as a client needs: register a schema, fetch one by its number.

    `test_real_registry.py` asks a real one. This one may want a name and a password (`server.user_info`).
    """

    def do_POST(self) -> None:
        server: Any = self.server
        if self._is_refused():
            return
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "refused" in self.path:
            self._answer(409, {"error_code": 409, "message": "Schema being registered is incompatible"})
            return
        if asked not in server.schemas:
            server.schemas.append(asked)
        self._answer(200, {"id": server.schemas.index(asked) + 1})

    def do_GET(self) -> None:
        server: Any = self.server
        if self._is_refused():
            return
        server.asked.append(self.path)
        number = int(self.path.split("/")[-1].split("?")[0])
        if number > len(server.schemas):
            self._answer(404, {"error_code": 40403, "message": "Schema not found"})
        else:
            self._answer(200, server.schemas[number - 1])

    def _is_refused(self) -> bool:
        server: Any = self.server
        wanted = f"Basic {base64.b64encode(server.user_info.encode()).decode()}"
        if not server.user_info or self.headers.get("Authorization") == wanted:
            return False
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(401, {"error_code": 401, "message": "Unauthorized"})
        return True

    def _answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    """A registry that answers over HTTP on this machine."""
    running: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    running.schemas, running.asked, running.user_info = [], [], ""
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join(60)


def url_of(server: Any) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.spark
def test_workers_ask_a_real_registry_for_schemas_that_came_later(spark: SparkSession, server: Any) -> None:
    reader = Serdes.avro(TRADE, url_of(server), topic="trades")
    more = {**TRADE, "fields": [*TRADE["fields"], {"name": "size", "type": "int", "default": 1}]}
    server.schemas.append({"schema": json.dumps(more)})
    data = Serdes.avro(more, SchemaRegistry(url_of(server)), subject="elsewhere").serialize({**KO, "size": 7}) or b""
    rows = spark.createDataFrame([(bytearray(data),), (bytearray(b"\x00\x00\x00\x00\x63" + data[5:]),)], "data binary")
    tried = [row.tried for row in rows.select(reader.try_from_bytes(F.col("data")).alias("tried")).collect()]
    assert (tried[0].value.symbol, tried[0].error) == ("KO", None)
    assert "its schema id is 99, and SchemaRegistry('http://" in tried[1].error


def test_a_schema_is_fetched_once(server: Any) -> None:
    server.schemas.append({"schema": '"string"'})
    registry = SchemaRegistry(url_of(server))
    assert [SchemaRegistry(registry.url).schema(1, "AVRO") for _ in range(3)] == ['"string"'] * 3
    assert len(server.asked) == 1


def test_a_refusal_of_a_real_registry_is_told(server: Any) -> None:
    with pytest.raises(
        RegistryError, match="could not register a schema as 'refused': the registry answered 409: Schema"
    ):
        Serdes.avro(TRADE, url_of(server), subject="refused")


@pytest.mark.spark
def test_a_registry_that_is_away_is_no_records_fault(spark: SparkSession, server: Any) -> None:
    serde = Serdes.avro(TRADE, SchemaRegistry(url_of(server), max_retries=0), topic="trades")
    data = serde.serialize(KO) or b""
    server.shutdown()
    server.server_close()
    with pytest.raises(RegistryError, match=r"no answer .* Is it running"):
        serde.deserialize(b"\x00\x00\x00\x00\x07" + data[5:])
    rows = spark.createDataFrame([(bytearray(b"\x00\x00\x00\x00\x07" + data[5:]),)], "data binary")
    with pytest.raises(Exception, match="no answer"):
        rows.select(serde.try_from_bytes(F.col("data"))).collect()


def test_a_registry_that_is_not_there_is_told_when_the_serde_is_made() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(RegistryError, match="could not register a schema as 'trades-value': no answer"):
            Serdes.avro(TRADE, SchemaRegistry(url, max_retries=0), topic="trades")


def test_a_handle_does_not_show_its_password() -> None:
    assert repr(SchemaRegistry("http://x", basic_auth_user_info="me:secret")) == "SchemaRegistry('http://x')"


# ---- how one is let in -----------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(server: Any) -> Any:
    """A registry that wants a name and a password."""
    server.user_info = "me:s:cret"
    return server


def let_in(server: Any, **changes: str) -> dict[str, str]:
    """Return the settings of Java's serdes for it."""
    return {
        "schema.registry.url": url_of(server),
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": "me:s:cret",
    } | changes


@pytest.mark.spark
def test_serdes_and_workers_show_name_and_password(spark: SparkSession, guarded: Any) -> None:
    registry = SchemaRegistry.from_properties(let_in(guarded))
    reader = Serdes.avro(TRADE, registry, topic="trades")
    more = {**TRADE, "fields": [*TRADE["fields"], {"name": "size", "type": "int", "default": 1}]}
    guarded.schemas.append({"schema": json.dumps(more)})
    by_keyword = SchemaRegistry(url_of(guarded), basic_auth_user_info="me:s:cret")
    data = Serdes.avro(more, by_keyword, subject="elsewhere").serialize({**KO, "size": 7}) or b""
    (row,) = (
        spark.createDataFrame([(bytearray(data),)], "data binary")
        .select(reader.try_from_bytes(F.col("data")))
        .collect()
    )
    assert (row[0].value.symbol, row[0].error) == ("KO", None)


@pytest.mark.parametrize("user_info", ["", "me:wrong"])
def test_whoever_is_not_let_in_is_told_so(guarded: Any, user_info: str) -> None:
    settings = {"basic_auth_user_info": user_info} if user_info else {}
    with pytest.raises(
        RegistryError, match=r"could not register .*: the registry answered 401: .*basic_auth_user_info"
    ):
        Serdes.avro(TRADE, SchemaRegistry(url_of(guarded), **settings), topic="trades")
    with pytest.raises(RegistryError, match="could not find schema 1: the registry answered 401"):
        SchemaRegistry(url_of(guarded), **settings).schema(1, "AVRO")


def test_settings_come_from_a_properties_file_with_those_of_kafkas_clients_in_it(guarded: Any, tmp_path: Path) -> None:
    lines = [f"{name}={value}" for name, value in let_in(guarded, **{"sasl.mechanism": "PLAIN"}).items()]
    (tmp_path / "client.properties").write_text("\n".join([*lines, "ssl.ca.location=/not/for/the/registry"]))
    registry = SchemaRegistry.from_properties(tmp_path / "client.properties")
    assert registry.register("a", '"string"', "AVRO") == 1
    assert "cret" not in repr(registry)


def test_name_and_password_may_stand_in_the_address(guarded: Any, caplog: pytest.LogCaptureFixture) -> None:
    url = url_of(guarded).replace("http://", "http://me:s%3Acret@")
    properties = {"schema.registry.url": url, "basic.auth.credentials.source": "URL"}
    registry = SchemaRegistry.from_properties(properties)
    with caplog.at_level(logging.DEBUG):
        assert registry.register("a", '"string"', "AVRO") == 1
    assert "/subjects/a/versions" in caplog.text  # httpx logs the address of each request
    for shown in (caplog.text, repr(registry), registry.url):
        assert "cret" not in shown
    with pytest.raises(RegistryError) as refused:
        SchemaRegistry(url.replace("cret", "other")).register("a", '"string"', "AVRO")
    assert "other" not in str(refused.value)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"basic.auth.user.info": "me:secret"}, "lack its address, schema.registry.url; they have: basic.auth."),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "is SASL_INHERIT; here it can be USER_INFO"),
        ({"schema.registry.ssl.truststore.location": "x.jks"}, "ssl.truststore.location is not a known setting"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_followed_are_refused(properties: dict[str, str], said: str) -> None:
    if "basic.auth.user.info" not in properties:
        properties = {"schema.registry.url": "http://x", **properties}
    with pytest.raises(RegistryError) as refused:
        SchemaRegistry.from_properties(properties)
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_line_that_cannot_be_read_is_told_without_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("schema.registry.url=http://x\nbasic.auth.user.info=me:hun\\unter2\n")
    with pytest.raises(RegistryError, match=r"^client\.properties, line 2: .*; write a backslash as") as refused:
        SchemaRegistry.from_properties(tmp_path / "client.properties")
    assert "unter" not in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"cannot be read: No such file or directory: .*nowhere"):
        SchemaRegistry.from_properties(tmp_path / "nowhere")
