"""Serdes that are written down as JSON and read elsewhere."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T

from streamskit import SchemaRegistry, Serde, Serdes
from streamskit.serdes import JsonSerde, RegistryError, SerdeError
from streamskit.serdes.description import SIMPLE, describe, described
from tests.unit.serdes.serdes_schemas import trade_class

TRADE = {"type": "record", "name": "Trade", "fields": [{"name": "price", "type": "double"}]}
TRADE_SCHEMA = {"title": "Trade", "type": "object", "properties": {"price": {"type": "number"}}}


class Celsius(Serde):
    data_type = T.DoubleType()

    def serialize(self, value: Any) -> bytes | None:
        return None if value is None else f"{value} C".encode()

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else float(data.removesuffix(b" C"))


class Loud(JsonSerde):
    """One of ours with something else in it."""


@pytest.mark.parametrize(
    "serde",
    [
        *SIMPLE.values(),
        Serdes.json("symbol string, price double"),
        Serdes.list(Serdes.list(Serdes.uuid())),
        Serdes.time_windowed(Serdes.string(), 5000),
        Serdes.session_windowed(Serdes.json("a string")),
        Serdes.avro(TRADE, "mock://description", topic="avro"),
        Serdes.json_schema(TRADE_SCHEMA, "mock://description", topic="json"),
        Serdes.protobuf(trade_class(), "mock://description", topic="protobuf"),
    ],
    ids=str,
)
def test_a_serde_of_this_package_is_the_same_after_its_way_as_json(serde: Serde) -> None:
    assert described(json.loads(json.dumps(describe(serde)))) == serde


def test_what_a_registry_in_one_process_knows_is_known_in_another() -> None:
    registry = SchemaRegistry("mock://of-another-process")
    serde = Serdes.avro(TRADE, registry, topic="trades")
    said = json.loads(json.dumps(describe(serde)).replace("of-another-process", "of-this-process"))
    assert described(said).deserialize(serde.serialize({"price": 61.5})) == {"price": 61.5}


@pytest.mark.parametrize("in_the_address", [True, False])
def test_a_real_registry_is_told_with_a_file_that_has_its_password(in_the_address: bool) -> None:
    settings = {} if in_the_address else {"basic_auth_user_info": "name:hu:sh"}
    user = "name:hu%3Ash@" if in_the_address else ""
    registry = SchemaRegistry(f"http://{user}127.0.0.1:1,http://127.0.0.1:2", max_retries=0, **settings)
    said = json.dumps(registry.describe())
    assert not re.search("hu(:|%3A)sh", said)
    assert json.loads(said)["url"] == "http://127.0.0.1:1,http://127.0.0.1:2"
    file = Path(json.loads(said)["secrets"])
    assert (file.read_text(), f"{file.stat().st_mode & 0o777:o}") == ("basic.auth.user.info=name\\:hu\\:sh\n", "600")
    again = SchemaRegistry.described(json.loads(said))
    assert (again, again.describe()) == (registry, registry.describe())
    assert again.client._rest_client.auth == ("name", "hu:sh")
    assert b"hu:sh" not in pickle.dumps(registry)
    assert pickle.loads(pickle.dumps(registry)).client._rest_client.auth == ("name", "hu:sh")


def test_a_registry_of_a_file_is_told_with_that_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("schema.registry.url=http://127.0.0.1:1\nbasic.auth.user.info=name:hush\n")
    registry = SchemaRegistry.from_properties(file)
    assert registry.describe() == {"url": "http://127.0.0.1:1", "settings": {}, "secrets": str(file), "schemas": []}
    assert SchemaRegistry.described(registry.describe()).client._rest_client.auth == ("name", "hush")
    file.write_text("schema.registry.url=http://name:hush@127.0.0.1:1\nbasic.auth.credentials.source=URL\n")
    assert SchemaRegistry.from_properties(file).describe()["secrets"] != str(file)
    file.write_text("schema.registry.url=http://127.0.0.1:1\n")
    assert SchemaRegistry.from_properties(file).describe()["secrets"] == ""


def test_a_registry_whose_file_is_gone_says_what_to_do_when_it_is_asked(tmp_path: Path) -> None:
    said = {"url": "http://127.0.0.1:1", "settings": {}, "secrets": str(tmp_path / "gone"), "schemas": []}
    registry = SchemaRegistry.described(said)
    with pytest.raises(
        RegistryError, match=r"^The credentials for the schema registry .* were in .*gone, which cannot"
    ):
        registry.schema(1, "AVRO")


@pytest.mark.parametrize("serde", [Celsius(), Loud("a string"), Serdes.list(Celsius())])
def test_a_class_of_the_program_is_named_and_never_imported(serde: Serde) -> None:
    said = json.loads(json.dumps(describe(serde)))
    with pytest.raises(SerdeError, match=r"is made by tests\..*\.(Celsius|Loud), a class of the program's own\."):
        described(said)


def test_a_class_of_the_program_is_read_where_somebody_has_it() -> None:
    celsius, said = Celsius(), json.loads(json.dumps(describe(Serdes.list(Celsius()))))
    assert described(said, own=[Loud("a string"), celsius]) == Serdes.list(celsius)
    with pytest.raises(SerdeError, match="Celsius"):
        described(said, own=[Loud("a string")])


def test_a_registry_with_settings_that_are_no_json_is_of_the_programs_own_too() -> None:
    registry = SchemaRegistry("mock://with-settings")
    serde = Serdes.avro(TRADE, registry, topic="trades")
    registry._settings["oauth_callback"] = print
    with pytest.raises(SerdeError, match="The setting 'oauth_callback' of SchemaRegistry"):
        described(describe(serde))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"serde": "os:system"},
        {"serde": ["list"]},
        {"serde": "list"},
        {"serde": "list", "inner": 7},
        {"serde": "avro", "schema": "{}", "registry": {}, "subject": "", "schema_id": 1},
        {"serde": "protobuf", "message": "A", "files": 7},
    ],
    ids=str,
)
def test_what_describes_no_serde_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="serde"):
        described(said)
