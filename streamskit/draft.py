"""`Draft`: a program while it is being written: its nodes, their names and order, the stores they come to need."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamskit.errors import TopologyError
from streamskit.serdes import Serde
from streamskit.topology import Node, Sink, Source, Store, Suppress

_PACKAGE = str(Path(__file__).parent)


class Draft:
    """The nodes of a program under way. A `StreamsBuilder` is one; each step of the DSL adds its nodes to it."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._stores_on_demand: dict[str, Store] = {}
        """By the name of a source table's node: the store it gets once a later step needs its rows kept."""
        self._counter = 0

    def _name_for(self, operator: str, given: str | None = None) -> str:
        """Return the name that was given, or the next one as Kafka Streams numbers them: KSTREAM-FILTER-0000000003.

        A given name uses up a number too, so that naming one step leaves the names of the others as they are.
        """
        number = self._counter
        self._counter += 1
        if given is None:
            return f"{operator}-{number:010d}"
        return check_name(given)

    def _store_name(self, prefix: str) -> str:
        """Return the name of a store that the learner did not name: KSTREAM-AGGREGATE-STATE-STORE-0000000001."""
        return self._name_for(f"{prefix}STATE-STORE")

    def _add(
        self, kind: Callable[..., Node], name: str, parents: tuple[str, ...], key: Serde, value: Serde, **details: Any
    ) -> Any:
        if name in self._nodes:
            raise TopologyError(
                f"Two steps are named '{name}': the first is at {self._nodes[name].written_at}, the second at "
                f"{written_at()}. Give one of them another name."
            )
        node = self._nodes[name] = kind(name, parents, key, value, written_at(), **details)
        return node

    def _move_to_end(self, first: list[str]) -> None:
        """Put nodes, and all that comes after them, behind all others.

        Kafka Streams writes a repartition topic that several steps share where it was asked for last.
        """
        moving = set(first)
        for name, node in list(self._nodes.items()):
            feeding = (self._nodes[moved] for moved in moving)
            topics = {sink.topic for sink in feeding if isinstance(sink, Sink)}
            is_fed = isinstance(node, Source) and node.internal and not topics.isdisjoint(node.topics)
            if name in moving or is_fed or not moving.isdisjoint(node.parents):
                moving.add(name)
                self._nodes[name] = self._nodes.pop(name)

    def _rows_of(self, table: Node) -> tuple[str, ...]:
        """Return the names of the stores in which a table's rows can be looked up.

        A table that keeps no rows looks into the tables it is made of; a source table keeps its rows from now on.
        """
        table = self._nodes[table.name]
        if table.name in self._stores_on_demand:
            table = replace(table, store=self._stores_on_demand.pop(table.name))  # type: ignore[call-arg]
            self._nodes[table.name] = table
        own = tuple(store.name for store in table.stores)
        if own and not isinstance(table, Suppress):
            return own
        parents = (self._nodes[name] for name in table.parents)
        found = [name for parent in parents for name in self._rows_of(parent)]
        return tuple(dict.fromkeys([*found, *own]))

    def _store(self, name: str) -> Store:
        return next(store for node in self._nodes.values() for store in node.stores if store.name == name)


def check_name(given: str) -> str:
    """Return a learner's name for a step or a store.

    Raises:
        TopologyError: it cannot be part of a topic's name.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", given) or given in (".", ".."):
        raise TopologyError(
            f"'{given}' cannot be a name: at most 249 letters, digits, dots, dashes and underscores can, because "
            "it becomes part of topic names."
        )
    return given


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
