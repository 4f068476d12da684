"""`CogroupedKStream`: several grouped streams folded into one table."""

from typing import TYPE_CHECKING

from streamskit.api.windows import AnyWindows
from streamskit.columns import type_inference
from streamskit.columns.user_functions import type_text
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import PythonFunction
from streamskit.dsl.folding import check_fold, check_windows, windowed_key
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.grouped_stream import KGroupedStream
from streamskit.dsl.materialized import Materialized
from streamskit.dsl.materializing import key_value_store, windowed_store
from streamskit.serdes import Serde
from streamskit.topology import CogroupAggregate, TableMerge

if TYPE_CHECKING:
    from streamskit.dsl.ktable import KTable


class CogroupedKStream:
    """Grouped streams, each with the function that folds its records into the common aggregate.

    Mirrors `org.apache.kafka.streams.kstream.CogroupedKStream` and its windowed forms.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        streams: dict[KGroupedStream, PythonFunction],
        windows: AnyWindows | None = None,
    ) -> None:
        self._builder = builder
        self._streams = streams
        self._windows = windows

    def cogroup(self, grouped: KGroupedStream, aggregator: PythonFunction) -> "CogroupedKStream":
        """Add a grouped stream and the function that folds its records.

        Args:
            grouped: a stream grouped by the same type of key.
            aggregator: a plain Python function of key, value and aggregate.

        Raises:
            TopologyError: it is no grouped stream, its keys have another type, or the function other arguments.

        Mirrors `CogroupedKStream#cogroup`.
        """
        if not isinstance(grouped, KGroupedStream):
            raise TopologyError(
                f"cogroup: give a grouped stream, such as sales.group_by_key(), not a {type(grouped).__name__}."
            )
        what = grouped._what("cogroup", grouped._name)
        type_inference.check_signature(aggregator, "aggregator", ("key", "value", "aggregate"), what)
        for first in list(self._streams)[:1]:
            one, two = first._grouping.key, grouped._grouping.key
            if not type_inference.same_type(one, two):
                raise TopologyError(
                    f"{what}: the keys of cogrouped streams need the same type, and are "
                    f"{type_text(one.data_type)} in {first._name} and "
                    f"{type_text(two.data_type)} in {grouped._name}."
                )
        return CogroupedKStream(self._builder, {**self._streams, grouped: aggregator}, self._windows)

    def windowed_by(self, windows: AnyWindows) -> "CogroupedKStream":
        """Cut each key's records into windows of event time. Mirrors `CogroupedKStream#windowedBy`."""
        check_windows(windows, "windowed_by (cogroup)")
        return CogroupedKStream(self._builder, self._streams, windows)

    def aggregate(
        self,
        initializer: PythonFunction,
        materialized: str | Materialized | None = None,
        *,
        merger: PythonFunction | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Fold the records of all streams into one aggregate for each key (and window).

        Args:
            initializer: a plain Python function that makes the aggregate to start with.
            materialized: the name of the store that holds the aggregates, to query it.
            merger: makes one aggregate of the key and the aggregates of two sessions that have met.
            value: the serde of the aggregates.
            name: what the names of this step's nodes begin with.

        Raises:
            TopologyError: a function or the serde is missing, or a function takes other arguments.

        Mirrors `CogroupedKStream#aggregate`.
        """
        from streamskit.dsl.ktable import KTable

        first = next(iter(self._streams))
        wanted = Materialized.of(materialized)
        store_name = wanted.name or self._builder._store_name("COGROUPKSTREAM-AGGREGATE-")
        what = first._what("aggregate", name or "cogroup")
        aggregator = self._streams[first]
        value = check_fold(initializer, aggregator, merger, value or wanted.value, self._windows, what)
        key = first._grouping.key
        if self._windows is None:
            store = key_value_store(wanted, store_name, key, value)
        else:
            store = windowed_store(wanted, store_name, key, value, self._windows, what)
        parents = [grouped._grouping.parent(store_name).name for grouped in self._streams]
        result_key = windowed_key(key, self._windows)
        sides = []
        for side, aggregator in enumerate(self._streams.values()):
            side_name = self._builder._name_for("COGROUPKSTREAM-AGGREGATE", name and f"{name}-cogroup-agg-{side}")
            sides.append(side_name)
            self._builder._add(
                CogroupAggregate,
                side_name,
                (parents[side],),
                result_key,
                value,
                windows=self._windows,
                store=store,
                group=sides[0],
                side=side,
                initializer=initializer,
                aggregator=aggregator,
                merger=merger,
            )
        merge_name = self._builder._name_for("COGROUPKSTREAM-MERGE", name and f"{name}-cogroup-merge")
        return KTable(self._builder, self._builder._add(TableMerge, merge_name, tuple(sides), result_key, value))
