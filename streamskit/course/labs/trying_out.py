"""`try_out`: a learner's topology on a handful of records, to look at before it is checked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import STUB, topology_of
from streamskit.course.labs.recording import Advance, Piped
from streamskit.course.labs.trial import records_of
from streamskit.topology import Topology

RECORDS_WANTED = (
    "try_out takes a list of records, each written as (topic, key, value, timestamp in milliseconds), such as "
    '[("clicks", "ann", "home", 0)], and not {}.'
)

DURATION_WANTED = (
    'What stands in the list by itself moves the wall clock forward, and is a duration, such as "1 minute".'
)

FUNCTION_WANTED = (
    "try_out takes your function itself, neither in quotes nor called, as in try_out(clicks_per_minute, [...]), and "
    "not {}."
)


def try_out(answer: Any, records: Sequence[tuple[str, Any, Any, int] | Duration]) -> pd.DataFrame:
    """Return what a topology makes of some records, a row for each that comes out.

    Args:
        answer: a function that takes a `StreamsBuilder`, or one that returns a `Topology`.
        records: (topic, key, value, timestamp in milliseconds), in order; a duration moves the wall clock forward.

    Raises:
        StreamsKitError: the answer makes no topology, a record or duration is none, or the topology stops at a record.

    >>> try_out(clicks_per_minute, [("clicks", "ann", "home", 0), ("clicks", "ann", "cart", 61_000)])
    """
    if not callable(answer) and not isinstance(answer, Topology):
        raise StreamsKitError(FUNCTION_WANTED.format(repr(answer)))
    if isinstance(records, str | Mapping) or not isinstance(records, Iterable):
        raise StreamsKitError(RECORDS_WANTED.format(repr(records)))
    topology, records = topology_of(answer), list(records)
    if records and isinstance(records[0], str) and any(source.reads_topic(records[0]) for source in topology.sources):
        raise StreamsKitError(RECORDS_WANTED.format(f"one record by itself: {tuple(records)}"))
    steps = [_step(record) for record in records]
    trial = records_of(topology, steps)
    rows = [
        {"after": f"{row.step + 1}. {_told(steps[row.step])}", "topic": topic}
        | {"key": str(row.key), "value": row.value, "timestamp": row.timestamp, "step": row.step}
        for topic, rows in trial.outputs.items()
        for row in rows
    ]
    if trial.error:
        raise NotImplementedError(STUB) if trial.is_stub else trial.error
    table = pd.DataFrame(rows, columns=["after", "topic", "key", "value", "timestamp", "step"], dtype=object)
    return table.sort_values("step", kind="stable").drop(columns="step").reset_index(drop=True)


def _step(record: tuple[str, Any, Any, int] | Duration) -> Piped | Advance:
    if not isinstance(record, list | tuple):
        try:
            return Advance(to_milliseconds(record, "wall clock"))
        except ValueError:
            raise StreamsKitError(f"{RECORDS_WANTED.format(repr(record))} {DURATION_WANTED}") from None
    most = len(Piped._fields)
    if not most - len(Piped._field_defaults) <= len(record) <= most:
        raise StreamsKitError(RECORDS_WANTED.format(repr(record)))
    return Piped(*record)


def _told(step: Piped | Advance) -> str:
    if isinstance(step, Advance):
        return f"wall clock + {step.milliseconds / 1000:g} s"
    return f"{step.key} = {step.value}"
