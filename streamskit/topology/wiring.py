"""A topology wired by hand: sources, processors, sinks and stores, each added by name."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

from streamskit.api.auto_offset_reset import AutoOffsetReset
from streamskit.api.processor import FixedKeyProcessor, Processor
from streamskit.api.stream_partitioner import Partitioner
from streamskit.columns.timestamps import Timestamps, check_extractor
from streamskit.columns.type_inference import check_partitioner
from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology.nodes import GlobalProcess, Node, Process, Sink, Source, of_kind
from streamskit.topology.source_topics import check_topic, names_or_pattern, offset_reset, readers_of
from streamskit.topology.suppliers import brought_stores, check_supplier


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
        *topics: str | re.Pattern[str] | Collection[str],
        key: Serde | None = None,
        value: Serde | None = None,
        timestamps: Timestamps | None = None,
        auto_offset_reset: AutoOffsetReset | str | None = None,
    ) -> Self:
        """Add a node that reads topics.

        Args:
            name: of the node.
            topics: what it reads: their names, one after the other or as a list, tuple or set; or one compiled pattern,
                as in `StreamsBuilder.stream`.
            key: the serde of the keys; text when not given.
            value: the serde of the values; text when not given.
            timestamps: where a record's time comes from, as in `StreamsBuilder.stream`; the record's own timestamp when
                not given.
            auto_offset_reset: where a first start begins to read; as the application's config says when not given.

        Raises:
            TopologyError: no topic is named, or what is no topic, the name or a topic is taken, `timestamps` does not
                make milliseconds, or `auto_offset_reset` is not known.

        >>> topology = Topology().add_source("orders", "orders-topic", value=Serdes.long())

        Mirrors `Topology#addSource`.
        """
        step = f"add_source('{name}') at {call_site()}"
        if not topics:
            raise TopologyError(f"{step}: name the topic that it reads: add_source('{name}', 'a-topic').")
        named, pattern = names_or_pattern(topics, step)
        for topic in named:
            check_topic(topic, step)
        for other in readers_of(named, pattern, self.nodes.values()):
            twice = pattern or next(topic for topic in named if other.reads_topic(topic))
            raise TopologyError(f"{step}: topic '{twice}' is already read by {other.name}; add to that one.")
        serdes = key or Serdes.string(), value or Serdes.string()
        extractor = check_extractor(timestamps, *serdes, f"{step}: timestamps=")
        source = Source(name, (), *serdes, call_site(), topics=named, timestamps=extractor, pattern=pattern)
        return self._add(replace(source, auto_offset_reset=offset_reset(auto_offset_reset, step)), step)

    def add_global_store(
        self,
        store: Store,
        source: str,
        topic: str,
        name: str,
        processor: Callable[[], Any],
        key: Serde | None = None,
        value: Serde | None = None,
        timestamps: Timestamps | None = None,
    ) -> Self:
        """Add a store that every instance fills from a whole topic with its own processor.

        Args:
            store: made by `Stores`, without a changelog: `with_logging(False)`.
            source: the name of the node that reads the topic.
            topic: what it reads.
            name: the name of the processor's node.
            processor: a subclass of `Processor`, or a function that makes a new one each time.
            key: the serde of the topic's keys; text when not given.
            value: the serde of the topic's values; text when not given.
            timestamps: taken, but not used: a record has its own time, as in Kafka Streams.

        Raises:
            TopologyError: a name or the topic is taken, the store has a changelog, or `processor` does not make a new
                `Processor` each time it is called.

        Mirrors `Topology#addGlobalStore`.
        """
        step = f"add_global_store('{store.name}') at {call_site()}"
        if store.logged:
            raise TopologyError(
                f"{step}: a global store has no changelog, because its topic is enough to rebuild it: give "
                "store.with_logging(False)."
            )
        if store.name in self._stores():
            raise TopologyError(f"{step}: there is another store with this name; choose another one.")
        if not isinstance(topic, str):
            raise TopologyError(f"{step}: a global store reads one topic; give its name, and not {topic!r}.")
        check_supplier(processor, Processor, step)
        self.add_source(source, topic, key=key, value=value, timestamps=timestamps)
        first = self.nodes[source]
        node = GlobalProcess(name, (source,), first.key, first.value, call_site(), supplier=processor, store=store)
        return self._add(node, step)

    def add_read_only_state_store(
        self,
        store: Store,
        source: str,
        topic: str,
        name: str,
        processor: Callable[[], Any],
        key: Serde | None = None,
        value: Serde | None = None,
        timestamps: Timestamps | None = None,
    ) -> Self:
        """Add a store that a processor of its own fills from a topic, each task from its partition.

        Other processors that are connected to the store read it. A first start reads the topic from its beginning.

        Args:
            store: made by `Stores`. Kafka Streams switches its changelog off. Here it may have one, to be queried.
            source: the name of the node that reads the topic.
            topic: what it reads.
            name: the name of the processor's node.
            processor: a subclass of `Processor`, or a function that makes a new one each time, that puts the records
                into the store as they are.
            key: the serde of the topic's keys; text when not given.
            value: the serde of the topic's values; text when not given.
            timestamps: where a record's time comes from, as in `add_source`.

        Raises:
            TopologyError: a name or the topic is taken, or what is given is none of these.

        >>> class Keep(Processor):
        ...     def process(self, record):
        ...         self.context.state_store("rates").put(record.key, record.value)
        >>> rates = Stores.persistent_key_value_store("rates", Serdes.string(), Serdes.double())
        >>> topology = Topology().add_read_only_state_store(
        ...     rates, "rates-source", "rates", "keep", Keep, value=Serdes.double()
        ... )

        Mirrors `Topology#addReadOnlyStateStore`.
        """
        self.add_source(source, topic, key=key, value=value, timestamps=timestamps, auto_offset_reset="earliest")
        return self.add_processor(name, processor, source).add_state_store(store, name)

    def add_processor(
        self,
        name: str,
        processor: Callable[[], Any],
        *parents: str,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> Self:
        """Add a processor that receives the records of other nodes.

        Args:
            name: of the node.
            processor: a subclass of `Processor`, or a function that makes a new one each time, as each task has its
                own. It is connected to the stores that its static method `stores` returns.
            parents: the names of the nodes that feed it.
            key: the serde of the keys that it forwards to steps of the DSL; sinks and processors need none. By
                default the first parent's.
            value: the serde of the values, likewise.

        Raises:
            TopologyError: the name is taken, a parent does not exist or is named twice, `processor` does not make a
                new `Processor` each time it is called, or it brings a store whose name is taken.

        Mirrors `Topology#addProcessor`.
        """
        step = f"add_processor('{name}') at {call_site()}"
        check_supplier(processor, Processor, step, FixedKeyProcessor)
        first = self._parents(parents, step)
        brought = brought_stores(processor, step)
        for store in brought:
            check_name(store.name)
            if self._stores().get(store.name, store) != store:
                raise TopologyError(f"{step}: there is another store with the name '{store.name}'; choose another one.")
        serdes = key or first.key, value or first.value
        self._add(Process(name, parents, *serdes, call_site(), supplier=processor), step)
        self._loose_stores |= {store.name: store for store in brought}
        return self.connect_processor_and_state_stores(name, *(store.name for store in brought))

    def add_sink(
        self,
        name: str,
        topic: str,
        *parents: str,
        key: Serde | None = None,
        value: Serde | None = None,
        partitioner: Partitioner | None = None,
    ) -> Self:
        """Add a node that writes records to a topic.

        Args:
            name: of the node.
            topic: what it writes.
            parents: the names of the nodes that feed it.
            key: the serde of the keys; that of the first parent when not given.
            value: the serde of the values, likewise.
            partitioner: a `StreamPartitioner`, or a function of topic, key, value and number of partitions, that
                chooses each record's partitions; Kafka's default partitioner when not given.

        Raises:
            TopologyError: the name is taken, no topic can have the topic's name, a parent does not exist or is named
                twice, or the partitioner takes other arguments.

        Mirrors `Topology#addSink`.
        """
        step = f"add_sink('{name}') at {call_site()}"
        if not callable(topic):
            check_topic(topic, step)
        first = self._parents(parents, step)
        partition = check_partitioner(partitioner, step)
        serdes = key or first.key, value or first.value
        return self._add(Sink(name, parents, *serdes, call_site(), topic=topic, partitioner=partition), step)

    def add_state_store(self, store: Store, *processors: str) -> Self:
        """Add a store, and connect processors to it.

        Raises:
            TopologyError: its name is taken, or there is no such processor.

        Mirrors `Topology#addStateStore`.
        """
        step = f"add_state_store('{store.name}') at {call_site()}"
        check_name(store.name)
        if store.name in self._stores():
            raise TopologyError(f"{step}: there is another store with this name; choose another one.")
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
        step = f"connect_processor_and_state_stores('{processor}') at {call_site()}"
        node = self.nodes.get(processor)
        if not isinstance(node, Process):
            known = ", ".join(each.name for each in of_kind(Process, self.nodes.values())) or "none"
            raise TopologyError(f"{step}: there is no processor of this name; there are: {known}.")
        for name in stores:
            if name not in self._stores():
                known = ", ".join(self._stores()) or "none"
                raise TopologyError(f"{step}: there is no store '{name}'; there are: {known}. Add it first.")
            node = self._connected(node, name, step)
        self.nodes = MappingProxyType(dict(self.nodes) | {node.name: node})
        return self

    def _connected(self, node: Process, name: str, step: str) -> Process:
        if name in (*node.reads, *(store.name for store in node.own_stores)):
            return node
        tables = (each for each in self.nodes.values() if each.is_table or each.is_global)
        keeper = next((each for each in tables if name in (store.name for store in each.stores)), None)
        node = replace(node, connected=(*node.store_names, name))
        if keeper is None:
            return replace(node, own_stores=(*node.own_stores, self._stores()[name]))
        check_can_be_used(self._stores()[name], keeper, step)
        return replace(node, reads=(*node.reads, name))

    def _stores(self) -> dict[str, Store]:
        return self._loose_stores | {store.name: store for node in self.nodes.values() for store in node.stores}

    def _parents(self, parents: tuple[str, ...], step: str) -> Node:
        """Return the first of the nodes that feed another."""
        if not parents:
            raise TopologyError(f"{step}: name the node that feeds it, as the last argument.")
        for parent in parents:
            if parent not in self.nodes or self.nodes[parent].kind == "Sink":
                known = ", ".join(name for name, node in self.nodes.items() if node.kind != "Sink") or "none"
                raise TopologyError(f"{step}: there is no node '{parent}' to feed it; there are: {known}.")
            if parents.count(parent) > 1:
                raise TopologyError(
                    f"{step}: '{parent}' is to feed it twice. Kafka Streams would pass on each of its records twice, "
                    "which is not done here: name it once."
                )
        return self.nodes[parents[0]]

    def _add(self, node: Node, step: str) -> Self:
        check_name(node.name)
        if node.name in self.nodes:
            other = self.nodes[node.name]
            raise TopologyError(f"{step}: {other.call_site} has added a node of this name; choose another one.")
        self.nodes = MappingProxyType(dict(self.nodes) | {node.name: node})
        return self


def check_can_be_used(store: Store, keeper: Node, step: str) -> None:
    """Check that a processor can be connected to the store that another node keeps.

    Raises:
        TopologyError: the store is global and needs no connecting, or it holds what `suppress` holds back.
    """
    if keeper.is_global:
        raise TopologyError(
            f"{step}: '{store.name}' is a global store, which every processor can use without being connected: do not "
            f"name it, and ask for it with context.state_store('{store.name}')."
        )
    if store.kind == "buffer":
        raise TopologyError(
            f"{step}: '{store.name}' holds back the updates of {keeper.name} and is no table. Keep a store of your own."
        )


def check_is_free(store: Store, node: Node, nodes: Iterable[Node], state_stores: Mapping[str, Store]) -> None:
    """Check that no other store has the name of the one that a node is to keep.

    Raises:
        TopologyError: there is one, of a table or of processors.
    """
    if node.has_own_keys:  # processors may share a store, and are checked where they are connected to it
        return
    for other in nodes:
        if other.has_own_keys:
            continue
        is_same = other.name == node.name or (node.group and other.group == node.group)
        kept = (each for each in other.stores if each not in other.own_stores)
        if not is_same and any(each.name == store.name for each in kept):
            raise TopologyError(
                f"{node.name} ({node.call_site}): {other.name} ({other.call_site}) has a store with the name "
                f"'{store.name}' already; choose another name."
            )
    if store.name in state_stores:
        raise TopologyError(
            f"{node.name} ({node.call_site}): there is a store for processors with the name '{store.name}' already; "
            "choose another name."
        )
