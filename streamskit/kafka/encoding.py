"""How plain Python values become the bytes of a Kafka record, and how bytes without a serde are shown."""

import json
import struct
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from streamskit.common.errors import BrokerError


class SerdeLike(Protocol):
    """What `produce` and `consume` ask of a serde: any object with these two methods will do."""

    def serialize(self, value: Any) -> bytes | None:
        """Turn a value into bytes."""

    def deserialize(self, data: bytes) -> Any:
        """Turn bytes into a value."""


def encoder(serde: SerdeLike | None) -> Callable[[Any], bytes | None]:
    """The function that turns values into bytes: the serde's or `encode`; None stays None (a tombstone).

    Raises BrokerError for what is no serde.
    """
    if serde is None:
        return encode
    serialize = _checked(serde).serialize
    return lambda value: None if value is None else serialize(value)


def decoder(serde: SerdeLike | None) -> Callable[[bytes | None], Any]:
    """The function that turns bytes into values: the serde's own, or `text_or_bytes`; None stays None.

    Raises BrokerError for what is no serde.
    """
    if serde is None:
        return text_or_bytes
    deserialize = _checked(serde).deserialize
    return lambda data: None if data is None else deserialize(data)


def _checked(serde: SerdeLike) -> SerdeLike:
    methods = [getattr(serde, name, None) for name in ("serialize", "deserialize")]
    if isinstance(serde, type) or not all(map(callable, methods)):
        raise BrokerError(
            f"{getattr(serde, '__qualname__', repr(serde))} is no serde. Give an object that serializes and "
            "deserializes, parentheses included, for example value=Serdes.long() or value=Serdes.json('price double')."
        )
    return serde


def encode(value: Any) -> bytes | None:
    """The bytes that Kafka's own serializers would write for a plain value.

    Text is UTF-8, a dict or list compact JSON, an int a big-endian long and a float a big-endian double.
    Raises BrokerError for any other type.

    >>> encode({"price": 1.5}), encode(1)
    (b'{"price":1.5}', b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01')
    """
    encode_type = _ENCODERS.get(type(value))
    if encode_type is not None:
        return encode_type(value)
    for kind, encode_kind in _WIDER_KINDS:
        if isinstance(value, kind) and not isinstance(value, bool):
            return encode_kind(value)
    raise BrokerError(
        f"{value!r} is of type {type(value).__name__}, which cannot be written as bytes by itself. Give None, bytes, "
        "str, int, float, dict or list, or pass a serde, for example value=Serdes.json(...)."
    )


def text_or_bytes(data: bytes | None) -> str | bytes | None:
    """Text if the bytes are UTF-8 without NUL characters, else the bytes themselves.

    NUL keeps numbers out: most big-endian longs contain it, and would otherwise turn into invisible text.
    """
    if data is None or b"\0" in data:
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise BrokerError(f"{value!r} cannot be written as JSON: {error}.") from error


def _long(value: int) -> bytes:
    try:
        return _pack_long(value)
    except struct.error:
        raise BrokerError(f"{value} does not fit into the 8 bytes of a Kafka long.") from None


_pack_long = struct.Struct(">q").pack
_pack_double = struct.Struct(">d").pack
_ENCODERS: dict[type, Callable[[Any], bytes | None]] = {
    type(None): lambda value: None,
    bytes: lambda value: value,
    str: str.encode,
    dict: _json,
    list: _json,
    int: _long,
    float: _pack_double,
}
_WIDER_KINDS: tuple[tuple[Any, Callable[[Any], bytes]], ...] = (
    ((bytearray, memoryview), bytes),
    (str, str.encode),
    ((dict, list), _json),
    ((int, np.integer), lambda value: _long(int(value))),
    ((float, np.floating), _pack_double),
)
