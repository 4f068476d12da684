"""A learner's topology, run on the steps of a recording: what came out after which step."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from streamskit.common.errors import StreamsKitError, TopologyError
from streamskit.course.labs.recording import Advance, Batch, OutcomeRow, Piped, Recording, Step
from streamskit.course.labs.starting_again import called_anew, starting_again
from streamskit.serdes import Serdes
from streamskit.serdes.serde import Serde, SerdeError
from streamskit.testing import TestInputTopic, TestOutputTopic, TopologyTestDriver
from streamskit.topology import Topology
from streamskit.topology.nodes import Aggregate, Node, Process, Reduce, of_kind

BYTES = Serdes.byte_array()

NUMBERS: dict[type, Serde] = {int: Serdes.long(), float: Serdes.double()}
"""How the course writes a value that is a number alone."""

INTERNAL = ("-changelog", "-repartition")
"""How the names of an application's own topics end."""


@dataclass
class Trial:
    """What a topology produced.

    `outputs` are the records of each topic, `stores` the final rows of those asked for, `dropped` the records dropped
    by step, `error` what stopped it at `stopped_at`. `between` are the records of its own topics, in bytes, if noted.
    """

    topology: Topology
    outputs: dict[str, list[OutcomeRow]] = field(default_factory=lambda: defaultdict(list))
    stores: dict[str, list[OutcomeRow]] = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)
    error: StreamsKitError | SerdeError | None = None
    stopped_at: int = -1
    between: dict[str, list[OutcomeRow]] = field(default_factory=lambda: defaultdict(list))

    @property
    def is_stub(self) -> bool:
        """Whether it stopped in lines that the learner has yet to write, in a process of Spark's."""
        raised = re.sub(r"`[^`]*`", "", str(self.error))  # without the line of code, which may quote a message
        return re.search(r"NotImplementedError(?!: \S)", raised) is not None


def run(topology: Topology, recording: Recording, notes_between: bool = False) -> Trial:
    """Run a topology on the steps of a recording, one after the other.

    Args:
        topology: the topology.
        recording: what goes in.
        notes_between: whether the records of the topics between its sub-topologies are noted as well.

    Raises:
        TopologyError: it cannot run at all.
    """
    trial = Trial(topology)
    with TopologyTestDriver(topology, **recording.driver) as driver:
        topics, between = _topics(driver, recording), _between(driver) if notes_between else {}
        for number, step in enumerate(recording.steps):
            try:
                dropped = _perform(driver, step)
            except (StreamsKitError, SerdeError) as error:
                trial.error, trial.stopped_at = error, number
                break
            trial.dropped |= {number: dropped} if dropped else {}
            _note(trial.outputs, number, topics)
            _note(trial.between, number, between)
        _note(trial.outputs, len(recording.steps) - 1, _named_by_records(driver, topics))
        trial.stores = _stores(driver, recording)
    return trial


def misreads_numbers(topology: Topology, recording: Recording) -> bool:
    """Say whether a topology reads a topic of numbers as other bytes than they are.

    A driver writes with the serde that reads, so there a number of four bytes and one of eight look the same.
    """
    numbers = {record.topic: record.value for record in recording.records if type(record.value) in NUMBERS}
    return any(
        source.reads_topic(topic) and _writes_otherwise(source.value, number)
        for topic, number in numbers.items()
        for source in topology.sources
    )


def _writes_otherwise(serde: Serde, number: int | float) -> bool:
    """Say whether a serde writes a number, and writes it as other bytes."""
    try:
        return serde.serialize(number) != NUMBERS[type(number)].serialize(number)
    except SerdeError:  # which is told when the number is piped
        return False


def forgetting_fields(topology: Topology) -> Topology | None:
    """Return a topology that starts again before each record; None if it has no processor or aggregator that can."""
    nodes = list(topology.nodes.values())
    changed: list[Node] = [
        replace(node, supplier=supplier)
        for node in of_kind(Process, nodes)
        if (supplier := starting_again(node.supplier)) is not node.supplier
    ]
    for folds in of_kind(Aggregate, nodes):
        if (aggregator := called_anew(folds.aggregator)) is not folds.aggregator:
            changed.append(replace(folds, aggregator=aggregator))
    for reduces in of_kind(Reduce, nodes):
        if (reducer := called_anew(reduces.reducer)) is not reduces.reducer:
            changed.append(replace(reduces, reducer=reducer))
    named = {node.name: node for node in changed}
    return topology.with_each_node(lambda node: named.get(node.name, node)) if named else None


def _topics(driver: TopologyTestDriver, recording: Recording) -> dict[str, TestOutputTopic]:
    """The output topics of a driver by name, those of dead letters among them."""
    topics = {name: driver.create_output_topic(name) for name in _written(driver.topology, recording)}
    return topics | {name: driver.dead_letters(name) for name in recording.letters}


def _named_by_records(driver: TopologyTestDriver, known: Collection[str]) -> dict[str, TestOutputTopic]:
    """The output topics by name that are none of those known: a function chose them for a record."""
    if all(isinstance(sink.topic, str) for sink in driver.topology.sinks):
        return {}
    others = sorted(name for name in driver.produced_topic_names() if name not in known)
    return {name: driver.create_output_topic(name) for name in others if not name.endswith(INTERNAL)}


def _between(driver: TopologyTestDriver) -> dict[str, TestOutputTopic]:
    """The topics between the sub-topologies of a driver's topology, by the names that they have there."""
    found: dict[str, TestOutputTopic] = {}
    for name in {str(sink.topic) for sink in driver.topology.sinks if sink.internal}:
        with suppress(TopologyError):  # a driver knows no topic that none of its queries writes
            found[name] = driver.create_output_topic(f"test-{name}", BYTES, BYTES)
    return found


def _note(rows: dict[str, list[OutcomeRow]], number: int, topics: dict[str, TestOutputTopic]) -> None:
    """Note what is in the topics as the result of a step."""
    for name, topic in topics.items():
        came = topic.read_records_to_list()
        rows[name] += [OutcomeRow(number, record.key, record.value, record.timestamp) for record in came]


def records_of(topology: Topology, steps: Sequence[Step], driver: dict[str, Any] | None = None) -> Trial:
    """Run a topology on steps of which nothing is known yet; all its topics that are written are read."""
    return run(topology, Recording(tuple(steps), {}, driver=driver or {}))


def _written(topology: Topology, recording: Recording) -> list[str]:
    """The names of the topics that a topology writes for others; one that names topics itself may write any."""
    sinks = [sink for sink in topology.sinks if not sink.internal]
    named = [sink.topic for sink in sinks if isinstance(sink.topic, str)]
    return list(dict.fromkeys([*named, *(recording.outputs if len(named) < len(sinks) else ())]))


def _perform(driver: TopologyTestDriver, step: Step) -> int:
    """Perform a step, and return how many records were dropped because of it."""
    before = driver.dropped()
    if isinstance(step, Advance):
        driver.advance_wall_clock_time(step.milliseconds)
    elif isinstance(step, Batch):
        _input_topic(driver, step.records[0]).pipe_records([record[1:5] for record in step.records])
    elif isinstance(step, Piped):
        _input_topic(driver, step).pipe_input(step.key, step.value, step.timestamp, step.headers)
    return driver.dropped() - before


def _input_topic(driver: TopologyTestDriver, record: Piped) -> TestInputTopic:
    """The topic of a record, for the parts of it that are bytes as well."""
    serdes = dict.fromkeys(record.raw, BYTES)
    return driver.create_input_topic(record.topic, serdes.get("key"), serdes.get("value"))


def _stores(driver: TopologyTestDriver, recording: Recording) -> dict[str, list[OutcomeRow]]:
    """The final rows of the stores that a recording asks for, as far as the topology has them."""
    return {name: _rows(driver, name) for name in recording.stores if name in driver.topology.stores}


def _rows(driver: TopologyTestDriver, name: str) -> list[OutcomeRow]:
    store = driver.state_store(name)
    times = store.to_pandas().get("timestamp")
    entries = list(store.all())
    known = [None] * len(entries) if times is None else [int(time) for time in times]
    return [OutcomeRow(-1, entry.key, entry.value, time) for entry, time in zip(entries, known, strict=True)]
