"""Avro: binary, without field names; the writer's schema from the registry says what is where."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from pyspark.sql import types as T

from streamskit.serdes.avro_evolution import expanded, parsed, read
from streamskit.serdes.avro_types import spark_type
from streamskit.serdes.registered import RegisteredSerde, as_registry, subject_name
from streamskit.serdes.registry import SchemaRegistry
from streamskit.serdes.serde import plain_value


@dataclass(frozen=True)
class AvroSerde(RegisteredSerde):
    """Avro records: dicts (generic), or objects of your own class (specific).

    Mirrors Confluent's `GenericAvroSerde` and `SpecificAvroSerde`.
    """

    schema: str
    registry: SchemaRegistry
    subject: str
    schema_id: int
    record_class: type | None = None
    kind: ClassVar[str] = "AVRO"

    @property
    def name(self) -> str:
        return _name(parsed(self.schema))

    @property
    def data_type(self) -> T.DataType:
        return spark_type(self.schema)

    def encode(self, value: Any) -> bytes:
        from fastavro import schemaless_writer

        schema = parsed(self.schema)
        value = _fields(value)
        if '"timestamp-' in self.schema:
            value = _in_utc(value, expanded(self.schema))
        _check(value, schema)
        stream = io.BytesIO()
        schemaless_writer(stream, schema, value, strict_allow_default=True, disable_tuple_notation=True)
        if '"uuid"' in self.schema:
            # fastavro writes any text for a UUID: what could not be read again is refused here.
            self._decoded(stream.getvalue(), self.schema)
        return stream.getvalue()

    def decode(self, payload: bytes, writer: str) -> Any:
        value = self._decoded(payload, writer)
        return value if self.record_class is None else make_record(self.record_class, value)

    def deserialize_row(self, data: bytes | None) -> Any:
        return self._read(data, self._decoded)

    def _decoded(self, payload: bytes, writer: str) -> Any:
        stream = io.BytesIO(payload)
        try:
            value = read(stream, writer, self.schema)
        except (EOFError, IndexError):
            raise ValueError("the bytes end before the value does") from None
        left = len(payload) - stream.tell()
        if left:
            raise ValueError(f"{left} bytes are left over behind the value")
        return value


def avro_serde(
    schema: str | dict[str, Any],
    registry: SchemaRegistry | str,
    topic: str | None,
    subject: str | None,
    record_class: type | None,
) -> AvroSerde:
    """Register an Avro schema and return its serde; see `Serdes.avro`."""
    text = json.dumps(schema if isinstance(schema, dict) else json.loads(schema), separators=(",", ":"))
    spark_type(text)  # what has no Spark type is refused before it is registered
    registry = as_registry(registry)
    name = subject_name(topic, subject, _name(parsed(text)))
    return AvroSerde(text, registry, name, registry.register(name, text, "AVRO"), record_class)


def _fields(value: Any) -> Any:
    """Return an object of a class as a dict of its fields, and anything else as it is."""
    if isinstance(value, Mapping) or not hasattr(value, "__dict__"):
        return value
    return plain_value(value if is_dataclass(value) else vars(value))


def _in_utc(value: Any, schema: Any) -> Any:
    """Return a value whose times without a zone are in UTC, as in Columns; fastavro takes the machine's zone."""
    if isinstance(schema, list):
        schema = next((each for each in schema if each != "null"), "null")
    if not isinstance(schema, dict):
        return value
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _in_utc(value, kind)
    if isinstance(value, datetime):
        is_moment = str(schema.get("logicalType")).startswith("timestamp-")
        return value.replace(tzinfo=UTC) if is_moment and value.tzinfo is None else value
    if kind == "record" and isinstance(value, Mapping):
        types = {field["name"]: field["type"] for field in schema["fields"]}
        return {name: _in_utc(each, types.get(name)) for name, each in value.items()}
    if kind == "array" and isinstance(value, list | tuple):
        return [_in_utc(each, schema["items"]) for each in value]
    if kind == "map" and isinstance(value, Mapping):
        return {name: _in_utc(each, schema["values"]) for name, each in value.items()}
    return value


def _check(value: Any, schema: Any) -> None:
    """Find what the writer alone would let pass or explain badly, such as an int of more than 32 bits."""
    from fastavro.validation import ValidationError, validate

    if isinstance(schema, dict) and schema["type"] == "record" and not isinstance(value, Mapping):
        raise ValueError(f"it is of type {type(value).__name__}, neither a dict nor an object with fields")
    try:
        validate(value, schema)
    except ValidationError as wrong:
        raise ValueError("; ".join(map(str, wrong.errors))) from None


def _name(schema: Any) -> str:
    return schema.get("name") or schema["type"] if isinstance(schema, dict) else str(schema)


def make_record(record_class: type, value: Any) -> Any:
    """Return an object of `record_class` with the fields of a dict.

    Fields whose hints name a dataclass or an Enum are converted to it, also in lists, dicts and Optional.

    >>> make_record(Trade, {"symbol": "KO", "price": 61.5})
    Trade(symbol='KO', price=61.5)
    """
    if not isinstance(value, Mapping):
        return value
    hints = _field_types(record_class)
    return record_class(**{name: _converted(hints.get(name), each) for name, each in value.items()})


@lru_cache(maxsize=100)
def _field_types(record_class: type) -> dict[str, Any]:
    return get_type_hints(record_class)


def _converted(hint: Any, value: Any) -> Any:
    if value is None or hint is None:
        return value
    origin, inner = get_origin(hint), [each for each in get_args(hint) if each is not type(None)]
    if origin in (Union, UnionType):
        return _converted(inner[0], value) if len(inner) == 1 else value
    if origin is list:
        return [_converted(inner[0], each) for each in value]
    if origin is dict:
        return {name: _converted(inner[1], each) for name, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint[value]
    return make_record(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value
