"""`GraphBuilder`: a program while it is written: its nodes, their names and order, and the stores they need."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.serdes import Serde
from streamskit.state.stores import Store
from streamskit.topology import GlobalTableSource, Node, Sink, Source, Suppress
from streamskit.topology.wiring import check_can_be_looked_up


class GraphBuilder:
    """The nodes of a program under way. A `StreamsBuilder` is one; each step of the DSL adds its nodes to it."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._stores_on_demand: dict[str, Store] = {}
        """By the name of a source table's node: the store it gets once a later step needs its rows kept."""
        self._state_stores: dict[str, Store] = {}
        """Stores for processors, by name, that were added or given to one."""
        self._counter = 0

    def _name_for(self, operator: str, given: str | None = None) -> str:
        """Return the name that was given, or the next one as Kafka Streams numbers them: KSTREAM-FILTER-0000000003.

        A given name uses up a number too, so that naming one step leaves the names of the others as they are.
        """
        number = self._counter
        self._counter += 1
        if given is None:
            return f"{operator}-{number:010d}"
        return check_name(given)

    def _store_name(self, prefix: str) -> str:
        """Return the name of a store that the learner did not name: KSTREAM-AGGREGATE-STATE-STORE-0000000001."""
        return self._name_for(f"{prefix}STATE-STORE")

    def _add(
        self, kind: Callable[..., Node], name: str, parents: tuple[str, ...], key: Serde, value: Serde, **details: Any
    ) -> Any:
        if name in self._nodes:
            raise TopologyError(
                f"Two steps are named '{name}': the first is at {self._nodes[name].call_site}, the second at "
                f"{call_site()}. Give one of them another name."
            )
        node = self._nodes[name] = kind(name, parents, key, value, call_site(), **details)
        return node

    def _move_to_end(self, first: list[str]) -> None:
        """Put nodes, and all that comes after them, behind all others.

        Kafka Streams writes a repartition topic that several steps share where it was asked for last.
        """
        moving = set(first)
        for name, node in list(self._nodes.items()):
            feeding = (self._nodes[moved] for moved in moving)
            topics = {sink.topic for sink in feeding if isinstance(sink, Sink)}
            is_fed = isinstance(node, Source) and node.internal and not topics.isdisjoint(node.topics)
            if name in moving or is_fed or not moving.isdisjoint(node.parents):
                moving.add(name)
                self._nodes[name] = self._nodes.pop(name)

    def _rows_of(self, table: Node) -> tuple[str, ...]:
        """Return the names of the stores in which a table's rows can be looked up.

        A table that keeps no rows looks into the tables it is made of; a source table keeps its rows from now on.
        """
        table = self._nodes[table.name]
        if table.name in self._stores_on_demand:
            table = replace(table, store=self._stores_on_demand.pop(table.name))  # type: ignore[call-arg]
            self._nodes[table.name] = table
        own = tuple(store.name for store in table.stores)
        if own and not isinstance(table, Suppress):
            return own
        parents = (self._nodes[name] for name in table.parents)
        found = [name for parent in parents for name in self._rows_of(parent)]
        return tuple(dict.fromkeys([*found, *own]))

    def _store(self, name: str) -> Store:
        return next(store for node in self._nodes.values() for store in node.stores if store.name == name)

    def _stores_for(self, stores: Sequence["Store | str"], what: str) -> dict[str, tuple[Any, ...]]:
        """Return what a processor may use: the stores it keeps, and the names of tables' stores that it reads.

        Raises:
            TopologyError: there is no such store, it is a table's with windows, or another one has its name.
        """
        kept, looked_up, global_stores = list[Store](), list[str](), list[str]()
        tables = {store.name: (node, store) for node in self._nodes.values() if node.is_table for store in node.stores}
        for given in stores:
            if isinstance(given, Store):
                kept.append(self._add_store(given, what))
            elif given in self._state_stores:
                kept.append(self._state_stores[given])
            elif given not in tables:
                known = ", ".join([*self._state_stores, *tables]) or "none"
                raise TopologyError(
                    f"{what}: there is no store '{given}'; there are: {known}. Give the store itself, "
                    "Stores.persistent_key_value_store(...), or add it with builder.add_state_store() before."
                )
            else:
                node, store = tables[given]
                check_can_be_looked_up(store, what)
                (global_stores if isinstance(node, GlobalTableSource) else looked_up).append(given)
        return {"kept": tuple(kept), "looked_up": tuple(looked_up), "global_stores": tuple(global_stores)}

    def _add_store(self, store: Store, what: str) -> Store:
        check_name(store.name)
        taken = any(store.name == other.name for node in self._nodes.values() if node.is_table for other in node.stores)
        if taken or self._state_stores.get(store.name, store) != store:
            raise TopologyError(f"{what}: there is another store with the name '{store.name}'; choose another name.")
        return self._state_stores.setdefault(store.name, store)
