"""A stream on its way to other tasks, to groups, or to a table."""

from typing import TYPE_CHECKING

from streamskit.columns import type_inference
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.grouped_stream import KGroupedStream
from streamskit.dsl.materialized import Materialized
from streamskit.dsl.materializing import key_value_store
from streamskit.dsl.repartition import Names, repartition
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Node, SelectKey, TableSource

if TYPE_CHECKING:
    from streamskit.dsl.kstream import KStream
    from streamskit.dsl.ktable import KTable


class Regrouping(AbstractStream):
    """What a `KStream` can do where its records have to meet by key."""

    def __init__(self, builder: GraphBuilder, node: Node, rekeyed: bool = False) -> None:
        super().__init__(builder, node)
        self._rekeyed = rekeyed
        """Whether the key may have changed since the records were read: equal keys may be in different tasks."""
        self._repartitioned: Node | None = None

    def repartition(
        self,
        name: str | None = None,
        key: Serde | None = None,
        value: Serde | None = None,
        partitions: int | None = None,
    ) -> "KStream":
        """Send the records through a topic of the application's own, so that equal keys meet in one task.

        Args:
            name: the topic is `<application id>-<name>-repartition`.
            key: the serde of the keys in that topic.
            value: the serde of the values in that topic.
            partitions: how many partitions it has; as many as the topics that feed it when not given.

        Raises:
            TopologyError: a serde is for another type than the records have.

        Mirrors `KStream#repartition`.
        """
        from streamskit.dsl.kstream import KStream

        prefix = name or self._builder._name_for("KSTREAM-REPARTITION")
        key, value = self._serdes(key, value, self._what("repartition", prefix))
        names = Names.of(self._builder, prefix)
        return KStream(self._builder, repartition(self._builder, self._node, names, key, value, partitions))

    def to_table(self, materialized: str | Materialized | None = None, name: str | None = None) -> "KTable":
        """Take each record for the new value of its key's row; a null value deletes the row.

        Args:
            materialized: the name of the store that keeps the rows, to query it.

        Mirrors `KStream#toTable`.
        """
        from streamskit.dsl.ktable import KTable

        wanted = Materialized.of(materialized)
        name = self._builder._name_for("KSTREAM-TOTABLE", name)
        store_name = wanted.name or self._builder._store_name("KSTREAM-TOTABLE-")
        key, value = self._serdes(None, wanted.value, self._what("to_table", name))
        parent = self._node
        if self._rekeyed:
            parent = repartition(self._builder, parent, Names.of(self._builder, name), key, value)
        node = self._builder._add(TableSource, name, (parent.name,), key, value)
        self._builder._stores_on_demand[name] = key_value_store(wanted, store_name, key, value)
        if wanted.name is not None:
            self._builder._rows_of(node)
        return KTable(self._builder, node)

    def group_by_key(
        self, name: str | None = None, key: Serde | None = None, value: Serde | None = None
    ) -> KGroupedStream:
        """Group the records by the key they have.

        Args:
            name: if the key has changed, the records go through `<application id>-<name>-repartition`.
            key: the serde of the keys in that topic and in stores.
            value: the serde of the values in that topic.

        Mirrors `KStream#groupByKey(Grouped)`.
        """
        key, value = self._serdes(key, value, self._what("group_by_key", name or self._name))
        return KGroupedStream(self._builder, self._node, self._rekeyed, name, key, value)

    def group_by(
        self,
        selector: ColumnFunction,
        name: str | None = None,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> KGroupedStream:
        """Group the records by the key `selector(value)` or `selector(key, value)`, through a repartition topic.

        A record whose new key is null is left out. Args are those of `group_by_key`.

        >>> trades.group_by(lambda v: v.symbol).count()

        Mirrors `KStream#groupBy(selector, Grouped)`; Spark's `groupBy`.
        """
        node_name = self._builder._name_for("KSTREAM-KEY-SELECT", name)
        selected = Serdes.for_type(self._result(selector, "group_by", node_name))
        node = self._after(SelectKey, node_name, key=selected, mapper=selector)
        rekeyed = Regrouping(self._builder, node, rekeyed=True)
        key, value = rekeyed._serdes(key, value, self._what("group_by", node_name))
        return KGroupedStream(self._builder, node, True, name, key, value)

    def _for_join(self, topic_name: str | None) -> "KStream":
        """Return this stream, through a repartition topic if its key may have changed.

        Without a name of the learner's, all joins of this stream share one topic.
        """
        from streamskit.dsl.kstream import KStream

        if not self._rekeyed:
            return KStream(self._builder, self._node)
        names = Names.of(self._builder, topic_name or self._name)
        if self._repartitioned is None or topic_name not in (None, self._name):
            self._repartitioned = repartition(self._builder, self._node, names)
        return KStream(self._builder, self._repartitioned)

    def _serdes(self, key: Serde | None, value: Serde | None, what: str) -> tuple[Serde, Serde]:
        return (
            type_inference.check_serde(key, self._node.key, "key", what),
            type_inference.check_serde(value, self._node.value, "value", what),
        )
