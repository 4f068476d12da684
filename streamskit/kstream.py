"""`KStream` and its grouped forms: the DSL for streams of independent records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit import columns
from streamskit.durations import Duration, to_milliseconds
from streamskit.environment.session import spark_session
from streamskit.errors import TopologyError
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Aggregate, Filter, MapValues, Node, Sink, Store
from streamskit.windows import TimeWindows

if TYPE_CHECKING:
    from streamskit.builder import StreamsBuilder
    from streamskit.ktable import KTable

ColumnFunction = Callable[..., Any]


@dataclass(frozen=True)
class Materialized:
    """How a store is kept: its name, the serde of its values, and for how long a windowed one keeps a window.

    Mirrors `org.apache.kafka.streams.kstream.Materialized`.

    >>> Materialized("counts", retention="1 hour")
    Materialized(name='counts', value=None, retention='1 hour')
    """

    name: str | None = None
    value: Serde | None = None
    retention: Duration | None = None


class Handle:
    """What a step of the DSL returns: the node it added, and the builder to add the next one to."""

    def __init__(self, builder: "StreamsBuilder", node: Node) -> None:
        self._builder = builder
        self._node = node

    def __repr__(self) -> str:
        key, value = (columns.spell(serde.data_type) for serde in (self._node.key, self._node.value))
        return f"<{type(self).__name__} {self._node.name}: key {key}; value {value}>"

    def _inputs(self) -> dict[str, T.DataType]:
        return {"key": self._node.key.data_type, "value": self._node.value.data_type}

    def _dressed(self) -> list[Column]:
        spark_session()  # no Column can be made without one
        return [columns.typed(F.col(name), data_type, name[0]) for name, data_type in self._inputs().items()]

    def _result(self, function: ColumnFunction, operator: str, name: str, aggregate: bool = False) -> T.DataType:
        """Try a learner's function on Columns of the right types, and return the type it makes."""
        from streamskit.builder import written_at

        what = f"{operator} ({name}) at {written_at()}"
        made = columns.call(function, self._dressed(), what)
        return columns.result_type(made, self._inputs(), what, aggregate)

    def _filtered(self, predicate: ColumnFunction, operator: str, prefix: str) -> Node:
        name = self._builder._name(f"{prefix}-FILTER")
        made = self._result(predicate, operator, name)
        if not isinstance(made, T.BooleanType):
            raise TopologyError(
                f"{operator} ({name}): the function must say true or false, and makes a {made.simpleString()}. "
                "Compare with something: lambda v: v.price > 0."
            )
        return self._after(Filter, name, self._node.value, predicate=predicate)

    def _mapped(self, mapper: ColumnFunction, prefix: str) -> Node:
        name = self._builder._name(f"{prefix}-MAPVALUES")
        value = Serdes.for_type(self._result(mapper, "map_values", name))
        return self._after(MapValues, name, value, mapper=mapper)

    def _after(self, kind: Callable[..., Node], name: str, value: Serde, **details: Any) -> Any:
        key = details.pop("key", self._node.key)
        return self._builder._add(kind, name, (self._node.name,), key, value, **details)


class KStream(Handle):
    """A stream of records, each independent of those before it.

    Mirrors `org.apache.kafka.streams.kstream.KStream`.
    """

    def filter(self, predicate: ColumnFunction) -> "KStream":
        """Keep the records for which `predicate(value)` or `predicate(key, value)` is true; null counts as false.

        Raises:
            TopologyError: the function does not make a true-or-false Column.

        >>> trades.filter(lambda v: v.price > 0)

        Mirrors `KStream#filter`; Spark's `where`.
        """
        return KStream(self._builder, self._filtered(predicate, "filter", "KSTREAM"))

    def map_values(self, mapper: ColumnFunction) -> "KStream":
        """Give each record the value `mapper(value)` or `mapper(key, value)`; the key stays.

        Raises:
            TopologyError: the function does not make a Column.

        >>> trades.map_values(lambda v: v.price * v.size)

        Mirrors `KStream#mapValues`; Spark's `select`.
        """
        return KStream(self._builder, self._mapped(mapper, "KSTREAM"))

    def group_by_key(self) -> "KGroupedStream":
        """Group the records by the key they have. Mirrors `KStream#groupByKey`."""
        return KGroupedStream(self._builder, self._node)

    def to(self, topic: str, key: Serde | None = None, value: Serde | None = None) -> None:
        """Write the records to a topic.

        Args:
            topic: the topic's name; it has to exist when the application starts.
            key: the serde of the keys; by default the one they came with, or the one that fits their type.
            value: the serde of the values, likewise.

        Raises:
            TopologyError: a serde is for another type than the records have.

        Mirrors `KStream#to(topic, Produced)`; Spark's Kafka sink.
        """
        name = self._builder._name("KSTREAM-SINK")
        for part, given, have in (("key", key, self._node.key), ("value", value, self._node.value)):
            if given is not None and not _same_type(given.data_type, have.data_type):
                raise TopologyError(
                    f"to('{topic}') ({name}): the {part} is {columns.spell(have.data_type)}, and the serde given "
                    f"writes {columns.spell(given.data_type)}. Cast it before, or give the serde that fits."
                )
        self._after(Sink, name, value or self._node.value, key=key or self._node.key, topic=topic)


class KGroupedStream(Handle):
    """A stream grouped by key, ready to be counted or aggregated.

    Mirrors `org.apache.kafka.streams.kstream.KGroupedStream`.
    """

    _windows: TimeWindows | None = None

    def windowed_by(self, windows: TimeWindows) -> "TimeWindowedKStream":
        """Cut each key's records into windows of event time.

        >>> grouped.windowed_by(TimeWindows.of_size_with_no_grace("5 seconds"))

        Mirrors `KGroupedStream#windowedBy`; Spark's `window`.
        """
        return TimeWindowedKStream(self._builder, self._node, windows)

    def count(self, materialized: str | Materialized | None = None) -> "KTable":
        """Count the records of each key (and window); those with a null key or value do not count.

        Args:
            materialized: the name of the store that holds the counts, to query it.

        Mirrors `KGroupedStream#count`.
        """
        return self.aggregate(lambda v: F.count("*"), materialized)

    def aggregate(self, aggregator: ColumnFunction, materialized: str | Materialized | None = None) -> "KTable":
        """Aggregate the values of each key (and window) with Spark's own aggregate functions.

        Args:
            aggregator: takes the value as a Column and returns an aggregate Column, such as `F.max(v.price)`.
            materialized: the name of the store that holds the aggregates, to query it.

        Raises:
            TopologyError: the function does not make an aggregate.

        >>> grouped.aggregate(lambda v: F.max(v.price), materialized="highest")

        Mirrors `KGroupedStream#aggregate`; Spark's `groupBy(...).agg(...)`.
        """
        from streamskit.ktable import KTable

        wanted = materialized if isinstance(materialized, Materialized) else Materialized(materialized)
        # Kafka Streams numbers the store before the operator when it has to invent the store's name.
        store_name = wanted.name or self._builder._name("KSTREAM-AGGREGATE-STATE-STORE")
        name = self._builder._name("KSTREAM-AGGREGATE")
        value = wanted.value or Serdes.for_type(self._result(aggregator, "aggregate", name, aggregate=True))
        key = self._node.key
        store = Store(store_name, "key-value", key, value, queryable=wanted.name is not None)
        if self._windows is not None:
            key = Serdes.time_windowed(self._node.key, self._windows.size)
            retention = _retention(wanted, self._windows, name)
            store = Store(
                store_name, "window", self._node.key, value, self._windows, retention, wanted.name is not None
            )
        node = self._after(Aggregate, name, value, key=key, aggregator=aggregator, windows=self._windows, store=store)
        return KTable(self._builder, node)


class TimeWindowedKStream(KGroupedStream):
    """A grouped stream cut into windows. Mirrors `org.apache.kafka.streams.kstream.TimeWindowedKStream`."""

    def __init__(self, builder: "StreamsBuilder", node: Node, windows: TimeWindows) -> None:
        super().__init__(builder, node)
        self._windows = windows


def _retention(wanted: Materialized, windows: TimeWindows, name: str) -> int:
    if wanted.retention is None:
        return windows.retention
    retention = to_milliseconds(wanted.retention, "retention")
    if retention < windows.size + windows.grace:
        raise TopologyError(
            f"aggregate ({name}): a retention of {retention} ms is shorter than the window and its grace "
            f"({windows.size} + {windows.grace} ms), so windows would be lost while open. Keep at least their sum."
        )
    return retention


def _same_type(one: T.DataType, other: T.DataType) -> bool:
    """Compare types by shape: whether a field may be null makes no difference to its bytes."""
    return one.simpleString() == other.simpleString()
