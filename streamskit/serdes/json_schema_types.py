"""The Spark type of a JSON Schema."""

import json
from functools import lru_cache
from typing import Any

from pyspark.sql import types as T

PRIMITIVES: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "integer": T.LongType(),
    "number": T.DoubleType(),
    "string": T.StringType(),
    "null": T.NullType(),
}


@lru_cache(maxsize=1000)
def spark_type(schema: str) -> T.DataType:
    """Return the Spark type of the values that a JSON Schema allows.

    Args:
        schema: its JSON text.

    Raises:
        ValueError: Spark has no type for a property; the message names it.
    """
    whole = json.loads(schema)
    return _type(whole, whole, "the schema", ())


def resolved(schema: Any, whole: Any) -> dict[str, Any]:
    """Return a schema with its `$ref` followed and null removed from its choices."""
    while isinstance(schema, dict):
        if "$ref" in schema:
            schema = _target(schema["$ref"], whole)
            continue
        choices = [each for each in schema.get("oneOf") or schema.get("anyOf") or [] if each != {"type": "null"}]
        if len(choices) != 1:
            return schema
        schema = choices[0]
    return {}


def accepts_null(schema: Any, whole: Any) -> bool:
    """Return whether a schema allows null among its types or choices; an empty one allows everything."""
    if not isinstance(schema, dict) or not schema:
        return True
    if "$ref" in schema:
        return accepts_null(_target(schema["$ref"], whole), whole)
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        return any(accepts_null(each, whole) for each in choices)
    return "null" in _kinds(schema) or ("enum" in schema and None in schema["enum"])


def _type(schema: Any, whole: Any, where: str, inside: tuple[str, ...]) -> T.DataType:
    if isinstance(schema, dict) and "$ref" in schema:
        if schema["$ref"] in inside:
            raise ValueError(f"{where} holds its own kind ({schema['$ref']}): Spark has no type for that.")
        inside = (*inside, schema["$ref"])
        return _type(_target(schema["$ref"], whole), whole, where, inside)
    schema = resolved(schema, whole)
    kinds = [kind for kind in _kinds(schema) if kind != "null"] or ["null"] * ("null" in _kinds(schema))
    if not kinds and all(isinstance(each, str) for each in schema.get("enum", [None])):
        kinds = ["string"]
    if len(kinds) != 1:
        said = " or ".join(kinds) or "anything"
        raise ValueError(f"{where} may be {said}: Spark needs one type for it. Say which, with or without null.")
    if kinds == ["array"]:
        return T.ArrayType(_type(schema.get("items", {}), whole, f"an item of {where}", inside))
    return _object(schema, whole, where, inside) if kinds == ["object"] else PRIMITIVES[kinds[0]]


def _object(schema: dict[str, Any], whole: Any, where: str, inside: tuple[str, ...]) -> T.DataType:
    properties, others = schema.get("properties"), schema.get("additionalProperties")
    if properties:
        fields = [(name, _type(each, whole, f"property '{name}'", inside)) for name, each in properties.items()]
        return T.StructType([T.StructField(name, data_type) for name, data_type in fields])
    if isinstance(others, dict):
        return T.MapType(T.StringType(), _type(others, whole, f"a value of {where}", inside))
    raise ValueError(f"{where} is an object without a description: give its properties, or additionalProperties.")


def _kinds(schema: dict[str, Any]) -> list[str]:
    said = schema.get("type", [])
    return [said] if isinstance(said, str) else list(said)


def _target(reference: str, whole: Any) -> Any:
    if not reference.startswith("#"):
        raise ValueError(f"The schema refers to '{reference}', which is outside of it: put it under '$defs'.")
    found = whole
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        raise ValueError(f"The schema refers to '{reference}', and has nothing there.")
    return found
