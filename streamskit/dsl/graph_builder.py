"""`GraphBuilder`: a program under construction, with its nodes, their names and order, and the stores they need."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.serdes import Serde
from streamskit.state.stores import Store
from streamskit.topology import nodes
from streamskit.topology.nodes import Node
from streamskit.topology.suppliers import brought_stores
from streamskit.topology.wiring import check_can_be_used, check_is_free


class GraphBuilder:
    """The nodes of a program that is being written; each step of the DSL adds its nodes to it.

    Args:
        stream_of: makes a `KStream` from this builder and a node. Tables become streams too, but cannot import the
            class of streams, because that imports the class of tables.

    Mirrors `org.apache.kafka.streams.kstream.internals.InternalStreamsBuilder`.
    """

    def __init__(self, stream_of: Callable[["GraphBuilder", Node], Any]) -> None:
        self.stream_of = stream_of
        self.nodes: dict[str, Node] = {}
        self.state_stores: dict[str, Store] = {}
        """The stores for processors by name: those that were added to the builder or given to a processor."""
        self._stores_on_demand: dict[str, Store] = {}
        """The store that a table's node gets once a later step needs its rows kept, by the node's name."""
        self._counter = 0

    # ---- nodes and their names ---------------------------------------------------------------------------------------

    def name_for(self, operator: str, name: str | None = None, ending: str = "") -> str:
        """Return a user's name with an ending, or the next one that Kafka Streams gives: KSTREAM-FILTER-0000000003.

        A user's name uses up a number too, so that naming one step leaves the names of the others as they are.

        Args:
            operator: what Kafka Streams calls the operator: "KSTREAM-FILTER".
            name: the user's name, or None.
            ending: what comes after the user's name where a step has several nodes.

        Raises:
            TopologyError: the user's name cannot be part of a topic's name.

        Mirrors `InternalNameProvider#newProcessorName`.
        """
        number = self._counter
        self._counter += 1
        return check_name(name and name + ending) if name is not None else f"{operator}-{number:010d}"

    def store_name(self, prefix: str) -> str:
        """Return the name of a store that the user did not name: KSTREAM-AGGREGATE-STATE-STORE-0000000001.

        Args:
            prefix: what comes before "STATE-STORE".

        Mirrors `InternalNameProvider#newStoreName`.
        """
        return self.name_for(f"{prefix}STATE-STORE")

    def add(
        self, kind: Callable[..., Node], name: str, parents: tuple[str, ...], key: Serde, value: Serde, **fields: Any
    ) -> Any:
        """Add a node after its parents, and return it.

        Args:
            kind: the class of the node.
            name: of the node.
            parents: the names of the nodes that feed it.
            key: the serde of the keys that it passes on.
            value: the serde of the values that it passes on.
            fields: the other fields of the class.

        Raises:
            TopologyError: another node has this name.
        """
        if name in self.nodes:
            raise TopologyError(
                f"Two steps are named '{name}': the first is at {self.nodes[name].call_site}, the second at "
                f"{call_site()}. Give one of them another name."
            )
        node = kind(name, parents, key, value, call_site(), **fields)
        for store in (each for each in node.stores if each not in node.own_stores):
            check_is_free(store, node, [*self.nodes.values()], self.state_stores)
        self.nodes[name] = node
        return node

    def add_topic(
        self, topic: str, sink: str, source: str, parents: tuple[str, ...], key: Serde, value: Serde, **fields: Any
    ) -> nodes.Source:
        """Send what nodes pass on through a topic of the application's own, and return the node that reads it back.

        Args:
            topic: its name, without the application's id.
            sink: the name of the node that writes it.
            source: the name of the node that reads it.
            parents: the names of the nodes whose records go through it.
            key: the serde of the keys in the topic.
            value: the serde of the values in the topic.
            fields: the other fields of the sink.

        Raises:
            TopologyError: another step has a topic of this name.
        """
        for other in nodes.of_kind(nodes.Source, self.nodes.values()):
            if other.internal and topic in other.topics:
                raise TopologyError(
                    f"Two steps send their records through the topic '{topic}', which would mix them: the first is at "
                    f"{other.call_site}, the second at {call_site()}. Give one of them another name, or use what the "
                    "first returned twice."
                )
        self.add(nodes.Sink, sink, parents, key, value, topic=topic, internal=True, **fields)
        reader: nodes.Source = self.add(nodes.Source, source, (), key, value, topics=(topic,), internal=True)
        return reader

    def move_to_end(self, names: list[str]) -> None:
        """Move nodes, and everything downstream of them, after all others.

        Kafka Streams places a repartition topic that several steps share where it was last requested.
        """
        moving = set(names)
        topics = {sink.name: sink.topic for sink in nodes.of_kind(nodes.Sink, self.nodes.values())}
        sources = nodes.of_kind(nodes.Source, self.nodes.values())
        readers = {source.name: source.topics for source in sources if source.internal}
        for name, node in list(self.nodes.items()):
            written = {topics[moved] for moved in moving if moved in topics}
            is_fed = name in readers and not written.isdisjoint(readers[name])
            if name in moving or is_fed or not moving.isdisjoint(node.parents):
                moving.add(name)
                self.nodes[name] = self.nodes.pop(name)

    # ---- stores ------------------------------------------------------------------------------------------------------

    def store_on_demand(self, table: Node, store: Store) -> None:
        """Set the store that a table's node gets when a later step looks at its rows, or at once if it is queryable.

        Args:
            table: the node that makes the rows.
            store: the store that keeps them.
        """
        self._stores_on_demand[table.name] = store
        if store.queryable:
            self.lookup_stores(table)

    def lookup_stores(self, table: Node) -> tuple[str, ...]:
        """Return the names of the stores in which a table's rows can be looked up.

        A table that keeps no rows looks into the tables it is made of; a source table keeps its rows from now on.
        Mirrors `KTableValueGetterSupplier#storeNames`.
        """
        table = self.nodes[table.name]
        if table.name in self._stores_on_demand:
            table = replace(table, store=self._stores_on_demand.pop(table.name))  # type: ignore[call-arg]
            for store in (each for each in table.stores if each not in table.own_stores):
                check_is_free(store, table, [*self.nodes.values()], self.state_stores)
            self.nodes[table.name] = table
        if table.row_store is not None:
            return (table.row_store.name,)
        inherited = [name for parent in table.parents for name in self.lookup_stores(self.nodes[parent])]
        return tuple(dict.fromkeys([*(store.name for store in table.buffers), *inherited]))

    def tells_old_values(self, table: Node) -> bool:
        """Return whether a table, or every step before it, already keeps rows, so that old values are known.

        Mirrors `KTableImpl#enableSendingOldValues(false)`.
        """
        table = self.nodes[table.name]
        if table.knows_old_values or table.row_store is not None:
            return True
        parents = [self.nodes[parent] for parent in table.parents]
        return table.passes_old_values and all(map(self.tells_old_values, parents))

    def is_versioned(self, table: Node) -> bool:
        """Return whether the updates of a table are those of a versioned store, and so may come out of order.

        Mirrors `GraphNode#isOutputVersioned`.
        """
        if table.row_store is not None:
            return table.row_store.kind == "versioned"
        if not table.passes_old_values or table.buffers or len(table.parents) != 1:
            return False
        return self.is_versioned(self.nodes[table.parents[0]])

    def store(self, name: str) -> Store:
        """Return the store of that name."""
        return next(store for node in self.nodes.values() for store in node.stores if store.name == name)

    def add_state_store(self, store: Store, step: str) -> Store:
        """Add a store for processors, unless it was added before, and return it.

        Raises:
            TopologyError: another store has its name.
        """
        check_name(store.name)
        if store.name in self._tables() or self.state_stores.get(store.name, store) != store:
            raise TopologyError(f"{step}: there is another store with the name '{store.name}'; choose another name.")
        return self.state_stores.setdefault(store.name, store)

    def stores_for(
        self, supplier: Callable[[], Any], stores: Sequence[Store | str], step: str
    ) -> dict[str, tuple[Any, ...]]:
        """Return what a processor may use, as the fields of its node.

        Args:
            supplier: makes the processor, and may bring stores along.
            stores: stores of its own, or the names of those that were added or that tables keep.
            step: the operator and its line in the program, for the error.

        Raises:
            TopologyError: there is no such store, it is a buffer or a global one, or another one has its name.
        """
        state_stores, lookups, connected = list[Store](), list[str](), list[str]()
        tables = self._tables()
        for store in (*brought_stores(supplier, step), *stores):
            connected.append(store.name if isinstance(store, Store) else store)
            if isinstance(store, Store):
                state_stores.append(self.add_state_store(store, step))
            elif store in self.state_stores:
                state_stores.append(self.state_stores[store])
            elif store not in tables:
                known = ", ".join([*self.state_stores, *tables]) or "none"
                raise TopologyError(
                    f"{step}: there is no store '{store}'; there are: {known}. Give the store itself, "
                    "Stores.persistent_key_value_store(...), or add it with builder.add_state_store() before."
                )
            else:
                check_can_be_used(self.store(store), tables[store], step)
                lookups.append(store)
        own = tuple(dict.fromkeys(state_stores))
        return {"own_stores": own, "reads": tuple(lookups), "connected": tuple(connected)}

    def _tables(self) -> dict[str, Node]:
        """Return the node that keeps the store of each table, and each global store, by the store's name."""
        keepers = [node for node in self.nodes.values() if node.is_table or node.is_global]
        return {store.name: node for node in keepers for store in node.stores if store not in node.own_stores}
