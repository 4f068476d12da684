"""Avro records of an older schema, as the schema of the reader has them.

fastavro converts logical types by the writer's schema, and gives a default as its JSON is written. Here a field that
both schemas take for the same kind of thing (a time, a decimal, ...) is what the writer meant, and any other is what
the reader's schema makes of the bytes or the default.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, BinaryIO
from uuid import UUID

Converter = Callable[[Any, Any], Any]
"""Makes a value of two: what was read without logical types, and with those of the writer."""

KINDS: dict[str, type] = {
    "date": date,
    "timestamp-millis": datetime,
    "timestamp-micros": datetime,
    "local-timestamp-millis": datetime,
    "local-timestamp-micros": datetime,
    "decimal": Decimal,
    "uuid": UUID,
}
"""The Python class of each logical type's values."""

LAYOUT = ("type", "name", "fields", "items", "values", "symbols", "size", "logicalType", "precision", "scale")
"""What of a schema says which bytes are where, and what they mean."""


@lru_cache(maxsize=1000)
def parsed(schema: str) -> Any:
    """Return a schema as fastavro uses it."""
    from fastavro import parse_schema

    return parse_schema(json.loads(schema))


@lru_cache(maxsize=1000)
def expanded(schema: str) -> Any:
    """Return a schema with each named type written out wherever it is used."""
    from fastavro.schema import expand_schema

    return expand_schema(json.loads(schema))


def read(stream: BinaryIO, writer: str, schema: str) -> Any:
    """Return the value that was written with the schema `writer`, as `schema` has it; both are JSON text."""
    from fastavro import schemaless_reader

    if writer == schema or _alike(writer, schema):
        return schemaless_reader(stream, parsed(schema), None)
    start = stream.tell()
    raw = schemaless_reader(stream, _bare(writer), _bare(schema))
    convert = _converter_of(schema)
    if convert is None:
        return raw
    meant = raw
    if "logicalType" in writer:
        stream.seek(start)
        meant = schemaless_reader(stream, parsed(writer), parsed(schema))
    return convert(raw, meant)


@lru_cache(maxsize=1000)
def _alike(writer: str, schema: str) -> bool:
    """Return whether two schemas differ only in what does not change how bytes are read, such as documentation."""
    return bool(_layout(parsed(writer)) == _layout(parsed(schema)))


def _layout(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_layout(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _layout(schema[name]) for name in LAYOUT if name in schema}
    return kept["type"] if list(kept) == ["type"] else kept


@lru_cache(maxsize=1000)
def _bare(schema: str) -> Any:
    """Return a schema as fastavro uses it, without its logical types."""
    from fastavro import parse_schema

    return parse_schema(_without_logical_types(json.loads(schema)))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: each if name in ("default", "symbols", "aliases") else _without_logical_types(each)
        for name, each in schema.items()
        if name != "logicalType"
    }


# ---- from what was read to what the reader's schema says -------------------------------------------------------------


@lru_cache(maxsize=1000)
def _converter_of(schema: str) -> Converter | None:
    return _converter(expanded(schema))


def _converter(schema: Any) -> Converter | None:
    """Return what converts the values of a schema; None if they stay as they are."""
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        return _optional(_converter(others[0])) if others else None
    if isinstance(schema, str):
        schema = {"type": schema}
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _converter(kind)
    if kind == "record":
        return _record(schema)
    if kind == "array":
        return _array(_converter(schema["items"]))
    return _map(_converter(schema["values"])) if kind == "map" else _single(schema)


def _optional(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda raw, meant: None if raw is None else convert(raw, meant)


def _record(schema: dict[str, Any]) -> Converter | None:
    converters = {field["name"]: each for field in schema["fields"] if (each := _field(field)) is not None}
    if not converters:
        return None
    return lambda raw, meant: (
        raw | {name: convert(raw[name], meant[name]) for name, convert in converters.items() if name in raw}
    )


def _field(field: dict[str, Any]) -> Converter | None:
    convert, default = _converter(field["type"]), field.get("default")
    if not isinstance(default, list | dict):
        return convert

    def own(raw: Any, meant: Any) -> Any:
        # fastavro gives the schema's own list or dict to every record.
        raw = deepcopy(raw) if raw == default else raw
        return raw if convert is None else convert(raw, meant)

    return own


def _array(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda raw, meant: [convert(*both) for both in zip(raw, meant, strict=True)]


def _map(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda raw, meant: {name: convert(each, meant[name]) for name, each in raw.items()}


def _single(schema: dict[str, Any]) -> Converter | None:
    from fastavro.read import LOGICAL_READERS

    kind, logical = schema["type"], schema.get("logicalType", "")
    from_raw = LOGICAL_READERS.get(f"{kind}-{logical}")
    if from_raw is None or logical not in KINDS:
        return (lambda raw, meant: _bytes(raw)) if kind in ("bytes", "fixed") else None

    def convert(raw: Any, meant: Any) -> Any:
        if type(meant) is KINDS[logical]:
            if isinstance(meant, datetime):
                return meant.replace(tzinfo=None if logical.startswith("local-") else UTC)
            return meant
        if logical == "uuid":
            return _uuid(raw)
        return from_raw(_bytes(raw) if logical == "decimal" else raw, schema, None)

    return convert


def _bytes(raw: Any) -> Any:
    # A default is written as text, a character for each byte.
    return raw.encode("latin-1") if isinstance(raw, str) else raw


def _uuid(text: str) -> UUID | str:
    try:
        return UUID(text)
    except ValueError:
        return text  # a default such as "", or what was plain text when it was written
