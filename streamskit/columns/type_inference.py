"""Users' functions tried before any record flows: which type they return, and whether they can be called at all."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.api.stream_partitioner import ARGUMENTS, Partition, Partitioner, partition_function
from streamskit.columns import user_functions
from streamskit.common.errors import TopologyError
from streamskit.environment.session import spark_session
from streamskit.serdes import Serde, require_serde
from streamskit.serdes.ddl import repeated_name
from streamskit.serdes.json_text import KEYS_AS_TEXT, map_with_other_keys

ARGUMENT_NAMES = {"key": "k", "value": "v"}
"""What users call the columns of a row in their functions."""

NO_AGGREGATE = "the function has to return an aggregate, such as F.sum(v.price), and uses v outside of one."

NO_DISTINCT = (
    "a streaming query of Spark has no distinct aggregates, such as F.count_distinct, F.sum_distinct and "
    "F.listagg_distinct. To count different values write F.size(F.collect_set(v.user)), which keeps each of them, or "
    "F.approx_count_distinct(v.user)."
)

NO_STAR = f"'*' stands for the columns of a row, and a function has none: {user_functions.USE_THE_ARGUMENT}"

OF_SEVERAL_ROWS = {
    "Generate": user_functions.SEVERAL_RECORDS,
    "Aggregate": user_functions.ONE_RECORD,
    "Window": user_functions.NEIGHBOURS,
}
"""What is wrong with a function of one record, by the operator that Spark needs for it."""

REST = f"{user_functions.TRIAL_PREFIX}rest"
"""A column of the row on which a function is tried that is none of its arguments: only `*` stands for it."""

MADE_UP = re.compile(r'"name":"([xyz]_\d+)"')
"""How Spark names the variables of functions such as that of `F.transform`, and the fields that `F.struct` makes of
them; it counts the variables, so that they have other names at each call."""


def infer_type(
    function: Callable[..., Any],
    inputs: Mapping[str, T.DataType],
    step: str,
    aggregate: bool = False,
    at_least: int = 1,
    by_place: bool = False,
) -> T.DataType:
    """Call a Column function on Columns of the right types and return the Spark type it makes.

    Args:
        function: takes all the inputs or the last ones, at least `at_least` of them.
        inputs: the name and Spark type of each argument.
        step: the operator and its place in the program, for the error.
        aggregate: whether the function makes an aggregate Column.
        at_least: how many arguments it takes at the least.
        by_place: whether it makes an array of structs whose fields are taken by their places, whatever their names.

    Raises:
        TopologyError: the function cannot be called this way, returns no Column, or one whose fields get other names
            each time or the same name, or a map whose keys JSON cannot hold.
    """
    arguments = _arguments(function, inputs, step, at_least)

    def infer() -> T.DataType:
        return _result_type(user_functions.apply(function, arguments, step), inputs, step, aggregate)

    made = infer()
    if _may_be_made_up(made) and _names(made, by_place) != _names(infer(), by_place):
        raise _unnamed_field(made, step)
    _check_fields(made.elementType if by_place and isinstance(made, T.ArrayType) else made, step, by_place)
    return made


def infer_pair(
    function: Callable[..., Any], inputs: Mapping[str, T.DataType], step: str
) -> tuple[T.DataType, T.DataType]:
    """Call a Column function that makes a key and a value, and return their Spark types.

    Raises:
        TopologyError: the function cannot be called this way, or returns no pair of Columns, or what `infer_type`
            refuses.
    """
    arguments = _arguments(function, inputs, step, 1)

    def infer() -> list[T.DataType]:
        pair = user_functions.apply_pair(function, arguments, step)
        return [_result_type(column, inputs, step) for column in pair]

    key, value = infer()
    for number, made in enumerate((key, value)):
        if _may_be_made_up(made) and infer()[number] != made:
            raise _unnamed_field(made, step)
        _check_fields(made, step)
    return key, value


def _result_type(column: Column, inputs: Mapping[str, T.DataType], step: str, aggregate: bool = False) -> T.DataType:
    """Return the Spark type of `column` over one row, or over all rows if it has to be an aggregate.

    Args:
        column: made by `apply` from Columns that are called `TRIAL_PREFIX` and a name.
        inputs: the name and Spark type of each column of the row.
        step: the operator and where it stands, for the error.
        aggregate: whether `column` has to be an aggregate such as `F.count("*")`.

    Raises:
        TopologyError: Spark cannot make sense of the column, or it makes something else than one value of one record.
    """
    fields = [T.StructField(user_functions.TRIAL_PREFIX + name, data_type) for name, data_type in inputs.items()]
    rows = spark_session().createDataFrame([], T.StructType([*fields, T.StructField(REST, T.BooleanType())]))
    try:
        with user_functions.noting_users_lines_only():
            column = column.alias("result")
        made = rows.groupBy().agg(column) if aggregate else rows.select(column)
    except AnalysisException as mistake:
        if aggregate and (mistake.getCondition() or "").startswith("MISSING_"):
            raise TopologyError(f"{step}: {NO_AGGREGATE}") from mistake
        raise TopologyError(f"{step}: {user_functions.explain(mistake)}") from mistake
    for operator in _operators(made):
        kind = operator.nodeName()
        if kind in OF_SEVERAL_ROWS and not (aggregate and kind == "Aggregate"):
            raise TopologyError(f"{step}: {OF_SEVERAL_ROWS[kind]}")
        if _uses_rest(operator):
            raise TopologyError(f"{step}: {NO_STAR}")
        if kind == "Aggregate" and any(map(_is_distinct, _all_of(operator.aggregateExpressions()))):
            raise TopologyError(f"{step}: {NO_DISTINCT}")
    if (misread := _misread_text(made)) is not None:
        raise TopologyError(f"{step}: {misread}")
    return made.schema["result"].dataType


def _operators(rows: DataFrame) -> Iterator[Any]:
    """Yield the operators by which Spark makes the rows; there is a single chain of them."""
    plan = rows._jdf.queryExecution().analyzed()
    while not plan.children().isEmpty():
        yield plan
        plan = plan.children().head()


def _misread_text(rows: DataFrame) -> str | None:
    """Return a sentence about a constant text that Spark would cast to another type and cannot; None if there is none.

    Spark itself finds it only when it plans the query, and names neither the step nor the line.
    """
    jvm = spark_session()._jvm
    folding = getattr(jvm, "org.apache.spark.sql.catalyst.optimizer.ConstantFolding$")
    try:
        getattr(folding, "MODULE$").apply(rows._jdf.queryExecution().analyzed())
    except (PySparkException, Py4JError) as failed:
        if not isinstance(failed, PySparkException) or failed.getCondition() != "CAST_INVALID_INPUT":
            return None  # no text is at fault, and Spark has a sentence of its own
        cast = failed.getMessageParameters() or {}
        text, wanted = cast["expression"], cast["targetType"].strip('"').lower()
        return (
            f"the text {text} stands where a value of type {wanted} is due, and cannot be read as one. To join text "
            "and numbers write F.concat(v.total.cast('string'), F.lit(' text')); to compare a number, write the other "
            "one without quotes."
        )
    return None


def _uses_rest(operator: Any) -> bool:
    """Return whether an operator makes something of the column `REST`, and does not only pass it on."""
    each = _all_of(operator.expressions())
    return any(REST in one.references().toSeq().mkString(" ") and not one.toString().startswith(REST) for one in each)


def _is_distinct(expression: Any) -> bool:
    """Return whether an expression has a distinct aggregate in it."""
    if "distinct" not in expression.toString():  # it is also a part of other names, but most have no such text
        return False
    if expression.nodeName() == "AggregateExpression" and expression.isDistinct():
        return True
    return any(map(_is_distinct, _all_of(expression.children())))


def _all_of(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _may_be_made_up(data_type: T.DataType) -> bool:
    return MADE_UP.search(data_type.json()) is not None


def _names(made: T.DataType, by_place: bool) -> object:
    """Return what has to be the same each time: the type, without names of fields that are taken by their places."""
    if by_place and isinstance(made, T.ArrayType) and isinstance(made.elementType, T.StructType):
        return [field.dataType for field in made.elementType]
    return made


def _check_fields(made: T.DataType, step: str, by_place: bool = False) -> None:
    """Refuse a result of which JSON cannot hold all: with two fields of one name, or a map with keys such as structs.

    Raises:
        TopologyError: it has these.
    """
    parts = [field.dataType for field in made] if by_place and isinstance(made, T.StructType) else [made]
    for part in parts:
        if (name := repeated_name(part)) is not None:
            raise TopologyError(
                f"{step}: the result has two fields called '{name}', of which one would be lost: give each a name of "
                "its own, F.struct(a.alias('first'), b.alias('second'))."
            )
        if (wrong := map_with_other_keys(part, T.StringType, *KEYS_AS_TEXT)) is not None:
            raise TopologyError(
                f"{step}: the result has a map with keys of type {wrong.keyType.simpleString()}, which JSON cannot "
                "hold: make them text, F.to_json(key), or make the map an array of structs, F.map_entries(map)."
            )


def _unnamed_field(made: T.DataType, step: str) -> TopologyError:
    found = MADE_UP.search(made.json())
    name = found[1] if found else "x_1"
    return TopologyError(
        f"{step}: the result has a field without a name, for which Spark makes up another one at each start, such as "
        f"{name}: name it, F.transform(items, lambda item: F.struct(item.alias('item')))."
    )


def check_signature(function: Any, role: str, arguments: Sequence[str], step: str) -> None:
    """Check that a plain Python function can be called with these arguments; it is not called.

    Raises:
        TopologyError: it is not a function, or takes other arguments.
    """
    example = f"lambda {', '.join(arguments)}: ...".replace("lambda :", "lambda:")
    if isinstance(function, Column) or not callable(function):
        raise TopologyError(f"{step}: the {role} has to be a Python function, {example}, and is {_kind(function)}.")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise TopologyError(
            f"{step}: the {role} is called with {_count(len(arguments))}, as plain Python values, not Columns: "
            f"{example}. The one given takes {inspect.signature(function)}."
        ) from None
    except ValueError:
        return  # a C function without a signature


def check_partitioner(partitioner: Partitioner | None, step: str) -> Partition | None:
    """Return the function of a partitioner, if there is one.

    Raises:
        TopologyError: it is not a partitioner, or takes other arguments.
    """
    if partitioner is None:
        return None
    if isinstance(partitioner, type):
        name = partitioner.__name__
        raise TopologyError(f"{step}: the partitioner is the class {name}; give an object of it: {name}(...).")
    function = partition_function(partitioner)
    check_signature(function, "partitioner", ARGUMENTS, step)
    return function


def check_serde(serde: Serde | None, default: Serde, part: str, step: str) -> Serde:
    """Return the user's serde, or by default the one that fits the type of the records.

    Raises:
        TopologyError: the user's serde is for another type, or is not a serde.
    """
    if serde is None:
        return default
    require_serde(serde, f"{step}: {part}=")
    if not same_type(serde, default):
        raise TopologyError(
            f"{step}: the {part} is {user_functions.type_text(default.data_type)}, and the serde given "
            f"writes {user_functions.type_text(serde.data_type)}. Cast it first, or give a serde that fits."
        )
    return serde


def same_type(one: Serde, other: Serde) -> bool:
    """Return whether two serdes are for the same type; whether a field may be null makes no difference to its bytes."""
    spark_session()  # a JSON serde's type cannot be read without one
    return one.data_type.simpleString() == other.data_type.simpleString()


def _arguments(
    function: Callable[..., Any], inputs: Mapping[str, T.DataType], step: str, at_least: int
) -> list[Column]:
    names = {name: ARGUMENT_NAMES.get(name, name) for name in inputs}
    if isinstance(function, Column) or not callable(function):
        raise TopologyError(
            f"{step}: give a function that makes the Column, not {_kind(function)}: "
            f"lambda {', '.join(names.values())}: ..."
        )
    _check_count(function, list(names.values()), step, at_least)
    spark_session()  # no Column can be made without one
    return [
        user_functions.typed_column(F.col(user_functions.TRIAL_PREFIX + name), inputs[name], names[name])
        for name in inputs
    ]


def _check_count(function: Callable[..., Any], names: list[str], step: str, at_least: int) -> None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    # A parameter with a default keeps it, as in `lambda v, limit=limit: v < limit`; only a single one is filled.
    filled = max(required, min(1, len(positional)))
    enough = filled >= at_least or any(p.kind == p.VAR_POSITIONAL for p in parameters)
    if required > len(names) or not enough:
        ways = " or ".join(f"lambda {', '.join(names[-n:])}: ..." for n in range(at_least, len(names) + 1))
        defaults = ", without those that have a default" if len(positional) > required else ""
        raise TopologyError(f"{step}: the function takes {_count(required)}{defaults}; write {ways}")


def _count(arguments: int) -> str:
    return {0: "no argument", 1: "1 argument"}.get(arguments, f"{arguments} arguments")


def _kind(thing: Any) -> str:
    return "nothing (None)" if thing is None else f"a {type(thing).__name__}"
