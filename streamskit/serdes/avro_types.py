"""The Spark type of an Avro schema."""

import json
from functools import lru_cache
from typing import Any

from pyspark.sql import types as T

PRIMITIVES: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "bytes": T.BinaryType(),
    "string": T.StringType(),
    "null": T.NullType(),
    "fixed": T.BinaryType(),
    "enum": T.StringType(),
}

LOGICAL: dict[tuple[str, str], T.DataType] = {
    ("int", "date"): T.DateType(),
    ("long", "timestamp-millis"): T.TimestampType(),
    ("long", "timestamp-micros"): T.TimestampType(),
    ("long", "local-timestamp-millis"): T.TimestampNTZType(),
    ("long", "local-timestamp-micros"): T.TimestampNTZType(),
    ("string", "uuid"): T.StringType(),
}
"""By the type that fastavro knows each for."""

WITHOUT = ("time-millis", "time-micros")
"""Logical types whose values, as fastavro reads them, have no Spark type."""


@lru_cache(maxsize=1000)
def spark_type(schema: str) -> T.DataType:
    """Return the Spark type of the values of an Avro schema.

    Args:
        schema: its JSON text.

    Raises:
        ValueError: Spark has no type for a field; the message names it.
    """
    from fastavro.schema import SchemaParseException, UnknownType, expand_schema

    try:
        return _type(expand_schema(json.loads(schema)), "the schema")
    except (SchemaParseException, UnknownType) as wrong:
        raise ValueError(f"This is not an Avro schema: {wrong}.") from None


def _type(schema: Any, where: str) -> T.DataType:
    if isinstance(schema, list):
        return _union(schema, where)
    if isinstance(schema, str):
        schema = {"type": schema}
    if "logicalType" in schema:
        return _logical(schema, where)
    kind = schema["type"]
    if kind == "record":
        return T.StructType([_field(field) for field in schema["fields"]])
    if kind == "array":
        return T.ArrayType(_type(schema["items"], f"an item of {where}"))
    if kind == "map":
        return T.MapType(T.StringType(), _type(schema["values"], f"a value of {where}"))
    if isinstance(kind, dict | list):
        return _type(kind, where)
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]
    raise ValueError(
        f"{where} is of type '{kind}' inside itself: Spark has no type for a record that holds its own kind."
    )


def _logical(schema: dict[str, Any], where: str) -> T.DataType:
    logical, kind = schema["logicalType"], schema["type"]
    if logical in WITHOUT:
        raise ValueError(f"{where} has the logical type {logical}, for which Spark has no type here: make it a long.")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return T.DecimalType(schema["precision"], schema.get("scale", 0))
    # Avro says that unknown logical types, such as a UUID of 16 bytes to fastavro, are ignored: the type itself counts.
    return LOGICAL.get((str(kind), logical)) or _type(_bare(schema), where)


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name != "logicalType"}


def _field(field: dict[str, Any]) -> T.StructField:
    return T.StructField(field["name"], _type(field["type"], f"field '{field['name']}'"))


def _union(branches: list[Any], where: str) -> T.DataType:
    others = [branch for branch in branches if branch != "null"]
    if len(others) > 1:
        kinds = ", ".join(str(each.get("name", each["type"]) if isinstance(each, dict) else each) for each in others)
        raise ValueError(f"{where} is a union of {kinds}: Spark has a type for one of them, with or without null.")
    return _type(others[0] if others else "null", where)
