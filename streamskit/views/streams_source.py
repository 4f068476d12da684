"""What a view has to know about a running application beyond the public interface of `KafkaStreams`."""

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from streamskit.runtime import KafkaStreams, State
from streamskit.topology import Topology
from streamskit.topology.nodes import Node, Sink, Source


@dataclass(frozen=True)
class Failure:
    """Why a query failed, in a sentence, and the names of the nodes to blame."""

    sentence: str
    nodes: tuple[str, ...]


def failures(streams: KafkaStreams) -> list[Failure]:
    """Return why the application has failed, or why the queries that wait to run again have failed."""
    return [Failure(str(failure), blamed(str(failure), streams.topology)) for failure in streams.failures]


def blamed(sentence: str, topology: Topology) -> tuple[str, ...]:
    """Return the nodes that a failure names where it says what failed: before the first colon.

    The error's own text follows the colon, and may quote a record's value, which can hold anything.
    """
    place = sentence.partition(": ")[0]
    return tuple(name for name in topology.nodes if _is_named(name, place))


def is_native(streams: KafkaStreams, node: Node) -> bool:
    """Return whether Spark's own operators run an aggregation, and not a task in Python."""
    return any(plan.native is not None and plan.native.name == node.name for plan in streams.plans)


def dropped_by_node(metrics: pd.DataFrame) -> Counter[str]:
    """Return how many records each node has dropped.

    Args:
        metrics: what `KafkaStreams.metrics()` returned; the columns node and dropped are read.
    """
    counts: Counter[str] = Counter()
    for node, count in metrics[["node", "dropped"]].itertuples(index=False):
        counts[node] += count
    return +counts


def why_stopped(streams: KafkaStreams) -> str:
    """Return why the application has stopped, in a sentence, or an empty text if it has not."""
    if streams.state is State.NOT_RUNNING:
        return "The application is closed; this is the last that was seen of it."
    return " ".join(failure.sentence for failure in failures(streams)) if streams.state is State.ERROR else ""


def topics_of(node: Node, application_id: str) -> list[str]:
    """Return the real names of the topics that a node reads or writes, as far as the topology names them."""
    if isinstance(node, Source):
        names = node.topics
    elif isinstance(node, Sink) and isinstance(node.topic, str):
        names = (node.topic,)
    else:
        return []
    return [f"{application_id}-{name}" if node.internal else name for name in names]


def changelogs_of(node: Node, application_id: str) -> list[str]:
    """Return the names of the changelogs to which a node's stores may be written."""
    return [f"{application_id}-{store.name}-changelog" for store in node.stores]


def _is_named(name: str, text: str) -> bool:
    words = text.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return name in words
