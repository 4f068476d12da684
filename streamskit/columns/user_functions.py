"""A learner's function on Columns: called, typed, and explained when it is wrong.

`map_values(lambda v: v.price * v.size)` sees Spark Columns. A value with fields is a `Fields` Column, whose attributes
are the fields whatever their names; what a beginner does wrong becomes a sentence with the operator's name.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from streamskit.common.errors import TopologyError
from streamskit.jvm.functions import attempt

STRING_METHODS = {
    "upper": "F.upper({0})", "lower": "F.lower({0})", "title": "F.initcap({0})", "capitalize": "F.initcap({0})",
    "strip": "F.trim({0})", "lstrip": "F.ltrim({0})", "rstrip": "F.rtrim({0})", "split": "F.split({0}, ' ')",
    "replace": "F.replace({0}, F.lit('old'), F.lit('new'))", "format": "F.format_string('...', {0})",
    "join": "F.concat_ws(' ', {0})", "find": "F.instr({0}, 'text') - 1", "encode": "{0}.cast('binary')",
    "isdigit": "{0}.rlike('^[0-9]+$')", "zfill": "F.lpad({0}, 5, '0')",
}  # fmt: skip
"""What a Python string method is called among Spark's functions."""


class _MistakeError(Exception):
    """A mistake found while a learner's function runs; its text has the way to write it right."""


class _Typed(ClassicColumn):
    """A Column that knows its Spark type and how the learner wrote it."""

    def __init__(self, column: Column, data_type: T.DataType, written: str) -> None:
        super().__init__(column._jc)
        self.__dict__.update(_data_type=data_type, _written=written)

    def __format__(self, spec: str) -> str:
        raise _MistakeError(
            f"an f-string cannot hold the Column {self._written}: it has a value only when records flow. "
            f"Write F.concat(F.lit('text '), {self._written}) or F.format_string('text %s', {self._written})."
        )

    __str__ = lambda self: format(self)  # noqa: E731
    __hash__ = ClassicColumn.__hash__

    def __len__(self) -> int:
        raise _MistakeError(
            f"len({self._written}) is Python's: write F.length({self._written}) or F.size({self._written})."
        )

    def __int__(self) -> int:
        raise _MistakeError(f"int({self._written}) is Python's: write {self._written}.cast('int').")

    def __float__(self) -> float:
        raise _MistakeError(f"float({self._written}) is Python's: write {self._written}.cast('double').")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in STRING_METHODS:
            right = STRING_METHODS[name].format(self._written)
            raise _MistakeError(f"{self._written}.{name}() is a method of Python text, not of a Column: write {right}.")
        raise _MistakeError(
            f"{self._written} is a {self._data_type.simpleString()} and has no field or method '{name}'."
        )


class Fields(_Typed):
    """A Column with fields. `v.name` and `v["name"]` are the field, also where Column has a method of that name."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            data_type = super().__getattribute__("_data_type")
            if name in data_type.fieldNames():
                return self._field(name)
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._field(name)

    def __getitem__(self, name: Any) -> Column:
        return self._field(name) if isinstance(name, str) else super().__getitem__(name)

    def _field(self, name: str) -> Column:
        if name not in self._data_type.fieldNames():
            near = difflib.get_close_matches(name, self._data_type.fieldNames(), 1, 0.5)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise _MistakeError(
                f"there is no field '{name}' in {self._written}; it has: {spell(self._data_type)}.{hint}"
            )
        return typed(ClassicColumn.__getitem__(self, name), self._data_type[name].dataType, f"{self._written}.{name}")


def typed(column: Column, data_type: T.DataType, written: str) -> Column:
    """Return `column` dressed for a learner's function: with fields if it is a struct, always with helpful errors."""
    return (Fields if isinstance(data_type, T.StructType) else _Typed)(column, data_type, written)


def plain(result: Any) -> Any:
    """Return a Column without its dress, and anything else as it is."""
    return ClassicColumn(result._jc) if isinstance(result, _Typed) else result


def call(function: Callable[..., Any], arguments: list[Column], what: str, given: Column | None = None) -> Column:
    """Call a learner's function on Columns and return the Column it makes; a constant becomes a literal.

    Args:
        function: takes all the arguments (key and value), or only the last (the value).
        arguments: the Columns, dressed by `typed`.
        what: the operator and where it stands, for the error.
        given: for which records it is asked; it makes null of others, and cannot fail on them.

    Raises:
        TopologyError: the function made a mistake that can be seen before any record flows.
    """
    return _caught(_as_column(_run(function, arguments, what), what), given)


def first_true(functions: Sequence[Callable[..., Any]], arguments: list[Column], what: str) -> Column:
    """Return a Column with the number of the first predicate that is true, -1 if none is; no later one is asked.

    Args:
        functions: each as in `call`.
        arguments: the Columns, dressed by `typed`.
        what: the operator and where it stands, for the error.
    """
    answers = [_as_column(_run(function, arguments, what), what) for function in functions]
    return _caught(F.coalesce(*(F.when(answer, number) for number, answer in enumerate(answers)), F.lit(-1)))


@contextmanager
def catching() -> Iterator[list[Column]]:
    """Let functions called meanwhile fail for single records; gives the Columns that say what was wrong, if anything.

    Where a function fails its Column is null. What a Python function within a Column raises is not caught.

    >>> with catching() as errors:
    ...     price = call(lambda v: v.cast("double"), [text], "map_values")
    """
    errors: list[Column] = []
    before = _catching.set(errors)
    try:
        yield errors
    finally:
        _catching.reset(before)


_catching: ContextVar[list[Column] | None] = ContextVar("catching", default=None)


def _caught(column: Column, given: Column | None = None) -> Column:
    errors = _catching.get()
    if given is not None:
        column = F.when(given, column)
    if errors is None:
        return column
    tried = attempt(column)
    errors.append(tried["error"])
    return tried["value"]


def pair(
    function: Callable[..., Any], arguments: list[Column], what: str, given: Column | None = None
) -> tuple[Column, Column]:
    """Call a learner's function that makes a key and a value, and return the two Columns; `given` as in `call`.

    Raises:
        TopologyError: the function made a mistake, or returned something else than a pair.
    """
    result = _run(function, arguments, what)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TopologyError(
            f"{what}: the function returned {_kind(result)}, and must return two Columns, the new key and the new "
            "value: lambda k, v: (v.user, v.amount)."
        )
    return _caught(_as_column(result[0], what), given), _caught(_as_column(result[1], what), given)


def _run(function: Callable[..., Any], arguments: list[Column], what: str) -> Any:
    try:
        return function(*_accepted(function, arguments))
    except TopologyError:
        raise
    except Exception as mistake:
        raise TopologyError(f"{what}: {_explain(mistake)}") from mistake


def result_type(column: Column, inputs: dict[str, T.DataType], what: str, aggregate: bool = False) -> T.DataType:
    """Return the Spark type of `column` over a row with the named inputs.

    Args:
        column: made by `call` from Columns of those names.
        inputs: the name and Spark type of each column of the row.
        what: the operator and where it stands, for the error.
        aggregate: whether `column` has to be an aggregate such as `F.count("*")`.

    Raises:
        TopologyError: Spark cannot make sense of the column.
    """
    from streamskit.environment.session import spark_session

    schema = T.StructType([T.StructField(name, data_type) for name, data_type in inputs.items()])
    rows = spark_session().createDataFrame([], schema)
    try:
        made = rows.groupBy().agg(column.alias("made")) if aggregate else rows.select(column.alias("made"))
        return made.schema["made"].dataType
    except AnalysisException as mistake:
        raise TopologyError(f"{what}: {_explain(mistake)}") from mistake


def spell(data_type: T.DataType) -> str:
    """Return a type as a learner writes it: the fields of a struct, or the type's name."""
    if isinstance(data_type, T.StructType):
        return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in data_type)
    return data_type.simpleString()


def _accepted(function: Callable[..., Any], arguments: list[Column]) -> list[Column]:
    """Give a function as many arguments as it asks for, counted from the last one; F.upper asks for one."""
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


def _as_column(result: Any, what: str) -> Column:
    if isinstance(result, Column):
        return plain(result)
    if isinstance(result, str | int | float | bool | bytes):
        return F.lit(result)
    raise TopologyError(
        f"{what}: the function returned {_kind(result)}, and must return a Column. "
        "For several fields write F.struct(a.alias('a'), b.alias('b')); for nothing at all F.lit(None).cast('string')."
    )


def _kind(result: Any) -> str:
    return "nothing (None)" if result is None else f"a Python {type(result).__name__}"


def _explain(mistake: Exception) -> str:
    if isinstance(mistake, _MistakeError):
        return str(mistake)
    condition = (mistake.getCondition() or "") if isinstance(mistake, PySparkException) else ""
    if condition == "CANNOT_CONVERT_COLUMN_INTO_BOOL":
        return (
            "a Column is not True or False yet, so `if`, `and`, `or`, `not` cannot ask it. "
            "Write F.when(condition, a).otherwise(b) for if/else, and & | ~ with brackets around each side: "
            "(v.a > 0) & (v.b > 0)."
        )
    if condition == "CANNOT_APPLY_IN_FOR_COLUMN":
        return "`in` cannot ask a Column: write v.field.isin('a', 'b'), or v.field.contains('text')."
    if condition == "NOT_ITERABLE":
        return "a Column cannot be looped over or unpacked: use F.transform, F.explode or v.items[0]."
    if isinstance(mistake, TypeError) and "'Column' object is not callable" in str(mistake):
        return "a Column has no such method, as Python's text has: use a function of F, like F.upper(v.name)."
    first = str(mistake).split(" SQLSTATE")[0].split("\n")[0]
    return (
        f"{first} ({type(mistake).__name__})" if not isinstance(mistake, PySparkException) else f"Spark says: {first}"
    )
