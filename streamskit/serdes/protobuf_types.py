"""The Spark type of a Protobuf message, and messages as rows of it."""

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import types as T

TIMESTAMP = "google.protobuf.Timestamp"
"""The one well-known message that becomes a Spark type of its own; all others are structs of their fields."""


def spark_type(message: Any, inside: tuple[str, ...] = ()) -> T.StructType:
    """Return the Spark type of a message, by its descriptor.

    Raises:
        ValueError: Spark has no type for a message; the error names it.
    """
    if message.full_name in inside:
        raise ValueError(f"Message {message.full_name} holds its own kind: Spark has no type for that.")
    if not message.fields:
        raise ValueError(f"Message {message.full_name} has no fields: Spark has no type for that.")
    inside = (*inside, message.full_name)
    return T.StructType([T.StructField(field.name, _field_type(field, inside)) for field in message.fields])


def _field_type(field: Any, inside: tuple[str, ...]) -> T.DataType:
    if _is_map(field):
        of = field.message_type.fields_by_name
        return T.MapType(_single_type(of["key"], inside), _single_type(of["value"], inside))
    single = _single_type(field, inside)
    return T.ArrayType(single) if field.is_repeated else single


def _single_type(field: Any, inside: tuple[str, ...]) -> T.DataType:
    if field.message_type is not None:
        return (
            T.TimestampType() if field.message_type.full_name == TIMESTAMP else spark_type(field.message_type, inside)
        )
    types: dict[int, T.DataType] = {
        field.CPPTYPE_INT32: T.IntegerType(),
        field.CPPTYPE_INT64: T.LongType(),
        field.CPPTYPE_UINT32: T.LongType(),
        field.CPPTYPE_UINT64: T.DecimalType(20, 0),
        field.CPPTYPE_FLOAT: T.FloatType(),
        field.CPPTYPE_DOUBLE: T.DoubleType(),
        field.CPPTYPE_BOOL: T.BooleanType(),
        field.CPPTYPE_ENUM: T.StringType(),
        field.CPPTYPE_STRING: T.BinaryType() if field.type == field.TYPE_BYTES else T.StringType(),
    }
    return types[field.cpp_type]


def to_row(message: Any) -> dict[str, Any]:
    """Return a message as a dict of its fields; an optional field that is absent is None."""
    return {field.name: _read(message, field) for field in message.DESCRIPTOR.fields}


def _read(message: Any, field: Any) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if _is_map(field):
        of = field.message_type.fields_by_name["value"]
        return {key: _read_single(each, of) for key, each in value.items()}
    return [_read_single(each, field) for each in value] if field.is_repeated else _read_single(value, field)


def _read_single(value: Any, field: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)  # a number that a newer schema has a name for
    if field.message_type is None:
        return value
    return value.ToDatetime(tzinfo=UTC) if field.message_type.full_name == TIMESTAMP else to_row(value)


def fill(message: Any, row: dict[str, Any]) -> Any:
    """Set the fields of a message from a dict, and return it; None leaves a field out.

    Raises:
        ValueError: the message has no field of a name in the dict, or the value is of another type.
    """
    for name, value in row.items():
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            raise ValueError(f"{message.DESCRIPTOR.full_name} has no field '{name}'")
        if value is None:
            continue
        try:
            _set(message, field, value)
        except (TypeError, AttributeError) as wrong:
            raise ValueError(f"field '{name}': {wrong}") from None
    return message


def _set(message: Any, field: Any, value: Any) -> None:
    if _is_map(field):
        of = field.message_type.fields_by_name["value"]
        for key, each in value.items():
            if of.message_type is None:
                getattr(message, field.name)[key] = _scalar(of, each)
            else:
                _fill_inner(getattr(message, field.name)[key], each)
    elif field.is_repeated:
        if isinstance(value, str | bytes):
            raise TypeError(f"it is of type {type(value).__name__}, not a list")
        for each in value:
            if field.message_type is None:
                getattr(message, field.name).append(_scalar(field, each))
            else:
                _fill_inner(getattr(message, field.name).add(), each)
    elif field.message_type is not None:
        inner = getattr(message, field.name)
        inner.SetInParent()
        _fill_inner(inner, value)
    else:
        setattr(message, field.name, _scalar(field, value))


def _fill_inner(message: Any, value: Any) -> None:
    if isinstance(value, datetime):
        message.FromDatetime(value)
    elif isinstance(value, dict):
        fill(message, value)
    else:
        raise TypeError(f"it is of type {type(value).__name__}, not a dict")


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        known = field.enum_type.values_by_name.get(value)
        if known is None and not value.lstrip("-").isdigit():
            raise ValueError(f"field '{field.name}': {field.enum_type.full_name} has no value '{value}'")
        return known.number if known else int(value)
    if field.cpp_type != field.CPPTYPE_UINT64:
        return value
    whole = int(value)  # Spark has a decimal
    if not isinstance(value, str) and whole != value:
        raise ValueError(f"field '{field.name}': {value} is not a whole number")
    return whole


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
