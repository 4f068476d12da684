"""`AbstractStream`: what every step of the DSL returns, and how the next step is added to it."""

from collections.abc import Callable
from typing import Any, Self

from pyspark.sql import types as T

from streamskit.columns import type_inference
from streamskit.columns.user_functions import type_text
from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.materialized import Materialized
from streamskit.environment.session import spark_session
from streamskit.serdes import Serde, Serdes
from streamskit.topology.nodes import Node

ColumnFunction = Callable[..., Any]
"""Takes Columns and returns one: `lambda v: v.price * v.size`. It has its arguments only: no `F.col("price")`."""

PythonFunction = Callable[..., Any]
"""Takes plain Python values and returns one: `lambda aggregate, value: aggregate + value`."""

JOIN_OPERATORS = {(False, False): "join", (True, False): "left_join", (True, True): "outer_join"}
"""The name of a join, by whether unmatched records of the left and of the right side are emitted."""


class AbstractStream:
    """The node that a step of the DSL added, and the graph to add the next one to.

    Mirrors `org.apache.kafka.streams.kstream.internals.AbstractStream`.
    """

    def __init__(self, graph: GraphBuilder, node: Node) -> None:
        self._graph = graph
        self._name = node.name

    def __repr__(self) -> str:
        key, value = (type_text(data_type) for data_type in self._inputs().values())
        return f"<{type(self).__name__} {self._name}: key {key}; value {value}>"

    @property
    def _node(self) -> Node:
        # A source table is replaced when a later step needs its rows kept, so it is looked up each time.
        return self._graph.nodes[self._name]

    # ---- adding the next step ----------------------------------------------------------------------------------------

    def _step(self, operator: str, name: str) -> str:
        """Return what an error calls a step: the operator, its name, and the line of the program."""
        return f"{operator} ({name}) at {call_site()}"

    def _after(self, kind: Callable[..., Node], name: str, **fields: Any) -> Node:
        """Add a node after this one; it has the key and value serdes of this node unless they are among the fields."""
        key, value = fields.pop("key", self._node.key), fields.pop("value", self._node.value)
        node: Node = self._graph.add(kind, name, (self._name,), key, value, **fields)
        return node

    def _next(self, kind: Callable[..., Node], name: str, **fields: Any) -> Self:
        """Add a node after this one, and return the stream or table at that node."""
        return self._at(self._after(kind, name, **fields))

    def _at(self, node: Node) -> Self:
        """Return the same kind of stream or table at another node."""
        return type(self)(self._graph, node)

    def _materialized(self, materialized: str | Materialized | None, prefix: str) -> Materialized:
        """Return how a step keeps its results; without a name it uses up a store's name, as in Kafka Streams."""
        if isinstance(materialized, Materialized) and materialized.name is None:
            self._graph.store_name(prefix)
        return Materialized.of(materialized)

    # ---- users' functions and serdes ---------------------------------------------------------------------------------

    def _inputs(self) -> dict[str, T.DataType]:
        spark_session()  # neither a type nor a Column can be made without a session
        return {"key": self._node.key.data_type, "value": self._node.value.data_type}

    def _result_type(self, function: ColumnFunction, operator: str, name: str, by_place: bool = False) -> T.DataType:
        """Try a user's function on Columns of the right types, and return the type it makes; see `infer_type`."""
        return type_inference.infer_type(function, self._inputs(), self._step(operator, name), by_place=by_place)

    def _joined_serde(self, joiner: ColumnFunction, other: "AbstractStream", operator: str, name: str) -> Serde:
        """Try a joiner on Columns of the two values, or of key and values, and return the serde of its result."""
        key, left, right = self._node.key, self._node.value, other._node.value
        inputs = {"key": key.data_type, "left": left.data_type, "right": right.data_type}
        return Serdes.for_type(type_inference.infer_type(joiner, inputs, self._step(operator, name), at_least=2))

    def _serdes(self, key: Serde | None, value: Serde | None, step: str) -> tuple[Serde, Serde]:
        """Return the user's serdes, or by default those of this node; they have to be for the same types."""
        return (
            type_inference.check_serde(key, self._node.key, "key", step),
            type_inference.check_serde(value, self._node.value, "value", step),
        )

    def _check_predicate(self, predicate: ColumnFunction, operator: str, name: str) -> None:
        result = self._result_type(predicate, operator, name)
        if not isinstance(result, T.BooleanType):
            raise TopologyError(
                f"{self._step(operator, name)}: the function has to return true or false, but returns a "
                f"{result.simpleString()}. Compare with something: lambda v: v.price > 0."
            )

    def _check_same_builder(self, other: "AbstractStream", step: str) -> None:
        if other._graph is not self._graph:
            raise TopologyError(
                f"{step}: {other._name} belongs to another StreamsBuilder, and a program has one: make both with the "
                "same builder."
            )

    def _check_same_key(self, other: "AbstractStream", operator: str, name: str) -> None:
        one, two = self._node.key, other._node.key
        if not type_inference.same_type(one, two):
            raise TopologyError(
                f"{self._step(operator, name)}: the keys are {type_text(one.data_type)} here and "
                f"{type_text(two.data_type)} in {other._name}; records only meet where both sides have the "
                "same key type. Give one side another key with select_key."
            )

    def _check_selects_key(
        self, function: ColumnFunction, argument: str, other: "AbstractStream", title: str, step: str
    ) -> None:
        """Check that the function given as `argument` returns keys of the other side, which errors call `title`."""
        serde = Serdes.for_type(type_inference.infer_type(function, self._inputs(), f"{step}, {argument}"))
        if not type_inference.same_type(serde, other._node.key):
            raise TopologyError(
                f"{step}: {argument} makes a {type_text(serde.data_type)}, and the keys of {title} are "
                f"{type_text(other._node.key.data_type)}."
            )
