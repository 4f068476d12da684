"""Grouped streams: one (`KGroupedStream`), cut into windows, or several together (`CogroupedKStream`)."""

from typing import Self

from streamskit.api.windows import AnyWindows, SessionWindows, UnlimitedWindows
from streamskit.columns import type_inference
from streamskit.columns.user_functions import type_text
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import PythonFunction
from streamskit.dsl.aggregations import Aggregations, check_aggregate, check_windows, windowed_key
from streamskit.dsl.ktable import KTable
from streamskit.dsl.materialized import EmitStrategy, Materialized, table_store
from streamskit.serdes import Serde
from streamskit.topology import nodes


class KGroupedStream(Aggregations):
    """A stream grouped by key, ready to be counted or aggregated.

    Mirrors `org.apache.kafka.streams.kstream.KGroupedStream`.
    """

    def windowed_by(self, windows: AnyWindows) -> "WindowedKStream":
        """Cut each key's records into windows of event time.

        Args:
            windows: `TimeWindows`, `SlidingWindows`, `SessionWindows` or `UnlimitedWindows`.

        Raises:
            TopologyError: they are none of these, or sliding windows without a length.

        >>> trades.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("5 seconds")).count()

        Mirrors `KGroupedStream#windowedBy`; Spark's `window`.
        """
        check_windows(windows, self._step("windowed_by", self._name))
        kind = SessionWindowedKStream if isinstance(windows, SessionWindows) else TimeWindowedKStream
        return kind(self._grouping, windows)

    def cogroup(self, aggregator: PythonFunction) -> "CogroupedKStream":
        """Begin to fold several grouped streams into one table, each with its own function.

        Args:
            aggregator: a plain Python function of key, value and aggregate, for the records of this stream.

        Raises:
            TopologyError: the function takes other arguments.

        >>> clicks, sales = builder.stream("clicks").group_by_key(), builder.stream("sales").group_by_key()
        >>> points = clicks.cogroup(lambda k, v, total: total + 1).cogroup(sales, lambda k, v, total: total + 10)

        Mirrors `KGroupedStream#cogroup`.
        """
        return CogroupedKStream({}, {}).cogroup(self, aggregator)


class WindowedKStream(Aggregations):
    """A grouped stream cut into windows."""

    def emit_strategy(self, emit_strategy: EmitStrategy) -> Self:
        """Choose when results are emitted: with every update, or once when a window closes.

        Args:
            emit_strategy: `EmitStrategy.on_window_update()` (the default) or `EmitStrategy.on_window_close()`.

        Raises:
            TopologyError: it is no `EmitStrategy`, or windows that never close are to be emitted when they close.

        >>> windowed = trades.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("5 seconds"))
        >>> windowed.emit_strategy(EmitStrategy.on_window_close()).count()

        Mirrors `TimeWindowedKStream#emitStrategy`.
        """
        if not isinstance(emit_strategy, EmitStrategy):
            raise TopologyError(
                f"{self._step('emit_strategy', self._name)}: give EmitStrategy.on_window_close() or "
                f"EmitStrategy.on_window_update(), not {emit_strategy!r}."
            )
        if isinstance(self._windows, UnlimitedWindows) and emit_strategy.on_close:
            raise TopologyError(
                f"{self._step('emit_strategy', self._name)}: an unlimited window never closes, so nothing would come "
                "out. Leave emit_strategy() out, or take windows that close: TimeWindows, SlidingWindows or "
                "SessionWindows."
            )
        return type(self)(self._grouping, self._windows, emit_strategy)


class TimeWindowedKStream(WindowedKStream):
    """A grouped stream cut into time or sliding windows.

    Mirrors `org.apache.kafka.streams.kstream.TimeWindowedKStream`.
    """


class SessionWindowedKStream(WindowedKStream):
    """A grouped stream cut into sessions. Mirrors `org.apache.kafka.streams.kstream.SessionWindowedKStream`."""


class CogroupedKStream:
    """Grouped streams, each with the function that folds its records into the common aggregate.

    Mirrors `org.apache.kafka.streams.kstream.CogroupedKStream` and its windowed forms.
    """

    def __init__(
        self,
        streams: dict[KGroupedStream, PythonFunction],
        parents: dict[KGroupedStream, nodes.Node],
        windows: AnyWindows | None = None,
    ) -> None:
        self._streams = streams
        self._parents = parents
        self._windows = windows

    def cogroup(self, grouped: KGroupedStream, aggregator: PythonFunction) -> Self:
        """Add a grouped stream and the function that folds its records, and return the same object.

        Args:
            grouped: a stream grouped by the same type of key.
            aggregator: a plain Python function of key, value and aggregate.

        Raises:
            TopologyError: it is no grouped stream, it belongs to another builder, its keys have another type, or the
                function takes other arguments.

        >>> clicks, sales = builder.stream("clicks").group_by_key(), builder.stream("sales").group_by_key()
        >>> points = clicks.cogroup(lambda k, v, total: total + 1).cogroup(sales, lambda k, v, total: total + 10)

        Mirrors `CogroupedKStream#cogroup`.
        """
        if not isinstance(grouped, KGroupedStream):
            raise TopologyError(
                f"cogroup: give a grouped stream, such as sales.group_by_key(), not a {type(grouped).__name__}."
            )
        step = grouped._step("cogroup", grouped._name)
        for first in list(self._streams)[:1]:
            first._check_same_builder(grouped, step)
        type_inference.check_signature(aggregator, "aggregator", ("key", "value", "aggregate"), step)
        for first in list(self._streams)[:1]:
            one, two = first._grouping.key, grouped._grouping.key
            if not type_inference.same_type(one, two):
                raise TopologyError(
                    f"{step}: the keys of cogrouped streams need the same type, and are "
                    f"{type_text(one.data_type)} in {first._name} and {type_text(two.data_type)} in {grouped._name}."
                )
        self._streams[grouped] = aggregator
        return self

    def windowed_by(self, windows: AnyWindows) -> "CogroupedKStream":
        """Cut each key's records into windows of event time.

        Args:
            windows: `TimeWindows`, `SlidingWindows`, `SessionWindows` or `UnlimitedWindows`.

        Raises:
            TopologyError: they are none of these, or sliding windows without a length.

        >>> points = trades.group_by_key().cogroup(lambda key, value, total: total + 1)
        >>> windowed = points.windowed_by(TimeWindows.of_size_with_no_grace("5 seconds"))

        Mirrors `CogroupedKStream#windowedBy`.
        """
        check_windows(windows, "windowed_by (cogroup)")
        return CogroupedKStream(self._streams, self._parents, windows)

    def aggregate(
        self,
        initializer: PythonFunction,
        materialized: str | Materialized | None = None,
        *,
        merger: PythonFunction | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> KTable:
        """Fold the records of all streams into one aggregate for each key (and window).

        Args:
            initializer: a plain Python function that returns the initial aggregate.
            materialized: the name of the store that holds the aggregates, to query it.
            merger: a function of the key and the aggregates of two sessions to be merged, that returns one aggregate.
            value: the serde of the aggregates; needed, as Python functions say nothing about types.
            name: a prefix for the names of this step's nodes.

        Raises:
            TopologyError: a function or the serde is missing, or a function takes other arguments.

        >>> points = trades.group_by_key().cogroup(lambda key, value, total: total + 1)
        >>> points.aggregate(lambda: 0, "points", value=Serdes.long())

        Mirrors `CogroupedKStream#aggregate`.
        """
        first, aggregator = next(iter(self._streams.items()))
        graph, key, windows = first._graph, first._grouping.key, self._windows
        materialized = Materialized.of(materialized)
        store_name = materialized.name or graph.store_name("COGROUPKSTREAM-AGGREGATE-")
        step = first._step("aggregate", name or "cogroup")
        value = check_aggregate(initializer, aggregator, merger, value or materialized.value, windows, step)
        store = table_store(materialized, store_name, key, value, windows, step)
        parents = [self._parent(grouped, store_name).name for grouped in self._streams]
        key = windowed_key(key, windows)
        common = {"windows": windows, "store": store, "initializer": initializer, "merger": merger}
        sides: list[str] = []
        for side, aggregator in enumerate(self._streams.values()):
            sides.append(graph.name_for("COGROUPKSTREAM-AGGREGATE", name, f"-cogroup-agg-{side}"))
            fields = {"group": sides[0], "side": side, "aggregator": aggregator, **common}
            graph.add(nodes.CogroupAggregate, sides[side], (parents[side],), key, value, **fields)
        merge_name = graph.name_for("COGROUPKSTREAM-MERGE", name, "-cogroup-merge")
        return KTable(graph, graph.add(nodes.TableMerge, merge_name, tuple(sides), key, value))

    def _parent(self, grouped: KGroupedStream, store_name: str) -> nodes.Node:
        """Return the node that passes on a stream's records; a repartition is the same for all aggregations."""
        grouping = grouped._grouping
        if grouped not in self._parents:
            self._parents[grouped] = grouping.parent(store_name)
        elif grouping.rekeyed:
            grouping.names(store_name)  # Kafka Streams numbers the steps of a repartition that it does not need
        return self._parents[grouped]
