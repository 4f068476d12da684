"""Keys and values as JSON and as text in a URL."""

import json
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamskit.api.windows import Windowed
from streamskit.queries.rest.json_codec import (
    dumps,
    encoded,
    from_base64,
    from_json,
    from_text,
    key_bytes,
    to_base64,
    to_json,
    to_text,
    type_of,
)
from streamskit.serdes import Serde, Serdes

floats = st.floats(allow_nan=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
KEYS: list[tuple[Serde, st.SearchStrategy[Any]]] = [
    (Serdes.string(), st.text()),
    (Serdes.long(), st.integers(-(2**63), 2**63 - 1)),
    (Serdes.short(), st.integers(-(2**15), 2**15 - 1)),
    (Serdes.double(), floats),
    (Serdes.boolean(), st.booleans()),
    (Serdes.uuid(), st.uuids()),
    (Serdes.bytes(), st.binary()),
    (
        Serdes.json("struct<a: int>"),
        st.builds(
            lambda others, a: {**others, "a": a},
            st.dictionaries(st.text(), json_values),
            st.none() | st.integers(-(2**31), 2**31 - 1),
        ),
    ),
    (Serdes.list(Serdes.long()), st.lists(st.integers(-(2**63), 2**63 - 1))),
    (Serdes.list(Serdes.uuid()), st.lists(st.uuids())),
    (Serdes.time_windowed(Serdes.string(), 10), st.builds(lambda key, at: Windowed(key, at, at + 10), st.text(),
                                                          st.integers(0, 2**60))),
]  # fmt: skip


@pytest.mark.parametrize(("serde", "keys"), KEYS, ids=lambda each: str(each) if isinstance(each, Serde) else "")
@given(data=st.data())
def test_a_key_comes_back_from_its_text_and_from_its_json(
    serde: Serde, keys: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    key, kind = data.draw(keys), type_of(serde)
    assert from_text(kind, to_text(kind, key)) == key
    assert from_json(kind, json.loads(encoded(dumps(to_json(key))))) == key
    assert key_bytes(serde, from_text(kind, to_text(kind, key))) == serde.serialize(key)


@given(st.binary())
def test_bytes_come_back_from_base64_that_needs_no_encoding_in_a_url(data: bytes) -> None:
    text = to_base64(data)
    assert from_base64(text) == from_base64(text.rstrip("=")) == data
    assert not set(text) & set("+/ ")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("long", ""), ("long", "1.5"), ("long", "1_000"), ("long", "9" * 30), ("long", "١"), ("double", "much"),
        ("boolean", "yes"), ("uuid", "1234"), ("binary", "a+/"), ("binary", "ü"), ("binary", "abcde"), ("json", "{"),
        ("json", "[" * 8000), ({"type": "array", "elementType": "long"}, "3"),
        ({"type": "windowed", "key": "long"}, "{}"),
        ({"type": "struct", "fields": []}, "[1]"), ("decimal(10,2)", "x"), ("date", "today"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_key_is_refused_with_how_to_write_one(kind: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a key of this store: write "):
        from_text(kind, text)


def test_the_advice_for_a_number_is_a_number() -> None:
    with pytest.raises(ValueError, match=r"^'x' is not a key of this store: write a whole number\.$"):
        from_text("long", "x")


@pytest.mark.parametrize(
    ("serde", "key"), [(Serdes.short(), 40_000), (Serdes.long(), 2**63), (Serdes.void(), None), (Serdes.float(), 1e300)]
)
def test_a_key_that_the_serde_does_not_write_is_refused(serde: Serde, key: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        key_bytes(serde, key)


def test_what_json_has_no_word_for_becomes_text() -> None:
    assert to_json([math.nan, math.inf, -math.inf, 1.5]) == ["NaN", "Infinity", "-Infinity", 1.5]
    assert to_json({"when": datetime(2024, 1, 2, 9), "day": date(2024, 1, 2), "sum": Decimal("1.50")}) == {
        "when": "2024-01-02T09:00:00",
        "day": "2024-01-02",
        "sum": "1.50",
    }
    assert to_json({1: b"\xff\xfe", "id": UUID(int=1)}) == {"1": "__4=", "id": "00000000-0000-0000-0000-000000000001"}
    assert to_json(Windowed("a", 0, 10)) == {"key": "a", "start": 0, "end": 10}


def test_it_becomes_again_what_it_was_where_the_type_is_known() -> None:
    fields = [("sum", "decimal(10,2)"), ("day", "date"), ("raw", "binary"), ("price", "double"), ("id", "uuid")]
    kind = {"type": "struct", "fields": [{"name": name, "type": of} for name, of in fields]}
    value = {"sum": Decimal("1.50"), "day": date(2024, 1, 2), "raw": b"\xff", "price": math.inf, "id": UUID(int=1)}
    assert from_json(kind, json.loads(dumps(to_json(value)))) == value
    assert from_json({"type": "map", "valueType": "double"}, {"a": "NaN", "b": None})["b"] is None


def test_half_a_surrogate_pair_is_written_as_an_escape() -> None:
    assert json.loads(encoded(dumps({"broken": "a\ud800b", "whole": "ü😀"}))) == {"broken": "a\ud800b", "whole": "ü😀"}


def test_a_serde_of_ones_own_without_a_type_has_keys_in_json() -> None:
    class Celsius(Serde):
        def serialize(self, value: Any) -> bytes | None:
            return None if value is None else f"{value:.1f} C".encode()

        def deserialize(self, data: bytes | None) -> Any:
            return None if data is None else float(data.removesuffix(b" C"))

    assert type_of(Celsius()) == "json"
    assert key_bytes(Celsius(), from_text("json", "21.5")) == b"21.5 C"
    with pytest.raises(ValueError, match="Unknown format code"):
        key_bytes(Celsius(), from_text("json", '"warm"'))
