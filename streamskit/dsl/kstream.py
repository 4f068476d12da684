"""`KStream`: the DSL for streams of independent records."""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import types as T

from streamskit.api.processor import FixedKeyProcessor, Processor
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction, PythonFunction
from streamskit.dsl.branched_stream import BranchedKStream
from streamskit.dsl.stream_joins import StreamJoins
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology import (
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Merge,
    Node,
    Process,
    SelectKey,
    SideEffect,
    Sink,
)


class KStream(StreamJoins):
    """A stream of records, each independent of those before it.

    Every step takes a `name=` of your own for its node. Mirrors `org.apache.kafka.streams.kstream.KStream`.
    """

    # ---- one record to one record ------------------------------------------------------------------------------------

    def filter(self, predicate: ColumnFunction, name: str | None = None) -> "KStream":
        """Keep the records for which `predicate(value)` or `predicate(key, value)` is true; null counts as false.

        Raises:
            TopologyError: the function does not make a true-or-false Column.

        >>> trades.filter(lambda v: v.price > 0)

        Mirrors `KStream#filter`; Spark's `where`.
        """
        return self._filtered(predicate, "filter", name)

    def filter_not(self, predicate: ColumnFunction, name: str | None = None) -> "KStream":
        """Keep the records for which `predicate(value)` or `predicate(key, value)` is not true: false or null.

        >>> trades.filter_not(lambda v: v.price > 100)

        Mirrors `KStream#filterNot`.
        """
        return self._filtered(predicate, "filter_not", name)

    def map_values(self, mapper: ColumnFunction, name: str | None = None) -> "KStream":
        """Give each record the value `mapper(value)` or `mapper(key, value)`; the key stays.

        Raises:
            TopologyError: the function does not make a Column.

        >>> trades.map_values(lambda v: v.price * v.size)

        Mirrors `KStream#mapValues`; Spark's `select`.
        """
        name = self._builder._name_for("KSTREAM-MAPVALUES", name)
        value = Serdes.for_type(self._result(mapper, "map_values", name))
        return self._next(MapValues, name, value=value, mapper=mapper)

    def map(self, mapper: ColumnFunction, name: str | None = None) -> "KStream":
        """Give each record a new key and value: `mapper(key, value)` returns the two Columns.

        Raises:
            TopologyError: the function does not make two Columns.

        >>> trades.map(lambda k, v: (v.symbol, v.price))

        Mirrors `KStream#map`.
        """
        name = self._builder._name_for("KSTREAM-MAP", name)
        key, value = type_inference.infer_pair(mapper, self._inputs(), self._what("map", name))
        return self._rekeying(Map, name, key=Serdes.for_type(key), value=Serdes.for_type(value), mapper=mapper)

    def select_key(self, mapper: ColumnFunction, name: str | None = None) -> "KStream":
        """Give each record the key `mapper(value)` or `mapper(key, value)`; the value stays.

        >>> trades.select_key(lambda v: v.symbol)

        Mirrors `KStream#selectKey`.
        """
        name = self._builder._name_for("KSTREAM-KEY-SELECT", name)
        key = Serdes.for_type(self._result(mapper, "select_key", name))
        return self._rekeying(SelectKey, name, key=key, mapper=mapper)

    def process(
        self,
        processor: Callable[[], Processor],
        stores: Sequence[Store | str] = (),
        key: Serde | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> "KStream":
        """Give the records to a processor of your own, and go on with those it forwards.

        Args:
            processor: a subclass of `Processor`, or a function that makes one; each task has its own.
            stores: what it may use: stores made by `Stores`, or names of those that were added or that tables keep.
            key: the serde of the keys that it forwards; that of this stream when not given.
            value: the serde of the values, likewise.
            name: of this step.

        Raises:
            TopologyError: `processor` cannot be called, or there is no such store.

        >>> lines.process(Shout).to("loud-lines")

        Mirrors `KStream#process`; Spark's `transformWithState`.
        """
        name = self._processor_name("KSTREAM-PROCESSOR", name)
        details = self._processing(processor, stores, "process", name)
        key, value = key or self._node.key, value or self._node.value
        return self._rekeying(Process, name, key=key, value=value, **details)

    def process_values(
        self,
        processor: Callable[[], FixedKeyProcessor],
        stores: Sequence[Store | str] = (),
        value: Serde | None = None,
        name: str | None = None,
    ) -> "KStream":
        """Give the records to a processor that leaves their keys alone, so that nothing has to be repartitioned.

        Args:
            processor: a subclass of `FixedKeyProcessor`, or a function that makes one; each task has its own.
            stores: what it may use, as in `process`.
            value: the serde of the values that it forwards; that of this stream when not given.
            name: of this step.

        Raises:
            TopologyError: `processor` cannot be called, or there is no such store.

        >>> lines.process_values(Length, value=Serdes.integer()).to("lengths")

        Mirrors `KStream#processValues`.
        """
        name = self._processor_name("KSTREAM-PROCESSVALUES", name)
        details = self._processing(processor, stores, "process_values", name)
        return self._next(Process, name, value=value or self._node.value, **details)

    # ---- one record to many ------------------------------------------------------------------------------------------

    def flat_map(self, mapper: ColumnFunction, name: str | None = None) -> "KStream":
        """Make any number of records of each: `mapper` returns an array of structs of two fields, key and value.

        Raises:
            TopologyError: the function does not make such an array.

        >>> lines.flat_map(lambda k, v: F.transform(F.split(v, ","), lambda part: F.struct(part, k)))

        Mirrors `KStream#flatMap`.
        """
        name = self._builder._name_for("KSTREAM-FLATMAP", name)
        element = self._element(mapper, "flat_map", name)
        if not isinstance(element, T.StructType) or len(element) != 2:
            raise TopologyError(
                f"{self._what('flat_map', name)}: the function has to make an array of structs with two fields, key "
                f"and value, and makes an array of {element.simpleString()}. Write "
                "F.transform(items, lambda item: F.struct(item.id.alias('key'), item.alias('value')))."
            )
        key, value = (Serdes.for_type(field.dataType) for field in element)
        fields = tuple(element.fieldNames())
        return self._rekeying(FlatMap, name, key=key, value=value, mapper=mapper, fields=fields)

    def flat_map_values(self, mapper: ColumnFunction, name: str | None = None) -> "KStream":
        """Make any number of records of each, with its key: `mapper` returns an array of the values.

        Raises:
            TopologyError: the function does not make an array.

        >>> lines.flat_map_values(lambda v: F.split(v, " "))

        Mirrors `KStream#flatMapValues`; Spark's `explode`.
        """
        name = self._builder._name_for("KSTREAM-FLATMAPVALUES", name)
        value = Serdes.for_type(self._element(mapper, "flat_map_values", name))
        return self._next(FlatMapValues, name, value=value, mapper=mapper)

    def split(self, name: str | None = None) -> BranchedKStream:
        """Begin to split the stream into branches; each record goes to the first that wants it.

        Args:
            name: what the branches' names begin with.

        >>> trades.split("b-").branch(lambda v: v.price > 100, name="high").default_branch(name="low")["b-high"]

        Mirrors `KStream#split`.
        """
        return BranchedKStream(self, name)

    def merge(self, other: "KStream", name: str | None = None) -> "KStream":
        """Return one stream of the records of both; nothing is said about the order between the two.

        Raises:
            TopologyError: the other is no stream, or has other types.

        Mirrors `KStream#merge`; Spark's `union`.
        """
        name = self._builder._name_for("KSTREAM-MERGE", name)
        if not isinstance(other, KStream):
            raise TopologyError(f"{self._what('merge', name)}: only a stream can be merged in, not {_kind(other)}.")
        for part in ("key", "value"):
            type_inference.check_serde(
                getattr(other._node, part), getattr(self._node, part), f"{part} here", self._what("merge", name)
            )
        parents = (self._name, other._name)
        node = self._builder._add(Merge, name, parents, self._node.key, self._node.value)
        return KStream(self._builder, node, self._rekeyed or other._rekeyed)

    # ---- side effects and ends ---------------------------------------------------------------------------------------

    def peek(self, action: PythonFunction, name: str | None = None) -> "KStream":
        """Call a plain Python function `action(key, value)` for each record, and pass the record on as it is.

        Mirrors `KStream#peek`.
        """
        return self._with_effect("KSTREAM-PEEK", "peek", action, name)

    def foreach(self, action: PythonFunction, name: str | None = None) -> None:
        """Call a plain Python function `action(key, value)` for each record. Mirrors `KStream#foreach`."""
        self._with_effect("KSTREAM-FOREACH", "foreach", action, name)

    def print(self, label: str | None = None, name: str | None = None) -> None:
        """Print each record as `[label]: key, value`; the label is this step's name when not given.

        Mirrors `KStream#print`; Spark's console sink.
        """
        shown = label or self._name

        def show(key: Any, value: Any) -> None:
            print(f"[{shown}]: {key}, {value}")

        self._with_effect("KSTREAM-PRINTER", "print", show, name)

    def to(
        self,
        topic: str | ColumnFunction,
        key: Serde | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> None:
        """Write the records to a topic.

        Args:
            topic: the topic's name; or a Column function of the value, or of key and value, that names each record's.
                The topics have to exist when the application starts.
            key: the serde of the keys; by default the one they came with, or the one that fits their type.
            value: the serde of the values, likewise.

        Raises:
            TopologyError: a serde is for another type than the records have.

        Mirrors `KStream#to(topic, Produced)`; Spark's Kafka sink.
        """
        name = self._builder._name_for("KSTREAM-SINK", name)
        what = self._what(f"to('{topic}')" if isinstance(topic, str) else "to", name)
        if not isinstance(topic, str) and not isinstance(made := self._result(topic, "to", name), T.StringType):
            raise TopologyError(
                f"{what}: the function has to make the topic's name, and makes a {made.simpleString()}."
            )
        key, value = self._serdes(key, value, what)
        self._after(Sink, name, key=key, value=value, topic=topic)

    # ---- how a step is added -----------------------------------------------------------------------------------------

    def _next(self, kind: Callable[..., Node], name: str, **details: Any) -> "KStream":
        return KStream(self._builder, self._after(kind, name, **details), self._rekeyed)

    def _processor_name(self, operator: str, given: str | None) -> str:
        # Unlike that of any other step, a given name of a processor uses up no number.
        return self._builder._name_for(operator) if given is None else check_name(given)

    def _processing(
        self, processor: PythonFunction, stores: Sequence[Store | str], operator: str, name: str
    ) -> dict[str, Any]:
        what = self._what(operator, name)
        type_inference.check_signature(processor, "processor", (), what)
        return {"supplier": processor, **self._builder._stores_for(stores, what)}

    def _rekeying(self, kind: Callable[..., Node], name: str, **details: Any) -> "KStream":
        return KStream(self._builder, self._after(kind, name, **details), rekeyed=True)

    def _filtered(self, predicate: ColumnFunction, operator: str, name: str | None) -> "KStream":
        name = self._builder._name_for("KSTREAM-FILTER", name)
        self._check_predicate(predicate, operator, name)
        return self._next(Filter, name, predicate=predicate, negated=operator == "filter_not")

    def _with_effect(self, prefix: str, operator: str, action: PythonFunction, name: str | None) -> "KStream":
        name = self._builder._name_for(prefix, name)
        type_inference.check_signature(action, "action", ("key", "value"), self._what(operator, name))
        return self._next(SideEffect, name, action=action)

    def _element(self, mapper: ColumnFunction, operator: str, name: str) -> T.DataType:
        made = self._result(mapper, operator, name)
        if not isinstance(made, T.ArrayType):
            raise TopologyError(
                f"{self._what(operator, name)}: the function has to make an array, and makes a "
                f"{made.simpleString()}: F.split(v, ' '), F.array(a, b), F.transform(v.items, ...)."
            )
        return made.elementType


def _kind(thing: Any) -> str:
    return f"a {type(thing).__name__}" if isinstance(thing, AbstractStream) else repr(thing)
