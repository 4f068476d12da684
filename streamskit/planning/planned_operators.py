"""Stateful operators of a plan: which nodes run record by record in Python, by which operator, and in which order."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial, singledispatch
from typing import Any

from streamskit import operators
from streamskit.api.windows import SessionWindows, SlidingWindows
from streamskit.common.errors import TopologyError
from streamskit.planning.lookups import are_open_windows_looked_up, has_open_windows, stay_in_cache
from streamskit.planning.old_values import (
    caches_rows,
    come_of_one_table,
    keeps_latest,
    needs_old_values,
    row_history,
    row_retention,
    rows_are_looked_up,
    sends_old_values,
    takes_old_values,
)
from streamskit.planning.plan import Plan, PlannedOperator
from streamskit.planning.processor_groups import comes_back, processors_operator
from streamskit.serdes import SessionWindowedSerde, TimeWindowedSerde
from streamskit.topology.nodes import (
    Aggregation,
    Count,
    ForeignKeyStep,
    Node,
    OperatorInput,
    Process,
    Source,
    StreamJoinSide,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableJoinSide,
    TableTransformValues,
    of_kind,
)
from streamskit.topology.nodes.joins import sides_of

IN_CACHE = 60 * 60 * 1000
"""How much longer a join finds the rows of windows that are emitted on close where a record cache holds them, in ms.

In Kafka Streams this ends when the cache is full. Without a cache such a row is gone as soon as it is emitted.
"""


def operator_input(node: Node, plan: Plan) -> OperatorInput | None:
    """Return where a node's records go if it runs as a stateful operator, or None if it runs as Columns."""
    if node is plan.native:
        return None
    if node.name in plan.handed_over:  # by Spark's own operators, which do not provide the old value
        return OperatorInput(node.name, 0) if needs_old_values(node, plan.topology) else None
    if node.name in plan.groups:
        return OperatorInput(plan.groups[node.name].name, 0)
    if _only_orders(node, plan) or runs_latest_value_operator(node, plan):
        return OperatorInput(node.row_operator, 0)
    return node.operator_input


def _only_orders(node: Node, plan: Plan) -> bool:
    return node.name in plan.ordered and node.operator_input is None


def runs_latest_value_operator(node: Node, plan: Plan) -> bool:
    """Return whether a step of a table runs as an operator that does nothing but keep its rows' latest values."""
    keeps = keeps_latest(node, plan.topology, plan.options.cache)
    return keeps or (plan.is_used(node) and not node.keeps_rows)


def operators_by_level(plan: Plan) -> tuple[PlannedOperator, ...]:
    """Return the operators of a plan, those of the lowest level first: each above those whose results it gets.

    Raises:
        TopologyError: a node cannot run on Spark.
    """
    planned: dict[str, PlannedOperator] = {}
    levels: list[int] = []
    # Operators that share a table rise to the highest of their levels, and those after them in the next round.
    for _ in range(len(plan.nodes) + 2):
        for each in plan.inputs:
            _follow(plan, planned, each.node, None, 0, frozenset())
        highest: dict[str, int] = {}
        for operator in planned.values():
            highest[operator.shared_table] = max(operator.level, highest.get(operator.shared_table, 0))
        for name, operator in planned.items():
            if operator.shared_table:
                planned[name] = replace(operator, level=highest[operator.shared_table])
        before, levels = levels, [operator.level for operator in planned.values()]
        if levels == before:
            break
    else:
        names = ", ".join(operator.node.name for operator in planned.values() if operator.shared_table)
        raise TopologyError(f"{names}: they share a store and feed each other, so neither can run first.")
    return tuple(sorted(planned.values(), key=lambda operator: operator.level))


def _follow(
    plan: Plan,
    planned: dict[str, PlannedOperator],
    node: Node,
    parent: Node | None,
    level: int,
    passed: frozenset[str],
) -> None:
    """Follow a record that `parent` passes on to `node`; `passed` are the operators that it went through."""
    where = operator_input(node, plan)
    exits: tuple[Node, ...] = (node,)
    if where is not None:
        if node.name in plan.groups and where.operator in passed:
            raise comes_back(node, plan)
        operator = planned.get(where.operator) or _operator_for(node, where.operator, plan)
        level = max(operator.level, level + 1)
        planned[where.operator] = replace(operator, level=level)
        exits, passed = operator.exits, passed | {where.operator}
    if parent is not None and node.table_side(parent) is not None:
        return
    for each in exits:
        for child in plan.following(each):
            if child not in exits:
                _follow(plan, planned, child, each, level, passed)


def leads_to(tables: Collection[str], side: OperatorInput, plan: Plan, past_stores: bool = True) -> bool:
    """Return whether results of some operators of tables come to one side of a join.

    Args:
        tables: the names of the operators.
        side: the side of the join.
        plan: the plan of the query.
        past_stores: whether also through steps that keep rows in a store of their own.
    """
    made = [each.node for each in plan.operators if each.operator.name in tables and each.node.is_table]
    following = [(node, child) for node in made for child in plan.following(node)]
    while following:
        parent, node = following.pop()
        where, table_side = operator_input(node, plan), node.table_side(parent)
        if where is not None and side == (where if table_side is None else where._replace(side=table_side)):
            return True
        if node.is_table and (past_stores or node.row_store is None):
            following += [(node, child) for child in plan.following(node)]
    return False


def nodes_of(operator: str, plan: Plan) -> list[Node]:
    """Return the nodes whose records go to an operator, in the order of the program."""
    inputs = {node.name: operator_input(node, plan) for node in plan.nodes}
    return [node for node in plan.nodes if (where := inputs[node.name]) is not None and where.operator == operator]


# ---- which operator runs a node --------------------------------------------------------------------------------------


def _operator_for(node: Node, name: str, plan: Plan) -> PlannedOperator:
    """Return the operator with a name, which runs `node` and perhaps others.

    Raises:
        TopologyError: there is none for it.
    """
    store = node.stores[0] if node.stores else None
    if isinstance(node, Source):
        skips = node.timestamps is not None and node.timestamps.invalid == "skip"
        invalid = "skip" if skips else "fail"
        return PlannedOperator(operators.PartitionTimeOperator(name, "partition time", invalid), node)
    if _only_orders(node, plan):
        return PlannedOperator(operators.OrderOperator(name), node)
    if node.name in plan.handed_over or runs_latest_value_operator(node, plan):
        history = store.retention if store is not None and store.kind == "versioned" else None
        timed = history is None and plan.is_used(node)
        given = node.tells_given_old_values
        # Rows may be remembered for processors or versions only; a step that sends no old values, and has no cache,
        # lets every deletion through.
        asked = sends_old_values(node, plan.topology) or caches_rows(node, plan.topology, plan.options.cache)
        skips = node.skips_absent_rows and asked
        latest = operators.LatestValueOperator(name, history, skips, timed, given)
        return PlannedOperator(latest, node, shared_table=plan.level_with(node))
    nodes = nodes_of(name, plan)
    planned = plan_operator(nodes[0], nodes, name, plan)
    return replace(planned, shared_table=plan.level_with(node)) if plan.level_with(node) else planned


@singledispatch
def plan_operator(node: Node, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    """Return the operator that runs `nodes`, the first of which is `node`; `name` is the operator's.

    Raises:
        TopologyError: streamskit has no way to run this kind of node.
    """
    raise TopologyError(f"{node.name} ({node.call_site}): a {type(node).__name__} cannot run on Spark.")


@plan_operator.register
def _(node: Aggregation, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    sides = sorted(of_kind(Aggregation, nodes), key=lambda side: side.side)
    functions = [side.python_functions for side in sides if side.python_functions is not None]
    if not functions:
        raise TopologyError(f"{node.name} ({node.call_site}): an aggregate of Columns cannot run here.")
    parents = [plan.topology[side.parents[0]] for side in sides]
    key = node.key
    if node.windows is not None and isinstance(key, TimeWindowedSerde | SessionWindowedSerde):
        key = key.inner
    counting, store, history = isinstance(node, Count), node.stores[0], row_history(node, plan.topology)
    if node.windows is None and counting:
        return PlannedOperator(operators.CountOperator(name, history), node, key=key)
    shared: dict[str, Any] = {
        "name": name,
        "key": key,
        "inputs": tuple(parent.value for parent in parents),
        "result": node.value,
        "initializer": functions[0].initializer,
        "aggregators": tuple(each.aggregator for each in functions),
    }
    if node.windows is None:
        return PlannedOperator(operators.AggregateOperator(**shared, history=history), node, key=key)
    shared |= {"windows": node.windows, "retention": store.retention, "on_close": node.on_close}
    shared |= {"counting": counting, "logged": store.queryable or are_open_windows_looked_up(node, plan)}
    if isinstance(node.windows, SessionWindows):
        return PlannedOperator(operators.SessionAggregateOperator(merger=functions[0].merger, **shared), node, key=key)
    if isinstance(node.windows, SlidingWindows):
        return PlannedOperator(operators.SlidingWindowAggregateOperator(**shared), node, key=key)
    return PlannedOperator(operators.WindowAggregateOperator(**shared), node, key=key)


@plan_operator.register
def _(node: TableAggregate, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    parent = plan.topology[node.parents[0]]
    functions = node.initializer, node.adder, node.subtractor
    serdes, history = (parent.key, parent.value, node.value), row_history(node, plan.topology)
    return PlannedOperator(operators.TableAggregateOperator(name, *serdes, *functions, history=history), node)


@plan_operator.register
def _(node: Process, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    group = plan.groups[node.name]
    return PlannedOperator(processors_operator(group, plan), group.members[0], members=group.members)


@plan_operator.register
def _(node: TableTransformValues, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    for other in plan.topology.nodes.values():
        if shared := [store.name for store in node.own_stores if other is not node and store in other.stores]:
            raise TopologyError(
                f"{node.name} ({node.call_site}): its store '{shared[0]}' is also that of {other.name} "
                f"({other.call_site}). A table transformer cannot share its stores: give it its own store."
            )
    parent, supplier = plan.topology[node.parents[0]], partial(operators.TransformerNode, node.supplier)
    sends_old, store = sends_old_values(node, plan.topology), node.store
    history = store.retention if store is not None and store.kind == "versioned" else None
    transformer = operators.TransformValuesOperator(
        name,
        plan.application_id,
        processors=(operators.ProcessorSpec(name, supplier, tuple(each.name for each in node.own_stores), (("", 0),)),),
        inputs=(operators.InputPort(parent.key, parent.value, processor=name),),
        outputs=(operators.OutputPort(node.key, node.value),),
        stores=node.own_stores,
        sends_old=sends_old,
        keeps_rows=store is not None and (sends_old or history is not None),
        history=history,
        is_ordinary=store is not None and history is None,
    )
    return PlannedOperator(transformer, node)


@plan_operator.register
def _(node: StreamJoinSide, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    if node.windows is None:
        raise TopologyError(f"{node.name} ({node.call_site}): a stream-stream join needs JoinWindows.")
    return PlannedOperator(operators.StreamJoinOperator(name, node.windows, node.outer), node)


@plan_operator.register
def _(node: TableJoinSide, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    sides = [(side, plan.topology[side.parents[0]]) for side in sides_of(node, plan.topology.nodes)]
    left_told, right_told = (takes_old_values(side, parent, plan.topology) for side, parent in sides)
    left, right = (_row_retention(parent, plan) for _, parent in sides)
    times = rows_are_looked_up(node, plan.topology)
    left_open, right_open = (has_open_windows(parent, plan) for _, parent in sides)
    told, on_close = (left_told, right_told), (left_open, right_open)
    # Where one update changes a row of both tables, the visible results depend on whether the joined rows have a cache.
    stores = [store for merge in plan.topology.children(node) for store in merge.stores if store.kind != "versioned"]
    is_cached = any(store.cached for store in stores)
    of_one = come_of_one_table([side for side, _ in sides], plan.topology)
    cached = of_one and is_cached and plan.options.cache
    merges = is_cached or not of_one
    join = operators.TableJoinOperator(name, node.outer, told, (left, right), times, on_close, merges, cached)
    return PlannedOperator(join, node, key=node.key)


def _row_retention(table: Node, plan: Plan) -> operators.RowRetention | None:
    """Return for how long a table's rows can be looked up, if it has windows."""
    milliseconds = row_retention(table, plan.topology)
    if milliseconds is None:
        return None
    from_close = stay_in_cache(table, plan)
    milliseconds += IN_CACHE if from_close else 0
    return operators.RowRetention(milliseconds, isinstance(table.key, SessionWindowedSerde), from_close)


@plan_operator.register
def _(node: StreamTableJoin, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    table, by_lookup_key = plan.topology[node.table], node.key_selector is not None
    history, retention = row_history(table, plan.topology), _row_retention(table, plan)
    join = operators.StreamTableJoinOperator(name, node.left, history, node.grace, by_lookup_key, retention)
    return PlannedOperator(join, node, key=None if by_lookup_key else node.key)


@plan_operator.register
def _(node: Suppress, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    limits = node.time_limit, node.max_records, node.max_bytes, node.emit_early
    return PlannedOperator(operators.SuppressOperator(name, node.windows, *limits), node)


@plan_operator.register
def _(node: ForeignKeyStep, nodes: list[Node], name: str, plan: Plan) -> PlannedOperator:
    join = node.join
    if join is None:
        raise TopologyError(f"{node.name}: a foreign-key join without its join.")
    rows, table = f"{join.name}-rows", plan.topology[plan.topology[join.name].parents[0]]
    retention = _row_retention(table, plan)
    if node.role == "register":
        tells_old = takes_old_values(node, table, plan.topology)
        send = operators.SubscriptionSendOperator(name, rows, join.left, tells_old, retention)
        return PlannedOperator(send, node, shared_table=rows)
    if node.role == "resolve":
        resolve = operators.ResponseJoinOperator(name, rows, join.left, retention)
        return PlannedOperator(resolve, node, shared_table=rows)
    notifier = next(step for step in of_kind(ForeignKeyStep, nodes) if step.role == "notify")
    retention = _row_retention(plan.topology[notifier.parents[0]], plan)
    return PlannedOperator(operators.SubscriptionJoinOperator(name, join.left, retention), notifier)
