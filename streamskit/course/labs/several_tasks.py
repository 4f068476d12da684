"""A second drive of a topology that is right in one task: is it right in several, which share no store?"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, cycle, groupby
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.difference import Outcome, StoreRows, same
from streamskit.course.labs.recording import Batch, OutcomeRow, Piped, Recording
from streamskit.course.labs.trial import Trial, run
from streamskit.kafka.topic_partition import partition_for
from streamskit.topology import Topology
from streamskit.topology.nodes import Node, Source, of_kind

SPLIT = "totals split over tasks"
"""The mistake of a processor that keeps something by another key than that of its partitions."""


def split_over_tasks(first: Trial, recording: Recording, partitions: int) -> str:
    """Say what is wrong at the end if topics have several partitions; nothing if all rows and last results are right.

    The records go in as few batches as their order allows. Nothing is driven where no step can go wrong: the DSL
    repartitions by itself, a processor does not. A task has nothing to do with the others but for the topics in
    between, so that one of them by itself shows most mistakes, much sooner than all of them.

    Args:
        first: the trial of a topology that is right with topics of one partition, its own topics noted.
        recording: what went in and came out.
        partitions: how many each topic has now.
    """
    topology = first.topology
    if not any(_keeps_by_other_keys(topology, nodes) for nodes in topology.sub_topologies()):
        return ""
    if any(True in _rekeyed(topology, source.name) for source in topology.sources):
        found = _found_behind_topics(first, recording, partitions)
    else:
        found = _found_in_one_task(topology, recording, partitions)
    return found or _found_in_all_tasks(topology, recording, partitions)


def _found_in_one_task(topology: Topology, recording: Recording, partitions: int, is_part: bool = False) -> str:
    """Say what one of the tasks has in place of what is right; what only a part of a topology lacks says nothing."""
    chosen = _of_one_task(topology, recording, partitions)
    trial = run(topology, replace(recording, steps=_together(record for _, record in chosen)))
    if trial.error:
        return "" if is_part else f"the application stops: {trial.error}"
    found = chain(_parts_in_stores(recording, trial.stores), _parts_in_topics(recording, trial.outputs))
    missing = () if is_part or _has_topics_between(topology) else _missing_in_topics(recording, trial.outputs, chosen)
    return next(chain(found, missing), "")


def _found_behind_topics(first: Trial, recording: Recording, partitions: int) -> str:
    """Say what a task behind topics in between has in place of what is right.

    These topics are read like those of others here, with the records that the first drive has written there; after
    which of them a result is due, nothing says.
    """
    behind = _behind_topics(first.topology)
    written = {sink.topic for sink in behind.sinks}
    due = {topic: rows for topic, rows in recording.outputs.items() if topic in written}
    part = replace(
        recording,
        steps=tuple(_read_behind_topics(behind, first, recording)),
        outputs={topic: tuple(row._replace(step=-1) for row in rows) for topic, rows in due.items()},
        stores={name: rows for name, rows in recording.stores.items() if name in behind.stores},
    )
    if not part.outputs and not part.stores:
        return ""
    try:
        return _found_in_one_task(behind, part, partitions, is_part=True)
    except StreamsKitError:
        return ""  # it needs the rest of the topology


def _behind_topics(topology: Topology) -> Topology:
    """Return the sub-topologies in which something may be kept by other keys, with what all tasks read.

    What they write into topics in between is not read: all of that is known from the first drive.
    """
    parts = topology.sub_topologies()
    kept = [part for part in parts if _keeps_by_other_keys(topology, part) or any(node.is_global for node in part)]
    read = {source.name: replace(source, internal=False) for source in topology.sources if source.internal}
    written = {
        sink.name: replace(sink, internal=False, topic=f"{sink.topic}-written")
        for sink in topology.sinks
        if sink.internal
    }
    changed: dict[str, Node] = {**read, **written}
    return Topology(changed.get(node.name, node) for part in kept for node in part)


def _read_behind_topics(behind: Topology, first: Trial, recording: Recording) -> Iterator[Piped]:
    for number, step in enumerate(recording.steps):
        went_in = step.records if isinstance(step, Batch) else (step,)
        came = [(topic, row) for topic, rows in first.between.items() for row in rows if row.step == number]
        written = (Piped(topic, row.key, row.value, row.timestamp or 0, (), ("key", "value")) for topic, row in came)
        for record in (*went_in, *written):
            if isinstance(record, Piped) and any(source.reads_topic(record.topic) for source in behind.sources):
                yield record


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
    return tuple(Batch(tuple(some)) for _, some in groupby(records, key=lambda record: (record.topic, record.raw)))


def _of_one_task(topology: Topology, recording: Recording, partitions: int) -> list[tuple[int, Piped]]:
    """Return the records of one task with their steps, and those that all tasks read, of global tables and stores.

    Of the tasks other than that of the last record, which may end with a total that is right by chance, it is the one
    in which most results are due, and most records.
    """
    nodes = topology.nodes.values()
    everywhere = {topic for node in nodes if node.is_global for topic in topology[node.parents[0]].topic_names}
    turns = cycle(range(partitions))

    def place(record: Piped) -> int:
        if record.key is None:
            return next(turns)
        source = next(source for source in topology.sources if source.reads_topic(record.topic))
        key = record.key if "key" in record.raw else source.key.serialize(record.key)
        return partition_for(key or b"", partitions)

    records = list(_with_steps(recording))
    placed = [None if record.topic in everywhere else place(record) for _, record in records]
    last = next((task for task in reversed(placed) if task is not None), None)
    due = Counter(row.step for rows in recording.outputs.values() for row in rows)
    results = Counter[int | None]()
    for task, (step, _) in zip(placed, records, strict=True):
        results[task] += due[step]
    counts = Counter(task for task in placed if task not in (None, last))
    chosen = max(counts, key=lambda task: (results[task], counts[task]), default=last)
    return [each for task, each in zip(placed, records, strict=True) if task in (None, chosen)]


def _with_steps(recording: Recording) -> Iterator[tuple[int, Piped]]:
    for number, step in enumerate(recording.steps):
        for record in step.records if isinstance(step, Batch) else (step,):
            if isinstance(record, Piped):
                yield number, record


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


def _missing_in_topics(recording: Recording, outputs: Any, chosen: Sequence[tuple[int, Piped]]) -> Iterator[str]:
    """Say which result of a task's own records does not come, where nothing but its own records can make it."""
    own = {number for number, _ in chosen if isinstance(recording.steps[number], Piped)}
    for topic, due in recording.outputs.items():
        for row in due:
            came = any(same(each.key, row.key) and same(each.value, row.value) for each in outputs.get(topic, ()))
            if row.step in own and not came:
                yield f"the result {row.value!r} of {row.key} is missing from {topic}"


def _keeps_by_other_keys(topology: Topology, nodes: Iterable[Node]) -> bool:
    """Say whether a processor is in the same tasks as a topic with the keys that somebody else has chosen."""
    some = list(nodes)
    sources = of_kind(Source, some)
    return any(node.has_own_keys for node in some) and any(False in _rekeyed(topology, each.name) for each in sources)


def _has_topics_between(topology: Topology) -> bool:
    """Say whether a topic is read that the topology itself writes."""
    return any(source.reads_topic(str(sink.topic)) for source in topology.sources for sink in topology.sinks)


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
