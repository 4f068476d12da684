"""A user's function on Columns: called, typed, and explained when it is wrong.

`map_values(lambda v: v.price * v.size)` sees Spark Columns. A value with fields is a `StructColumn`, whose
attributes are the fields, whatever their names; a beginner's mistake is explained in a sentence with the operator's
name.
"""

import difflib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

from pyspark.errors import PySparkException
from pyspark.errors import utils as call_sites
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from streamskit.columns.udf_errors import let_udfs_fail_by_record
from streamskit.common.errors import TopologyError
from streamskit.jvm.functions import attempt

V = TypeVar("V")

STRING_METHODS = {
    "upper": "F.upper({0})", "lower": "F.lower({0})", "title": "F.initcap({0})", "capitalize": "F.initcap({0})",
    "strip": "F.trim({0})", "lstrip": "F.ltrim({0})", "rstrip": "F.rtrim({0})", "split": "F.split({0}, ' ')",
    "replace": "F.replace({0}, F.lit('old'), F.lit('new'))", "format": "F.format_string('...', {0})",
    "join": "F.concat_ws(' ', {0})", "find": "F.instr({0}, 'text') - 1", "encode": "{0}.cast('binary')",
    "isdigit": "{0}.rlike('^[0-9]+$')", "zfill": "F.lpad({0}, 5, '0')",
}  # fmt: skip
"""What a Python string method is called among Spark's functions."""


USE_THE_ARGUMENT = "use the function's argument: `lambda v: v`, not F.col('value')."

SEVERAL_RECORDS = (
    "the function makes several rows of one, as F.explode does, but each record gets one result here. For several "
    "records give the array itself to flat_map_values: flat_map_values(lambda v: F.split(v, ' '))."
)
ONE_RECORD = (
    "the function aggregates rows, as F.sum and F.count do, but it sees one record at a time here. Group first: "
    "group_by_key().aggregate(lambda v: F.sum(v.price))."
)
NEIGHBOURS = (
    "a window function, such as F.row_number, looks at several rows, but the function sees one record at a time here. "
    "Keep what you need of earlier records: group_by_key().aggregate(...), or process(...) with a store."
)
CONDITIONS = {
    "UNSUPPORTED_GENERATOR": SEVERAL_RECORDS, "UDTF_ALIAS_NUMBER_MISMATCH": SEVERAL_RECORDS,
    "MISSING_GROUP_BY": ONE_RECORD, "MISSING_AGGREGATION": ONE_RECORD,
    "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE": NEIGHBOURS,
}  # fmt: skip
"""What is wrong with a function of one record, by Spark's name of the error where it refuses the function itself."""


PYTHONS_OWN = re.compile(r"Column doesn't define __(round)__|bad operand type for (abs)\(\): '\w*Column'")
"""What Python says where a function of its own is given a Column; Spark has one of the same name."""


class _MistakeError(Exception):
    """A mistake found while a user's function runs; its text says how to write it correctly."""


def _mistake(sentence: str) -> Callable[..., Any]:
    """Return a method that only raises an error saying how to write something correctly; {0} is the Column."""

    def refuse(column: "TypedColumn", *_: object) -> NoReturn:
        raise _MistakeError(sentence.format(column._written))

    return refuse


class TypedColumn(ClassicColumn):
    """A Column that knows its Spark type and how the user wrote it."""

    def __init__(self, column: Column, data_type: T.DataType, written: str) -> None:
        super().__init__(column._jc)
        self.__dict__.update(_data_type=data_type, _written=written)

    __format__ = _mistake(
        "an f-string cannot hold the Column {0}: it has a value only when records flow. "
        "Write F.concat(F.lit('text '), {0}) or F.format_string('text %s', {0})."
    )
    __str__ = _mistake(
        "print({0}) and str({0}) have nothing to show: {0} is a Column, and has a value only when records flow. To see "
        "them, write stream.peek(lambda key, value: print(key, value)); to make text, {0}.cast('string')."
    )
    __len__ = _mistake("len({0}) is Python's: write F.length({0}) or F.size({0}).")
    __int__ = _mistake("int({0}) is Python's: write {0}.cast('int').")
    __float__ = _mistake("float({0}) is Python's: write {0}.cast('double').")
    __hash__ = ClassicColumn.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in STRING_METHODS:
            right = STRING_METHODS[name].format(self._written)
            raise _MistakeError(f"{self._written}.{name}() is a method of Python text, not of a Column: write {right}.")
        raise self._no_field(name, f"no field or method '{name}'")

    def __getitem__(self, name: Any) -> Column:
        if isinstance(name, str) and isinstance(self._data_type, T.StringType):
            raise self._no_field(name, f"no field '{name}'")
        return super().__getitem__(name)

    def _no_field(self, name: str, lacking: str) -> _MistakeError:
        part = FIELD_NAMES.get(self._written) if isinstance(self._data_type, T.StringType) else None
        hint = (
            f" For a {part} with fields say which, where its topic is read: {part}=Serdes.json('{name} string')."
            if part in ("key", "value")
            else ""
        )
        return _MistakeError(f"{self._written} is a {self._data_type.simpleString()} and has {lacking}.{hint}")


class StructColumn(TypedColumn):
    """A Column with fields. `v.name` and `v["name"]` are the field, also where Column has a method of that name."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            data_type = super().__getattribute__("_data_type")
            if name in data_type.fieldNames():
                return self._field(name)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        data_type = vars(self).get("_data_type")
        if name.startswith("_") and (data_type is None or name not in data_type.fieldNames()):
            raise AttributeError(name)  # which others ask for, too: PySpark, and notebooks
        return self._field(name)

    def __getitem__(self, name: Any) -> Column:
        return self._field(name) if isinstance(name, str) else super().__getitem__(name)

    def _field(self, name: str) -> Column:
        if name not in self._data_type.fieldNames():
            near = difflib.get_close_matches(name, self._data_type.fieldNames(), 1, 0.5)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise _MistakeError(
                f"there is no field '{name}' in {self._written}; it has: {type_text(self._data_type)}.{hint}"
            )
        return _dressed(
            ClassicColumn.__getitem__(self, name), self._data_type[name].dataType, f"{self._written}.{name}"
        )


FIELD_NAMES = {"k": "key", "v": "value", "l": "left", "r": "right"}
"""What `F.struct` calls the field that it makes of an argument, by what errors call the argument."""

TRIAL_PREFIX = "__trial_"
"""What names of columns begin with in the row on which a function is tried, so that `F.col("value")` finds none."""


def typed_column(column: Column, data_type: T.DataType, written: str) -> Column:
    """Return an argument as a user's function sees it: with fields if it is a struct, always with helpful errors.

    `F.struct` gives its field the same name in the trial and in the running application.
    """
    with noting_users_lines_only():
        return _dressed(column.alias(FIELD_NAMES.get(written, written)), data_type, written)


def _dressed(column: Column, data_type: T.DataType, written: str) -> Column:
    return (StructColumn if isinstance(data_type, T.StructType) else TypedColumn)(column, data_type, written)


def untyped(result: Any) -> Any:
    """Return an ordinary Spark Column for a typed one, and anything else as it is."""
    return ClassicColumn(result._jc) if isinstance(result, TypedColumn) else result


def apply(function: Callable[..., Any], arguments: list[Column], step: str, condition: Column | None = None) -> Column:
    """Call a user's function on Columns and return the Column it makes; a constant becomes a literal.

    Args:
        function: takes all the arguments (key and value), or only the last (the value).
        arguments: the Columns, dressed by `typed_column`.
        step: the operator and where it stands, for the error.
        condition: for which records it is called; for the others the result is null, and cannot fail.

    Raises:
        TopologyError: the function made a mistake that can be seen before any record flows.
    """
    return _caught(_as_column(_run(function, arguments, step), step), condition)


def first_true(functions: Sequence[Callable[..., Any]], arguments: list[Column], step: str) -> Column:
    """Return a Column with the number of the first predicate that is true, or -1; later ones are not evaluated.

    Args:
        functions: each as in `apply`.
        arguments: the Columns, dressed by `typed_column`.
        step: the operator and where it stands, for the error.
    """
    answers = [_as_column(_run(function, arguments, step), step) for function in functions]
    return _caught(F.coalesce(*(F.when(answer, number) for number, answer in enumerate(answers)), F.lit(-1)))


@contextmanager
def catching() -> Iterator[list[Column]]:
    """Let functions called inside fail for single records; yields the Columns that say what was wrong, if anything.

    Where a function fails, its Column is null; the same holds where an `F.udf` in it raises. A Python function that is
    called for batches of records (`F.pandas_udf`) fails as usual.

    >>> with catching() as errors:
    ...     price = apply(lambda v: v.cast("double"), [text], "map_values")
    """
    errors: list[Column] = []
    with _within(_catching, errors):
        yield errors


@contextmanager
def asked_only_for(condition: Column | None) -> Iterator[None]:
    """Have an `F.udf` in functions called inside run only for records that are kept; None keeps all.

    Spark itself calls it for each row, even for those that an earlier filter has dropped.
    """
    with _within(_asked_only_for, condition):
        yield


@contextmanager
def noting_users_lines_only() -> Iterator[None]:
    """Have PySpark record the source line of a Column operation only for those in functions that `apply` calls.

    Spark's errors then still name a line of the user's code. Recording one line takes PySpark ten calls to Java.
    """
    with _within(_notes_lines, False):
        yield


@contextmanager
def _within(variable: ContextVar[V], value: V) -> Iterator[None]:
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


_notes_lines: ContextVar[bool] = ContextVar("notes_lines", default=True)

_is_debugging_enabled = call_sites.is_debugging_enabled

call_sites.is_debugging_enabled = lambda: _notes_lines.get() and _is_debugging_enabled()

_catching: ContextVar[list[Column] | None] = ContextVar("catching", default=None)

_asked_only_for: ContextVar[Column | None] = ContextVar("asked_only_for", default=None)

_is_for_records: ContextVar[bool] = ContextVar("is_for_records", default=False)

let_udfs_fail_by_record(lambda: _catching.get() is not None, _asked_only_for.get, _is_for_records.get)


def _caught(column: Column, condition: Column | None = None) -> Column:
    errors = _catching.get()
    if condition is not None:
        column = F.when(condition, column)
    if errors is None:
        return column
    tried = attempt(column)
    errors.append(tried["error"])
    return tried["value"]


def apply_pair(
    function: Callable[..., Any], arguments: list[Column], step: str, condition: Column | None = None
) -> tuple[Column, Column]:
    """Call a user's function that makes a key and a value, and return the two Columns; `condition` as in `apply`.

    Raises:
        TopologyError: the function made a mistake, or returned something other than a pair.
    """
    result = _run(function, arguments, step)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TopologyError(
            f"{step}: the function returned {_kind(result)}, but must return two Columns, the new key and the new "
            "value: lambda k, v: (v.user, v.amount)."
        )
    key, value = (_caught(_as_column(each, step), condition) for each in result)
    return key, value


def _run(function: Callable[..., Any], arguments: list[Column], step: str) -> Any:
    try:
        with _within(_notes_lines, True), _within(_is_for_records, True):
            return function(*_accepted(function, arguments))
    except TopologyError:
        raise
    except Exception as mistake:
        raise TopologyError(f"{step}: {explain(mistake)}") from mistake


def type_text(data_type: T.DataType) -> str:
    """Return a type as a user writes it: the fields of a struct, or the type's name."""
    if isinstance(data_type, T.StructType):
        return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in data_type)
    return data_type.simpleString()


def _accepted(function: Callable[..., Any], arguments: list[Column]) -> list[Column]:
    """Return as many arguments as a function takes, counted from the last one; F.upper takes one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return arguments[-1:]
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return arguments
    required = [
        p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return arguments[-max(1, len(required)) :]


def _as_column(result: Any, step: str) -> Column:
    if isinstance(result, Column):
        return untyped(result)
    if isinstance(result, str | int | float | bool | bytes):
        return F.lit(result)
    raise TopologyError(
        f"{step}: the function returned {_kind(result)}, but must return a Column. "
        "For several fields write F.struct(a.alias('a'), b.alias('b')); for nothing at all F.lit(None).cast('string')."
    )


def _kind(result: Any) -> str:
    if isinstance(result, Column):
        return "one Column"
    return "nothing (None)" if result is None else f"a Python {type(result).__name__}"


def explain(mistake: Exception) -> str:
    """Return what is wrong with a user's function, and how to write it, for what was raised when it was tried."""
    if isinstance(mistake, _MistakeError):
        return str(mistake)
    condition = (mistake.getCondition() or "") if isinstance(mistake, PySparkException) else ""
    if condition == "CANNOT_CONVERT_COLUMN_INTO_BOOL":
        return (
            "a Column is not True or False yet, so `if`, `and`, `or`, `not`, `max` and `min` cannot ask it. "
            "Write F.when(condition, a).otherwise(b) for if/else, & | ~ with brackets around each side for and, or, "
            "not: (v.a > 0) & (v.b > 0); and F.greatest(a, b), F.least(a, b) for max, min, with F.lit(3) for a number."
        )
    if condition == "CANNOT_APPLY_IN_FOR_COLUMN":
        return "`in` cannot ask a Column: write v.field.isin('a', 'b'), or v.field.contains('text')."
    if condition == "NOT_ITERABLE":
        return "a Column cannot be looped over or unpacked: use F.transform, F.explode or v.items[0]."
    if isinstance(mistake, TypeError) and "'Column' object is not callable" in str(mistake):
        return "a Column has no such method, as Python's text has: use a function of F, like F.upper(v.name)."
    if isinstance(mistake, TypeError) and (found := PYTHONS_OWN.search(str(mistake))):
        name = found[1] or found[2]
        return f"{name}() is Python's, for numbers, and was given a Column: write F.{name}(...) around the Column."
    if condition == "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE" and " + " in str(mistake) and '"STRING"' in str(mistake):
        return "`+` adds numbers only, where a Column is text: write F.concat(a, b), or F.concat_ws(' ', a, b)."
    if (kind := condition.split(".")[0]) in CONDITIONS:
        return CONDITIONS[kind]
    if kind == "UNRESOLVED_COLUMN" and isinstance(mistake, PySparkException):
        name = (mistake.getMessageParameters() or {}).get("objectName", "the column")
        return (
            f"{name} cannot be resolved, because a function has no columns: {USE_THE_ARGUMENT} "
            "A text that is no column's name needs F.lit('text')."
        )
    first = _as_written(str(mistake).split(" SQLSTATE")[0].split("\n")[0])
    return (
        f"{first} ({type(mistake).__name__})" if not isinstance(mistake, PySparkException) else f"Spark says: {first}"
    )


def _as_written(text: str) -> str:
    """Return a text of Spark's with the arguments of the trial as the user calls them."""
    letters = {name: letter for letter, name in FIELD_NAMES.items() if letter in "kv"}
    return re.sub(rf"{TRIAL_PREFIX}(\w+?)( AS \1)?\b", lambda found: letters.get(found[1], found[1]), text)
