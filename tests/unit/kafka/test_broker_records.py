"""How records of many shapes become bytes; no broker takes part."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from streamskit import Serdes
from streamskit.common.errors import BrokerError
from streamskit.kafka.encoding import decoder, encode, encoder, text_or_bytes
from streamskit.kafka.records import OutgoingRecord, milliseconds, read_records


def read(records: Any) -> list[OutgoingRecord]:
    return list(read_records(records))


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (b"\xff", b"\xff"),
        (bytearray(b"ab"), b"ab"),
        ("Zürich", "Zürich".encode()),
        ({"symbol": "KO", "prices": [1.5, None]}, b'{"symbol":"KO","prices":[1.5,null]}'),
        (["Ä"], '["Ä"]'.encode()),
        (1, b"\0\0\0\0\0\0\0\x01"),
        (-1, b"\xff" * 8),
        (np.int32(7), b"\0\0\0\0\0\0\0\x07"),
        (1.5, b"\x3f\xf8\0\0\0\0\0\0"),
        (np.float32(1.5), b"\x3f\xf8\0\0\0\0\0\0"),
    ],
)
def test_a_plain_value_becomes_the_bytes_of_kafkas_serializers(value: Any, data: bytes | None) -> None:
    assert encode(value) == data


@pytest.mark.parametrize("value", [True, object(), {1, 2}, 2**63, {"price": float("nan")}, {"at": datetime.now()}])
def test_a_value_without_clear_bytes_is_refused(value: Any) -> None:
    with pytest.raises(BrokerError):
        encode(value)


@pytest.mark.parametrize(
    ("data", "shown"),
    [(b"KO", "KO"), (b"", ""), (None, None), (b"\xff\xfe", b"\xff\xfe"), (encode(42), encode(42))],
)
def test_bytes_are_shown_as_text_only_if_they_are_text(data: bytes | None, shown: str | bytes | None) -> None:
    assert text_or_bytes(data) == shown


@pytest.mark.parametrize(
    ("given", "name"),
    [(Serdes.double, "Serdes.double"), ("string", "'string'"), (3, "3"), (BrokerError, "BrokerError")],
)
def test_what_is_no_serde_is_refused_with_what_to_give(given: Any, name: str) -> None:
    for make in (encoder, decoder):
        with pytest.raises(BrokerError, match=rf"^{name} is no serde. Give an object .*value=Serdes.long\(\)"):
            make(given)


def test_tuples_are_key_value_and_timestamp() -> None:
    assert read([("KO", 1), ("PEP", None, 5)]) == [OutgoingRecord(1, "KO"), OutgoingRecord(None, "PEP", 5)]


def test_a_dict_needs_only_a_value() -> None:
    full = {"key": "KO", "value": 1, "timestamp": 5, "headers": [("trace", b"7")], "partition": 2}
    assert read([{"value": 1}, full]) == [OutgoingRecord(1), OutgoingRecord(1, "KO", 5, [("trace", b"7")], 2)]


def test_header_values_may_be_text() -> None:
    assert read([{"value": 1, "headers": {"trace": "7"}}])[0].headers == [("trace", b"7")]


def test_missing_headers_of_a_dataframe_are_none() -> None:
    frame = pd.DataFrame({"value": [1, 2, 3], "headers": [[("trace", b"7")], float("nan"), None]})
    assert [record.headers for record in read(frame)] == [[("trace", b"7")], [], []]


@pytest.mark.parametrize("name", ["key", "value"])
def test_whole_numbers_that_pandas_turned_into_floats_because_some_are_missing_are_refused(name: str) -> None:
    frame = pd.DataFrame({"key": ["KO", "PEP"], "value": [1, 2]} | {name: [7, None]})
    said = rf'column {name} has whole numbers and .* write df\.astype\({{"{name}": "Int64"}}\), for doubles {name}='
    with pytest.raises(BrokerError, match=said):
        next(read_records(frame, ["key", "value"]))
    clear = [getattr(record, name) for record in read_records(frame.astype({name: "Int64"}), ["key", "value"])]
    assert clear == [7, None]
    assert type(clear[0]) is int
    assert [getattr(record, name) for record in read_records(frame)] == [7.0, None]


@pytest.mark.parametrize(
    "values", [pd.Series([1.5, None]), pd.Series([1.0, None], dtype="Float64"), pd.Series([1.0, 2.0]), [float("nan")]]
)
def test_columns_that_say_that_they_are_floats_are_taken(values: Any) -> None:
    records = list(read_records(pd.DataFrame({"value": values}), ["key", "value"]))
    assert {type(record.value) for record in records} <= {float, type(None)}


def test_a_generator_is_read_one_record_at_a_time() -> None:
    asked: list[int] = []

    def endless() -> Any:
        while True:
            asked.append(len(asked))
            yield ("KO", 1)

    records = read_records(endless())
    next(records)
    next(records)
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("KO", "'KO' is a str, not a record"),
        (("KO",), "a tuple of 1 items"),
        ({"key": "KO"}, 'there is no "value"'),
        ({"value": 1, "price": 2}, "'price' is not a field"),
        ({"value": 1, "timestamp": 1.5}, "milliseconds since 1970"),
        ({"value": 1, "timestamp": True}, "milliseconds since 1970"),
        ({"value": 1, "timestamp": "2024-01-01"}, "milliseconds since 1970"),
        ({"value": 1, "timestamp": -1}, "before 1970"),
        ({"value": 1, "headers": [("trace", 7)]}, "is not a name"),
        ({"value": 1, "headers": [("trace", None)]}, "the header 'trace' is None, which the client in Python cannot"),
        ({"value": 1, "headers": "trace"}, "not a list of"),
        ({"value": 1, "partition": "0"}, "not an int"),
    ],
)
def test_a_wrong_record_is_named_by_its_index(record: Any, words: str) -> None:
    with pytest.raises(BrokerError, match=r"^Record 1: ") as refused:
        read([("KO", 1), record])
    assert words in str(refused.value)


@pytest.mark.parametrize("records", ["KO", b"KO", {"value": 1}, 7])
def test_one_value_is_not_a_list_of_records(records: Any) -> None:
    with pytest.raises(BrokerError, match="not a list of records"):
        read(records)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        pd.Timestamp("2024-01-01"),
        pd.Timestamp("2024-01-01", tz="UTC"),
        np.int64(1_704_067_200_000),
    ],
)
def test_a_timestamp_is_milliseconds_and_a_naive_datetime_is_utc(moment: Any) -> None:
    assert milliseconds(moment) == 1_704_067_200_000


def test_a_timestamp_keeps_its_milliseconds_exactly() -> None:
    assert milliseconds(datetime(2024, 1, 1, 0, 0, 0, 999_999)) == 1_704_067_200_999


def test_a_dataframe_gives_plain_python_values() -> None:
    frame = pd.DataFrame({"key": ["KO", "PEP"], "value": [1, 2], "timestamp": [5, 6]})
    records = read(frame)
    assert records == [OutgoingRecord(1, "KO", 5), OutgoingRecord(2, "PEP", 6)]
    assert type(records[0].value) is int


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_dataframe_may_hold_datetimes_of_any_unit(unit: str) -> None:
    moments = pd.Series(np.array(["2024-01-01T00:00:01"], dtype=f"datetime64[{unit}]"))
    frame = pd.DataFrame({"value": ["x"], "timestamp": moments})
    assert read(frame)[0].timestamp == 1_704_067_201_000


def test_missing_entries_of_a_dataframe_are_none() -> None:
    frame = pd.DataFrame({"key": ["KO", None], "value": [1.5, float("nan")], "timestamp": [5, None]})
    assert read(frame) == [OutgoingRecord(1.5, "KO", 5), OutgoingRecord(None, None, None)]


def test_a_dataframe_with_columns_of_its_own_is_refused_with_what_to_do() -> None:
    with pytest.raises(BrokerError, match="price, symbol are not fields"):
        read(pd.DataFrame({"symbol": ["KO"], "price": [1.5]}))


def test_a_dataframe_without_values_is_refused() -> None:
    with pytest.raises(BrokerError, match='no "value" column'):
        read(pd.DataFrame({"key": ["KO"]}))
