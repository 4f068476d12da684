"""`try_out`: a learner's topology on a handful of records, to look at before it is checked."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from streamskit.labs.exercise import topology_of
from streamskit.labs.recording import Piped
from streamskit.labs.trial import records_of


def try_out(answer: Any, records: Sequence[tuple[str, Any, Any, int]]) -> pd.DataFrame:
    """Return what a topology makes of some records, a row for each that comes out.

    Args:
        answer: a function that takes a `StreamsBuilder`, or one that returns a `Topology`.
        records: (topic, key, value, timestamp in milliseconds), in order.

    >>> try_out(clicks_per_minute, [("clicks", "ann", "home", 0), ("clicks", "ann", "cart", 61_000)])
    """
    steps = [Piped(*record) for record in records]
    trial = records_of(topology_of(answer), steps)
    rows = [
        {"after": f"{row.step + 1}. {records[row.step][1]} = {records[row.step][2]}", "topic": topic}
        | {"key": str(row.key), "value": row.value, "timestamp": row.timestamp, "step": row.step}
        for topic, rows in trial.outputs.items()
        for row in rows
    ]
    if trial.error:
        raise trial.error
    table = pd.DataFrame(rows, columns=["after", "topic", "key", "value", "timestamp", "step"], dtype=object)
    return table.sort_values("step", kind="stable").drop(columns="step").reset_index(drop=True)
