"""`StreamsBuilder`: where a program starts, and where its nodes get their names."""

from dataclasses import replace

from pyspark.sql import types as T

from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.columns import type_inference
from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import ColumnFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.kstream import KStream
from streamskit.dsl.ktable import GlobalKTable, KTable
from streamskit.dsl.materialized import Materialized
from streamskit.dsl.materializing import key_value_store
from streamskit.dsl.repartition import kept_null_keys
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology import GlobalTableSource, Source, TableSource, Topology

Timestamps = TimestampExtractor | ColumnFunction


class StreamsBuilder(GraphBuilder):
    """Collects the steps of a program and builds its topology.

    Mirrors `org.apache.kafka.streams.StreamsBuilder`.

    >>> builder = StreamsBuilder()
    >>> builder.stream("lines").filter(lambda v: v.contains("Kafka")).to("kafka-lines")
    """

    def stream(
        self,
        *topics: str,
        key: Serde | None = None,
        value: Serde | None = None,
        timestamps: Timestamps | None = None,
        name: str | None = None,
    ) -> KStream:
        """Read one topic, or several as one stream.

        Args:
            topics: the topics' names.
            key: the serde of the keys; text when not given.
            value: the serde of the values; text when not given.
            timestamps: where a record's time comes from: a `TimestampExtractor`, or a Column function of the value
                that makes milliseconds since 1970; the record's own timestamp when not given.
            name: a name of your own for this step.

        Raises:
            TopologyError: no topic is named, or one is already read in another way.

        Mirrors `StreamsBuilder#stream(topic, Consumed)`.
        """
        if not topics:
            raise TopologyError("stream() needs the name of a topic: builder.stream('orders').")
        name = self._name_for("KSTREAM-SOURCE", name)
        details = {"topics": topics, "timestamps": self._extractor(timestamps, key, value, name)}
        source = Source(name, (), key or Serdes.string(), value or Serdes.string(), call_site(), **details)  # type: ignore[arg-type]
        for other in self._readers(topics):
            same = replace(source, name=other.name, call_site=other.call_site)
            if same != other:
                raise self._read_twice(topics, other)
            return KStream(self, other)
        self._nodes[name] = source
        return KStream(self, source)

    def table(
        self,
        topic: str,
        key: Serde | None = None,
        value: Serde | None = None,
        materialized: str | Materialized | None = None,
        timestamps: Timestamps | None = None,
        name: str | None = None,
    ) -> KTable:
        """Read a topic as a table: each record is the new value of its key's row, null deletes the row.

        Args:
            topic: the topic's name.
            key: the serde of the keys; text when not given.
            value: the serde of the values; text when not given.
            materialized: the name of the store that keeps the rows, to query it; without one the rows are only kept
                where a later step has to look at them.
            timestamps: where a record's time comes from, as in `stream`.
            name: a name of your own for this step.

        Raises:
            TopologyError: the topic is already read.

        >>> builder.table("customers", value=Serdes.json("name string, city string"))

        Mirrors `StreamsBuilder#table`.
        """
        source, row_name, wanted, store_name = self._table_source(topic, key, value, materialized, timestamps, name)
        store = key_value_store(wanted, store_name, source.key, source.value)
        row = self._add(TableSource, row_name, (source.name,), source.key, source.value)
        self._stores_on_demand[row.name] = store
        if wanted.name is not None:
            self._rows_of(row)
        return KTable(self, row)

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

        Args are those of `table`. A stream can be joined with it by any key.

        Raises:
            TopologyError: the topic is already read, or the store is versioned.

        >>> builder.global_table("countries", materialized="countries")

        Mirrors `StreamsBuilder#globalTable`.
        """
        source, row_name, wanted, store_name = self._table_source(topic, key, value, materialized, timestamps, name)
        if wanted.history is not None:
            raise TopologyError(f"global_table('{topic}'): a global table cannot be versioned; leave the history out.")
        # Its own topic is all it takes to rebuild it, so it needs no changelog.
        store = key_value_store(replace(wanted, logged=False), store_name, source.key, source.value)
        row = self._add(GlobalTableSource, row_name, (source.name,), source.key, source.value, store=store)
        return GlobalKTable(self, row)

    def add_state_store(self, store: Store) -> "StreamsBuilder":
        """Add a store for processors, which then name it in `stores=[...]`, and return this builder.

        Raises:
            TopologyError: there is another one with its name.

        >>> builder.add_state_store(Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long()))

        Mirrors `StreamsBuilder#addStateStore`.
        """
        self._add_store(store, f"add_state_store('{store.name}') at {call_site()}")
        return self

    def build(self) -> Topology:
        """Return the finished topology.

        Raises:
            TopologyError: the program reads no topic.
        """
        if not self._nodes:
            raise TopologyError("The topology is empty: start with builder.stream('a-topic').")
        return Topology(kept_null_keys(self._nodes), self._state_stores.values())

    # ---- sources -----------------------------------------------------------------------------------------------------

    def _table_source(
        self,
        topic: str,
        key: Serde | None,
        value: Serde | None,
        materialized: str | Materialized | None,
        timestamps: Timestamps | None,
        name: str | None,
    ) -> tuple[Source, str, Materialized, str]:
        """Add the source of a table; return it with the name of the node and of the store that follow it."""
        for other in self._readers((topic,)):
            raise self._read_twice((topic,), other)
        wanted = Materialized.of(materialized)
        store_name = wanted.name or self._store_name(f"{topic}-")
        source_name = self._name_for("KSTREAM-SOURCE", name and f"{name}-source")
        row_name = self._name_for("KTABLE-SOURCE", name)
        extractor = self._extractor(timestamps, key, value, source_name)
        source = self._add(
            Source,
            source_name,
            (),
            key or Serdes.string(),
            wanted.value or value or Serdes.string(),
            topics=(topic,),
            timestamps=extractor,
        )
        return source, row_name, wanted, store_name

    def _readers(self, topics: tuple[str, ...]) -> list[Source]:
        sources = (node for node in self._nodes.values() if isinstance(node, Source))
        return [source for source in sources if set(topics) & set(source.topics)]

    def _read_twice(self, topics: tuple[str, ...], other: Source) -> TopologyError:
        twice = next(topic for topic in topics if topic in other.topics)
        return TopologyError(
            f"Topic '{twice}' is already read by {other.name} ({other.call_site}), in another way: keep what that "
            "returned in a variable and use it twice."
        )

    def _extractor(
        self, timestamps: Timestamps | None, key: Serde | None, value: Serde | None, name: str
    ) -> TimestampExtractor | None:
        if timestamps is None or (isinstance(timestamps, TimestampExtractor) and timestamps.extract is None):
            return timestamps
        extractor = timestamps if isinstance(timestamps, TimestampExtractor) else TimestampExtractor.of(timestamps)
        inputs = {"key": (key or Serdes.string()).data_type, "value": (value or Serdes.string()).data_type}
        what = f"timestamps= ({name}) at {call_site()}"
        made = type_inference.infer_type(extractor.extract, inputs, what)  # type: ignore[arg-type]
        if not isinstance(made, T.IntegralType):
            raise TopologyError(
                f"{what}: the function has to make milliseconds since 1970 as a whole number, and makes a "
                f"{made.simpleString()}. For a timestamp write F.unix_millis(v.time)."
            )
        return extractor
