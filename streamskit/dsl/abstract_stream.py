"""`AbstractStream`: what every step of the DSL returns, and how a step is added."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import types as T

from streamskit.columns import type_inference
from streamskit.columns.user_functions import type_text
from streamskit.common.call_site import call_site
from streamskit.common.errors import TopologyError
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.environment.session import spark_session
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Node

ColumnFunction = Callable[..., Any]
"""Takes Columns and returns one: `lambda v: v.price * v.size`."""

PythonFunction = Callable[..., Any]
"""Takes plain Python values and returns one: `lambda aggregate, value: aggregate + value`."""


class AbstractStream:
    """The node that a step of the DSL added, and the draft to add the next one to."""

    def __init__(self, builder: GraphBuilder, node: Node) -> None:
        self._builder = builder
        self._name = node.name

    def __repr__(self) -> str:
        key, value = (type_text(data_type) for data_type in self._inputs().values())
        return f"<{type(self).__name__} {self._name}: key {key}; value {value}>"

    @property
    def _node(self) -> Node:
        # A source table is replaced when a later step needs its rows kept, so it is looked up each time.
        return self._builder._nodes[self._name]

    def _inputs(self) -> dict[str, T.DataType]:
        spark_session()  # neither a type nor a Column can be made without one
        return {"key": self._node.key.data_type, "value": self._node.value.data_type}

    def _result(self, function: ColumnFunction, operator: str, name: str, aggregate: bool = False) -> T.DataType:
        """Try a learner's function on Columns of the right types, and return the type it makes."""
        return type_inference.infer_type(function, self._inputs(), self._what(operator, name), aggregate)

    def _joined(
        self, joiner: ColumnFunction, left: Serde, right: Serde, operator: str, name: str, key: Serde | None = None
    ) -> Serde:
        """Try a joiner on Columns of the two values, or of key and values, and return the serde of what it makes."""
        key = key or self._node.key
        inputs = {"key": key.data_type, "left": left.data_type, "right": right.data_type}
        return Serdes.for_type(type_inference.infer_type(joiner, inputs, self._what(operator, name), at_least=2))

    def _check_predicate(self, predicate: ColumnFunction, operator: str, name: str) -> None:
        made = self._result(predicate, operator, name)
        if not isinstance(made, T.BooleanType):
            raise TopologyError(
                f"{self._what(operator, name)}: the function must say true or false, and makes a "
                f"{made.simpleString()}. Compare with something: lambda v: v.price > 0."
            )

    def _check_same_key(self, other: "AbstractStream", operator: str, name: str) -> None:
        one, two = self._node.key, other._node.key
        if not type_inference.same_type(one, two):
            raise TopologyError(
                f"{self._what(operator, name)}: the keys are {type_text(one.data_type)} here and "
                f"{type_text(two.data_type)} in {other._name}; records only meet where both sides have the "
                "same key type. Give one side another key with select_key."
            )

    def _after(self, kind: Callable[..., Node], name: str, **details: Any) -> Node:
        """Add a node after this one; key and value serdes are those of this node unless given."""
        key, value = details.pop("key", self._node.key), details.pop("value", self._node.value)
        return self._builder._add(kind, name, (self._name,), key, value, **details)

    def _what(self, operator: str, name: str) -> str:
        return f"{operator} ({name}) at {call_site()}"
