"""Puts its user's prefix before an application's id, the topics that it names, and its dead-letter topics."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.error_handlers import (
    ErrorHandlerContext,
    Handler,
    LogAndContinue,
    LogAndFail,
    Response,
    as_function,
)
from streamskit.api.streams_config import StreamsConfig
from streamskit.common.names import own_name, own_prefix
from streamskit.topology import Topology
from streamskit.topology.nodes import Node, Sink, Source


def own_config(config: StreamsConfig) -> StreamsConfig:
    """Return the config under the prefix: the application's id, and the topics that its handlers write to."""
    if not own_prefix():
        return config
    return replace(
        config,
        application_id=own_name(config.application_id),
        deserialization_handler=_own_handler(config.deserialization_handler),
        processing_handler=_own_handler(config.processing_handler),
        production_handler=_own_handler(config.production_handler),
    )


def own_topology(topology: Topology) -> Topology:
    """Return the topology with the topics under the prefix; one without a prefix is the topology itself."""
    if not own_prefix():
        return topology
    return topology.with_each_node(_own_node)


def _own_node(node: Node) -> Node:
    if isinstance(node, Source) and not node.internal:
        return replace(node, topics=tuple(map(own_name, node.topics)), pattern=_own_pattern(node.pattern))
    if isinstance(node, Sink) and not node.internal:
        return replace(node, topic=own_name(node.topic) if isinstance(node.topic, str) else _own_choice(node.topic))
    return node


def _own_pattern(pattern: str) -> str:
    prefix = re.escape(own_prefix())
    return pattern if not pattern or pattern.startswith(prefix) else f"{prefix}(?:{pattern})"


def _own_choice(choose: Callable[..., Column]) -> Callable[..., Column]:
    """Return a function that puts the prefix before the topic that another one chooses for each record."""
    prefix = own_prefix()

    @wraps(choose)
    def chosen(*columns: Column) -> Column:
        topic = choose(*columns)
        return F.when(F.startswith(topic, F.lit(prefix)), topic).otherwise(F.concat(F.lit(prefix), topic))

    return chosen


def _own_handler(handler: Handler | None) -> Handler | None:
    if handler is None:
        return None
    handler = as_function(handler)
    if isinstance(handler, LogAndFail | OwnLetters):
        return handler
    if isinstance(handler, LogAndContinue):
        topic = handler.dead_letter_topic
        return handler if topic is None else replace(handler, dead_letter_topic=own_name(topic))
    return OwnLetters(handler, own_prefix())


@dataclass(frozen=True)
class OwnLetters:
    """A handler whose dead letters go to topics under a prefix."""

    handler: Handler
    prefix: str

    def __call__(self, context: ErrorHandlerContext, record: Any, exception: Exception) -> Any:
        response: Any = self.handler(context, record, exception)
        if not isinstance(response, Response):
            return response  # the caller reports what is wrong with it
        letters = (
            letter if letter.topic.startswith(self.prefix) else replace(letter, topic=self.prefix + letter.topic)
            for letter in response.dead_letters
        )
        return replace(response, dead_letters=tuple(letters))
