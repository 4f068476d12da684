"""`Node`: what every step of a topology says about itself, and a helper for many of them.

What the planner, the compiler, the drawing and the fingerprint have to know about a kind of node is defined on its
class, as class variables and small properties: they query the node instead of looking at its type.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from streamskit.api.stream_partitioner import Partition
from streamskit.api.windows import AnyWindows, JoinWindows
from streamskit.columns.outer_values import OuterValue, outer_values
from streamskit.serdes import Serde, require_serde
from streamskit.state.stores import Store

Function = Callable[..., Any]


class OperatorInput(NamedTuple):
    """The stateful operator that a record goes to, and which of its sides."""

    operator: str
    side: int


class LookupKey(NamedTuple):
    """What goes into an operator besides a record: the bytes of a key that a function makes from the record.

    `of_value` says that the function is only called where there is a value.
    """

    function: Function
    serde: Serde
    of_value: bool = False


class JoinedValues(NamedTuple):
    """The two values from which a join's result is made: their serdes, and which of them may be missing.

    `outer` is None for a join of streams, whose operator takes care of that.
    """

    left: Serde
    right: Serde
    joiner: Function
    outer: tuple[bool, bool] | None = None
    has_old: bool = False
    """Whether the operator also gives the values before the update."""


@dataclass(frozen=True)
class Node:
    """One step of a topology.

    `name` is Kafka Streams' name for it, `parents` are the names of the nodes that feed it, `key` and `value` are the
    serdes (and so the types) of what it passes on, `call_site` is the line of the program that made it.
    """

    kind: ClassVar[str] = "Processor"
    """What Kafka's `TopologyDescription` calls it."""
    is_table: ClassVar[bool] = False
    """Whether it passes on the updates of a table: a null value deletes a row, and the old value may travel along."""
    is_global: ClassVar[bool] = False
    """Whether every instance keeps all of it, outside of tasks."""
    is_stateful: ClassVar[bool] = False
    """Whether it remembers something from one record to the next, whatever the topology around it."""
    is_visible: ClassVar[bool] = False
    """Whether its records can be seen outside of the query: in a topic, or by a function that is called with them."""
    flattens: ClassVar[bool] = False
    """Whether it can turn one record into any number of records."""
    changes_records: ClassVar[bool] = False
    """Whether it may drop or add records, or change their keys."""
    changes_keys: ClassVar[bool] = False
    """Whether it may give records other keys than they had, so that their partition is no longer that of their key."""
    has_own_keys: ClassVar[bool] = False
    """Whether its stores hold keys that need not be those of its records."""

    keeps_rows: ClassVar[bool] = False
    """Whether its operator keeps a table's rows with their times, as processors find them in the table's store."""
    joins_tables: ClassVar[bool] = False
    """Whether it looks up rows of one table for those of another, each of which is emitted when it changes."""

    needs_old_values: ClassVar[bool] = False
    """Whether it needs the old values of rows from the table before it. Mirrors `KTableImpl#enableSendingOldValues`."""
    uses_old_values: ClassVar[bool] = False
    """Whether it uses the old value of a row if the table before it sends one anyway."""
    passes_old_values: ClassVar[bool] = False
    """Whether it derives a row's old value from the previous step's old value, as it does with the new one."""
    knows_old_values: ClassVar[bool] = False
    """Whether it can send the old value of a row without a store that a later step has to request."""
    tells_given_old_values: ClassVar[bool] = False
    """Whether it passes on the old values that it receives, although it has a store with the latest row."""
    changes_old_values: ClassVar[bool] = False
    """Whether the old value that it sends for a row may differ from the value that it sent before."""
    looks_up_rows: ClassVar[bool] = False
    """Whether it looks up rows of the table before it, and so also their times."""

    name: str
    parents: tuple[str, ...]
    key: Serde
    value: Serde
    call_site: str
    outer_variables: tuple[OuterValue, ...] | None = field(default=None, compare=False, repr=False, kw_only=True)
    """What its functions take from the variables around them, as it was when the step was written."""

    def __post_init__(self) -> None:
        if self.outer_variables is None:  # otherwise it was copied from the node of which this is a changed one
            taken = tuple(value for function in self.functions_called_later for value in outer_values(function))
            object.__setattr__(self, "outer_variables", taken)
        require_serde(self.key, f"{self.name} at {self.call_site}: key=")
        require_serde(self.value, f"{self.name} at {self.call_site}: value=")

    # What only some kinds of nodes have, as a field.

    @property
    def store(self) -> Store | None:
        """The store it keeps, if it keeps one."""
        return None

    @property
    def pattern(self) -> str:
        """The pattern of the topics that it reads; "" if it names them, or reads none."""
        return ""

    @property
    def partitioner(self) -> Partition | None:
        """What chooses the partitions of the records that it writes; None if their keys do."""
        return None

    @property
    def windows(self) -> AnyWindows | JoinWindows | None:
        """The windows by which it groups, joins or holds back records."""
        return None

    @property
    def on_close(self) -> bool:
        """Whether a window's result is emitted once, when the window closes."""
        return False

    @property
    def group(self) -> str:
        """What it shares with the other sides of its join or cogroup; "" if it is no side of one."""
        return ""

    @property
    def side(self) -> int:
        """Which side of its group it is."""
        return 0

    # What follows from its fields, or is set on its class where it is always the same.

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores this node keeps."""
        return () if self.store is None else (self.store,)

    @property
    def own_stores(self) -> tuple[Store, ...]:
        """The stores that a processor or transformer keeps for itself: they hold nothing of what it passes on."""
        return ()

    @property
    def buffers(self) -> tuple[Store, ...]:
        """The stores in which it holds records back."""
        return tuple(store for store in self.stores if store.kind == "buffer")

    @property
    def row_store(self) -> Store | None:
        """The store that keeps the rows of the table it makes; None if it keeps none."""
        return next((store for store in self.stores if self.is_table and store.kind != "buffer"), None)

    @property
    def old_value_store(self) -> Store | None:
        """The store from which it takes the old value of a row, if any."""
        return None

    @property
    def row_operator(self) -> str:
        """The name of the operator that keeps the latest values of its rows, where an operator does only that."""
        return self.name

    @property
    def goes_by_time(self) -> bool:
        """Whether what it makes of a record depends on how late other records before it were."""
        return False

    @property
    def sends_old_values(self) -> bool:
        """Whether it sends the old values of rows even if no later step requests them."""
        return False

    @property
    def asks_for_old_values(self) -> bool:
        """Whether Kafka Streams' step requests old values from the table before it, though none are needed here."""
        return False

    @property
    def takes_changed_old_values(self) -> bool:
        """Whether it keeps the rows before it, and uses old values where they may differ from its rows."""
        return False

    @property
    def heeds_requests(self) -> bool:
        """Whether it behaves differently once a later step has requested old values, needed or not."""
        return False

    @property
    def skips_absent_rows(self) -> bool:
        """Whether it drops an update of a row that did not exist before and does not exist now."""
        return False

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the stores that other nodes keep and this one looks into."""
        return ()

    @property
    def store_names(self) -> tuple[str, ...]:
        """The names of all stores that it uses, in the order in which Kafka Streams connects them with it."""
        return (*self.reads, *(store.name for store in self.stores))

    @property
    def label(self) -> str:
        """The operator as a user writes it: "map values" for `MapValues`, "left join" for a side of one."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()

    @property
    def buffered_until(self) -> str:
        """What the records in its buffer wait for, if it has one."""
        return "until a window closes"

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The topics that it reads or writes, as named in the program."""
        return ()

    @property
    def operator_input(self) -> OperatorInput | None:
        """Where its records go as far as the node itself can tell; None if it needs no stateful operator."""
        return OperatorInput(self.name, 0) if self.is_stateful else None

    def looks_into(self, table: "Node") -> bool:
        """Whether it looks rows up in the table that another node keeps."""
        return False

    def table_side(self, parent: "Node") -> int | None:
        """Return the side on which its operator takes rows of the table that `parent` makes, to look them up later.

        Such a row produces no result.
        """
        return None

    def lookup_key(self, nodes: Mapping[str, "Node"]) -> LookupKey | None:
        """Return what goes into its operator besides a record, if anything; `nodes` are the topology's by name."""
        return None

    def joined_values(self, nodes: Mapping[str, "Node"]) -> JoinedValues | None:
        """Return what a result of its operator is made of, if it is a join; `nodes` are all of the topology by name."""
        return None

    def state(self, nodes: Mapping[str, "Node"]) -> list[str]:
        """Return what its operator remembers, in words, so that a change to the topology can be detected."""
        return [self.types]

    def kept_apart(self, nodes: Mapping[str, "Node"]) -> list[list["Node"]]:
        """Return the steps whose records its operator remembers, in one list for each side that it keeps apart."""
        return [[nodes[parent] for parent in self.parents]]

    @property
    def types(self) -> str:
        """The serdes of what it passes on."""
        return f"{self.key} and {self.value}"

    @property
    def functions(self) -> tuple[Function, ...]:
        """The user's functions in this node, so that a failure can be traced to it."""
        values = (getattr(self, each.name) for each in fields(self) if each.name not in ("key", "value"))
        return tuple(each for value in values for each in (value if isinstance(value, tuple) else (value,))
                     if callable(each) and not isinstance(each, type))  # fmt: skip

    @property
    def functions_called_later(self) -> tuple[Function, ...]:
        """Those that are called, or sent to Spark's processes, when the application starts, in its values of then."""
        return self.functions


Kind = TypeVar("Kind", bound=Node)


def of_kind(kind: type[Kind], nodes: Iterable[Node]) -> list[Kind]:
    """Return the nodes of one kind, in their order.

    >>> [source.name for source in of_kind(Source, topology.nodes.values())]
    ['KSTREAM-SOURCE-0000000000']
    """
    return [node for node in nodes if isinstance(node, kind)]
