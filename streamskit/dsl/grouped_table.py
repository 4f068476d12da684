"""`KGroupedTable`: a table's rows grouped by another key, to be counted, reduced, aggregated."""

from functools import wraps
from typing import TYPE_CHECKING, Any

from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import AbstractStream, PythonFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.materialized import Materialized
from streamskit.dsl.materializing import key_value_store
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Node, Sink, Source, TableAggregate

if TYPE_CHECKING:
    from streamskit.dsl.ktable import KTable


class KGroupedTable(AbstractStream):
    """Rows grouped by another key. When a row changes, its old value is taken out of its group and the new put in.

    Mirrors `org.apache.kafka.streams.kstream.KGroupedTable`.
    """

    def __init__(self, builder: GraphBuilder, node: Node, topic_name: str | None) -> None:
        super().__init__(builder, node)
        self._topic_name = topic_name
        self._shared: tuple[Sink, Source] | None = None

    def count(self, materialized: str | Materialized | None = None, name: str | None = None) -> "KTable":
        """Count the rows of each group.

        Args:
            materialized: the name of the store that holds the counts, to query it.
            name: a name of your own for this step.

        Mirrors `KGroupedTable#count`.
        """
        wanted, store_name = self._wanted(materialized)
        value = type_inference.check_serde(wanted.value, Serdes.long(), "count", self._what("count", name or "KTABLE"))
        return self._folded("KTABLE-AGGREGATE", wanted, store_name, value, name, _zero, _one_more, _one_less)

    def reduce(
        self,
        adder: PythonFunction,
        subtractor: PythonFunction,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Fold the values of each group into one of the same type.

        Args:
            adder: a plain Python function of the aggregate and a row's new value, that puts it in.
            subtractor: of the aggregate and a row's old value, that takes it out.
            materialized: the name of the store that holds the results, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: a function does not take two arguments.

        >>> grouped.reduce(lambda total, v: total + v, lambda total, v: total - v, "totals")

        Mirrors `KGroupedTable#reduce`.
        """
        wanted, store_name = self._wanted(materialized)
        what = self._what("reduce", name or store_name)
        for role, function in (("adder", adder), ("subtractor", subtractor)):
            type_inference.check_signature(function, role, ("aggregate", "value"), what)
        value = type_inference.check_serde(wanted.value, self._node.value, "value", what)
        add, subtract = _without_key(adder), _without_key(subtractor)
        return self._folded("KTABLE-REDUCE", wanted, store_name, value, name, None, add, subtract)

    def aggregate(
        self,
        initializer: PythonFunction,
        adder: PythonFunction,
        subtractor: PythonFunction,
        materialized: str | Materialized | None = None,
        *,
        value: Serde | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Aggregate the rows of each group with plain Python functions.

        Args:
            initializer: makes the aggregate that a group starts with.
            adder: makes the next aggregate of group key, a row's new value and the aggregate.
            subtractor: makes the next aggregate of group key, a row's old value and the aggregate.
            materialized: the name of the store that holds the aggregates, to query it.
            value: the serde of the aggregates; needed, as Python functions say nothing about types.
            name: a name of your own for this step.

        Raises:
            TopologyError: a function takes other arguments, or the serde is missing.

        Mirrors `KGroupedTable#aggregate`.
        """
        wanted, store_name = self._wanted(materialized)
        what = self._what("aggregate", name or store_name)
        type_inference.check_signature(initializer, "initializer", (), what)
        for role, function in (("adder", adder), ("subtractor", subtractor)):
            type_inference.check_signature(function, role, ("key", "value", "aggregate"), what)
        value = value or wanted.value
        if value is None:
            raise TopologyError(f"{what}: say which serde writes the aggregates: value=Serdes.json('array<string>').")
        return self._folded("KTABLE-AGGREGATE", wanted, store_name, value, name, initializer, adder, subtractor)

    def _wanted(self, materialized: str | Materialized | None) -> tuple[Materialized, str]:
        wanted = Materialized.of(materialized)
        return wanted, wanted.name or self._builder._store_name("KTABLE-AGGREGATE-")

    def _folded(
        self,
        prefix: str,
        wanted: Materialized,
        store_name: str,
        value: Serde,
        name: str | None,
        initializer: PythonFunction | None,
        adder: PythonFunction,
        subtractor: PythonFunction,
    ) -> "KTable":
        from streamskit.dsl.ktable import KTable

        sink_name = self._builder._name_for("KSTREAM-SINK", name and f"{name}-sink")
        source_name = self._builder._name_for("KSTREAM-SOURCE", name and f"{name}-source")
        name = self._builder._name_for(prefix, name)
        source = self._repartitioned(sink_name, source_name, f"{self._topic_name or store_name}-repartition")
        node = self._builder._add(
            TableAggregate,
            name,
            (source.name,),
            self._node.key,
            value,
            initializer=initializer,
            adder=adder,
            subtractor=subtractor,
            store=key_value_store(wanted, store_name, self._node.key, value),
        )
        return KTable(self._builder, node)

    def _repartitioned(self, sink_name: str, source_name: str, topic: str) -> Source:
        """Send the rows, each with its old value, through a topic; one that the learner named is shared."""
        if self._shared is not None and self._topic_name is not None:
            self._builder._move_to_end([self._shared[0].name])
            return self._shared[1]
        sink: Sink = self._after(Sink, sink_name, topic=topic, internal=True, changes=True)  # type: ignore[assignment]
        key, value = self._node.key, self._node.value
        source: Source = self._builder._add(Source, source_name, (), key, value, topics=(topic,), internal=True)
        self._shared = sink, source
        return source


def _without_key(function: PythonFunction) -> PythonFunction:
    @wraps(function)
    def folded(key: Any, value: Any, aggregate: Any) -> Any:
        return function(aggregate, value)

    return folded


def _zero() -> int:
    return 0


def _one_more(key: Any, value: Any, count: int) -> int:
    return count + 1


def _one_less(key: Any, value: Any, count: int) -> int:
    return count - 1
