"""A second drive of a topology that is right in one task: is it right in several, which share no store?"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, groupby
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.difference import Outcome, StoreRows, same
from streamskit.course.labs.recording import Batch, OutcomeRow, Recording
from streamskit.course.labs.trial import run
from streamskit.topology import Topology
from streamskit.topology.nodes import Node, Source, of_kind

SPLIT = "totals split over tasks"
"""The mistake of a processor that keeps something by another key than that of its partitions."""


def split_over_tasks(topology: Topology, recording: Recording, partitions: int) -> str:
    """Say what is wrong at the end if topics have several partitions; nothing if all rows and last results are right.

    The records go in as few batches as their order allows. Nothing is driven where no step can go wrong: the DSL
    repartitions by itself, a processor does not.

    Args:
        topology: one that is right with topics of one partition.
        recording: what goes in and has to come out.
        partitions: how many each topic has now.
    """
    if not any(map(_keeps_by_other_keys, topology.sub_topologies())):
        return ""
    steps = tuple(Batch(tuple(some)) for _, some in groupby(recording.records, key=lambda record: record.topic))
    try:
        trial = run(topology, replace(recording, steps=steps, driver={**recording.driver, "partitions": partitions}))
    except StreamsKitError:
        return ""  # it sets a number of partitions itself, which these topics do not fit
    if trial.error:
        return f"the application stops: {trial.error}"
    stores = (_said_of_rows(store) for store in Outcome(recording, trial).stores if store.differs)
    return next(chain(stores, _other_last_results(recording, trial.outputs)), "")


def _keeps_by_other_keys(nodes: Iterable[Node]) -> bool:
    """Say whether a processor is in the same tasks as a topic whose partitions somebody else has chosen."""
    some = list(nodes)
    return any(node.has_own_keys for node in some) and any(not source.internal for source in of_kind(Source, some))


def _said_of_rows(store: StoreRows) -> str:
    key = (store.extra or store.missing)[0].key
    found = [row.value for row in store.actual if same(row.key, key)]
    held = f"{len(found)} rows" if len(found) > 1 else repr(found[0]) if found else "no row"
    return f"the store {store.name} has {held} for {key}"


def _other_last_results(recording: Recording, outputs: Any) -> Iterator[str]:
    for topic, rows in recording.outputs.items():
        due, came = _last(rows), _last(outputs.get(topic, ()))
        for key, value in due.items():
            if not same(came.get(key), value):
                yield f"the last result of {key} in {topic} is {came.get(key)!r} in place of {value!r}"


def _last(rows: Iterable[OutcomeRow]) -> dict[str, Any]:
    return {str(row.key): row.value for row in rows}
