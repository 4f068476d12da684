"""Joins of a table with another, by the same key or by a key in its rows; and `GlobalKTable`, which streams join."""

from dataclasses import replace
from typing import Self

from streamskit.api.stream_partitioner import KeyPartitioner, Partition, Partitioner
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import JOIN_OPERATORS, AbstractStream, ColumnFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.materialized import Materialized, table_store
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology import nodes
from streamskit.topology.nodes import Node


class GlobalKTable(AbstractStream):
    """A table of which every instance holds a full copy, so that streams can join it by any key.

    Mirrors `org.apache.kafka.streams.kstream.GlobalKTable`.
    """


class TableJoins(AbstractStream):
    """The joins of a `KTable`."""

    def join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        *,
        foreign_key: ColumnFunction | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        partitioner: Partitioner | None = None,
        other_partitioner: Partitioner | None = None,
    ) -> Self:
        """Join the rows of two tables; a row without a match produces no result.

        Args:
            other: the other table.
            joiner: a Column function of the two values, or of key and the two values.
            foreign_key: a Column function of the value, or of key and value, that returns the key of the other table's
                row; by default the two tables are joined by the same key.
            materialized: the name of the store that keeps the result's rows, to query it.
            name: a prefix of your own for the names of this step's nodes.
            partitioner: with a foreign key, the partitioner by which this table's rows were distributed, if not Kafka's
                own. It has to choose exactly one partition, by the key alone: it is called with the value None.
            other_partitioner: likewise for the other table.

        Raises:
            TopologyError: the other is not a table of this builder, its keys have another type, or a partitioner is
                given without a foreign key.

        >>> residents = customers.join(people, lambda customer, person: F.struct(customer.city, person.name))
        >>> customers.join(cities, lambda customer, city: city.mayor, foreign_key=lambda v: v.city)

        Mirrors `KTable#join`, the partitioners `TableJoined`.
        """
        partitioners = partitioner, other_partitioner
        return self._join(other, joiner, (False, False), foreign_key, materialized, name, partitioners)

    def left_join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        *,
        foreign_key: ColumnFunction | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        partitioner: Partitioner | None = None,
        other_partitioner: Partitioner | None = None,
    ) -> Self:
        """Join the rows of two tables; a left row without a match is joined with null.

        Args:
            other: the other table.
            joiner: a Column function of the two values, or of key and the two values.
            foreign_key: returns the key of the other table's row, as in `join`.
            materialized: the name of the store that keeps the result's rows, to query it.
            name: a prefix of your own for the names of this step's nodes.
            partitioner: the one by which this table's rows were distributed, as in `join`.
            other_partitioner: likewise for the other table.

        Raises:
            TopologyError: the other is not a table of this builder, its keys have another type, or a partitioner is
                given without a foreign key.

        >>> customers.left_join(people, lambda customer, person: F.struct(customer.city, person.name))

        Mirrors `KTable#leftJoin`.
        """
        partitioners = partitioner, other_partitioner
        return self._join(other, joiner, (True, False), foreign_key, materialized, name, partitioners)

    def outer_join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        *,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> Self:
        """Join the rows of two tables by the same key; a row of either without a match is joined with null.

        Args:
            other: the other table.
            joiner: a Column function of the two values, or of key and the two values.
            materialized: the name of the store that keeps the result's rows, to query it.
            name: a prefix of your own for the names of this step's nodes.

        Raises:
            TopologyError: the other is no table of this builder, or its keys have another type.

        >>> customers.outer_join(people, lambda customer, person: F.struct(customer.city, person.name))

        Mirrors `KTable#outerJoin`.
        """
        return self._join(other, joiner, (True, True), None, materialized, name)

    def _join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        outer: tuple[bool, bool],
        foreign_key: ColumnFunction | None,
        materialized: str | Materialized | None,
        name: str | None,
        partitioners: tuple[Partitioner | None, Partitioner | None] = (None, None),
    ) -> Self:
        step = self._step(JOIN_OPERATORS[outer], name or self._name)
        if not isinstance(other, TableJoins):
            hint = "a table" if not isinstance(other, GlobalKTable) else "a table (only streams join global tables)"
            raise TopologyError(
                f"{step}: a table can be joined with {hint}, not with a {type(other).__name__}. For a stream write "
                "stream.join(table, joiner); or make a table of it with to_table()."
            )
        self._check_same_builder(other, step)
        ours, others = (_by_key_alone(each, step) for each in partitioners)
        if foreign_key is None:
            if ours or others:
                raise TopologyError(
                    f"{step}: partitioners are for a join by a foreign key, whose messages go to the tasks of the two "
                    "tables. Tables that are joined by the same key have to be shared out in the same way: put "
                    "to_stream().repartition(..., partitioner=...).to_table() before."
                )
            return self._join_by_key(other, joiner, outer, materialized, name)
        self._check_selects_key(foreign_key, "foreign_key", other, other._name, step)
        value = self._joined_serde(joiner, other, JOIN_OPERATORS[outer], name or self._name)
        materialized = Materialized.of(materialized)
        value = type_inference.check_serde(materialized.value, value, "value", step)
        left, right = self._node, other._node
        join = nodes.ForeignKeyJoin("", outer[0], foreign_key, joiner, left.key, left.value, right.key, right.value)
        partitions = ours, others
        return self._at(_add_foreign_key_join(self._graph, left, right, join, materialized, value, name, partitions))

    def _join_by_key(
        self,
        other: "TableJoins",
        joiner: ColumnFunction,
        outer: tuple[bool, bool],
        materialized: str | Materialized | None,
        name: str | None,
    ) -> Self:
        """Have each side look up the other side's row; the results of both form one table."""
        graph, operator, store_name = self._graph, JOIN_OPERATORS[outer], None
        if materialized is not None:
            store_name = Materialized.of(materialized).name or graph.store_name("KTABLE-MERGE-")
        materialized = Materialized.of(materialized)
        merge_name = graph.name_for("KTABLE-MERGE", name)
        this_name = graph.name_for("KTABLE-JOINTHIS", name, "-join-this")
        other_name = graph.name_for("KTABLE-JOINOTHER", name, "-join-other")
        self._check_same_key(other, operator, merge_name)
        key, value = self._node.key, self._joined_serde(joiner, other, operator, merge_name)
        value = type_inference.check_serde(materialized.value, value, "value", self._step(operator, merge_name))
        this_stores, other_stores = graph.lookup_stores(self._node), graph.lookup_stores(other._node)
        sides = (this_name, self._name, other_stores), (other_name, other._name, this_stores)
        for side, (side_name, parent, stores) in enumerate(sides):
            fields = {"group": merge_name, "side": side, "outer": outer, "joiner": joiner, "reads": stores}
            graph.add(nodes.TableJoinSide, side_name, (parent,), key, value, **fields)
        store = table_store(materialized, store_name, key, value) if store_name is not None else None
        return self._at(graph.add(nodes.TableMerge, merge_name, (this_name, other_name), key, value, store=store))


def _by_key_alone(partitioner: Partitioner | None, step: str) -> Partition | None:
    """Return the function of a partitioner, if there is one, made to choose one partition by the key."""
    partition = type_inference.check_partitioner(partitioner, step)
    return None if partition is None else KeyPartitioner(partition)


def _add_foreign_key_join(
    graph: GraphBuilder,
    left: Node,
    right: Node,
    join: nodes.ForeignKeyJoin,
    materialized: Materialized,
    value: Serde,
    name: str | None,
    partitions: tuple[Partition | None, Partition | None],
) -> Node:
    """Add a join by a foreign key: a subscription goes to the other table's task, and an answer comes back.

    Args:
        graph: the program.
        left: the node of the table whose rows hold a key of the other.
        right: the node of the other table.
        join: what the two sides are joined by; its name is given here.
        materialized: how the result is kept.
        value: the serde of the result's values.
        name: what the nodes' names begin with.
        partitions: what chooses the partitions of the left table's rows and of the right one's, if their keys do not.

    Returns:
        The node that makes the joined table.
    """
    right_stores, left_stores = graph.lookup_stores(right), graph.lookup_stores(left)
    # Names are taken in Kafka Streams' order, since each takes a number.
    prefix = "KTABLE-FK-JOIN"
    there = graph.name_for(f"{prefix}-SUBSCRIPTION-REGISTRATION", name, "-subscription-registration") + "-topic"
    register = graph.name_for(f"{prefix}-SUBSCRIPTION-REGISTRATION", name, "-subscription-registration-processor")
    register_sink = graph.name_for("KTABLE-SINK", name, "-subscription-registration-sink")
    register_source = graph.name_for("KTABLE-SOURCE", name, "-subscription-registration-source")
    store_name = graph.name_for(f"{prefix}-SUBSCRIPTION-STATE-STORE", name, "-subscription-store")
    subscribe = graph.name_for(f"{prefix}-SUBSCRIPTION-PROCESSOR", name, "-subscription-receive")
    answer = graph.name_for(f"{prefix}-SUBSCRIPTION-PROCESSOR", name, "-subscription-join-foreign")
    notify = graph.name_for(f"{prefix}-SUBSCRIPTION-PROCESSOR", name, "-foreign-join-subscription")
    back = graph.name_for(f"{prefix}-SUBSCRIPTION-RESPONSE", name, "-subscription-response") + "-topic"
    answer_sink = graph.name_for("KTABLE-SINK", name, "-subscription-response-sink")
    answer_source = graph.name_for("KTABLE-SOURCE", name, "-subscription-response-source")
    resolver = f"{prefix}-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR"
    resolve = graph.name_for(resolver, name, "-subscription-response-resolver")
    output = graph.name_for(f"{prefix}-OUTPUT", name, "-result")
    output_store = materialized.name or graph.store_name(f"{prefix}-OUTPUT-")

    join = replace(join, name=register)
    bytes_only = Serdes.byte_array()
    subscriptions = Store(store_name, "key-value", bytes_only, bytes_only, queryable=False)

    def add(role: str, node: str, parent: str, key: Serde, value: Serde = bytes_only, **fields: object) -> Node:
        step: Node = graph.add(nodes.ForeignKeyStep, node, (parent,), key, value, role=role, join=join, **fields)
        return step

    add("register", register, left.name, right.key)
    to_left, to_right = ({"partitioner": each} for each in partitions)
    graph.add_topic(there, register_sink, register_source, (register,), right.key, bytes_only, **to_right)
    add("subscribe", subscribe, register_source, right.key, store=subscriptions)
    add("answer", answer, subscribe, left.key, reads=right_stores)
    add("notify", notify, right.name, left.key, reads=(store_name,))
    graph.add_topic(back, answer_sink, answer_source, (answer, notify), left.key, bytes_only, **to_left)
    add("resolve", resolve, answer_source, left.key, value, reads=left_stores)
    result = add("output", output, resolve, left.key, value)
    graph.store_on_demand(result, table_store(materialized, output_store, left.key, value))
    return result
