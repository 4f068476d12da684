"""What a `KStream` does with each record on its own: filters, maps, side effects, sinks."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Self

from pyspark.sql import Column
from pyspark.sql import types as T

from streamskit.api.stream_partitioner import Partitioner
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import ColumnFunction, PythonFunction
from streamskit.dsl.repartition import RepartitionableStream
from streamskit.serdes import Serde, Serdes
from streamskit.topology import nodes
from streamskit.topology.nodes import Node
from streamskit.topology.source_topics import check_topic


class StatelessTransformations(RepartitionableStream):
    """The steps of a `KStream` that look at one record at a time."""

    # ---- one record to one record ------------------------------------------------------------------------------------

    def filter(self, predicate: ColumnFunction, name: str | None = None) -> Self:
        """Keep the records for which the predicate is true; null counts as false.

        Args:
            predicate: a Column function of the value, or of key and value, that makes a true-or-false Column.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a true-or-false Column.

        >>> trades.filter(lambda v: v.price > 0).to("sold")

        Mirrors `KStream#filter`; Spark's `where`.
        """
        return self._filtered(predicate, "filter", name)

    def filter_not(self, predicate: ColumnFunction, name: str | None = None) -> Self:
        """Keep the records for which the predicate is not true: false or null.

        Args:
            predicate: a Column function of the value, or of key and value, that makes a true-or-false Column.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a true-or-false Column.

        >>> trades.filter_not(lambda v: v.price > 100).to("cheap")

        Mirrors `KStream#filterNot`.
        """
        return self._filtered(predicate, "filter_not", name)

    def map_values(self, mapper: ColumnFunction, name: str | None = None) -> Self:
        """Give each record a new value; the key stays.

        Args:
            mapper: a Column function of the value, or of key and value, that makes the new value.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a Column.

        >>> trades.map_values(lambda v: v.price * v.size).to("amounts")

        Mirrors `KStream#mapValues`; Spark's `select`.
        """
        name = self._graph.name_for("KSTREAM-MAPVALUES", name)
        value = Serdes.for_type(self._result_type(mapper, "map_values", name))
        return self._next(nodes.MapValues, name, value=value, mapper=mapper)

    def map(self, mapper: ColumnFunction, name: str | None = None) -> Self:
        """Give each record a new key and a new value.

        Args:
            mapper: a Column function of key and value that returns the two Columns.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make two Columns.

        >>> trades.map(lambda k, v: (v.symbol, v.price)).to("prices")

        Mirrors `KStream#map`.
        """
        name = self._graph.name_for("KSTREAM-MAP", name)
        key, value = type_inference.infer_pair(mapper, self._inputs(), self._step("map", name))
        return self._rekeyed_by(nodes.Map, name, key=Serdes.for_type(key), value=Serdes.for_type(value), mapper=mapper)

    def select_key(self, mapper: ColumnFunction, name: str | None = None) -> Self:
        """Give each record a new key; the value stays.

        Args:
            mapper: a Column function of the value, or of key and value, that makes the new key.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a Column.

        >>> trades.select_key(lambda v: v.symbol).to("trades-by-symbol")

        Mirrors `KStream#selectKey`.
        """
        name = self._graph.name_for("KSTREAM-KEY-SELECT", name)
        key = Serdes.for_type(self._result_type(mapper, "select_key", name))
        return self._rekeyed_by(nodes.SelectKey, name, key=key, mapper=mapper)

    # ---- one record to many ------------------------------------------------------------------------------------------

    def flat_map(self, mapper: ColumnFunction, name: str | None = None) -> Self:
        """Turn each record into any number of records.

        Args:
            mapper: a Column function of key and value that returns an array of structs of two fields, the new key and
                the new value, whatever the fields are called.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make such an array.

        >>> words = lines.flat_map(lambda k, v: F.transform(F.split(v, " "), lambda word: F.struct(word, k)))

        Mirrors `KStream#flatMap`.
        """
        name = self._graph.name_for("KSTREAM-FLATMAP", name)
        element = self._element_type(mapper, "flat_map", name)
        if not isinstance(element, T.StructType) or len(element) != 2:
            raise TopologyError(
                f"{self._step('flat_map', name)}: the function has to return an array of structs with two fields, key "
                f"and value, but returns an array of {element.simpleString()}. Write "
                "F.transform(items, lambda item: F.struct(item.id.alias('key'), item.alias('value')))."
            )
        key, value = (Serdes.for_type(field.dataType) for field in element)
        one, other = element.fieldNames()
        fields = (one, other) if one.lower() != other.lower() else ("key", "value")
        mapper = _with_fields(mapper, fields, key, value)
        return self._rekeyed_by(nodes.FlatMap, name, key=key, value=value, mapper=mapper, fields=fields)

    def flat_map_values(self, mapper: ColumnFunction, name: str | None = None) -> Self:
        """Turn each record into any number of records with the same key.

        Args:
            mapper: a Column function of the value, or of key and value, that returns an array of the new values.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make an array.

        >>> words = lines.flat_map_values(lambda v: F.split(v, " "))

        Mirrors `KStream#flatMapValues`; Spark's `explode`.
        """
        name = self._graph.name_for("KSTREAM-FLATMAPVALUES", name)
        value = Serdes.for_type(self._element_type(mapper, "flat_map_values", name))
        return self._next(nodes.FlatMapValues, name, value=value, mapper=mapper)

    # ---- side effects and ends ---------------------------------------------------------------------------------------

    def peek(self, action: PythonFunction, name: str | None = None) -> Self:
        """Call a function for each record, and pass the record on as it is.

        Args:
            action: a plain Python function of key and value; what it returns does not matter.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not take two arguments.

        >>> lines.peek(lambda key, value: print(key, value)).to("seen")

        Mirrors `KStream#peek`.
        """
        return self._with_effect("KSTREAM-PEEK", "peek", action, name)

    def foreach(self, action: PythonFunction, name: str | None = None) -> None:
        """Call a function for each record; nothing is passed on.

        Args:
            action: a plain Python function of key and value; what it returns does not matter.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not take two arguments.

        >>> lines.foreach(lambda key, value: print(key, value))

        Mirrors `KStream#foreach`; Spark's `foreach`.
        """
        self._with_effect("KSTREAM-FOREACH", "foreach", action, name)

    def print(
        self,
        label: str | None = None,
        name: str | None = None,
        mapper: PythonFunction | None = None,
        file: str | Path | None = None,
    ) -> None:
        """Print each record as `[label]: key, value`.

        Args:
            label: the text in the brackets; by default the name of the previous step.
            name: a name of your own for this step.
            mapper: a plain Python function of key and value that returns what to print after the label.
            file: a file to write the lines to, as UTF-8, instead of printing them. It is emptied now, and each line is
                added at once.

        Raises:
            TopologyError: the mapper does not take two arguments, or the file cannot be written.

        >>> lines.print(label="lines", mapper=lambda key, value: f"{value} from {key}")

        Mirrors `KStream#print(Printed)`, `Printed#withLabel`, `#withKeyValueMapper`, `#toFile`; Spark's console sink.
        """
        name = self._graph.name_for("KSTREAM-PRINTER", name)
        step, title = self._step("print", name), label or self._name
        if mapper is not None:
            type_inference.check_signature(mapper, "mapper", ("key", "value"), step)
        path = _emptied(file, step) if file is not None else None

        def show(key: Any, value: Any) -> None:
            line = f"[{title}]: {f'{key}, {value}' if mapper is None else mapper(key, value)}"
            if path is None:
                print(line)
            else:
                with path.open("a", encoding="utf-8") as opened:
                    opened.write(f"{line}\n")

        self._next(nodes.SideEffect, name, action=show)

    def to(
        self,
        topic: str | ColumnFunction,
        key: Serde | None = None,
        value: Serde | None = None,
        name: str | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        """Write the records to a topic.

        Args:
            topic: the topic's name; or a Column function of the value, or of key and value, that returns each one's.
                The topics have to exist when the application starts.
            key: the serde of the keys; by default the one they came with, or the one that fits their type.
            value: the serde of the values, likewise.
            name: a name of your own for this step.
            partitioner: a `StreamPartitioner`, or a plain Python function of topic, key, value and number of
                partitions, that chooses each record's partitions; by default Kafka's own, which goes by the key.

        Raises:
            TopologyError: no topic can have this name, a serde is for another type than the records have, the function
                does not return text, or the partitioner takes other arguments.

        >>> trades.to("trades-copy")
        >>> trades.to(lambda v: F.concat(F.lit("trades-"), v.symbol))
        >>> trades.to("trades-by-size", partitioner=lambda topic, key, value, n: 0 if value["size"] > 1000 else None)

        Mirrors `KStream#to(topic, Produced)`, the partitioner `Produced#withStreamPartitioner`; Spark's Kafka sink.
        """
        name = self._graph.name_for("KSTREAM-SINK", name)
        step = self._step(f"to('{topic}')" if isinstance(topic, str) else "to", name)
        if isinstance(topic, str):
            check_topic(topic, step)
        elif not isinstance(result := self._result_type(topic, "to", name), T.StringType):
            raise TopologyError(
                f"{step}: the function has to return the topic's name, but returns a {result.simpleString()}."
            )
        key, value = self._serdes(key, value, step)
        partition = type_inference.check_partitioner(partitioner, step)
        self._after(nodes.Sink, name, key=key, value=value, topic=topic, partitioner=partition)

    # ---- how a step is added -----------------------------------------------------------------------------------------

    def _rekeyed_by(self, kind: Callable[..., Node], name: str, **fields: Any) -> Self:
        return self._at(self._after(kind, name, **fields), rekeyed=True)

    def _filtered(self, predicate: ColumnFunction, operator: str, name: str | None) -> Self:
        name = self._graph.name_for("KSTREAM-FILTER", name)
        self._check_predicate(predicate, operator, name)
        return self._next(nodes.Filter, name, predicate=predicate, negated=operator == "filter_not")

    def _with_effect(self, prefix: str, operator: str, action: PythonFunction, name: str | None) -> Self:
        name = self._graph.name_for(prefix, name)
        type_inference.check_signature(action, "action", ("key", "value"), self._step(operator, name))
        return self._next(nodes.SideEffect, name, action=action)

    def _element_type(self, mapper: ColumnFunction, operator: str, name: str) -> T.DataType:
        result = self._result_type(mapper, operator, name, by_place=operator == "flat_map")
        if not isinstance(result, T.ArrayType):
            raise TopologyError(
                f"{self._step(operator, name)}: the function has to return an array, but returns a "
                f"{result.simpleString()}: F.split(v, ' '), F.array(a, b), F.transform(v.items, ...)."
            )
        return result.elementType


def _with_fields(mapper: ColumnFunction, fields: tuple[str, str], key: Serde, value: Serde) -> ColumnFunction:
    """Return the mapper of a flat_map with its fields called so: Spark makes up another name for one each time."""
    types = zip(fields, (key, value), strict=True)
    pairs = T.ArrayType(T.StructType([T.StructField(field, serde.data_type) for field, serde in types]))

    @wraps(mapper)
    def made(*arguments: Column) -> Any:
        result = mapper(*arguments)
        return result.cast(pairs) if isinstance(result, Column) else result

    return made


def _emptied(file: str | Path, step: str) -> Path:
    """Return the whole path of a file to print to, after it was made or emptied."""
    path = Path(file).absolute()  # the program may change its folder before a record arrives
    try:
        path.write_text("")
    except OSError as failure:
        raise TopologyError(
            f"{step}: the records cannot be printed to {file}: {failure.strerror}. Give a file in a folder that exists."
        ) from failure
    return path
