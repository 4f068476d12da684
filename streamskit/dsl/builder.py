"""`StreamsBuilder`: where a program starts, and where its nodes get their names."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from streamskit.api.auto_offset_reset import AutoOffsetReset
from streamskit.api.processor import Processor
from streamskit.api.streams_config import StreamsConfig
from streamskit.columns.timestamps import Timestamps, check_extractor
from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.kstream import KStream
from streamskit.dsl.ktable import KTable
from streamskit.dsl.materialized import Materialized, table_store
from streamskit.dsl.repartition import keep_null_keys
from streamskit.dsl.table_joins import GlobalKTable
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology import Topology, nodes
from streamskit.topology.explicit_names import check_names_are_explicit
from streamskit.topology.nodes import Node
from streamskit.topology.source_topics import check_topic, names_or_pattern, offset_reset, read_twice, readers_of
from streamskit.topology.suppliers import check_supplier


class StreamsBuilder:
    """Collects the steps of a program and builds its topology.

    Args:
        config: the application's config, as for `build`.

    Mirrors `org.apache.kafka.streams.StreamsBuilder`.

    >>> builder = StreamsBuilder()
    >>> builder.stream("lines").filter(lambda v: v.contains("Kafka")).to("kafka-lines")
    """

    def __init__(self, config: StreamsConfig | None = None) -> None:
        self._graph, self._config = GraphBuilder(stream_of=KStream), config

    def stream(
        self,
        *topics: str | re.Pattern[str] | Collection[str],
        key: Serde | None = None,
        value: Serde | None = None,
        timestamps: Timestamps | None = None,
        name: str | None = None,
        auto_offset_reset: AutoOffsetReset | str | None = None,
    ) -> KStream:
        """Read one topic, or several as one stream, or all whose full names match a pattern.

        A matching topic that is created while the application runs is read from its first record within a few seconds.
        The partitions that exist at the start determine the number of tasks: if these keep state, a new topic with more
        partitions stops the application with an error. The application's own internal topics never match.

        Args:
            topics: what it reads: their names, one after the other or as a list, tuple or set; or one compiled pattern,
                `re.compile("orders-.*")`.
            key: the serde of the keys; text by default.
            value: the serde of the values; text by default.
            timestamps: where a record's time comes from: a `TimestampExtractor`, or a Column function of the value
                that returns milliseconds since 1970; by default the record's own timestamp.
            name: a name of your own for this step.
            auto_offset_reset: where the application's first start begins to read: "earliest", "latest", "none", or
                `AutoOffsetReset.by_duration("1 hour")`; as its config says when not given.

        Raises:
            TopologyError: no topic is named, or none can have the name given; one is named twice, or already read in
                another way; a pattern has flags or is not alone; another step has the name given; or
                `auto_offset_reset` is not known.

        >>> sales = builder.stream(["shop-sales", "web-sales"])
        >>> orders = builder.stream(re.compile("orders-.*"))
        >>> payments = builder.stream("payments", value=Serdes.json("customer string, amount double, time long"))
        >>> by_payday = builder.stream("paydays", value=Serdes.json("time long"), timestamps=lambda v: v.time)

        Mirrors `StreamsBuilder#stream(topic, Consumed)`; Spark's `readStream`.
        """
        if not topics:
            raise TopologyError("stream() needs the name of a topic: builder.stream('orders').")
        named, pattern = names_or_pattern(topics, f"stream() at {call_site()}")
        for topic in named:
            check_topic(topic, f"stream() at {call_site()}")
        name = self._graph.name_for("KSTREAM-SOURCE", name)
        serdes = key or Serdes.string(), value or Serdes.string()
        extractor = check_extractor(timestamps, *serdes, f"timestamps= ({name}) at {call_site()}")
        reset = offset_reset(auto_offset_reset, f"stream() at {call_site()}")
        reader = partial(nodes.Source, topics=named, timestamps=extractor, pattern=pattern, auto_offset_reset=reset)
        source = reader(name, (), *serdes, call_site())
        for other in readers_of(named, pattern, self._graph.nodes.values()):
            if any(node.is_global and other.name in node.parents for node in self._graph.nodes.values()):
                raise TopologyError(
                    f"stream() at {call_site()}: {other.call_site} reads topic '{other.topics[0]}' into a global table "
                    "or store, and a topic is read once. Read it with stream() or table() alone, or have a copy of it "
                    "made in another topic."
                )
            if replace(source, name=other.name, call_site=other.call_site) != other:
                raise read_twice(pattern or next(each for each in named if other.reads_topic(each)), other)
            return KStream(self._graph, other)
        return KStream(self._graph, self._graph.add(reader, name, (), *serdes))

    def table(
        self,
        topic: str,
        key: Serde | None = None,
        value: Serde | None = None,
        materialized: str | Materialized | None = None,
        timestamps: Timestamps | None = None,
        name: str | None = None,
        auto_offset_reset: AutoOffsetReset | str | None = None,
    ) -> KTable:
        """Read a topic as a table: each record is the new value of its key's row, null deletes the row.

        Args:
            topic: the topic's name.
            key: the serde of the keys; text by default.
            value: the serde of the values; text by default.
            materialized: the name of the store that keeps the rows, to query it; without one the rows are only kept
                where a later step has to look at them.
            timestamps: where a record's time comes from, as in `stream`.
            name: a name of your own for this step.
            auto_offset_reset: where the application's first start begins to read, as in `stream`. With "latest", the
                table has only what changes after the start.

        Raises:
            TopologyError: no topic can have this name, the topic is already read, the store's name cannot be part of a
                topic's name, or `auto_offset_reset` is not known.

        >>> people = builder.table("people", value=Serdes.json("name string, city string"), materialized="people")

        Mirrors `StreamsBuilder#table`.
        """
        materialized = Materialized.of(materialized)
        reset = offset_reset(auto_offset_reset, f"table('{topic}') at {call_site()}")
        node = self._add_table(nodes.TableSource, topic, key, value, materialized, timestamps, name, reset)
        return KTable(self._graph, node)

    def global_table(
        self,
        topic: str,
        key: Serde | None = None,
        value: Serde | None = None,
        materialized: str | Materialized | None = None,
        timestamps: Timestamps | None = None,
        name: str | None = None,
    ) -> GlobalKTable:
        """Read a whole topic, all its partitions, into a table that every instance of the application holds.

        Args:
            topic: the topic's name.
            key: the serde of the keys; text by default.
            value: the serde of the values; text by default.
            materialized: the name of the store that keeps the rows, to query it.
            timestamps: taken, but not used: a row has the time of its record, as in Kafka Streams.
            name: a name of your own for this step.

        Raises:
            TopologyError: no topic can have this name, the topic is already read, or the store is versioned.

        >>> currencies = builder.global_table("currencies", materialized="currencies")

        Mirrors `StreamsBuilder#globalTable`.
        """
        # Its own topic is all it takes to rebuild it, so it needs no changelog.
        materialized = replace(Materialized.of(materialized), logged=False)
        node = self._add_table(nodes.GlobalTableSource, topic, key, value, materialized, timestamps, name)
        if materialized.history is not None:
            raise TopologyError(f"global_table('{topic}'): a global table cannot be versioned; leave the history out.")
        self._graph.lookup_stores(node)
        return GlobalKTable(self._graph, node)

    def add_state_store(self, store: Store) -> "StreamsBuilder":
        """Add a store for processors, which then name it in `stores=[...]`, and return this builder.

        Args:
            store: made by `Stores`.

        Raises:
            TopologyError: there is another one with its name.

        >>> builder.add_state_store(Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long()))

        Mirrors `StreamsBuilder#addStateStore`.
        """
        self._graph.add_state_store(store, f"add_state_store('{store.name}') at {call_site()}")
        return self

    def add_global_store(
        self,
        store: Store,
        topic: str,
        processor: Callable[[], Processor],
        key: Serde | None = None,
        value: Serde | None = None,
        timestamps: Timestamps | None = None,
        name: str | None = None,
    ) -> "StreamsBuilder":
        """Add a store that every instance fills from a whole topic with its own processor; return this builder.

        The processor receives the topic's records, including null values, and stores what it makes of them. It forwards
        nothing and schedules no punctuations. Every processor of the program can read the store by its name, without
        being connected to it, and none can change it. Each start reads the topic from its beginning.

        Each application keeps a copy for queries, which is filled without headers and is not available over REST.

        Args:
            store: made by `Stores`; it has no changelog, as the topic is all that it takes to rebuild it.
            topic: the topic's name.
            processor: a subclass of `Processor`, or a function that makes a new one each time.
            key: the serde of the topic's keys; text by default.
            value: the serde of the topic's values; text by default.
            timestamps: taken, but not used: a record has its own time, as in Kafka Streams.
            name: a name of your own for this step.

        Raises:
            TopologyError: no topic can have this name, the topic is already read, the store's name is taken, or
                `processor` does not make a new `Processor` each time it is called.

        >>> class UpperCase(Processor):
        ...     def process(self, record):
        ...         self.context.state_store("names").put(record.key, record.value and record.value.upper())
        >>> names = Stores.persistent_key_value_store("names", Serdes.string(), Serdes.string())
        >>> builder = StreamsBuilder().add_global_store(names, "names-topic", UpperCase)

        Mirrors `StreamsBuilder#addGlobalStore`.
        """
        check_topic(topic, f"add_global_store('{store.name}') at {call_site()}")
        for other in readers_of((topic,), "", self._graph.nodes.values()):
            raise read_twice(topic, other)
        graph, serdes = self._graph, (key or Serdes.string(), value or Serdes.string())
        source_name = graph.name_for("KSTREAM-SOURCE", name, "-source")
        processor_name = graph.name_for("KTABLE-SOURCE", name)
        check_supplier(processor, Processor, f"add_global_store('{store.name}') at {call_site()}")
        extractor = check_extractor(timestamps, *serdes, f"timestamps= ({source_name}) at {call_site()}")
        graph.add(nodes.Source, source_name, (), *serdes, topics=(topic,), timestamps=extractor)
        kept = store.with_logging(False)
        graph.add(nodes.GlobalProcess, processor_name, (source_name,), *serdes, supplier=processor, store=kept)
        return self

    def build(self, config: StreamsConfig | None = None) -> Topology:
        """Return the finished topology.

        Args:
            config: the application's config; if it says so, generated names are refused.

        Raises:
            TopologyError: the program reads no topic, or one of its internal topics or stores has a generated name
                although `ensure_explicit_internal_resource_naming` is set.

        >>> print(builder.build().describe())

        Mirrors `StreamsBuilder#build`.
        """
        if not self._graph.nodes:
            raise TopologyError("The topology is empty: start with builder.stream('a-topic').")
        topology = Topology(keep_null_keys(self._graph.nodes), self._graph.state_stores.values())
        config = config or self._config
        if config is not None and config.ensure_explicit_internal_resource_naming:
            check_names_are_explicit(topology)
        return topology

    # ---- sources -----------------------------------------------------------------------------------------------------

    def _add_table(
        self,
        kind: Callable[..., Node],
        topic: str,
        key: Serde | None,
        value: Serde | None,
        materialized: Materialized,
        timestamps: Timestamps | None,
        name: str | None,
        reset: AutoOffsetReset | None = None,
    ) -> Node:
        """Add the source of a table, and return the node that turns its records into rows."""
        check_topic(topic, f"{'table' if kind is nodes.TableSource else 'global_table'}() at {call_site()}")
        for other in readers_of((topic,), "", self._graph.nodes.values()):
            raise read_twice(topic, other)
        graph, serdes = self._graph, (key or Serdes.string(), materialized.value or value or Serdes.string())
        store_name = materialized.name or graph.store_name(f"{topic}-")
        source_name = graph.name_for("KSTREAM-SOURCE", name, "-source")
        row_name = graph.name_for("KTABLE-SOURCE", name)
        extractor = check_extractor(timestamps, *serdes, f"timestamps= ({source_name}) at {call_site()}")
        graph.add(
            nodes.Source, source_name, (), *serdes, topics=(topic,), timestamps=extractor, auto_offset_reset=reset
        )
        node: Node = graph.add(kind, row_name, (source_name,), *serdes)
        graph.store_on_demand(node, table_store(materialized, store_name, *serdes))
        return node
