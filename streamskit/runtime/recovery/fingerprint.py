"""What a topology keeps from one run to the next, by query: noted at each start, and compared at the next.

Spark's checkpoint identifies state by its number in the query, and the pages of task operators by the names of steps.
Steps that have moved in a topology would take over another step's state, or none, and nobody would notice. So what a
query reads and remembers is noted in the application's folder, as `topology.json`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from streamskit.api.windows import TimeWindows
from streamskit.common.durable_files import write_file
from streamskit.common.errors import StreamsError
from streamskit.execution.native_aggregation import has_fractions
from streamskit.planning.plan import Plan, PlannedOperator
from streamskit.planning.planned_operators import nodes_of
from streamskit.topology.nodes import Node, Source, of_kind

FILE = "topology.json"
VERSION = 2
"""The version of the file, and of how operators in Python keep their rows: in version 1 every table had 128 pages."""

BY_SPARK = " by Spark"
"""What follows the kind of an operator of Spark's own."""

RENAMED = {
    "Fold": "Aggregate",
    "CogroupFold": "CogroupAggregate",
    "TableFold": "TableAggregate",
    "hears_clock": "uses_wall_clock",
}
"""Former names, in older files, of kinds of operators and of a field of queries."""


@dataclass(frozen=True)
class OperatorPrint:
    """What identifies the state of an operator: `keeps` are the serdes of what it remembers.

    Spark numbers its own operators; the state of those in Python is found by their names. `stores` are those that it
    fills, and `sides` the topics of the records that it remembers, for each side of a join; `grace` is
    how long windows of Spark's own wait for late records, in milliseconds. None of these is in older files.
    """

    name: str
    kind: str
    keeps: list[str]
    windows: str = ""
    level: int = 1
    in_python: bool = True
    stores: list[str] = field(default_factory=list)
    sides: list[list[str]] = field(default_factory=list)
    grace: int | None = None

    def is_same(self, other: "OperatorPrint") -> bool:
        """Whether both operators have the same kind of state, whatever the topics that it comes from."""
        one, two = (replace(each, name="", stores=[], sides=[], grace=None) for each in (self, other))
        return one == two and (self.name == other.name or not self.in_python)

    def is_of_same_step(self, other: "OperatorPrint") -> bool:
        """Whether both are the same step of a program, whoever keeps its state."""
        kinds = {each.kind.partition(BY_SPARK)[0] for each in (self, other)}
        return len(kinds) == 1 and (self.name, self.windows) == (other.name, other.windows)

    def __str__(self) -> str:
        windows = f" in {self.windows}" if self.windows else ""
        return f"{self.name} ({self.kind} of {', '.join(self.keeps)}{windows})"


@dataclass(frozen=True)
class QueryPrint:
    """What a query reads and remembers: its topics, how many tasks it has, its operators in order, its changelogs.

    `keeps_partitions` says that a partitioner has placed what it reads.
    """

    reads: list[str]
    tasks: int
    operators: list[OperatorPrint] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    uses_wall_clock: bool = False
    keeps_partitions: bool = False

    @staticmethod
    def of(plan: Plan, tasks: int) -> "QueryPrint":
        """Return the print of a plan."""
        native = [_of_spark(plan, plan.native)] if plan.native is not None else []
        operators = [*native, *(_of_operator(plan, planned) for planned in plan.operators)]
        stores = [store.name for store in plan.stores]
        uses_wall_clock = plan.wall_clock_interval is not None
        return QueryPrint(plan.topics_as_written, tasks, operators, stores, uses_wall_clock, plan.keeps_partitions)

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> "QueryPrint":
        """Return the print that was noted as JSON."""
        operators = [
            OperatorPrint(**{**each, "kind": RENAMED.get(each["kind"], each["kind"])}) for each in said["operators"]
        ]
        named = {RENAMED.get(name, name): each for name, each in said.items()}
        return QueryPrint(**{**named, "operators": operators})


@dataclass(frozen=True)
class Fingerprint:
    """What an application has noted of itself: its queries by name, and the ids of the topics they read and fill.

    `firsts` are the first offsets, by partition, that the topics it reads had when it began.
    """

    queries: Mapping[str, QueryPrint] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    firsts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write it into an application's folder."""
        said = {"version": VERSION, "queries": {name: asdict(each) for name, each in self.queries.items()}}
        said |= {"topics": dict(self.topics), "firsts": dict(self.firsts)}
        write_file(folder / FILE, json.dumps(said, indent=2) + "\n")

    @staticmethod
    def load(folder: Path) -> "Fingerprint":
        """Read what `save` wrote; empty for an application that has not noted anything yet.

        Raises:
            StreamsError: the file cannot be read.
        """
        file = folder / FILE
        try:
            said = json.loads(file.read_text())
            queries = {name: QueryPrint.from_json(each) for name, each in said["queries"].items()}
            firsts = {
                topic: {int(number): offset for number, offset in each.items()}
                for topic, each in said.get("firsts", {}).items()  # not in files of earlier versions
            }
            known = Fingerprint(queries, said["topics"], firsts)
            is_old = said["version"] < VERSION
        except FileNotFoundError:
            return Fingerprint()
        except (ValueError, TypeError, KeyError, AttributeError) as failure:
            raise StreamsError(
                f"{file} is damaged: {failure!r}. It says what the topology was at the last start, so that a changed "
                "one is noticed. If you have changed nothing since then, delete the file and start again; otherwise "
                "call clean_up()."
            ) from failure
        if is_old and any(each.in_python for query in queries.values() for each in query.operators):
            raise StreamsError(
                f"What is kept in {folder} was written by an earlier version of streamskit, which kept rows in another "
                "way. Go on with that version, or call clean_up(): the next start reads the topics from their first "
                "records and makes all results again."
            )
        return known


def _of_spark(plan: Plan, node: Node) -> OperatorPrint:
    # Windows had a different state in Spark when its watermark decided which of them are closed.
    kind = f"{type(node).__name__}{BY_SPARK}" + (" and stream time" if node.windows else "")
    kind += ", 0.0 and -0.0 apart" if has_fractions(node.key.data_type) else ""  # they once had one count in common
    grace = node.windows.grace if isinstance(node.windows, TimeWindows) else None
    stores, sides = _stores(plan, [node]), _sides(plan, [node])
    return OperatorPrint(
        node.name, kind, [node.types], _windows(node), in_python=False, stores=stores, sides=sides, grace=grace
    )


def _of_operator(plan: Plan, planned: PlannedOperator) -> OperatorPrint:
    name, nodes = planned.operator.name, plan.topology.nodes
    run = nodes_of(name, plan)
    keeps = dict.fromkeys(state for node in run for state in node.state(nodes))
    kind, stores, sides = type(planned.node).__name__, _stores(plan, run), _sides(plan, run)
    return OperatorPrint(name, kind, [*keeps], _windows(planned.node), planned.level, stores=stores, sides=sides)


def _stores(plan: Plan, run: Sequence[Node]) -> list[str]:
    """Return the stores with a changelog that an operator fills, which runs some nodes."""
    logged = {store.name for store in plan.stores}
    return sorted({store.name for node in run for store in node.stores} & logged)


def _sides(plan: Plan, run: Sequence[Node]) -> list[list[str]]:
    """Return the topics from which an operator gets what it remembers, for each side that it keeps apart.

    What goes into the sides of a cogroup, or to processors that run together, is kept in common.
    """
    apart = [node.kept_apart(plan.topology.nodes) for node in run]
    sides = next(
        (each for each in apart if len(each) > 1), [[node for each in apart for side in each for node in side]]
    )
    return [_topics_of(plan, side) for side in sides]


def _topics_of(plan: Plan, nodes: Sequence[Node]) -> list[str]:
    """Return the topics from which records come to some nodes within their sub-topology."""
    sources = {each.name: each for each in of_kind(Source, plan.topology.nodes.values())}
    to_visit, visited, topics = [*nodes], set[str](), set[str]()
    while to_visit:
        node = to_visit.pop()
        if (source := sources.get(node.name)) is not None:
            begin = f"{plan.application_id}-" if source.internal else ""
            topics.update(f"{begin}{topic}" for topic in source.topic_names)
        elif node.name not in visited:
            to_visit += [plan.topology[parent] for parent in node.parents]
        visited.add(node.name)
    return sorted(topics)


def _windows(node: Node) -> str:
    """Return a node's windows in words; how long they wait for late records may change, but for Spark's own."""
    return "" if node.windows is None else str(replace(node.windows, grace=0)).replace(", grace=0", "")
