"""Stores to query: filled with given rows, or as a topology fills them, record by record."""

from collections.abc import Mapping, Sequence
from typing import Any

from streamskit.api.windows import TimeWindows
from streamskit.course.labs.recording import Piped, Step
from streamskit.queries import LocalStore, local_store
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

BYTES = Serdes.byte_array()
A_DAY = 86_400_000


def table(name: str, rows: Mapping[str, Any], value: Serde) -> Any:
    """Return a key-value store that holds some rows.

    >>> table("counts", {"KO": 42}, Serdes.long()).get("KO")
    42
    """
    store = local_store(Store(name, "key-value", Serdes.string(), value))
    store.take(0, [(key.encode(), value.serialize(each), 0) for key, each in rows.items()])
    return store


def windows(name: str, rows: Mapping[tuple[str, int], Any], value: Serde, size: int) -> Any:
    """Return a window store that holds some rows, each by its key and its window's start.

    Args:
        name: of the store.
        rows: what it holds.
        value: writes the values.
        size: of the windows, in milliseconds.

    >>> windows("minutes", {("KO", 0): 3}, Serdes.long(), 60_000).fetch("KO", 0)
    3
    """
    store = local_store(
        Store(name, "window", Serdes.string(), value, TimeWindows.of_size_with_no_grace(size), retention=A_DAY)
    )
    store.take(0, [(_windowed(*key), value.serialize(each), key[1]) for key, each in rows.items()])
    return store


class Filling:
    """How a topology fills a store: what the store held after each step.

    Args:
        topology: the topology.
        store: the name of its store.
        steps: the records that go in.
    """

    def __init__(self, topology: Topology, store: str, steps: Sequence[Step]) -> None:
        self._store, self._updates = topology.store(store), list[list[tuple[bytes, bytes | None, int]]]()
        with TopologyTestDriver(topology) as driver:
            changelog = driver.create_output_topic(f"test-{store}-changelog", BYTES, BYTES)
            for step in steps:
                if isinstance(step, Piped):
                    driver.create_input_topic(step.topic).pipe_input(step.key, step.value, step.timestamp)
                came = changelog.read_records_to_list()
                self._updates.append([(update.key, update.value, update.timestamp) for update in came])

    def after(self, step: int) -> LocalStore:
        """Return the store as it was after a step."""
        store = local_store(self._store)
        for updates in self._updates[: step + 1]:
            store.take(0, updates)
        return store


def _windowed(key: str, start: int) -> bytes:
    """Return the key of a window as changelogs have it: key, start, and a number that is not used."""
    return key.encode() + start.to_bytes(8, "big", signed=True) + bytes(4)
