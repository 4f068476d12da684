"""Serdes as JSON, by their names in `Serdes`: what one process writes down and another one reads, without running code.

    {"serde": "list", "inner": {"serde": "long"}}
    {"serde": "custom", "class": "shop.TillLine", "why": "TillLine() is made by ..."}

A serde of a class of the program's own cannot be described; its name and the reason are kept for the reader, which may
have that serde itself.
"""

import base64
import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from streamskit.serdes.numbers import DOUBLE, FLOAT, INTEGER, LONG, SHORT
from streamskit.serdes.registry import SchemaRegistry
from streamskit.serdes.serde import Serde, SerdeError
from streamskit.serdes.simple import BooleanSerde, BytesSerde, StringSerde, UuidSerde, VoidSerde

Description = dict[str, Any]

SIMPLE: dict[str, Serde] = {
    **{each.name: each for each in (LONG, INTEGER, SHORT, FLOAT, DOUBLE)},
    **{name: BytesSerde(name) for name in ("bytes", "byte_array", "byte_buffer")},
    "string": StringSerde(),
    "boolean": BooleanSerde(),
    "uuid": UuidSerde(),
    "void": VoidSerde(),
}
"""The serdes that are described by their name alone."""

_REGISTERED = ("registry", "subject", "schema_id")
FIELDS = {
    "json": ("schema",),
    "list": ("inner",),
    "time_windowed": ("inner", "window_size"),
    "session_windowed": ("inner",),
    # Objects of a record class are dicts elsewhere: the reader of the description does not have the class.
    "avro": ("schema", *_REGISTERED),
    "json_schema": ("schema", *_REGISTERED),
    "protobuf": ("message", "files", *_REGISTERED),
}
"""The other serdes, each with the fields that say what it does."""

NAMES = {
    ("streamskit.serdes.json_text", "JsonSerde"): "json",
    ("streamskit.serdes.lists", "ListSerde"): "list",
    ("streamskit.serdes.windowed", "TimeWindowedSerde"): "time_windowed",
    ("streamskit.serdes.windowed", "SessionWindowedSerde"): "session_windowed",
    ("streamskit.serdes.avro", "AvroSerde"): "avro",
    ("streamskit.serdes.json_schema", "JsonSchemaSerde"): "json_schema",
    ("streamskit.serdes.protobuf", "ProtobufSerde"): "protobuf",
}
"""Their names, by module and class."""


def describe(serde: Serde) -> Description:
    """Return a serde as JSON.

    >>> describe(Serdes.list(Serdes.long()))
    {'serde': 'list', 'inner': {'serde': 'long'}}
    """
    kind = type(serde)  # a class that is derived from one of ours may do something else
    if name := next((name for name, simple in SIMPLE.items() if kind is type(simple) and serde == simple), None):
        return {"serde": name}
    name = NAMES.get((kind.__module__, kind.__name__))
    if name is None:
        own = f"{kind.__module__}.{kind.__qualname__}"
        return _custom(f"{serde} is made by {own}, a class of the program's own.", own)
    try:
        return {"serde": name, **{field: _written(getattr(serde, field)) for field in FIELDS[name]}}
    except ValueError as failure:
        return _custom(str(failure))


def described(said: Mapping[str, Any], own: Collection[Serde] = ()) -> Serde:
    """Return the serde that `describe` wrote down.

    Args:
        said: what it wrote.
        own: the program's own serdes, each of which stands in for a described one of its class.

    Raises:
        SerdeError: its class is the program's own, which a description cannot contain, and `own` has no such serde.
        ValueError: the JSON describes no serde.

    >>> described({"serde": "list", "inner": {"serde": "long"}})
    ListSerde(inner=NumberSerde(name='long', number_type=LongType(), format='>q'))
    """
    name = str(said.get("serde"))
    if name in SIMPLE:
        return SIMPLE[name]
    if name == "custom":
        for each in own:
            if said.get("class") == f"{type(each).__module__}.{type(each).__qualname__}":
                return each
        raise SerdeError(str(said.get("why")))
    if name not in FIELDS:
        raise ValueError(f"there is no serde {name!r}")
    try:
        return _class_of(name)(**{field: _read(field, said[field], own) for field in FIELDS[name]})
    except (KeyError, TypeError, AttributeError) as failure:
        raise ValueError(f"a serde {name!r} is described incompletely: {failure!r}") from None


def _custom(why: str, own: str = "") -> Description:
    return {"serde": "custom", "class": own, "why": why}


def _written(value: Any) -> Any:
    """Return a field of a serde as JSON."""
    if isinstance(value, Serde):
        return describe(value)
    if isinstance(value, SchemaRegistry):
        return value.describe()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _read(field: str, said: Any, own: Collection[Serde]) -> Any:
    """Return a field of a serde from its JSON."""
    if field == "inner":
        return described(said, own)
    if field == "registry":
        return SchemaRegistry.described(said)
    return base64.b64decode(said) if field == "files" else said


def _class_of(name: str) -> Callable[..., Serde]:
    """Return the class of a serde of this package; those that need another package are imported only here."""
    module, found = next(place for place, each in NAMES.items() if each == name)
    serde_class: Callable[..., Serde] = getattr(importlib.import_module(module), found)
    return serde_class
