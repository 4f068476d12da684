"""JSON text with the fields of a Spark schema."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from pyspark import TaskContext
from pyspark.errors import ParseException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.environment.session import spark_session
from streamskit.jvm.functions import attempt, read_json, write_json
from streamskit.serdes import ddl
from streamskit.serdes.json_values import Change, Digits, fitting, from_words, in_words, to_decimals
from streamskit.serdes.serde import Serde

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


KEYS_AS_TEXT = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)
"""The types, beside text, of keys of a map that Columns make: JSON has them as text, of which they are made again."""


@dataclass(frozen=True)
class JsonSerde(Serde):
    """JSON text of a Spark schema; in Python a dict (or a list, where the schema is an array).

    A Column has exactly the fields of the schema, null where the text has none, and fails where a field is of another
    type. `serialize` refuses such values, too, and writes fields that the schema does not have. `deserialize` gives the
    text's own fields and types; only the words NaN, Infinity and -Infinity are numbers where the schema has floats, and
    all numbers are `decimal.Decimal` where it has decimals.
    """

    schema: str

    def __str__(self) -> str:
        return f"Serdes.json({self.schema!r})"

    @property
    def data_type(self) -> T.DataType:
        return _parsed(self.schema)

    @property
    def runs_in_python(self) -> bool:
        return False

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            fitting = _fitting(self.schema)(value)
            return (_text if _to_decimals(self.schema) is None else _with_decimals)(fitting).encode()
        except (TypeError, ValueError, RecursionError) as wrong:
            raise self.cannot_write(value, wrong) from None

    def deserialize(self, data: bytes | None) -> Any:
        if data is None:
            return None
        try:
            value = _reader(self.schema)(data.decode())
        except ValueError as wrong:
            raise self.cannot_read(data, f"it is not JSON: {wrong}") from None
        return _from_words(self.schema)(value) if b'NaN"' in data or b'Infinity"' in data else value

    def to_bytes(self, value: Column) -> Column:
        if isinstance(self.data_type, T.StructType | T.ArrayType | T.MapType):
            in_text = _with_text_keys(self.data_type)
            return write_json(value if in_text == self.data_type else value.cast(in_text))
        # JSON text needs something with members: write a list of one and remove its brackets.
        text = write_json(F.array(value))
        return F.when(value.isNotNull(), F.substring(text, F.lit(2), F.octet_length(text) - 2))

    def from_bytes(self, data: Column) -> Column:
        in_text = _with_text_keys(self.data_type)
        read = read_json(data, in_text, str(self))
        return read if in_text == self.data_type else read.cast(self.data_type)

    def try_from_bytes(self, data: Column) -> Column:
        tried = attempt(self.from_bytes(data))
        error = F.when(tried["error"].isNotNull(), self.refusal(data, "it is not JSON text of this schema"))
        return F.struct(tried["value"].alias("value"), error.alias("error"))

    def try_to_bytes(self, value: Column) -> Column:
        return attempt(self.to_bytes(value))


def require_what_json_holds(schema: str) -> None:
    """Refuse what is no schema, and a map whose keys are not text, or two fields of one name: they would not come back.

    Raises:
        ValueError: it is none, or has these.
    """
    if not isinstance(schema, str):
        raise ValueError(f"Serdes.json takes a schema as text, such as 'name string, size int', not {schema!r}.")
    data_type = ddl.parsed(schema)
    if data_type is None and (wrong_type := ddl.mistake(schema)) is not None:
        raise ValueError(f"Serdes.json({schema!r}): {wrong_type}")
    if data_type is not None and (name := ddl.repeated_name(data_type)) is not None:
        raise ValueError(
            f"Serdes.json({schema!r}): two fields are called '{name}', and JSON keeps one value for each name. Give "
            "each field a name of its own."
        )
    wrong = None if data_type is None else map_with_other_keys(data_type, T.StringType)
    if wrong is not None:
        of = T.MapType(T.StringType(), wrong.valueType).simpleString()
        raise ValueError(
            f"Serdes.json({schema!r}): JSON has text as keys only, and a map has keys of type "
            f"{wrong.keyType.simpleString()}. Make it {of} and turn the keys into text where it is filled."
        )


def map_with_other_keys(data_type: T.DataType, *keys: type[T.DataType]) -> T.MapType | None:
    """Return a map within a type whose keys are of none of these types; None if there is none."""
    maps = (each for each in ddl.within(data_type) if isinstance(each, T.MapType))
    return next((each for each in maps if not isinstance(each.keyType, keys)), None)


def _with_text_keys(data_type: T.DataType) -> T.DataType:
    """Return a type as its JSON has it: a Column of maps by number or time, of a type that nobody has named, by text.

    Spark would write a time as a number, which it could not read.
    """
    if isinstance(data_type, T.MapType):
        key = T.StringType() if isinstance(data_type.keyType, KEYS_AS_TEXT) else data_type.keyType
        return T.MapType(key, _with_text_keys(data_type.valueType), data_type.valueContainsNull)
    if isinstance(data_type, T.ArrayType):
        return T.ArrayType(_with_text_keys(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, T.StructType):
        return T.StructType([T.StructField(f.name, _with_text_keys(f.dataType), f.nullable) for f in data_type])
    return data_type


def _text(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except ValueError:  # it has a number without digits, or is refused again
        return _ENCODER.encode(in_words(value))


def _with_decimals(value: Any) -> str:
    """Return JSON text in which Decimals are plain digits, for which Python's own encoder has no way."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        members = (f"{_text({name: None})[1:-5]}{_with_decimals(each)}" for name, each in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_with_decimals, value))}]"
    return _text(value)


@cache
def _to_decimals(schema: str) -> Change | None:
    data_type = ddl.parsed(schema)
    return None if data_type is None else to_decimals(data_type)


@cache
def _reader(schema: str) -> Callable[[str], Any]:
    change = _to_decimals(schema)
    if change is None:
        return json.loads

    def read(text: str) -> Any:
        value = json.loads(text, parse_float=Digits)
        return None if value is None else change(value)

    return read


@cache
def _fitting(schema: str) -> Change:
    data_type = ddl.parsed(schema)
    return (None if data_type is None else fitting(data_type)) or _as_it_is


@cache
def _from_words(schema: str) -> Change:
    data_type = ddl.parsed(schema)
    return (None if data_type is None else from_words(data_type)) or _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


@cache
def _parsed(schema: str) -> T.DataType:
    if TaskContext.get() is None:  # a worker has no session, and must not start one
        spark_session()  # the parser is Spark's: a program may begin with a schema
    try:
        return T.DataType.fromDDL(schema)
    except ParseException as refused:
        said = str(refused).strip().split("\n")[0].split(" SQLSTATE")[0]
        raise ValueError(f"Serdes.json({schema!r}): Spark cannot read the schema: {said} {ddl.TYPES}") from None
