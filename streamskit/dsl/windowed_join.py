"""The join of two streams: each side keeps its records for a while, and looks into what the other side kept."""

from typing import TYPE_CHECKING, NamedTuple

from streamskit.api.windows import JoinWindows
from streamskit.dsl.abstract_stream import ColumnFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.regrouping import Regrouping
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Merge, PassThrough, Store, StreamJoinSide

if TYPE_CHECKING:
    from streamskit.dsl.kstream import KStream

OPERATORS = {(False, False): "join", (True, False): "left_join", (True, True): "outer_join"}
"""What a join is called, by whether the unmatched records of the left and of the right side go out."""


class Names(NamedTuple):
    """What the nodes and stores of a join are called, in the order in which Kafka Streams numbers them."""

    this_window: str
    other_window: str
    this: str
    other: str
    merge: str
    this_store: str
    other_store: str
    shared_store: str


def join_in_window(
    left: Regrouping,
    right: Regrouping,
    joiner: ColumnFunction,
    windows: JoinWindows,
    outer: tuple[bool, bool],
    name: str | None,
    store_name: str | None,
) -> "KStream":
    """Join two streams: a window node for each side keeps its records, a join node looks into the other's store.

    Args:
        left: the left stream.
        right: the right stream.
        joiner: a Column function of the two values, or of key and the two values.
        windows: how far apart two records may be.
        outer: whether the unmatched records of the left and of the right side go out.
        name: what the nodes' names begin with.
        store_name: what the stores' names begin with.
    """
    from streamskit.dsl.kstream import KStream

    builder, operator = left._builder, OPERATORS[outer]
    left._check_same_key(right, operator, name or left._name)
    this, other = left._for_join(name and f"{name}-left"), right._for_join(name and f"{name}-right")
    names = _names(builder, name, store_name, outer)
    key = this._node.key
    value = left._joined(joiner, this._node.value, other._node.value, operator, names.merge, key)

    def store(store_called: str, kind: str, values: Serde) -> Store:
        kept = windows if kind == "window" else None
        return Store(store_called, kind, key, values, kept, windows.retention, queryable=store_name is not None)

    this_store = store(names.this_store, "window", this._node.value)
    other_store = store(names.other_store, "window", other._node.value)
    # Records that wait for a match are kept once, for both sides.
    shared = store(names.shared_store, "buffer", Serdes.byte_array()) if outer[0] else None
    waiting = (shared.name,) if shared else ()
    common = {"group": names.merge, "windows": windows, "outer": outer, "joiner": joiner}
    builder._add(PassThrough, names.this_window, (this._name,), key, this._node.value, store=this_store)
    builder._add(PassThrough, names.other_window, (other._name,), key, other._node.value, store=other_store)
    looks_into = (other_store.name, *waiting)
    parents = (names.this_window,)
    builder._add(StreamJoinSide, names.this, parents, key, value, store=shared, other_stores=looks_into, **common)
    looks_into = (this_store.name, *waiting)
    parents = (names.other_window,)
    builder._add(StreamJoinSide, names.other, parents, key, value, side=1, other_stores=looks_into, **common)
    return KStream(builder, builder._add(Merge, names.merge, (names.this, names.other), key, value))


def _names(draft: GraphBuilder, name: str | None, store_name: str | None, outer: tuple[bool, bool]) -> Names:
    left, right = outer
    this_window = draft._name_for("KSTREAM-WINDOWED", name and f"{name}-this-windowed")
    other_window = draft._name_for("KSTREAM-WINDOWED", name and f"{name}-other-windowed")
    this = draft._name_for("KSTREAM-OUTERTHIS" if right else "KSTREAM-JOINTHIS")
    other = draft._name_for("KSTREAM-OUTEROTHER" if left else "KSTREAM-JOINOTHER")
    merge = draft._name_for("KSTREAM-MERGE", name and f"{name}-merge")
    this_ending = "-outer-this-join" if right else "-this-join"
    other_ending = "-outer-other-join" if left else "-other-join"
    shared_ending = "-outer-shared-join" if right else "-left-shared-join"
    return Names(
        this_window,
        other_window,
        name + this_ending if name else this,
        name + other_ending if name else other,
        merge,
        (store_name + this_ending if store_name else this) + "-store",
        (store_name + other_ending if store_name else other) + "-store",
        (store_name + shared_ending if store_name else f"KSTREAM-OUTERSHARED-{this[-10:]}") + "-store",
    )
