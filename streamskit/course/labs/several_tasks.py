"""A second drive of a topology that is right in one task: is it right in several, which share no store?"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, cycle, groupby
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.difference import Outcome, StoreRows, same
from streamskit.course.labs.recording import Batch, OutcomeRow, Piped, Recording
from streamskit.course.labs.trial import run
from streamskit.kafka.topic_partition import partition_for
from streamskit.topology import Topology
from streamskit.topology.nodes import Node, Source, of_kind

SPLIT = "totals split over tasks"
"""The mistake of a processor that keeps something by another key than that of its partitions."""


def split_over_tasks(topology: Topology, recording: Recording, partitions: int) -> str:
    """Say what is wrong at the end if topics have several partitions; nothing if all rows and last results are right.

    The records go in as few batches as their order allows. Nothing is driven where no step can go wrong: the DSL
    repartitions by itself, a processor does not. Where no records with new keys go through a topic in between, a task
    has nothing to do with the others, and one of them by itself shows most mistakes, much sooner than all of them.

    Args:
        topology: one that is right with topics of one partition.
        recording: what goes in and has to come out.
        partitions: how many each topic has now.
    """
    if not any(_keeps_by_other_keys(topology, nodes) for nodes in topology.sub_topologies()):
        return ""
    is_rekeyed = any(True in _rekeyed(topology, source.name) for source in topology.sources)
    found = "" if is_rekeyed else _found_in_one_task(topology, recording, partitions)
    return found or _found_in_all_tasks(topology, recording, partitions)


def _found_in_one_task(topology: Topology, recording: Recording, partitions: int) -> str:
    """Say what one of the tasks has in place of what is right."""
    trial = run(topology, replace(recording, steps=_together(_of_one_task(topology, recording.records, partitions))))
    if trial.error:
        return f"the application stops: {trial.error}"
    return next(chain(_parts_in_stores(recording, trial.stores), _parts_in_topics(recording, trial.outputs)), "")


def _found_in_all_tasks(topology: Topology, recording: Recording, partitions: int) -> str:
    steps = _together(recording.records)
    try:
        trial = run(topology, replace(recording, steps=steps, driver={**recording.driver, "partitions": partitions}))
    except StreamsKitError:
        return ""  # it sets a number of partitions itself, which these topics do not fit
    if trial.error:
        return f"the application stops: {trial.error}"
    stores = (_said_of_rows(store) for store in Outcome(recording, trial).stores if store.differs)
    return next(chain(stores, _other_last_results(recording, trial.outputs)), "")


def _together(records: Iterable[Piped]) -> tuple[Batch, ...]:
    return tuple(Batch(tuple(some)) for _, some in groupby(records, key=lambda record: record.topic))


def _of_one_task(topology: Topology, records: Sequence[Piped], partitions: int) -> list[Piped]:
    """Return the records of one task, with those that all tasks read, of global tables and stores.

    Of the tasks other than that of the last record, which may end with a total that is right by chance, it is the one
    with the most records.
    """
    nodes = topology.nodes.values()
    everywhere = {topic for node in nodes if node.is_global for topic in topology[node.parents[0]].topic_names}
    turns = cycle(range(partitions))

    def place(record: Piped) -> int:
        source = next(source for source in topology.sources if source.reads_topic(record.topic))
        return next(turns) if record.key is None else partition_for(source.key.serialize(record.key) or b"", partitions)

    placed = [(None if record.topic in everywhere else place(record), record) for record in records]
    last = next((task for task, _ in reversed(placed) if task is not None), None)
    counts = Counter(task for task, _ in placed if task not in (None, last))
    chosen = max(counts, key=counts.__getitem__, default=last)
    return [record for task, record in placed if task in (None, chosen)]


def _parts_in_stores(recording: Recording, stores: Mapping[str, Sequence[OutcomeRow]]) -> Iterator[str]:
    for name, due in recording.stores.items():
        for row in stores.get(name, ()):
            found = [each.value for each in due if same(each.key, row.key)]
            if recording.counts(name, row) and not any(same(value, row.value) for value in found):
                right = repr(found[0]) if found else "no row"
                yield f"the store {name} of one task has {row.value!r} for {row.key} in place of {right}"


def _parts_in_topics(recording: Recording, outputs: Any) -> Iterator[str]:
    """Say which last result of a task is none that ever had to come; an earlier one may be right, of another task."""
    for topic, rows in recording.outputs.items():
        due = _last(rows)
        for key, value in _last(outputs.get(topic, ())).items():
            if not any(str(row.key) == key and same(row.value, value) for row in rows):
                right = repr(due[key]) if key in due else "none"
                yield f"the last result of one task for {key} in {topic} is {value!r} in place of {right}"


def _keeps_by_other_keys(topology: Topology, nodes: Iterable[Node]) -> bool:
    """Say whether a processor is in the same tasks as a topic with the keys that somebody else has chosen."""
    some = list(nodes)
    sources = of_kind(Source, some)
    return any(node.has_own_keys for node in some) and any(False in _rekeyed(topology, each.name) for each in sources)


def _rekeyed(topology: Topology, name: str, behind: frozenset[str] = frozenset()) -> set[bool]:
    """Say of the ways from the topics of others to a node, through those in between, whether keys may change on them.

    A `repartition` after which the keys are as before brings nothing together. `behind` are the nodes already seen.
    """
    node, read = topology[name], [source for source in topology.sources if source.name == name]
    if node.changes_keys:
        return {True}
    written = {sink.name: sink.topic for sink in topology.sinks if isinstance(sink.topic, str)}
    writers = {name for name, topic in written.items() if any(source.reads_topic(topic) for source in read)}
    before = {*node.parents} | writers
    ways = [_rekeyed(topology, each, behind | {name}) for each in before - behind]
    return set[bool]().union(*ways) if ways else {False}


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
