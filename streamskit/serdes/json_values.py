"""What JSON makes of Python values: which ones fit a Spark type, and the numbers that JSON has no digits for."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyspark.sql import types as T

Change = Callable[[Any], Any]
"""Makes another value of one that is not None."""

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The numbers that Spark writes as text."""

LONGEST_NUMBER = 45
"""How many characters of a number an error shows: all of a decimal."""

FLOATS = (T.FloatType, T.DoubleType)

BITS: dict[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}

LEAST_TOO_LARGE: dict[type[T.DataType], float] = {T.FloatType: (2 - 2**-24) * 2.0**127, T.DoubleType: math.inf}
"""The least number that is infinite when it is rounded to a type."""


def fitting(data_type: T.DataType) -> Change | None:
    """Return a function that returns what to write for a value, and raises ValueError if it does not fit the type.

    A whole float is an int where the type is integral. Text is not looked at, as Spark reads any JSON as its text, and
    neither are types of which Python's json has no values, such as dates and binary. None where nothing of a type is.
    """
    if isinstance(data_type, T.StructType):
        return _fitting_fields({field.name: each for field in data_type if (each := fitting(field.dataType))})
    if isinstance(data_type, T.ArrayType):
        return _fitting_items(fitting(data_type.elementType))
    if isinstance(data_type, T.MapType):
        return _fitting_members(fitting(data_type.valueType))
    if type(data_type) in BITS:
        return _fitting_whole(data_type.simpleString(), 2 ** (BITS[type(data_type)] - 1))
    if type(data_type) in LEAST_TOO_LARGE:
        return _fitting_float(data_type.simpleString(), LEAST_TOO_LARGE[type(data_type)])
    if isinstance(data_type, T.DecimalType):
        return _fitting_decimal(data_type)
    return _fitting_boolean if isinstance(data_type, T.BooleanType) else None


def in_words(value: Any) -> Any:
    """Return a value whose NaN and infinite numbers are text, as Spark writes them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: in_words(each) for name, each in value.items()}
    return [in_words(each) for each in value] if isinstance(value, list | tuple) else value


def from_words(data_type: T.DataType) -> Change | None:
    """Return a function that makes numbers of `WORDS` in what `json` has read; None if a type has no such numbers."""
    return _changing(data_type, FLOATS, lambda value: WORDS.get(value, value) if isinstance(value, str) else value)


def to_floats(data_type: T.DataType) -> Change | None:
    """Return a function that makes floats of ints where the type has floats; None if it has none."""
    return _changing(data_type, FLOATS, lambda value: float(value) if isinstance(value, int) else value)


def to_decimals(data_type: T.DataType) -> Change | None:
    """Return a function for what `json` has read with a `Digits` for each float; None if a type has no decimals.

    It makes Decimals of numbers where the type has decimals, and floats of all other `Digits`.
    """
    decimals = _changing(data_type, (T.DecimalType,), _decimal)
    return None if decimals is None else lambda value: _without_digits(decimals(value))


class Digits(str):
    """A number with a fraction or an exponent, as JSON has it."""

    __slots__ = ()


def _decimal(value: Any) -> Any:
    is_number = isinstance(value, Digits) or (isinstance(value, int) and not isinstance(value, bool))
    return Decimal(value) if is_number else value


def _without_digits(value: Any) -> Any:
    if isinstance(value, Digits):
        return float(value)
    if isinstance(value, dict):
        return {name: _without_digits(each) for name, each in value.items()}
    return [_without_digits(each) for each in value] if isinstance(value, list) else value


def _changing(data_type: T.DataType, kinds: tuple[type[T.DataType], ...], change: Change) -> Change | None:
    if isinstance(data_type, kinds):
        return change
    if isinstance(data_type, T.StructType):
        fields = {field.name: each for field in data_type if (each := _changing(field.dataType, kinds, change))}
        return (lambda value: _members(value, fields.get)) if fields else None
    if isinstance(data_type, T.ArrayType):
        item = _changing(data_type.elementType, kinds, change)
        return None if item is None else lambda value: _items(value, item)
    if isinstance(data_type, T.MapType):
        member = _changing(data_type.valueType, kinds, change)
        return None if member is None else lambda value: _members(value, lambda name: member)
    return None


def _items(value: Any, change: Change) -> Any:
    return [None if each is None else change(each) for each in value] if isinstance(value, list) else value


def _members(value: Any, changes: Callable[[str], Change | None]) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: each if each is None or (change := changes(name)) is None else change(each)
        for name, each in value.items()
    }


# ---- whether a value fits: of classes that json does not know, it says so itself -------------------------------------


def _fitting_fields(fields: dict[str, Change]) -> Change:
    def fit(value: Any) -> Any:
        if not isinstance(value, dict):
            # A row written as a list is for Python alone to read.
            return _refuse(value, (str, int, float), "a dict")
        changed = value
        name = None
        try:
            for name, each in value.items():
                change = fields.get(name)
                if change is None or each is None:
                    continue
                made = change(each)
                if made is not each:
                    changed = dict(value) if changed is value else changed
                    changed[name] = made
        except ValueError as wrong:
            raise ValueError(f"field '{name}': {wrong}") from None
        return changed

    return fit


def _fitting_items(change: Change | None) -> Change:
    def fit(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return _refuse(value, (str, int, float, dict), "a list")
        return value if change is None else [None if each is None else change(each) for each in value]

    return fit


def _fitting_members(change: Change | None) -> Change:
    def fit(value: Any) -> Any:
        if not isinstance(value, dict):
            return _refuse(value, (str, int, float, list, tuple), "a dict")
        for name in value:
            if not isinstance(name, str):  # json would make text of it, and the map that is read would lack the key
                raise ValueError(
                    f"a map has the key {name!r} of type {type(name).__name__}, and JSON has text as keys only: use "
                    f"str({name!r}), also to look it up"
                )
        if change is None:
            return value
        return {name: None if each is None else change(each) for name, each in value.items()}

    return fit


def _fitting_whole(name: str, most: int) -> Change:
    def fit(value: Any) -> Any:
        if type(value) is int and -most <= value < most:
            return value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        elif isinstance(value, float):
            raise ValueError(f"{value} is not a whole number")
        elif isinstance(value, bool) or not isinstance(value, int):
            return _refuse(value, (bool, str, list, tuple, dict), "a whole number")
        if not -most <= value < most:
            raise _out_of_range(value, name)
        return value

    return fit


def _fitting_float(name: str, least_too_large: float) -> Change:
    def fit(value: Any) -> Any:
        if type(value) is float and -least_too_large < value < least_too_large:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            is_word = isinstance(value, str) and value in WORDS
            return value if is_word else _refuse(value, (bool, str, list, tuple, dict), "a number")
        if isinstance(value, float) and not math.isfinite(value):
            return value
        try:
            is_too_large = abs(float(value)) >= least_too_large
        except OverflowError:
            is_too_large = True
        if is_too_large:
            raise _out_of_range(value, name)
        return value

    return fit


def _fitting_decimal(data_type: T.DecimalType) -> Change:
    name, scale, most = data_type.simpleString(), data_type.scale, data_type.precision - data_type.scale

    def fit(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return _refuse(value, (bool, list, tuple, dict), "a decimal number")
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not exact.is_finite():
            raise ValueError(f"{value} is not a decimal number")
        _, digits, power = exact.as_tuple()
        exponent = int(power)  # a text only where it is not finite
        if len(digits) + exponent > most and exact:
            raise _out_of_range(value, name)
        if -exponent > scale and any(digits[exponent + scale :]):
            raise ValueError(
                f"{_short(value)} has more digits after the point than {name}, which has {scale}: round it first"
            )
        return value if isinstance(value, int) else exact

    return fit


def _out_of_range(value: object, name: str) -> ValueError:
    return ValueError(f"{_short(value)} is out of the range of {name}")


def _short(value: object) -> str:
    """Return a number as it is written, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 1000:  # Python refuses to write thousands of digits
        return f"a number of {value.bit_length()} bits"
    written = str(value)
    return written if len(written) <= LONGEST_NUMBER else written[:LONGEST_NUMBER] + "…"


def _fitting_boolean(value: Any) -> Any:
    return value if isinstance(value, bool) else _refuse(value, (str, int, float, list, tuple, dict), "True or False")


def _refuse(value: Any, wrong: tuple[type, ...], wanted: str) -> Any:
    """Raise if a value is of a class that is wrong here, and otherwise return it."""
    if isinstance(value, wrong):
        raise ValueError(f"it is of type {type(value).__name__}, not {wanted}")
    return value
