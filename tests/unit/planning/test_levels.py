"""The levels of a query's operators: one that gets results of another stands above it, whatever they share."""

import pytest
from pyspark.sql import functions as F

from streamskit import StreamsBuilder, Topology
from streamskit.planning.plan import Plan
from streamskit.planning.planned_operators import operator_input
from streamskit.planning.planner import plan
from streamskit.topology.nodes import Node

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]


def joined_by_foreign_keys(joins: int) -> Topology:
    """Return a table that is joined with itself by foreign keys, so many times in a row, and then with its counts."""
    builder = StreamsBuilder()
    rows = table = builder.table("rows")
    counts = rows.group_by(lambda k, v: (v, v)).count()
    for _ in range(joins):
        table = table.left_join(rows, lambda left, right: F.coalesce(right, left), foreign_key=lambda v: v)
    table.left_join(counts, lambda left, n: left).to_stream().to("out")
    return builder.build()


def results_of(node: Node, query: Plan) -> list[str]:
    """Return the names of the operators that get what a node passes on, through steps that run as Columns."""
    names = []
    for child in query.following(node):
        where = operator_input(child, query)
        names += [where.operator] if where is not None else results_of(child, query)
    return names


@pytest.mark.parametrize("joins", [1, 2, 3])
def test_an_operator_stands_above_those_whose_results_it_gets(joins: int) -> None:
    checked = 0
    for query in plan(joined_by_foreign_keys(joins), "app"):
        levels = {slot.operator.name: slot.level for slot in query.operators}
        for slot in query.operators:
            for node in slot.exits:
                for above in set(results_of(node, query)) - {slot.operator.name}:
                    assert levels[above] > slot.level, f"{above} gets results of {slot.operator.name}"
                    checked += 1
    assert checked > 2 * joins
