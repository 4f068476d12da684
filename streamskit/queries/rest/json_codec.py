"""Keys and values as JSON and as text in a URL, and back.

| in Python | as JSON | in a URL |
|---|---|---|
| text, whole numbers, booleans, None | as they are | as they are, `true` and `false` |
| 1.5, NaN, infinity | 1.5, "NaN", "Infinity", "-Infinity" | the same without quotes |
| bytes | base64, with - and _ for + and / | the same |
| UUID, Decimal, date, time | text | UUID: text |
| dict, list, `Windowed`, an object with fields | an object or a list | that JSON |
"""

import base64
import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

from streamskit.api.windows import Windowed
from streamskit.serdes import Serde
from streamskit.serdes.json_text import JsonSerde
from streamskit.serdes.lists import ListSerde
from streamskit.serdes.simple import UuidSerde
from streamskit.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

Type: TypeAlias = str | dict[str, Any]
"""What a key or value is: a name such as "string", or as Spark's JSON schemas have it ({"type": "array", ...})."""

NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
WHOLE, FLOATING = ("byte", "short", "integer", "long"), ("float", "double")


def type_of(serde: Serde) -> Type:
    """Return the type of what a serde reads, for clients that have only its JSON.

    >>> type_of(Serdes.list(Serdes.long()))
    {'type': 'array', 'elementType': 'long'}
    """
    if isinstance(serde, JsonSerde):
        return "json"
    if isinstance(serde, UuidSerde):
        return "uuid"
    if isinstance(serde, ListSerde):
        return {"type": "array", "elementType": type_of(serde.inner)}
    if isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
        return {"type": "windowed", "key": type_of(serde.inner)}
    try:
        return serde.data_type.jsonValue()
    except NotImplementedError:
        return "json"


def to_json(value: Any) -> Any:
    """Return a decoded key or value as what `json` can write."""
    if value is None or (isinstance(value, str | int) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else NO_NUMBERS[str(value)]
    if isinstance(value, Windowed):
        return {"key": to_json(value.key), "start": value.start, "end": value.end}
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else str(to_json(name)): to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(each) for each in value]
    return _other(value)


def from_json(kind: Type, value: Any) -> Any:
    """Return what JSON stands for, given its type.

    Raises:
        ValueError: it is not of that type.

    >>> from_json("binary", "_wA="), from_json("double", "NaN")
    (b'\\xff\\x00', nan)
    """
    if value is None:
        return None
    if isinstance(kind, str):
        read = BY_NAME.get(kind.partition("(")[0])
        return read(value) if read else value
    if kind["type"] == "windowed":
        return Windowed(from_json(kind["key"], value["key"]), value["start"], value["end"])
    if kind["type"] == "array":
        return [from_json(kind["elementType"], each) for each in value]
    if kind["type"] == "map":
        return {name: from_json(kind["valueType"], each) for name, each in value.items()}
    types = {field["name"]: field["type"] for field in kind.get("fields", [])}
    return {name: from_json(types.get(name, "json"), each) for name, each in value.items()}


def to_text(kind: Type, key: Any) -> str:
    """Return a key as it stands in a URL, before that is percent-encoded."""
    plain = to_json(key)
    if isinstance(plain, str) and kind != "json":
        return plain
    return dumps(plain)


def from_text(kind: Type, text: str) -> Any:
    """Return the key that a text in a URL stands for.

    Raises:
        ValueError: it is not of that type; the sentence says how to write one.

    >>> from_text("long", "42"), from_text("binary", "_wA=")
    (42, b'\\xff\\x00')
    """
    try:
        return _parsed(kind, text)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        advice = ADVICE.get(kind if isinstance(kind, str) else "", "JSON, like [1, 2]")
        raise ValueError(f"'{shown(text)}' is not a key of this store: write {advice}.") from None


def key_bytes(serde: Serde, key: Any) -> bytes:
    """Return the bytes of a key.

    Raises:
        ValueError: the serde does not write it.
    """
    try:
        data = serde.serialize(key)
    except Exception as wrong:  # a serde of the user's own may raise anything
        raise ValueError(str(wrong) or f"{serde} does not write {shown(repr(key))}.") from None
    if data is None:
        raise ValueError("There is no row with the key null: name a key.")
    return data


def dumps(plain: Any) -> str:
    """Return JSON text without blanks, of what `to_json` gives."""
    return ENCODER.encode(plain)


def encoded(text: str) -> bytes:
    """Return JSON text as UTF-8; half a surrogate pair, which has none, as an escape."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text).encode()


def to_base64(data: bytes) -> str:
    """Return bytes as text that may stand in a URL."""
    return base64.urlsafe_b64encode(data).decode()


def from_base64(text: str) -> bytes:
    """Return the bytes that `to_base64` encoded; the final `=` may be missing. Raises ValueError for other text."""
    if not re.fullmatch("[A-Za-z0-9_-]*={0,2}", text):
        raise ValueError(f"'{shown(text)}' is not base64.")
    bare = text.rstrip("=")
    return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))


def shown(text: str) -> str:
    """Return the beginning of a text, for a sentence."""
    return text if len(text) <= 60 else text[:60] + "…"


def _parsed(kind: Type, text: str) -> Any:
    if isinstance(kind, str) and (kind == "string" or kind.partition("(")[0] in BY_NAME):
        return from_json(kind, text)
    if kind in WHOLE:
        if not re.fullmatch("-?[0-9]{1,20}", text):
            raise ValueError(text)
        return int(text)
    if kind == "boolean":
        return {"true": True, "false": False}[text]
    return from_json(kind, json.loads(text))


def _other(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return to_base64(bytes(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "DESCRIPTOR"):
        from streamskit.serdes.protobuf_types import to_row

        return to_json(to_row(value))
    return str(value)


def _floating(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(value)
    return float(value)


BY_NAME: dict[str, Callable[[Any], Any]] = {
    "binary": from_base64,
    "uuid": UUID,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
    "float": _floating,
    "double": _floating,
}
"""How the JSON of a type is read where it is not the value itself."""

ADVICE = {
    "boolean": "true or false",
    "binary": "its bytes in base64, with - and _ in place of + and /",
    "uuid": "32 hex digits in groups of 8-4-4-4-12",
    **dict.fromkeys(WHOLE, "a whole number"),
    **dict.fromkeys(FLOATING, "a number"),
    "date": "a date like 2024-01-02",
    "timestamp": "a time like 2024-01-02T09:00:00",
    "json": 'JSON, like {"user":"alice"} or "alice" in its quotes',
}
"""How a key of a type is written."""
