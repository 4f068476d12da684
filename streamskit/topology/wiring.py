"""A topology wired by hand: sources, processors, sinks and stores, each added by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology.nodes import Node, Process, Sink, Source, of_kind


class Wiring:
    """The nodes of a topology, to which more can be added until it runs.

    Mirrors the methods of `org.apache.kafka.streams.Topology` that add something.
    """

    nodes: Mapping[str, Node]

    def __init__(self, nodes: Iterable[Node] = (), stores: Iterable[Store] = ()) -> None:
        self.nodes = MappingProxyType({node.name: node for node in nodes})
        self._loose_stores = {store.name: store for store in stores}

    def add_source(
        self,
        name: str,
        *topics: str,
        key: Serde | None = None,
        value: Serde | None = None,
        timestamps: TimestampExtractor | None = None,
    ) -> Self:
        """Add a node that reads topics.

        Args:
            name: of the node.
            topics: what it reads.
            key: the serde of the keys; text when not given.
            value: the serde of the values; text when not given.
            timestamps: where a record's time comes from; the record's own timestamp when not given.

        Raises:
            TopologyError: the name or a topic is taken.

        >>> topology = Topology().add_source("orders", "orders-topic", value=Serdes.long())

        Mirrors `Topology#addSource`.
        """
        what = f"add_source('{name}') at {call_site()}"
        if not topics:
            raise TopologyError(f"{what}: name the topic that it reads: add_source('{name}', 'a-topic').")
        for other in of_kind(Source, self.nodes.values()):
            if twice := sorted({*topics} & {*other.topics}):
                raise TopologyError(f"{what}: topic '{twice[0]}' is already read by {other.name}; add to that one.")
        serdes = key or Serdes.string(), value or Serdes.string()
        return self._add(Source(name, (), *serdes, call_site(), topics=topics, timestamps=timestamps), what)

    def add_processor(
        self,
        name: str,
        processor: Callable[[], Any],
        *parents: str,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> Self:
        """Add a processor that is given the records of other nodes.

        Args:
            name: of the node.
            processor: a subclass of `Processor`, or a function that makes one; each task has its own.
            parents: the names of the nodes that feed it.
            key: the serde of the keys that it forwards to steps of the DSL; sinks and processors need none. That of
                the first parent when not given.
            value: likewise of the values.

        Raises:
            TopologyError: the name is taken, a parent is not there, or `processor` cannot be called.

        Mirrors `Topology#addProcessor`.
        """
        what = f"add_processor('{name}') at {call_site()}"
        if not callable(processor):
            raise TopologyError(f"{what}: give the Processor class itself, or a function that makes one.")
        first = self._parents(parents, what)
        return self._add(
            Process(name, parents, key or first.key, value or first.value, call_site(), supplier=processor), what
        )

    def add_sink(
        self, name: str, topic: str, *parents: str, key: Serde | None = None, value: Serde | None = None
    ) -> Self:
        """Add a node that writes records to a topic.

        Args:
            name: of the node.
            topic: what it writes.
            parents: the names of the nodes that feed it.
            key: the serde of the keys; that of the first parent when not given.
            value: the serde of the values, likewise.

        Raises:
            TopologyError: the name is taken, or a parent is not there.

        Mirrors `Topology#addSink`.
        """
        what = f"add_sink('{name}') at {call_site()}"
        first = self._parents(parents, what)
        return self._add(Sink(name, parents, key or first.key, value or first.value, call_site(), topic=topic), what)

    def add_state_store(self, store: Store, *processors: str) -> Self:
        """Add a store, and connect processors to it.

        Raises:
            TopologyError: its name is taken, or there is no such processor.

        Mirrors `Topology#addStateStore`.
        """
        what = f"add_state_store('{store.name}') at {call_site()}"
        check_name(store.name)
        if store.name in self._stores():
            raise TopologyError(f"{what}: there is another store with this name; choose another one.")
        self._loose_stores[store.name] = store
        for processor in processors:
            self.connect_processor_and_state_stores(processor, store.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Self:
        """Let a processor use stores that were added.

        Raises:
            TopologyError: there is no such processor or store.

        Mirrors `Topology#connectProcessorAndStateStores`.
        """
        what = f"connect_processor_and_state_stores('{processor}') at {call_site()}"
        node = self.nodes.get(processor)
        if not isinstance(node, Process):
            known = ", ".join(each.name for each in of_kind(Process, self.nodes.values())) or "none"
            raise TopologyError(f"{what}: there is no processor of this name; there are: {known}.")
        for name in stores:
            if name not in self._stores():
                known = ", ".join(self._stores()) or "none"
                raise TopologyError(f"{what}: there is no store '{name}'; there are: {known}. Add it first.")
            node = self._connected(node, name, what)
        self.nodes = MappingProxyType(dict(self.nodes) | {node.name: node})
        return self

    def _connected(self, node: Process, name: str, what: str) -> Process:
        if name in (*node.tables, *(store.name for store in node.kept)):
            return node
        tables = (each for each in self.nodes.values() if each.is_table)
        keeper = next((each for each in tables if name in (store.name for store in each.stores)), None)
        if keeper is None:
            return replace(node, kept=(*node.kept, self._stores()[name]))
        check_can_be_looked_up(self._stores()[name], what)
        if keeper.is_global:
            return replace(node, global_stores=(*node.global_stores, name))
        return replace(node, looked_up=(*node.looked_up, name))

    def _stores(self) -> dict[str, Store]:
        return self._loose_stores | {store.name: store for node in self.nodes.values() for store in node.stores}

    def _parents(self, parents: tuple[str, ...], what: str) -> Node:
        """Return the first of the nodes that feed another."""
        if not parents:
            raise TopologyError(f"{what}: name the node that feeds it, as the last argument.")
        for parent in parents:
            if parent not in self.nodes or self.nodes[parent].kind == "Sink":
                known = ", ".join(name for name, node in self.nodes.items() if node.kind != "Sink") or "none"
                raise TopologyError(f"{what}: there is no node '{parent}' to feed it; there are: {known}.")
        return self.nodes[parents[0]]

    def _add(self, node: Node, what: str) -> Self:
        check_name(node.name)
        if node.name in self.nodes:
            other = self.nodes[node.name]
            raise TopologyError(f"{what}: {other.call_site} has added a node of this name; choose another one.")
        self.nodes = MappingProxyType(dict(self.nodes) | {node.name: node})
        return self


def check_can_be_looked_up(store: Store, what: str) -> None:
    """Check that a processor can look into the store of a table.

    Raises:
        TopologyError: it has windows or versions.
    """
    if store.kind != "key-value":
        raise TopologyError(
            f"{what}: '{store.name}' is the {store.kind} store of a table; a processor can look into tables without "
            "windows and versions only. Keep a store of its own in the processor."
        )
