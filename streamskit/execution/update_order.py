"""The order in which joins get one update of a table.

In Kafka Streams a step reads rows from the store of a table, through steps that keep none, and that store has the
update before any step after the table gets it. Here a join has its own rows, so updates of rows read by others go
first.
"""

from collections.abc import Iterable
from dataclasses import replace

from streamskit.execution.outcomes import Outcome, Send
from streamskit.operators import StreamTableJoinOperator, TableJoinOperator
from streamskit.operators.table_join import EARLIER
from streamskit.planning.plan import Plan
from streamskit.planning.planned_operators import leads_to
from streamskit.topology.nodes import Node, OperatorInput

TABLE_SIDE = 1
"""The side on which a join of a stream takes the rows of the table."""


def as_kafka_streams_reads(table: Node, outcomes: Iterable[Outcome], plan: Plan) -> list[Outcome]:
    """Return the outcomes of an update of a table in the order in which joins have to get it.

    Args:
        table: the node that passes the update on.
        outcomes: what the steps after it make of it, in their order.
        plan: the plan of the query.
    """
    made = list(outcomes)
    first = _read_by_earlier_ones(table, made, plan)
    ordered = [*first, *(each for each in made if not any(each is moved for moved in first))]
    return [*_told_earlier(table, ordered, {moved.to.operator for moved in first}, plan), *ordered]


def _read_by_earlier_ones(table: Node, outcomes: list[Outcome], plan: Plan) -> list[Send]:
    """Return the outcomes that change rows which an earlier outcome looks up."""
    first: list[Send] = []
    before: list[OperatorInput] = []
    for outcome in outcomes:
        if isinstance(outcome, Send):
            is_read = any(_is_read_by(outcome.to, each, plan) for each in before)
            if is_read and not _is_kept_between(table, outcome.parent, plan):
                first.append(outcome)
            else:
                before.append(outcome.to)
    return first


def _is_read_by(rows: OperatorInput, reader: OperatorInput, plan: Plan) -> bool:
    """Return whether a record at `reader` looks up rows that one at `rows` changes, in a join or through one."""
    operators = {slot.operator.name: slot.operator for slot in plan.operators}
    joins_stream = isinstance(operators[reader.operator], StreamTableJoinOperator)
    if joins_stream and reader.side != TABLE_SIDE:
        looked_up = reader._replace(side=TABLE_SIDE)
    elif isinstance(operators[reader.operator], TableJoinOperator) and reader.side in (0, 1):
        looked_up = reader._replace(side=1 - reader.side)
    else:
        return False
    if rows.operator == reader.operator:  # a table join gets such rows on separate sides
        return joins_stream and rows == looked_up
    is_join = isinstance(operators[rows.operator], TableJoinOperator)
    return is_join and leads_to({rows.operator}, looked_up, plan, past_stores=False)


def _told_earlier(table: Node, outcomes: list[Outcome], moved: set[str], plan: Plan) -> list[Send]:
    """Return what is sent to joins of two tables ahead of an update of a table that changes a row of both.

    It is the row that comes last, but not where a step on its way to the join keeps it in a store, since the join would
    find the previous row there; unless what comes before was `moved` ahead, as that step then comes first.
    """
    joins = [each.operator.name for each in plan.operators if isinstance(each.operator, TableJoinOperator)]
    every, told = [each for each in outcomes if isinstance(each, Send)], []
    for join in joins:
        places = [place for place, each in enumerate(every) if each.to.operator == join]
        if not places or not {every[place].to.side for place in places} <= {0, 1}:
            continue
        last, before = every[places[-1]], [each.to for each in every[: places[-1]]]
        other = last.to._replace(side=1 - last.to.side)
        meets = other in before or leads_to({to.operator for to in before} - {join}, other, plan)
        was_first = leads_to(moved - {join}, other, plan)
        if was_first or (meets and not _is_kept_between(table, last.parent, plan)):
            told.append(replace(last, to=last.to._replace(side=last.to.side + EARLIER)))
    return told


def _is_kept_between(table: Node, last: Node, plan: Plan) -> bool:
    """Return whether a step after a table, up to the last one, keeps rows in a store of its own."""
    while last is not table and last.parents:
        if last.row_store is not None:
            return True
        last = plan.topology[last.parents[0]]
    return False
