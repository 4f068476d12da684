"""The records a user hands to `produce`, in their many shapes, as one plain shape."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from streamskit.common.errors import BrokerError

Records: TypeAlias = "Iterable[Mapping[str, Any] | tuple[Any, ...]] | pd.DataFrame"
HeaderList: TypeAlias = "list[tuple[str, bytes]]"

SHAPES = (
    'A record is a dict such as {"key": "KO", "value": 41.5} (also "timestamp", "headers", "partition"), '
    "or a tuple (key, value) or (key, value, timestamp)"
)


class OutgoingRecord(NamedTuple):
    """One record before it is serialized; `timestamp` is in milliseconds since 1970, UTC."""

    value: Any
    key: Any = None
    timestamp: int | None = None
    headers: HeaderList = []  # noqa: RUF012  (shared, but nobody adds to it)
    partition: int | None = None


def read_records(records: Records, without_serde: Collection[str] = ()) -> Iterator[OutgoingRecord]:
    """Give each record of an iterable or DataFrame in turn; nothing is read ahead.

    Args:
        records: in any of their shapes.
        without_serde: which of "key" and "value" are written after their types, as no serde says how.

    Raises:
        BrokerError: one is no record, and its index is named; or a column's type does not say what its numbers are.
    """
    if isinstance(records, pd.DataFrame):
        for name in without_serde:
            _check_type_is_clear(records, name)
        rows: Iterable[Any] = _rows(records)
    elif isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise BrokerError(f"records is one {type(records).__name__}, not a list of records. {SHAPES}.")
    else:
        rows = records
    for index, row in enumerate(rows):
        try:
            yield _record(row)
        except BrokerError as error:
            raise BrokerError(f"Record {index}: {error}") from error


def milliseconds(timestamp: Any) -> int | None:
    """A record timestamp as int milliseconds since 1970; a datetime without a time zone is UTC.

    Raises:
        BrokerError: it is not a time, or is before 1970.

    >>> milliseconds(datetime(1970, 1, 1, 0, 0, 1))
    1000
    """
    if timestamp is None or timestamp is pd.NaT:
        return None
    if isinstance(timestamp, datetime):
        aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
        since_1970 = aware - datetime(1970, 1, 1, tzinfo=UTC)
        moment = since_1970.days * 86_400_000 + since_1970.seconds * 1000 + since_1970.microseconds // 1000
    elif isinstance(timestamp, (int, np.integer)) and not isinstance(timestamp, bool):
        moment = int(timestamp)
    else:
        raise BrokerError(
            f"the timestamp {timestamp!r} is neither an int in milliseconds since 1970 nor a datetime; for "
            "seconds write int(seconds * 1000)."
        )
    if moment < 0:
        raise BrokerError(f"the timestamp {timestamp!r} is before 1970, which Kafka cannot store.")
    return moment


def _record(row: Any) -> OutgoingRecord:
    if isinstance(row, tuple):
        if len(row) not in (2, 3):
            raise BrokerError(f"a tuple of {len(row)} items is not a record. {SHAPES}.")
        return OutgoingRecord(row[1], row[0], milliseconds(row[2]) if len(row) == 3 else None)
    if not isinstance(row, Mapping):
        raise BrokerError(f"{row!r} is a {type(row).__name__}, not a record. {SHAPES}.")
    if unknown := row.keys() - OutgoingRecord._fields:
        names = ", ".join(sorted(map(repr, unknown)))
        raise BrokerError(f'{names} is not a field of a record. {SHAPES}; for a dict as value: {{"value": {{...}}}}.')
    if "value" not in row:
        raise BrokerError('there is no "value"; write "value": None for a tombstone.')
    headers = row.get("headers")
    return OutgoingRecord(
        row["value"],
        row.get("key"),
        milliseconds(row.get("timestamp")),
        _headers(headers) if headers else [],
        _partition(row.get("partition")),
    )


def _headers(headers: Any) -> HeaderList:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    try:
        encoded = [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]
    except (TypeError, ValueError):
        raise BrokerError(f"the headers {headers!r} are not a list of (name, bytes) pairs.") from None
    for name, value in encoded:
        if isinstance(name, str) and value is None:  # Kafka has such headers; kafka-python counts their bytes
            raise BrokerError(
                f"the header {name!r} is None, which the client in Python cannot send: leave it out, or give b''."
            )
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise BrokerError(f"the header {name!r}: {value!r} is not a name (str) with bytes.")
    return encoded


def _partition(partition: Any) -> int | None:
    if partition is None:
        return None
    if isinstance(partition, (int, np.integer)) and not isinstance(partition, bool):
        return int(partition)
    raise BrokerError(f"the partition {partition!r} is not an int.")


def _rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield each row as a dict of its columns: those of an `OutgoingRecord`, some or all.

    Raises:
        BrokerError: there is another column.
    """
    # "offset" is what consume() adds: dropped here, so that what was consumed can be produced again.
    columns = [str(name) for name in frame.columns if name != "offset"]
    if unknown := sorted(set(columns) - set(OutgoingRecord._fields)):
        raise BrokerError(
            f"The DataFrame's column(s) {', '.join(unknown)} are not fields of a record (key, value, "
            "timestamp, "
            'headers, partition). Make one value column, for example df.assign(value=df.to_dict("records"))'
            '[["value"]].'
        )
    if "value" not in columns:
        raise BrokerError('The DataFrame has no "value" column.')
    values = [_plain(frame[name], name) for name in columns]
    for row in zip(*values, strict=True):
        yield dict(zip(columns, row, strict=True))


def _check_type_is_clear(frame: pd.DataFrame, name: str) -> None:
    """Refuse a column of numbers that pandas may have turned into floats, only because some are missing."""
    if name not in frame.columns or frame[name].dtype != "float64":  # "Float64" is what somebody has asked for
        return
    there = frame[name].dropna()
    if 0 < len(there) < len(frame) and all(number.is_integer() for number in there.tolist()):
        raise BrokerError(
            f"The DataFrame's column {name} has whole numbers and missing entries, for which pandas turns ints into "
            f'floats: say which they are. For longs write df.astype({{"{name}": "Int64"}}), for doubles '
            f"{name}=Serdes.double()."
        )


def _plain(column: "pd.Series[Any]", name: str) -> list[Any]:
    """A column as plain Python values, missing ones as None."""
    if name in ("timestamp", "partition") and pd.api.types.is_float_dtype(column):
        # pandas turns an int column with gaps into floats; nullable integers say the same without loss.
        with contextlib.suppress(TypeError):  # a fraction: each record says so
            column = column.astype("Int64")
    missing = column.isna()
    if not missing.any():
        return column.tolist()
    return column.astype(object).where(~missing, None).tolist()
