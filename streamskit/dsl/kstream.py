"""`KStream`: the DSL for streams of independent records, and `BranchedKStream`, one of them split into several."""

from collections.abc import Callable, Sequence
from typing import Any

from streamskit.api.processor import FixedKeyProcessor, Processor
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction
from streamskit.dsl.aggregations import Grouping
from streamskit.dsl.grouped_stream import KGroupedStream
from streamskit.dsl.ktable import KTable
from streamskit.dsl.materialized import Materialized, table_store
from streamskit.dsl.repartition import RepartitionNames, repartition
from streamskit.dsl.stateless_transformations import StatelessTransformations
from streamskit.dsl.stream_joins import StreamJoins
from streamskit.serdes import Serde, Serdes, SessionWindowedSerde, TimeWindowedSerde
from streamskit.state.stores import Store
from streamskit.topology import nodes
from streamskit.topology.suppliers import check_supplier


class KStream(StatelessTransformations, StreamJoins):
    """A stream of records, each independent of those before it.

    Most steps take a Column function, such as `lambda v: v.price * v.size`. It is called with the value, or with key
    and value, as Columns, and sees nothing else: no `F.col("price")` and no `"*"`.

    Every step takes a `name=` of your own for its node. Mirrors `org.apache.kafka.streams.kstream.KStream`.
    """

    # ---- processors of your own --------------------------------------------------------------------------------------

    def process(
        self,
        processor: Callable[[], Processor],
        stores: Sequence[Store | str] = (),
        key: Serde | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> "KStream":
        """Pass the records to a processor of your own, and continue with those it forwards.

        Warning: a processor that names the store of a table can put rows into it. This does not update the table: steps
        after the table do not see it, while later look-ups, joins with streams and queries find the new row until the
        table's next record with that key replaces it. It is refused if the processor receives records that come from
        that table, which it can then only read, or if the table is joined with another table.

        Args:
            processor: a subclass of `Processor`, or a function that makes a new one each time, as each task has its
                own. It may bring stores along, which its static method `stores` returns.
            stores: what it may use: stores made by `Stores`, or names of those that were added or that tables keep.
            key: the serde of the keys that it forwards; by default that of this stream.
            value: the serde of the values, likewise.
            name: a name of your own for this step.

        Raises:
            TopologyError: `processor` does not make a new `Processor` each time it is called, or there is no such
                store.

        >>> lines.process(Shout).to("loud-lines")

        Mirrors `KStream#process`; Spark's `transformWithState`.
        """
        name = self._processor_name("KSTREAM-PROCESSOR", name)
        step = self._step("process", name)
        check_supplier(processor, Processor, step, FixedKeyProcessor)
        fields = self._graph.stores_for(processor, stores, step)
        key, value = key or self._node.key, value or self._node.value
        return self._rekeyed_by(nodes.Process, name, key=key, value=value, supplier=processor, **fields)

    def process_values(
        self,
        processor: Callable[[], FixedKeyProcessor],
        stores: Sequence[Store | str] = (),
        value: Serde | None = None,
        name: str | None = None,
    ) -> "KStream":
        """Give the records to a processor that leaves their keys alone, so that nothing has to be repartitioned.

        Args:
            processor: a subclass of `FixedKeyProcessor`, or a function that makes a new one each time, as each task
                has its own. It may bring stores along, as in `process`.
            stores: what it may use, as in `process`.
            value: the serde of the values that it forwards; by default that of this stream.
            name: a name of your own for this step.

        Raises:
            TopologyError: `processor` does not make a new `FixedKeyProcessor` each time it is called, or there is no
                such store.

        >>> lines.process_values(Length, value=Serdes.integer()).to("lengths")

        Mirrors `KStream#processValues`.
        """
        name = self._processor_name("KSTREAM-PROCESSVALUES", name)
        step = self._step("process_values", name)
        check_supplier(processor, FixedKeyProcessor, step)
        fields = self._graph.stores_for(processor, stores, step)
        return self._next(nodes.Process, name, value=value or self._node.value, supplier=processor, **fields)

    def _processor_name(self, prefix: str, name: str | None) -> str:
        # Unlike for any other step, a user's name for a processor uses up no number.
        return self._graph.name_for(prefix) if name is None else check_name(name)

    # ---- one stream of several, several of one -----------------------------------------------------------------------

    def split(self, name: str | None = None) -> "BranchedKStream":
        """Begin to split the stream into branches; each record goes to the first branch that matches.

        Args:
            name: what the branches' names begin with.

        >>> trades.split("b-").branch(lambda v: v.price > 100, name="high").default_branch(name="low")["b-high"]

        Mirrors `KStream#split(Named)`.
        """
        return BranchedKStream(self, name)

    def merge(self, other: "KStream", name: str | None = None) -> "KStream":
        """Return one stream with the records of both; the order between the two is not guaranteed.

        Args:
            other: a stream whose keys and values have the same types.
            name: a name of your own for this step.

        Raises:
            TopologyError: the other is not a stream of this builder, or has other types or windows.

        >>> lines.merge(builder.stream("more-lines")).to("all-lines")

        Mirrors `KStream#merge`; Spark's `union`.
        """
        name = self._graph.name_for("KSTREAM-MERGE", name)
        step = self._step("merge", name)
        if not isinstance(other, KStream):
            raise TopologyError(f"{step}: only a stream can be merged in, not {_kind(other)}.")
        self._check_same_builder(other, step)
        type_inference.check_serde(other._node.key, self._node.key, "key here", step)
        type_inference.check_serde(other._node.value, self._node.value, "value here", step)
        _check_same_windows(self._node.key, other._node.key, step)
        parents = (self._name, other._name)
        node = self._graph.add(nodes.Merge, name, parents, self._node.key, self._node.value)
        return self._at(node, self._rekeyed or other._rekeyed)

    # ---- to groups and tables ----------------------------------------------------------------------------------------

    def group_by_key(
        self, name: str | None = None, key: Serde | None = None, value: Serde | None = None
    ) -> KGroupedStream:
        """Group the records by the key they have.

        Args:
            name: if the key has changed, the records go through `<application id>-<name>-repartition`.
            key: the serde of the keys in that topic and in stores; by default that of this stream.
            value: the serde of the values in that topic, likewise.

        Raises:
            TopologyError: a serde is for another type than the records have, or the name cannot be part of a topic's
                name.

        >>> trades.group_by_key().count("trades-by-key")

        Mirrors `KStream#groupByKey(Grouped)`; Spark's `groupBy`.
        """
        name = None if name is None else check_name(name)
        key, value = self._serdes(key, value, self._step("group_by_key", name or self._name))
        return KGroupedStream(Grouping(self._graph, self._node, self._rekeyed, name, key, value))

    def group_by(
        self, selector: ColumnFunction, name: str | None = None, key: Serde | None = None, value: Serde | None = None
    ) -> KGroupedStream:
        """Group the records by a key that a function returns, through a repartition topic.

        Args:
            selector: a Column function of the value, or of key and value, that makes the new key; a record whose new
                key is null is left out.
            name: the records go through `<application id>-<name>-repartition`.
            key: the serde of the keys in that topic and in stores; by default the one that fits their type.
            value: the serde of the values in that topic; by default that of this stream.

        Raises:
            TopologyError: the function does not make a Column, or a serde is for another type.

        >>> trades.group_by(lambda v: v.symbol).count("trades-by-symbol")

        Mirrors `KStream#groupBy(selector, Grouped)`; Spark's `groupBy`.
        """
        step_name = self._graph.name_for("KSTREAM-KEY-SELECT", name)
        selected = Serdes.for_type(self._result_type(selector, "group_by", step_name))
        rekeyed = self._rekeyed_by(nodes.SelectKey, step_name, key=selected, mapper=selector)
        key, value = rekeyed._serdes(key, value, self._step("group_by", step_name))
        return KGroupedStream(Grouping(self._graph, rekeyed._node, True, name, key, value))

    def to_table(self, materialized: str | Materialized | None = None, name: str | None = None) -> KTable:
        """Treat each record as the new value of its key's row; a null value deletes the row.

        Args:
            materialized: the name of the store that keeps the rows, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the serde of the store is for another type than the records have.

        >>> trades.select_key(lambda v: v.symbol).to_table("latest-trades")

        Mirrors `KStream#toTable`.
        """
        materialized = Materialized.of(materialized)
        name = self._graph.name_for("KSTREAM-TOTABLE", name)
        store_name = materialized.name or self._graph.store_name("KSTREAM-TOTABLE-")
        key, value = self._serdes(None, materialized.value, self._step("to_table", name))
        parent = self._node
        if self._rekeyed:
            parent = repartition(self._graph, parent, RepartitionNames.of(self._graph, name), key, value)
        node = self._graph.add(nodes.TableSource, name, (parent.name,), key, value)
        self._graph.store_on_demand(node, table_store(materialized, store_name, key, value))
        return KTable(self._graph, node)


Chain = Callable[[KStream], KStream | None]
"""What to do with a branch: takes its stream and returns the one to hand back, or None."""


class Branches(dict[str, KStream]):
    """The branches of a split by their names."""

    def __missing__(self, name: object) -> KStream:
        known = ", ".join(map(repr, self)) or "none"
        raise TopologyError(
            f"There is no branch {name!r}; there are: {known}. A branch's name begins with that of the split: "
            "split('b-') and branch(..., name='high') make 'b-high'."
        )


class BranchedKStream:
    """A stream being split; `default_branch` or `no_default_branch` ends it and returns the branches by name.

    A branch's name is the split's followed by its own: "b-" and "high" make "b-high". Without a name of its own, the
    branch has its number, and the default branch 0. Mirrors `org.apache.kafka.streams.kstream.BranchedKStream`.
    """

    def __init__(self, stream: KStream, name: str | None = None) -> None:
        self._stream = stream
        self._name = stream._graph.name_for("KSTREAM-BRANCH", name)
        self._root = stream._next(nodes.PassThrough, self._name)
        self._predicates: list[ColumnFunction] = []
        self._branches: dict[str, KStream] = Branches()

    def branch(
        self, predicate: ColumnFunction, name: str | None = None, chain: Chain | None = None
    ) -> "BranchedKStream":
        """Take the records for which `predicate` is true and that no earlier branch took.

        Args:
            predicate: a Column function of the value, or of key and value, that makes a true-or-false Column.
            name: what the branch's name ends with; by default its number.
            chain: a function to call with the branch at once; the stream it returns takes the branch's place; if it
                returns None, the branch is not among the results.

        Raises:
            TopologyError: the predicate does not make a true-or-false Column, or `chain` returns something else.

        >>> trades.split().branch(lambda v: v.price > 100, chain=lambda branch: branch.to("high"))

        Mirrors `BranchedKStream#branch(predicate, Branched)`.
        """
        ending = self._ending(name, len(self._predicates) + 1)
        self._stream._check_predicate(predicate, "branch", self._name + ending)
        self._predicates.append(predicate)
        self._add(len(self._predicates) - 1, ending, chain)
        return self

    def default_branch(self, name: str | None = None, chain: Chain | None = None) -> dict[str, KStream]:
        """Take the records that no branch took, and return all branches by name.

        Args:
            name: what the branch's name ends with; by default 0.
            chain: a function to call with the branch at once, as in `branch`.

        Raises:
            TopologyError: `chain` returns what is neither a stream nor None.

        >>> branches = trades.split("b-").branch(lambda v: v.price > 100, name="high").default_branch(name="low")

        Mirrors `BranchedKStream#defaultBranch(Branched)`.
        """
        self._add(-1, self._ending(name, 0), chain)
        return self._branches

    def no_default_branch(self) -> dict[str, KStream]:
        """Drop the records that no branch took, and return the branches by name.

        >>> high = trades.split("b-").branch(lambda v: v.price > 100, name="high").no_default_branch()["b-high"]

        Mirrors `BranchedKStream#noDefaultBranch`.
        """
        return self._branches

    def __getitem__(self, name: str) -> KStream:
        raise TopologyError(
            f"The split '{self._name}' is not at its end, so it has no branch {name!r} yet: default_branch(name=...) "
            "and no_default_branch() return the branches by name."
        )

    def _ending(self, name: str | None, number: int) -> str:
        if not isinstance(name, str | None):
            raise TopologyError(
                f"{self._stream._step('branch', self._name)}: a branch's name has to be a text, not {_kind(name)}. "
                "A function that takes the branch is chain=..."
            )
        return name or str(number)

    def _add(self, index: int, ending: str, chain: Chain | None) -> None:
        name = self._stream._graph.name_for("KSTREAM-BRANCH", self._name + ending)
        branch = self._root._next(nodes.Branch, name, predicates=tuple(self._predicates), index=index)
        result = branch if chain is None else chain(branch)
        if not isinstance(result, KStream | KTable | None):
            raise TopologyError(
                f"{branch._step('branch', name)}: chain= returned {_kind(result)}. Return the stream that takes the "
                "branch's place, or None to leave the branch out of the results."
            )
        if result is not None:
            self._branches[name] = result


def _check_same_windows(one: Serde, other: Serde, step: str) -> None:
    """Check that keys with windows are written alike: their serde says how, and their Spark type does not."""
    kinds = [_windows_of(serde) for serde in (one, other)]
    if kinds[0] != kinds[1]:
        raise TopologyError(
            f"{step}: the keys here have {kinds[0]}, and those of the other stream {kinds[1]}, so one serde cannot "
            "write both. Make ordinary keys of them first: select_key(lambda k, v: k.key)."
        )


def _windows_of(serde: Serde) -> str:
    if isinstance(serde, TimeWindowedSerde):
        return f"windows of {serde.window_size} ms"
    return "sessions" if isinstance(serde, SessionWindowedSerde) else "no windows"


def _kind(argument: Any) -> str:
    return f"a {type(argument).__name__}" if isinstance(argument, AbstractStream) else repr(argument)
