"""What goes into a stateful operator besides a record, and what its results become."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.columns import user_functions
from streamskit.execution.dead_letters import RecordOrigin
from streamskit.execution.error_guard import ErrorGuard
from streamskit.execution.optimization_barrier import ComputedAhead, materialize_records_once
from streamskit.execution.outcomes import Outcome, Rows, count_dropped, either, of_rows, rows_of
from streamskit.execution.record_columns import Datum, RecordColumns, sure, without_row_time
from streamskit.execution.row_format import AT_ONCE, FINISHED, RESULTS, TO_OWN_PARTITION, row_struct
from streamskit.execution.steps import Steps
from streamskit.operators import STORE_UPDATE
from streamskit.planning.lookups import looked_into
from streamskit.planning.old_values import needs_old_values, rows_are_looked_up, stores_latest
from streamskit.planning.plan import Plan, has_changelog
from streamskit.planning.planned_operators import runs_latest_value_operator
from streamskit.planning.processor_groups import changed_tables, outputs
from streamskit.serdes import Serde
from streamskit.state.stores import Store
from streamskit.topology.nodes import JoinedValues, Node, Process


def compile_results(plan: Plan, frame: DataFrame, numbers: list[int]) -> tuple[DataFrame, dict[int, Rows]]:
    """Return a frame of the results of some operators, and the rows that each of their results becomes.

    Args:
        plan: what runs.
        frame: the results, and rows that pass through, with the columns of `row_format.SCHEMA`, and `source` where a
            handler needs to know where a record came from.
        numbers: the operators, by their numbers in the plan.
    """
    if plan.options.handlers.ask_for_sources:
        origin = RecordOrigin.carried(frame)
    else:
        origin = RecordOrigin.lost(frame["timestamp"], frame["headers"], frame["key"], frame["value"])
    guard = ErrorGuard(plan.options.handlers, origin)
    nodes = {number: plan.operators[number].node for number in numbers}
    attempts = {
        number: guard.attempt(
            node,
            _given(columns := _results_of(frame, number), by := _given_by(node, plan)),
            by,
            partial(result_record, node, plan, columns, _is_of(frame, number)),
        )
        for number, node in nodes.items()
        if not isinstance(node, Process)
    }
    results = {
        number: (attempt.result.where_if(attempt.succeeded), _is_of(frame, number))
        for number, attempt in attempts.items()
    }
    frame, records = materialize_records_once(frame, results)
    outcomes: list[Outcome] = []
    ahead = ComputedAhead()
    rows: dict[int, Rows] = {}
    looked = looked_into(plan)
    for number, record in records.items():
        steps = Steps(plan, guard, ahead=replace(ahead, condition=_is_of(frame, number)))
        if number in looked:
            steps = replace(steps, gets="all but lookups")
            at_once = replace(steps, gets="lookups").go_on(nodes[number], record)
            rows[number + AT_ONCE] = rows_of(at_once, plan)
        made = [*steps.go_on(nodes[number], record), *attempts[number].failures]
        outcomes += [of_rows(outcome, frame["port"] == RESULTS + number) for outcome in made]
        rows[number] = either([rows_of(made, plan), *_updates_of_own_stores(plan, nodes[number], frame)])
    for number, node in nodes.items():
        if isinstance(node, Process):
            made, rows[number] = _forwarded(plan, guard, node, frame, number, ahead)
            outcomes += [of_rows(outcome, frame["port"] == RESULTS + number) for outcome in made]
    return count_dropped(ahead.added_to(frame), outcomes, plan), rows


def _results_of(frame: DataFrame, number: int) -> dict[str, Column]:
    """Return the columns of an operator's results, with null for the bytes in all other rows.

    Spark calls Python for every row, whatever the condition around it, so serdes would read other operators' bytes.
    """
    is_own = _is_of(frame, number)
    read = {name: F.when(is_own, frame[name]) for name in ("key", "value", "old", "other", "other_old")}
    return {**read, "timestamp": frame["timestamp"], "headers": frame["headers"]}


def _is_of(frame: DataFrame, number: int) -> Column:
    """Return whether a row is a result of the operator with a number, merged by the record cache or not."""
    return frame["port"].isin(RESULTS + number, RESULTS + AT_ONCE + number)


def _given(results: Mapping[str, Column], by: Node) -> RecordColumns:
    """Return the record that `by` passes on, in the bytes of an operator's results."""
    key, value = Datum(results["key"], results["key"], by.key), Datum(results["value"], results["value"], by.value)
    return RecordColumns(key, value, results["timestamp"], results["headers"])


def _given_by(node: Node, plan: Plan) -> Node:
    """Return a node that passes on what an operator's results are made from: for a join, the one on its left side."""
    joined = node.joined_values(plan.topology.nodes)
    parents = [plan.topology[parent] for parent in node.parents]
    return next((each for each in parents if joined is not None and each.value == joined.left), node)


def result_record(node: Node, plan: Plan, frame: Mapping[str, Column], is_own: Column) -> RecordColumns:
    """Return the record that an operator's result is: its bytes, and what the joiner makes of two values.

    Args:
        node: the node from which the result goes on.
        plan: what runs.
        frame: columns of the operator's results, named as in `row_format.SCHEMA`.
        is_own: says which rows are its results: a joiner that is a Python function is called for no others.
    """
    if node.own_stores:
        return _transformed(node, frame)
    key = sure(frame["key"], node.key)
    record = RecordColumns(key, sure(frame["value"], node.value), frame["timestamp"], frame["headers"])
    joined = node.joined_values(plan.topology.nodes)
    if joined is None:
        if not node.is_table:
            return record
        # A table that is kept only because processors look into it passes on no old values, as no step needs them.
        tells = not runs_latest_value_operator(node, plan) or stores_latest(node, plan.topology)
        return replace(record, old=sure(frame["old"], node.value) if tells else None, note=frame["other"])
    made_of = partial(_joined, node, joined, record, is_own)
    new = made_of(frame["value"], frame["other"])
    other_old, note, old = frame["other_old"], None, None
    if joined.has_old and rows_are_looked_up(node, plan.topology):
        other_old, note = without_row_time(other_old)
    if joined.has_old and needs_old_values(node, plan.topology):
        old = made_of(frame["old"], other_old)
    return replace(record, value=new, old=old, note=note)


def _transformed(node: Node, frame: Mapping[str, Column]) -> RecordColumns:
    """Return the row that a transformer has made; dropped where the result is an update of one of its own stores."""
    is_row = ~F.coalesce(F.startswith(frame["other"], F.lit(STORE_UPDATE)), F.lit(False))
    key, value, old = (F.when(is_row, frame[name]) for name in ("key", "value", "old"))
    record = RecordColumns(sure(key, node.key), sure(value, node.value), frame["timestamp"], frame["headers"], is_row)
    return replace(record, old=sure(old, node.value), note=frame["other"])


def _joined(
    node: Node, joined: JoinedValues, record: RecordColumns, is_own: Column, left: Column, right: Column
) -> Datum:
    """Return what a joiner makes of the bytes of two sides, where the join has a result for them."""
    sides = [
        user_functions.typed_column(serde.from_bytes(data), serde.data_type, letter)
        for letter, serde, data in (("l", joined.left, left), ("r", joined.right, right))
    ]
    key = user_functions.typed_column(record.key.typed, node.key.data_type, "k")
    has_result = None if joined.outer is None else _has_result(joined.outer, left, right)
    step = f"{node.name} at {node.call_site}"
    with user_functions.asked_only_for(is_own if has_result is None else is_own & has_result):
        return Datum(user_functions.apply(joined.joiner, [key, *sides], step, has_result))


def _has_result(outer: tuple[bool, bool], left: Column, right: Column) -> Column:
    """Return whether a table join has a row for two sides: `outer` says which of them may stand alone."""
    keeps_left, keeps_right = outer
    if keeps_left and keeps_right:
        return left.isNotNull() | right.isNotNull()
    return left.isNotNull() if keeps_left else left.isNotNull() & right.isNotNull()


def _forwarded(
    plan: Plan, guard: ErrorGuard, node: Process, frame: DataFrame, number: int, ahead: ComputedAhead
) -> tuple[list[Outcome], Rows]:
    """Return what a result of a group of processors becomes: one that was forwarded, or an update of a store.

    `frame` has the columns of `row_format.NAMES`; `other` is one byte that says which of these the result is.
    """
    results, group = _results_of(frame, number), plan.groups[node.name]
    ahead = replace(ahead, condition=_is_of(frame, number))
    ports = outputs(group, plan)
    logged = [store for store in group.stores if has_changelog(node, store)]
    several = len(ports) + len(logged) + len(changed_tables(group, plan)) > 1

    def taken(port: int, key: Serde, value: Serde) -> RecordColumns:
        is_port = frame["other"] == F.lit(bytes([port])) if several else F.lit(True)
        of_key, of_value = (
            sure(F.when(is_port, results[part]), serde) for part, serde in (("key", key), ("value", value))
        )
        record = RecordColumns(of_key, of_value, frame["timestamp"], frame["headers"])
        return record.where(is_port) if several else record

    outcomes: list[Outcome] = []
    alternatives = []
    for place, port in enumerate(ports):
        record, steps = taken(place, port.key, port.value), Steps(plan, guard, ahead=ahead)
        if port.handover:
            made = [steps.hand_over(port.processor, record, port.handover)]
        else:
            made = steps.step(port.child, record, replace(port.processor, key=port.key, value=port.value))
        outcomes += made
        alternatives.append(rows_of(made, plan))
    for place, table in enumerate(changed_tables(group, plan), len(ports) + len(logged)):
        made = Steps(plan, guard, ahead=ahead).store_changed(table, taken(place, table.key, table.value))
        outcomes += made
        alternatives.append(rows_of(made, plan))
    for place, store in enumerate(logged, len(ports)):
        alternatives.append(
            _store_update(plan, store, frame, frame["other"] == F.lit(bytes([place])) if several else None)
        )
    return outcomes, either(alternatives)


def _updates_of_own_stores(plan: Plan, node: Node, frame: DataFrame) -> list[Rows]:
    """Return the rows for the changelogs of the stores that a transformer keeps, among its results.

    `frame` has the columns of `row_format.NAMES`; `other` says whether a result is such an update, and of which
    store.
    """
    logged = [store for store in node.own_stores if has_changelog(node, store)]
    return [
        _store_update(plan, store, frame, frame["other"] == F.lit(STORE_UPDATE + bytes([number])))
        for number, store in enumerate(logged, 1)
    ]


def _store_update(plan: Plan, store: Store, frame: DataFrame, condition: Column | None) -> Rows:
    """Return the row for the changelog of a store, where a result is an update of that store.

    It is made of the columns key, value and timestamp of `frame`.
    """
    row = row_struct(
        FINISHED,
        topic=F.lit(plan.changelog(store)),
        key=frame["key"],
        value=frame["value"],
        other=F.lit(TO_OWN_PARTITION),
        timestamp=frame["timestamp"],
    )
    return Rows.of(row if condition is None else F.when(condition, row))
