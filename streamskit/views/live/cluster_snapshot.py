"""What a view shows of the instances of an application at one moment, as plain values."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from streamskit.queries.metadata import InstanceState

MOVES = 12
"""So many of the last moves are remembered."""


@runtime_checkable
class Instances(Protocol):
    """What a `ClusterView` looks at, and what its buttons call."""

    def instances(self) -> Sequence[InstanceState]:
        """Return the instances as they are now."""

    def start(self) -> object:
        """Start one more instance."""

    def kill(self, server: str) -> object:
        """End an instance at once, as a crash would."""


@dataclass(frozen=True)
class Move:
    """Something that changed hands: when, in seconds since 1970, and what, as a sentence."""

    at: float
    sentence: str


@dataclass(frozen=True)
class ClusterSnapshot:
    """The instances at one moment; `taken_at` in seconds since 1970; `moves` are the last hand-overs, oldest first."""

    name: str
    instances: Sequence[InstanceState]
    moves: Sequence[Move]
    taken_at: float
    stopped: str = ""

    @property
    def unserved(self) -> list[tuple[str, int]]:
        """The partitions of stores that nobody hosts in full: queries for their keys have to wait."""
        return sorted(_places(self.instances) - {
            (task.store, task.partition)
            for instance in self.instances if instance.alive
            for task in instance.tasks if task.role == "active" and not task.is_restoring
        })  # fmt: skip


def cluster_snapshot(
    name: str, source: Instances, previous: ClusterSnapshot | None = None, clock: Callable[[], float] = time.time
) -> ClusterSnapshot:
    """Look at the instances.

    Args:
        name: what they belong to.
        source: tells of them.
        previous: the snapshot before, to tell what has changed hands.
        clock: tells the time, in seconds since 1970.
    """
    instances, now = sorted(source.instances(), key=lambda instance: instance.server), clock()
    moves = [*previous.moves, *_moves(previous.instances, instances, now)] if previous else []
    return ClusterSnapshot(name, instances, moves[-MOVES:], now)


def _moves(before: Sequence[InstanceState], after: Sequence[InstanceState], now: float) -> list[Move]:
    """Return what has changed, in sentences: instances first, then what each partition does elsewhere now."""
    was, now_is = ({each.server for each in side if each.alive} for side in (before, after))
    said = [f"{server} has joined" for server in sorted(now_is - was)]
    said += [f"{server} is gone" for server in sorted(was - now_is)]
    old, new = _active(before), _active(after)
    for place in sorted(old | new):
        one, two = old.get(place), new.get(place)
        if one != two:
            moved = f"{place[0]} {place[1]}: active on {two or 'no instance'}, before on {one or 'none'}"
            said.append(moved + (", where it was a standby" if two and (two, *place) in _standbys(before) else ""))
    return [Move(now, sentence) for sentence in said]


def _active(instances: Sequence[InstanceState]) -> dict[tuple[str, int], str]:
    return {
        (task.store, task.partition): instance.server
        for instance in instances
        if instance.alive
        for task in instance.tasks
        if task.role == "active"
    }


def _standbys(instances: Sequence[InstanceState]) -> set[tuple[str, str, int]]:
    return {
        (instance.server, task.store, task.partition)
        for instance in instances
        if instance.alive
        for task in instance.tasks
        if task.role == "standby"
    }


def _places(instances: Sequence[InstanceState]) -> set[tuple[str, int]]:
    return {(task.store, task.partition) for instance in instances for task in instance.tasks}
