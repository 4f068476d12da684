"""A join of two tables with the same keys."""

from dataclasses import dataclass

from streamskit.operators.records import OUT_OF_ORDER, OperatorRecord
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessRecord

Row = tuple[bytes, int] | None
"""A row's value and its timestamp."""


@dataclass(frozen=True)
class TableJoinOperator(Operator):
    """Table-table join: joins the rows of two tables that have the same key.

    Takes the updates of both (sides 0 and 1) and keeps both rows. `value` and `other` of the output are the new pair,
    `old` and `other_old` the pair before; a pair that makes no result is None and None. An update without a key, or one
    that is not the latest of its row, is dropped.
    Mirrors `org.apache.kafka.streams.kstream.internals.KTableKTableInnerJoin`, `KTableKTableLeftJoin`,
    `KTableKTableRightJoin` and `KTableKTableOuterJoin`.

    Args:
        name: the node's name.
        outer: for the left and for the right table whether its rows go out without a partner.
    """

    name: str
    outer: tuple[bool, bool]

    @property
    def is_cacheable(self) -> bool:
        return True

    def open(self, context: OperatorContext) -> ProcessRecord:
        changed_page, forward, drop = context.table(self.name).changed_page, context.forward, context.drop
        left_outer, right_outer = self.outer

        def pair(left: bytes | None, right: bytes | None) -> tuple[bytes | None, bytes | None]:
            if (left is None and not right_outer) or (right is None and not left_outer):
                return None, None
            return left, right

        def process(side: int, record: OperatorRecord) -> None:
            key, value, old, extra, timestamp, headers = record
            if key is None or extra == OUT_OF_ORDER:
                return drop()
            rows = changed_page(key)
            left, right = rows.get(key) or (None, None)
            before, partner = (right, left) if side else (left, right)
            row: Row = None if value is None else (value, timestamp)
            new = (left, row) if side else (row, right)
            if new == (None, None):
                rows.pop(key, None)
            else:
                rows[key] = new
            is_outer = right_outer if side else left_outer
            if partner is None and (not is_outer or (value is None and before is None)):
                return None
            other, latest = partner or (None, timestamp)
            value_before = before or (None,)
            if side:
                (value, other), (old, other_old) = pair(other, value), pair(other, value_before[0])
            else:
                (value, other), (old, other_old) = pair(value, other), pair(value_before[0], other)
            return forward(key, value, max(timestamp, latest), headers, old, other, other_old)

        return process
