"""Serdes against a real schema registry, Apicurio's, behind a door that wants a name and a password."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import RegistryError, SchemaRegistry, Serdes
from tests.integration import real_registry
from tests.unit.serdes.serdes_schemas import SHOP, TRADE, trade_class

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not real_registry.is_here(),
        reason="no real registry here: `python -m tests.integration.real_registry` fetches one (159 MB)",
    ),
]

KO = {"symbol": "KO", "price": 1.0, "note": None}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with real_registry.running() as address:
        yield address


@pytest.fixture
def registry(url: str) -> SchemaRegistry:
    return SchemaRegistry.from_properties({"schema.registry.url": url, "basic.auth.user.info": real_registry.USER_INFO})


def grown(**field: Any) -> dict[str, Any]:
    return {**TRADE, "fields": [*TRADE["fields"], {"name": "size", "type": "int", **field}]}


def test_avro_goes_through_it_and_a_new_handle_finds_the_schema_by_its_number(
    registry: SchemaRegistry, url: str
) -> None:
    topic = f"trades-{uuid4()}"
    data = Serdes.avro(TRADE, registry, topic=topic).serialize(KO) or b""
    number = int.from_bytes(data[1:5], "big")
    anew = SchemaRegistry(f"{url}/", basic_auth_user_info=real_registry.USER_INFO)
    assert json.loads(anew.schema(number, "AVRO"))["name"] == TRADE["name"]
    assert Serdes.avro(TRADE, anew, topic=topic).deserialize(data) == KO
    assert registry.client.get_versions(f"{topic}-value") == [1]


@pytest.mark.xfail(
    strict=True,
    raises=RegistryError,
    reason="Apicurio 3.3.3 keeps a Protobuf schema in the base64 in which Confluent's Python client registers it, and "
    "does not understand that when it is asked for the compiled form",
)
def test_protobuf_goes_through_it(registry: SchemaRegistry) -> None:
    protobuf = Serdes.protobuf(trade_class(), registry, topic=f"protobuf-{uuid4()}")
    assert protobuf.deserialize(protobuf.serialize({"symbol": "KO", "price": 1.0}))["symbol"] == "KO"


def test_json_schema_goes_through_it(registry: SchemaRegistry) -> None:
    shop = Serdes.json_schema(SHOP, registry, topic=f"json-{uuid4()}")
    row = {"symbol": "KO", "price": 1.5}
    read = shop.deserialize(shop.serialize(row))
    assert {name: read[name] for name in row} == row


def test_it_refuses_a_schema_that_cannot_read_old_records_once_its_rule_says_so(
    registry: SchemaRegistry, url: str
) -> None:
    topic = f"trades-{uuid4()}"
    Serdes.avro(TRADE, registry, topic=topic)
    auth = tuple(real_registry.USER_INFO.split(":", 1))
    rule = httpx.put(f"{url}/config/{topic}-value", json={"compatibility": "BACKWARD"}, auth=auth)  # type: ignore[arg-type]
    assert rule.status_code == 200
    with pytest.raises(RegistryError, match="the registry answered 409"):
        Serdes.avro(grown(), registry, topic=topic)
    assert Serdes.avro(grown(default=1), registry, topic=topic) is not None
    assert registry.client.get_versions(f"{topic}-value") == [1, 2]


@pytest.mark.parametrize("user_info", ["", "course:wrong"])
def test_nobody_else_is_let_in(url: str, user_info: str) -> None:
    settings = {"basic_auth_user_info": user_info} if user_info else {}
    with pytest.raises(RegistryError, match="the registry answered 401: Unauthorized"):
        Serdes.avro(TRADE, SchemaRegistry(url, **settings), topic="trades")


@pytest.mark.spark
def test_workers_ask_it_for_a_schema_that_came_later(spark: SparkSession, registry: SchemaRegistry) -> None:
    reader = Serdes.avro(TRADE, registry, topic=f"trades-{uuid4()}")
    later = Serdes.avro(grown(default=1), registry, topic=f"elsewhere-{uuid4()}").serialize({**KO, "size": 7}) or b""
    unknown = b"\x00\x00\x0f\xff\xff" + later[5:]
    rows = spark.createDataFrame([(bytearray(later),), (bytearray(unknown),)], "data binary")
    tried = [row.tried for row in rows.select(reader.try_from_bytes(F.col("data")).alias("tried")).collect()]
    assert (tried[0].value.symbol, tried[0].error) == ("KO", None)
    assert "has no such schema" in tried[1].error
