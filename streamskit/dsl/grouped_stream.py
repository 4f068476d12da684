"""Grouped streams: counted, reduced, aggregated; cut into windows or not."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamskit.api.windows import AnyWindows, SessionWindows, TimeWindows
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction, PythonFunction
from streamskit.dsl.folding import check_fold, check_windows, windowed_key
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.grouping import Grouping
from streamskit.dsl.materialized import EmitStrategy, Materialized
from streamskit.dsl.materializing import key_value_store, windowed_store
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Aggregate, ColumnAggregate, Count, Node, Reduce

if TYPE_CHECKING:
    from streamskit.dsl.cogrouped_stream import CogroupedKStream
    from streamskit.dsl.ktable import KTable


class Aggregations(AbstractStream):
    """What can be made of grouped records, with or without windows: `count`, `reduce`, `aggregate`."""

    def __init__(self, grouping: Grouping, windows: AnyWindows | None = None, emit: EmitStrategy | None = None) -> None:
        super().__init__(grouping.builder, grouping.node)
        self._grouping = grouping
        self._windows = windows
        self._emit = emit or EmitStrategy.on_window_update()

    def count(self, materialized: str | Materialized | None = None, name: str | None = None) -> "KTable":
        """Count the records of each key (and window).

        Args:
            materialized: the name of the store that holds the counts, to query it.
            name: a name of your own for this step.

        Mirrors `KGroupedStream#count`.
        """
        wanted = Materialized.of(materialized)
        if materialized is not None and wanted.name is None:
            self._builder._store_name("KSTREAM-AGGREGATE-")  # Kafka Streams, too, uses up a name here
        store_name, name = self._names(wanted, "KSTREAM-AGGREGATE", name)
        value = type_inference.check_serde(wanted.value, Serdes.long(), "count", self._what("count", name))
        return self._aggregated(Count, name, store_name, wanted, value, "count")

    def reduce(
        self, reducer: PythonFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> "KTable":
        """Fold the values of each key (and window) into one of the same type.

        Args:
            reducer: a plain Python function of the aggregate so far and the next value; the first value starts, and
                None deletes the row.
            materialized: the name of the store that holds the results, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not take two arguments.

        >>> grouped.reduce(lambda longest, word: word if len(word) > len(longest) else longest)

        Mirrors `KGroupedStream#reduce`.
        """
        wanted = Materialized.of(materialized)
        store_name, name = self._names(wanted, "KSTREAM-REDUCE", name)
        what = self._what("reduce", name)
        type_inference.check_signature(reducer, "reducer", ("aggregate", "value"), what)
        value = type_inference.check_serde(wanted.value, self._grouping.value, "value", what)
        return self._aggregated(Reduce, name, store_name, wanted, value, "reduce", reducer=reducer)

    def aggregate(
        self,
        initializer: Callable[..., Any],
        aggregator: PythonFunction | str | Materialized | None = None,
        materialized: str | Materialized | None = None,
        *,
        merger: PythonFunction | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Aggregate the values of each key (and window), in one of two ways.

        With Spark's own functions: `aggregate(lambda v: F.max(v.price))`, one Column function of the value that makes
        an aggregate Column. Or with plain Python functions, one record at a time:
        `aggregate(lambda: 0, lambda key, value, aggregate: aggregate + len(value), value=Serdes.long())`.

        Args:
            initializer: the Column function; or makes the aggregate that a key (and window) starts with.
            aggregator: makes the next aggregate of key, value and aggregate; None deletes the row.
            materialized: the name of the store that holds the aggregates, to query it.
            merger: makes one aggregate of the key and the aggregates of two sessions that have met.
            value: the serde of the aggregates; needed with Python functions, which say nothing about types.
            name: a name of your own for this step.

        Raises:
            TopologyError: a function is missing, or is not of the kind it has to be.

        Mirrors `KGroupedStream#aggregate`; Spark's `groupBy(...).agg(...)`.
        """
        if isinstance(aggregator, str | Materialized):
            aggregator, materialized = None, aggregator
        wanted = Materialized.of(materialized)
        store_name, name = self._names(wanted, "KSTREAM-AGGREGATE", name)
        given = value or wanted.value
        if aggregator is None:
            made = self._column_aggregate(initializer, given, name)
            return self._aggregated(
                ColumnAggregate, name, store_name, wanted, made, "aggregate", aggregator=initializer
            )
        what = self._what("aggregate", name)
        made = check_fold(initializer, aggregator, merger, given, self._windows, what)
        functions = {"initializer": initializer, "aggregator": aggregator, "merger": merger}
        return self._aggregated(Aggregate, name, store_name, wanted, made, "aggregate", **functions)

    def _names(self, wanted: Materialized, prefix: str, name: str | None) -> tuple[str, str]:
        # Kafka Streams numbers the store before the operator when it has to invent the store's name.
        store_name = wanted.name or self._builder._store_name(f"{prefix}-")
        return store_name, self._builder._name_for(prefix, name)

    def _column_aggregate(self, function: ColumnFunction, given: Serde | None, name: str) -> Serde:
        what = self._what("aggregate", name)
        if not (self._windows is None or isinstance(self._windows, TimeWindows)) or self._emit.on_close:
            where = "with EmitStrategy.on_window_close()" if self._emit.on_close else "in sessions or sliding windows"
            raise TopologyError(
                f"{what}: Spark's own aggregate functions cannot run {where}. Write Python functions: "
                "aggregate(lambda: 0, lambda key, value, aggregate: aggregate + 1, value=Serdes.long()), "
                "for sessions also merger=lambda key, one, other: one + other."
            )
        made = Serdes.for_type(self._result(function, "aggregate", name, aggregate=True))
        return type_inference.check_serde(given, made, "aggregate", what)

    def _aggregated(
        self,
        kind: Callable[..., Node],
        name: str,
        store_name: str,
        wanted: Materialized,
        value: Serde,
        operator: str,
        **functions: Any,
    ) -> "KTable":
        from streamskit.dsl.ktable import KTable

        key = self._grouping.key
        if self._windows is None:
            store = key_value_store(wanted, store_name, key, value)
        else:
            store = windowed_store(wanted, store_name, key, value, self._windows, self._what(operator, name))
        node = self._builder._add(
            kind,
            name,
            (self._grouping.parent(store_name).name,),
            windowed_key(key, self._windows),
            value,
            windows=self._windows,
            store=store,
            on_close=self._emit.on_close,
            **functions,
        )
        return KTable(self._builder, node)


class KGroupedStream(Aggregations):
    """A stream grouped by key, ready to be counted or aggregated.

    Mirrors `org.apache.kafka.streams.kstream.KGroupedStream`.
    """

    def __init__(
        self, builder: GraphBuilder, node: Node, rekeyed: bool, name: str | None, key: Serde, value: Serde
    ) -> None:
        super().__init__(Grouping(builder, node, rekeyed, name, key, value))

    def windowed_by(self, windows: AnyWindows) -> "WindowedKStream":
        """Cut each key's records into windows of event time.

        Args:
            windows: `TimeWindows`, `SlidingWindows` or `SessionWindows`.

        Raises:
            TopologyError: they are none of these.

        >>> grouped.windowed_by(TimeWindows.of_size_with_no_grace("5 seconds"))

        Mirrors `KGroupedStream#windowedBy`; Spark's `window`.
        """
        check_windows(windows, self._what("windowed_by", self._name))
        kind = SessionWindowedKStream if isinstance(windows, SessionWindows) else TimeWindowedKStream
        return kind(self._grouping, windows)

    def cogroup(self, aggregator: PythonFunction) -> "CogroupedKStream":
        """Begin to fold several grouped streams into one table, each with its own function.

        Args:
            aggregator: a plain Python function of key, value and aggregate, for the records of this stream.

        >>> clicks.cogroup(lambda k, v, total: total + 1).cogroup(sales, lambda k, v, total: total + 10)

        Mirrors `KGroupedStream#cogroup`.
        """
        from streamskit.dsl.cogrouped_stream import CogroupedKStream

        return CogroupedKStream(self._builder, {}).cogroup(self, aggregator)


class WindowedKStream(Aggregations):
    """A grouped stream cut into windows."""

    def emit_strategy(self, emit_strategy: EmitStrategy) -> "WindowedKStream":
        """Say when results go out: with every update, or once when a window closes.

        >>> windowed.emit_strategy(EmitStrategy.on_window_close()).count()

        Mirrors `TimeWindowedKStream#emitStrategy`.
        """
        if not isinstance(emit_strategy, EmitStrategy):
            raise TopologyError(
                f"{self._what('emit_strategy', self._name)}: give EmitStrategy.on_window_close() or "
                f"EmitStrategy.on_window_update(), not {emit_strategy!r}."
            )
        return type(self)(self._grouping, self._windows, emit_strategy)


class TimeWindowedKStream(WindowedKStream):
    """A grouped stream cut into time or sliding windows.

    Mirrors `org.apache.kafka.streams.kstream.TimeWindowedKStream`.
    """


class SessionWindowedKStream(WindowedKStream):
    """A grouped stream cut into sessions. Mirrors `org.apache.kafka.streams.kstream.SessionWindowedKStream`."""
