"""JSON with a schema: text that is validated against a JSON Schema when it is written and when it is read."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from pyspark.sql import types as T

from streamskit.serdes.json_schema_types import accepts_null, resolved, spark_type
from streamskit.serdes.json_values import Change, to_floats
from streamskit.serdes.registered import RegisteredSerde, as_registry, subject_name
from streamskit.serdes.registry import SchemaRegistry

LONG_NUMBER = re.compile(rb"\d{16}")
"""What every number has that no double is exactly."""


@dataclass(frozen=True)
class JsonSchemaSerde(RegisteredSerde):
    """JSON text that a JSON Schema allows. Mirrors Confluent's `KafkaJsonSchemaSerde`."""

    schema: str
    registry: SchemaRegistry
    subject: str
    schema_id: int
    kind: ClassVar[str] = "JSON"

    def __str__(self) -> str:
        return f"Serdes.json_schema({self.name!r})"

    @property
    def name(self) -> str:
        return _name(_parsed(self.schema))

    @property
    def data_type(self) -> T.DataType:
        return spark_type(self.schema)

    def encode(self, value: Any) -> bytes:
        whole = _parsed(self.schema)
        value = _without_nulls(value, whole, whole)
        _check(self.schema, value)
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()

    def decode(self, payload: bytes, writer: str) -> Any:
        value = json.loads(payload.decode())
        _check(self.schema, value)
        return value

    def deserialize_row(self, data: bytes | None) -> Any:
        return self._read(data, self._decoded_row)

    def _decoded_row(self, payload: bytes, writer: str) -> Any:
        value = self.decode(payload, writer)
        # Arrow makes a double of an int only where it has that very number.
        change = _to_floats(self.schema) if LONG_NUMBER.search(payload) else None
        return value if change is None or value is None else change(value)


def json_schema_serde(
    schema: str | dict[str, Any], registry: SchemaRegistry | str, topic: str | None, subject: str | None
) -> JsonSchemaSerde:
    """Register a JSON Schema and return its serde; see `Serdes.json_schema`."""
    text = json.dumps(schema if isinstance(schema, dict) else json.loads(schema), separators=(",", ":"))
    _validator(text)
    spark_type(text)
    registry = as_registry(registry)
    name = subject_name(topic, subject, _name(_parsed(text)))
    return JsonSchemaSerde(text, registry, name, registry.register(name, text, "JSON"))


@lru_cache(maxsize=1000)
def _parsed(schema: str) -> Any:
    return json.loads(schema)


@lru_cache(maxsize=1000)
def _to_floats(schema: str) -> Change | None:
    return to_floats(spark_type(schema))


@lru_cache(maxsize=1000)
def _validator(schema: str) -> Any:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    parsed = _parsed(schema)
    kind = validator_for(parsed)
    try:
        kind.check_schema(parsed)
    except SchemaError as wrong:
        raise ValueError(f"This is not a JSON Schema: {wrong.message} (at {wrong.json_path}).") from None
    return kind(parsed)


def _check(schema: str, value: Any) -> None:
    wrong = next(iter(_validator(schema).iter_errors(value)), None)
    if wrong is not None:
        raise ValueError(f"{wrong.message} (at {wrong.json_path})")


def _without_nulls(value: Any, schema: Any, whole: Any) -> Any:
    """Leave out fields that are None where the schema allows no null: a Spark struct has every field."""
    schema = resolved(schema, whole)
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        return {
            name: _without_nulls(each, properties.get(name, others), whole)
            for name, each in value.items()
            if each is not None or accepts_null(properties.get(name, {}), whole)
        }
    if isinstance(value, list):
        return [_without_nulls(each, schema.get("items", {}), whole) for each in value]
    return value


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("title") or schema.get("type", "schema"))
