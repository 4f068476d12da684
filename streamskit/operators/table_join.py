"""A join of two tables with the same keys."""

from collections.abc import Callable
from dataclasses import dataclass

from streamskit.operators.bytes_timed_stores import BytesWindowedRows, RowRetention, rows_of_table
from streamskit.operators.records import OUT_OF_ORDER, OperatorRecord, row_time, with_row_time
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessRecord

TableRow = tuple[bytes, int] | None
"""A row's value and its timestamp."""

Swap = Callable[[int, bytes, TableRow], tuple[TableRow, TableRow]]
"""Takes side (also `STORED` and the next), key and new row; returns the row before, and the row of the other side."""

SwapTold = Callable[[int, bytes, TableRow], tuple[TableRow, TableRow, TableRow]]
"""As `Swap`, and also returns the other side's row from before an update that changes both."""

EARLIER = 2
"""The side on which the left table's row is sent ahead of its update on side 0; the right table's is the next."""

STORED = 4
"""The side on which the left table's row is kept without making a result; the right table's is the next."""


@dataclass(frozen=True)
class TableJoinOperator(Operator):
    """Table-table join: joins the rows of two tables that have the same key.

    Takes the updates of both (sides 0 and 1) and keeps both rows. Where one update changes a row of both, the row that
    comes second is sent ahead of the first, on side `EARLIER` or the next, so that each finds the other's current row,
    as in the single store from which Kafka Streams reads both. Rows of windows that are emitted on close are sent ahead
    of that, on side `STORED` or the next. `value` and `other` of the output are the new pair, `old` and `other_old` the
    previous one, as the upstream tables reported it; a pair without a result is None and None. An update without a key,
    or one that is not the latest of its row, is dropped.
    Mirrors `org.apache.kafka.streams.kstream.internals.KTableKTableInnerJoin`, `KTableKTableLeftJoin`,
    `KTableKTableRightJoin` and `KTableKTableOuterJoin`.

    Args:
        name: the node's name.
        outer: for the left and for the right table, whether its rows are emitted without a partner.
        tells_old: for the left and for the right table, whether its updates carry the previous value; otherwise it is
            taken from the row that is kept here.
        retention: for the left and for the right table, if it has windows, for how long its rows can be looked up.
        on_close: for the left and for the right table, whether its rows are of windows that are emitted once, on close.
        tells_row_times: whether `other_old` begins with the time of the joined row, for a join that looks it up.
        merges: whether the record cache may merge its results.
        old_of_both: whether the previous pair is the one before an update that changes a row of both, as in a store
            whose cache passes on only the combined result.
    """

    name: str
    outer: tuple[bool, bool]
    tells_old: tuple[bool, bool] = (False, False)
    retention: tuple[RowRetention | None, RowRetention | None] = (None, None)
    tells_row_times: bool = False
    on_close: tuple[bool, bool] = (False, False)
    merges: bool = True
    old_of_both: bool = False

    @property
    def is_cacheable(self) -> bool:
        return self.merges and not self.tells_row_times

    def open(self, context: OperatorContext) -> ProcessRecord:
        forward, drop, tells_row_times = context.forward, context.drop, self.tells_row_times
        kept = _kept_together(context) if self.retention == (None, None) else _kept_apart(context, self.retention)
        tell, swap = _told_earlier(kept)
        (left_outer, right_outer), tells_old, on_close = self.outer, self.tells_old, self.on_close
        old_of_both = self.old_of_both

        def pair(left: bytes | None, right: bytes | None) -> tuple[bytes | None, bytes | None]:
            if (left is None and not right_outer) or (right is None and not left_outer):
                return None, None
            return left, right

        def process(side: int, record: OperatorRecord) -> None:
            key, value, old, extra, timestamp, headers = record
            if key is None or extra == OUT_OF_ORDER:
                return drop() if side < EARLIER else None
            row: TableRow = None if value is None else (value, row_time(record))
            if side >= EARLIER:
                return tell(side, key, row)
            before, partner, partner_before = swap(side, key, row)
            if old_of_both or not tells_old[side]:
                old = None if before is None or on_close[side] else before[0]
            is_outer = right_outer if side else left_outer
            if partner is None and (not is_outer or (value is None and old is None)):
                return None
            other, latest = partner or (None, timestamp)
            other_old, _ = (partner_before if old_of_both else partner) or (None, timestamp)
            if side:
                (value, other), (old, other_old) = pair(other, value), pair(other_old, old)
            else:
                (value, other), (old, other_old) = pair(value, other), pair(old, other_old)
            if tells_row_times:
                other_old = with_row_time(other_old, max(each[1] for each in (row, partner, (b"", -1)) if each))
            return forward(key, value, max(timestamp, latest), headers, old, other, other_old)

        return process


def _told_earlier(swap: Swap) -> tuple[Callable[[int, bytes, TableRow], None], SwapTold]:
    """Return how to set a row ahead of its update, and how to swap a row that may have been set this way."""
    before: dict[tuple[int, bytes], TableRow] = {}

    def tell(side: int, key: bytes, row: TableRow) -> None:
        if side >= STORED:
            swap(side, key, row)
        else:
            before[side - EARLIER, key], _ = swap(side - EARLIER, key, row)

    def swap_told(side: int, key: bytes, row: TableRow) -> tuple[TableRow, TableRow, TableRow]:
        now, partner = swap(side, key, row)
        if not before:
            return now, partner, partner
        return before.pop((side, key), now), partner, before.get((1 - side, key), partner)

    return tell, swap_told


def _kept_together(context: OperatorContext) -> Swap:
    """Return how to swap a row of two tables that are kept as one."""
    changed_page = context.table(context.name).changed_page

    def swap(side: int, key: bytes, row: TableRow) -> tuple[TableRow, TableRow]:
        rows = changed_page(key)
        left, right = rows.get(key) or (None, None)
        new = (left, row) if side % 2 else (row, right)
        if new == (None, None):
            rows.pop(key, None)
        else:
            rows[key] = new
        return (right, left) if side % 2 else (left, right)

    return swap


def _kept_apart(context: OperatorContext, retention: tuple[RowRetention | None, RowRetention | None]) -> Swap:
    """Return how to swap a row of two tables of which at least one forgets its rows after a while."""
    tables = [rows_of_table(context, f"{context.name}/{side}", each) for side, each in enumerate(retention)]

    def swap(side: int, key: bytes, row: TableRow) -> tuple[TableRow, TableRow]:
        table, other = tables[side % 2], tables[1 - side % 2]
        before = table.get(key)
        if side >= STORED and isinstance(table, BytesWindowedRows):
            table.put_open(key, row)
        else:
            table.put(key, row)
        return before, other.get(key)

    return swap
