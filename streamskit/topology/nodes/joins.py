"""Nodes of joins: of streams, of a stream and a table, of tables, and by foreign key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from streamskit.api.windows import JoinWindows
from streamskit.common.durations import spell
from streamskit.serdes import Serde
from streamskit.state.stores import Store
from streamskit.topology.nodes.node import Function, JoinedValues, LookupKey, Node, OperatorInput, of_kind

JOIN_LABELS = {(False, False): "join", (True, False): "left join", (True, True): "outer join"}
"""The labels of joins, by which side's unmatched records are emitted."""


@dataclass(frozen=True)
class JoinSide(Node):
    """One side of a join of two streams or two tables: side 0 is the left one, 1 the right.

    Both share the join's `group` name. `joiner` takes (left, right) or (key, left, right) Columns; `outer` says for
    each side whether records without a match are emitted.
    """

    is_stateful: ClassVar[bool] = True
    group: str = ""
    side: int = 0
    outer: tuple[bool, bool] = (False, False)
    joiner: Function = lambda left, right: left
    reads: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return JOIN_LABELS[self.outer]

    @property
    def operator_input(self) -> OperatorInput | None:
        return OperatorInput(self.group, self.side)

    def state(self, nodes: Mapping[str, Node]) -> list[str]:
        return [nodes[parent].types for parent in self.parents]

    def kept_apart(self, nodes: Mapping[str, Node]) -> list[list[Node]]:
        return [[nodes[parent] for parent in side.parents] for side in sides_of(self, nodes)]


@dataclass(frozen=True)
class StreamJoinSide(JoinSide):
    """One side of a stream-stream join; `store` (left side only) holds the records that wait for a match."""

    goes_by_time: ClassVar[bool] = True
    buffered_until: ClassVar[str] = "waiting for a match"
    windows: JoinWindows | None = None
    store: Store | None = None

    def joined_values(self, nodes: Mapping[str, Node]) -> JoinedValues | None:
        left, right = (nodes[side.parents[0]].value for side in sides_of(self, nodes))
        return JoinedValues(left, right, self.joiner)


@dataclass(frozen=True)
class StreamTableJoin(Node):
    """Looks each record of a stream up in a table; `left` keeps those without a row.

    `table` is the name of the node that makes the table, `reads` names the stores it is read from. With a `grace`
    (milliseconds) records wait in `store` and are joined in order of time. `key_selector` is given for a global table.
    """

    is_stateful: ClassVar[bool] = True
    goes_by_time: ClassVar[bool] = True
    table: str = ""
    reads: tuple[str, ...] = ()
    left: bool = False
    joiner: Function = lambda value, row: value
    key_selector: Function | None = None
    grace: int | None = None
    store: Store | None = None

    @property
    def label(self) -> str:
        return JOIN_LABELS[self.left, False]

    @property
    def buffered_until(self) -> str:
        return super().buffered_until if self.grace is None else f"waiting for {spell(self.grace)}"

    @property
    def store_names(self) -> tuple[str, ...]:
        return (*(store.name for store in self.stores), *self.reads)

    def looks_into(self, table: Node) -> bool:
        return table.name == self.table

    def table_side(self, parent: Node) -> int | None:
        return 1 if self.looks_into(parent) else None

    def lookup_key(self, nodes: Mapping[str, Node]) -> LookupKey | None:
        return None if self.key_selector is None else LookupKey(self.key_selector, nodes[self.table].key)

    def joined_values(self, nodes: Mapping[str, Node]) -> JoinedValues | None:
        return JoinedValues(nodes[self.parents[0]].value, nodes[self.table].value, self.joiner)

    def state(self, nodes: Mapping[str, Node]) -> list[str]:
        return [nodes[name].types for name in (*self.parents, self.table)]

    def kept_apart(self, nodes: Mapping[str, Node]) -> list[list[Node]]:
        return [[nodes[name]] for name in (*self.parents, self.table)]


@dataclass(frozen=True)
class TableJoinSide(JoinSide):
    """One side of a table-table join."""

    joins_tables: ClassVar[bool] = True
    is_table: ClassVar[bool] = True
    uses_old_values: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    looks_up_rows: ClassVar[bool] = True

    @property
    def asks_for_old_values(self) -> bool:
        return self.outer[self.side]

    def joined_values(self, nodes: Mapping[str, Node]) -> JoinedValues | None:
        left, right = (nodes[side.parents[0]].value for side in sides_of(self, nodes))
        return JoinedValues(left, right, self.joiner, self.outer, has_old=True)


@dataclass(frozen=True)
class ForeignKeyJoin:
    """What the nodes of one foreign-key join have in common; `name` is that of its registration node."""

    name: str
    left: bool
    foreign_key: Function
    joiner: Function
    left_key: Serde
    left_value: Serde
    right_key: Serde
    right_value: Serde


@dataclass(frozen=True)
class ForeignKeyStep(Node):
    """One node of a foreign-key join.

    `role` is "register" (an order subscribes at its customer), "subscribe" (keeps the subscription), "answer" (to a new
    subscription), "notify" (all subscribers, when the customer changes), "resolve" (an answer comes back) or "output".
    """

    joins_tables: ClassVar[bool] = True
    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    looks_up_rows: ClassVar[bool] = True
    changes_keys: ClassVar[bool] = True
    role: str = ""
    join: ForeignKeyJoin | None = None
    store: Store | None = None
    reads: tuple[str, ...] = ()

    @property
    def old_value_store(self) -> Store | None:
        return self.row_store if self.role == "output" else None

    @property
    def asks_for_old_values(self) -> bool:
        return self.role in ("register", "notify")

    @property
    def takes_changed_old_values(self) -> bool:
        return self.role == "register"

    @property
    def label(self) -> str:
        return FOREIGN_KEY_LABELS[self.role]

    @property
    def functions(self) -> tuple[Function, ...]:
        return (self.join.foreign_key, self.join.joiner) if self.join else ()

    @property
    def operator_input(self) -> OperatorInput | None:
        if self.join is None or self.role in ("answer", "output"):
            return None
        if self.role in ("subscribe", "notify"):
            return OperatorInput(f"{self.join.name}-answer", 0 if self.role == "subscribe" else 1)
        return OperatorInput(f"{self.join.name}-{self.role}", 0)

    def lookup_key(self, nodes: Mapping[str, Node]) -> LookupKey | None:
        if self.join is None or self.role != "register":
            return None
        return LookupKey(self.join.foreign_key, self.join.right_key, of_value=True)

    def joined_values(self, nodes: Mapping[str, Node]) -> JoinedValues | None:
        if self.join is None or self.role != "resolve":
            return None
        # An inner join's operator has already left out what has no right side.
        return JoinedValues(self.join.left_value, self.join.right_value, self.join.joiner, (True, False))

    def state(self, nodes: Mapping[str, Node]) -> list[str]:
        join = self.join
        return [] if join is None else [*map(str, (join.left_key, join.left_value, join.right_key, join.right_value))]


FOREIGN_KEY_LABELS = {
    "register": "subscribe",
    "subscribe": "keep subscription",
    "answer": "answer subscriber",
    "notify": "notify subscribers",
    "resolve": "check answer",
    "output": "foreign-key join",
}
"""What the steps of a foreign-key join are called, by role."""


def sides_of(node: JoinSide, nodes: Mapping[str, Node]) -> list[Node]:
    """Return the two sides of a node's join, the left one first."""
    sides = [side for side in of_kind(type(node), nodes.values()) if side.group == node.group]
    return [*sorted(sides, key=lambda side: side.side)]
