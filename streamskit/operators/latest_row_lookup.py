"""The stream-table join of many records at once: for each record of the stream, the table's row at that point.

The results are those that `StreamTableJoinOperator` makes record by record. A table row that arrives among the records
is found by their positions; the state is read once for each key whose row arrived before all of them.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamskit.operators.bytes_stores import BytesKeyValueStore
from streamskit.operators.stream_task import ProcessBatch

NONE = -1
"""Stands for the number of a key or a record that is not there."""


def joining(table: BytesKeyValueStore, drop: Callable[[int], None], *, left: bool, by_extra: bool) -> ProcessBatch:
    """Return the function that joins many records of a stream (side 0) and updates of a table (side 1).

    Args:
        table: the rows, which it changes.
        drop: called with how many records were dropped, if any were.
        left: whether records without a row are passed on.
        by_extra: looks up `other` of a stream's record instead of its key.
    """

    def process(sides: np.ndarray, records: pa.Table) -> tuple[np.ndarray, pa.Array]:
        is_update, values = sides == 1, records.column("value").combine_chunks()
        looked_up = records.column("key").combine_chunks()
        if by_extra:
            looked_up = pc.if_else(pa.array(is_update), looked_up, records.column("other").combine_chunks())
        encoded = looked_up.dictionary_encode()
        keys, key_of = encoded.dictionary, encoded.indices.fill_null(NONE).to_numpy()
        has_value = values.is_valid().to_numpy(zero_copy_only=False)
        is_kept = np.where(is_update, key_of != NONE, has_value & ((key_of != NONE) | left))
        if dropped := len(sides) - int(is_kept.sum()):
            drop(dropped)
        updates = np.flatnonzero(is_update & is_kept)
        asking = np.flatnonzero(~is_update & is_kept)
        update_of = _latest_updates(key_of, is_update & is_kept)[asking]
        rows = _rows(table, keys, key_of[asking], update_of, values)
        _put_last(table, keys, key_of[updates], updates, values)
        if left:
            return asking, rows
        is_found = rows.is_valid()
        return asking[is_found.to_numpy(zero_copy_only=False)], rows.filter(is_found)

    return process


def _latest_updates(key_of: np.ndarray, is_update: np.ndarray) -> np.ndarray:
    """Return for each record the number of the last update of its key up to it."""
    by_key = np.argsort(key_of, kind="stable")
    sorted_keys = key_of[by_key]
    # Among the records in order of key and place, an update holds until the next one, but not for the next key.
    places = np.arange(len(by_key))
    last = np.maximum.accumulate(np.where(is_update[by_key], places, NONE))
    begins = np.searchsorted(sorted_keys, sorted_keys)
    latest = np.empty(len(by_key), dtype=np.int64)
    latest[by_key] = np.where((last >= begins) & (sorted_keys != NONE), by_key[last], NONE)
    return latest


def _rows(
    table: BytesKeyValueStore, keys: pa.Array, key_of: np.ndarray, update_of: np.ndarray, values: pa.Array
) -> pa.Array:
    """Return the row for each record, given by its key and, where an update among these made it, that update."""
    kept = np.unique(key_of[(update_of == NONE) & (key_of != NONE)])
    before = pa.array([table.get(key) for key in keys.take(pa.array(kept)).to_pylist()], values.type)
    in_state = len(values) + np.searchsorted(kept, key_of)
    place = np.where(update_of == NONE, in_state, update_of)
    has_none = (update_of == NONE) & (key_of == NONE)
    return pa.concat_arrays([values, before]).take(pa.array(place, mask=has_none))


def _put_last(
    table: BytesKeyValueStore, keys: pa.Array, key_of: np.ndarray, updates: np.ndarray, values: pa.Array
) -> None:
    """Write the last of the updates of each key."""
    changed, from_the_end = np.unique(key_of[::-1], return_index=True)
    last = updates[::-1][from_the_end]
    new = values.take(pa.array(last))
    for key, value in zip(keys.take(pa.array(changed)).to_pylist(), new.to_pylist(), strict=True):
        table.put(key, value)
