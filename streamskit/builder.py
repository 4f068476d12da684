"""`StreamsBuilder`: where a program starts, and where its nodes get their names."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamskit.errors import TopologyError
from streamskit.kstream import KStream
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Node, Source, Topology

_PACKAGE = str(Path(__file__).parent)


class StreamsBuilder:
    """Collects the steps of a program and builds its topology.

    Mirrors `org.apache.kafka.streams.StreamsBuilder`.

    >>> builder = StreamsBuilder()
    >>> builder.stream("lines").filter(lambda v: v.contains("Kafka")).to("kafka-lines")
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._counter = 0

    def stream(self, *topics: str, key: Serde | None = None, value: Serde | None = None) -> KStream:
        """Read one topic, or several as one stream.

        Args:
            topics: the topics' names.
            key: the serde of the keys; text when not given.
            value: the serde of the values; text when not given.

        Raises:
            TopologyError: no topic is named, or one is read twice.

        Mirrors `StreamsBuilder#stream(topic, Consumed)`.
        """
        if not topics:
            raise TopologyError("stream() needs the name of a topic: builder.stream('orders').")
        for topic in topics:
            for source in (node for node in self._nodes if isinstance(node, Source)):
                if topic in source.topics:
                    raise TopologyError(
                        f"Topic '{topic}' is already read by {source.name} ({source.written_at}): keep that stream "
                        "in a variable and use it twice."
                    )
        name = self._name("KSTREAM-SOURCE")
        source = self._add(Source, name, (), key or Serdes.string(), value or Serdes.string(), topics=topics)
        return KStream(self, source)

    def build(self) -> Topology:
        """Return the finished topology.

        Raises:
            TopologyError: the program reads no topic.
        """
        if not self._nodes:
            raise TopologyError("The topology is empty: start with builder.stream('a-topic').")
        return Topology(self._nodes)

    def _name(self, operator: str) -> str:
        """Return the next name, as Kafka Streams numbers them: KSTREAM-FILTER-0000000003."""
        name = f"{operator}-{self._counter:010d}"
        self._counter += 1
        return name

    def _add(
        self,
        kind: Callable[..., Node],
        name: str,
        parents: tuple[str, ...],
        key: Serde,
        value: Serde,
        **details: Any,
    ) -> Any:
        node = kind(name, parents, key, value, written_at(), **details)
        self._nodes.append(node)
        return node


def written_at() -> str:
    """Return the line of the learner's program that is being run, as "In[3] line 2" or "app.py line 12"."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{file_label(frame.f_code.co_filename)} line {frame.f_lineno}"


def file_label(filename: str) -> str:
    """Return a file's name, or In[n] for the cell of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In[{cells[filename]}]" if filename in cells else Path(filename).name
