"""A stage whose operators take whole Arrow batches: what `TaskProcessor` does for each row is done for columns.

The resulting rows, and their order, are the same.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamskit.execution.arrow_batches import pack_table
from streamskit.execution.row_format import BEGIN, NAMES, RESULTS, SEQUENCE, SIDES
from streamskit.execution.stage_rows import StageInputs
from streamskit.operators import StreamTask

if TYPE_CHECKING:  # they take a while to import, and most stages do without them
    import numpy as np
    import pyarrow as pa


class WholeBatches:
    """The rows of a task, batch by batch, on their way through operators that take batches.

    Args:
        stage: the operators.
        inputs: what it has to know about the rows that come in.
        numbers: the number of each operator in the plan.
        task: the task's number.
        chunk: how many rows are handed over to Spark at once.
    """

    def __init__(self, stage: StreamTask, inputs: StageInputs, numbers: Sequence[int], task: int, chunk: int) -> None:
        self._stage, self._inputs, self._numbers, self._task, self._chunk = stage, inputs, numbers, task, chunk
        self._count = 0

    def process(self, rows: "pa.Table") -> Iterator[bytes]:
        """Give rows, in their order, to the operators, and yield the results and the rows that pass through."""
        import numpy as np
        import pyarrow as pa

        ports = rows.column("port").to_numpy()
        number_of = np.full(len(ports), -1)
        others, places = [pa.nulls(0, pa.binary())], [np.empty(0, dtype=np.int64)]
        is_given = np.zeros(len(ports), dtype=bool)
        for operator, number in enumerate(self._numbers):
            is_mine = (ports >= 0) & (ports // SIDES == number)
            is_given |= is_mine
            given = np.flatnonzero(is_mine)
            if not len(given):
                continue
            mine = rows if len(given) == len(ports) else rows.take(pa.array(given))
            kept, other = self._stage.process_batch(operator, ports[given] % SIDES, mine)
            places.append(given[kept])
            others.append(other)
            number_of[given[kept]] = number
        goes_out = np.where(is_given, number_of >= 0, ports != BEGIN)
        other = pa.concat_arrays(others).take(pa.array(np.argsort(np.concatenate(places), kind="stable")))
        yield from self._packs(rows.filter(pa.array(goes_out)), number_of[goes_out], other)

    def _packs(self, rows: "pa.Table", number_of: "np.ndarray", other: "pa.Array") -> Iterator[bytes]:
        """Yield output rows: results of the operators with these numbers, and rows that pass through (-1)."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        size = len(number_of)
        is_result = pa.array(number_of >= 0)
        made = {name: rows.column(name) for name in NAMES}
        ports = np.where(number_of >= 0, RESULTS + number_of, rows.column("port").to_numpy())
        made["port"] = pa.array(ports, pa.int32())
        for name in ("topic", "old", "other_old"):
            made[name] = pc.if_else(is_result, pa.scalar(None, made[name].type), made[name])
        made["other"] = pc.replace_with_mask(made["other"].combine_chunks(), is_result, other)
        made["task"] = pa.array(np.full(size, self._task, dtype=np.int32))
        made["origin"] = pa.array(np.full(size, SEQUENCE, dtype=np.int32))
        made["position"] = pa.array(np.arange(self._count, self._count + size))
        made["step"] = pa.array(np.zeros(size, dtype=np.int32))
        self._count += size
        table = pa.table(made)
        for start in range(0, size, self._chunk):
            yield pack_table(table.slice(start, self._chunk))
