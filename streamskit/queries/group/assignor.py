"""How the instances of an application share its tasks: evenly, and so that whoever has a copy keeps it.

A task is one partition of a sub-topology with all its stores, named as in Kafka Streams: "0_2" is partition 2 of
sub-topology 0. An instance that has all of a task goes on answering for it until the one that is to take it over has
caught up; meanwhile the latter is warming up.

Mirrors `HighAvailabilityTaskAssignor`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streamskit.queries.group.catalogue import split


@dataclass(frozen=True)
class ClientState:
    """An instance, as it describes itself when it joins.

    `ready` are the tasks it could answer for at once, `active` those it did until now; `positions` says how far its
    copies are, in offsets, and `standbys` how many standby replicas of each task it was asked to help to keep.
    """

    id: str
    server: str
    ready: frozenset[str] = frozenset()
    active: frozenset[str] = frozenset()
    positions: Mapping[str, int] = field(default_factory=dict)
    standbys: int = 0


@dataclass(frozen=True)
class TaskAssignment:
    """Who answers for each task, who keeps a replica of it, and who warms up to take it over, by the members' ids."""

    active: Mapping[str, str] = field(default_factory=dict)
    standby: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warmup: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def roles(self, member: str) -> dict[str, str]:
        """Return what a member is to each of its tasks: "active", "standby" or "warmup"."""
        roles = {task: "warmup" for task, members in self.warmup.items() if member in members}
        roles |= {task: "standby" for task, members in self.standby.items() if member in members}
        return roles | {task: "active" for task, owner in self.active.items() if owner == member}


def assign_tasks(tasks: Iterable[str], members: Sequence[ClientState]) -> TaskAssignment:
    """Return who gets which task.

    Each member answers for as many tasks as any other, give or take one, as soon as those that are to take one over
    have caught up. What need not move stays.
    """
    if not members:
        return TaskAssignment()
    ordered = sorted(tasks, key=split)
    targets = _balanced(ordered, members)
    active: dict[str, str] = {}
    warmup: dict[str, tuple[str, ...]] = {}
    for task, target in targets.items():
        able = [member for member in members if task in member.ready]
        if target in able or not able:
            active[task] = target.id
        else:
            active[task] = min(able, key=lambda member: (task not in member.active, member.id)).id
            warmup[task] = (target.id,)
    return TaskAssignment(active, _standbys(ordered, members, active, warmup), warmup)


def _balanced(tasks: Sequence[str], members: Sequence[ClientState]) -> dict[str, ClientState]:
    """Return who is to have each task in the end: an equal share each, and if possible where a copy is already."""
    least, more = divmod(len(tasks), len(members))
    loads = dict.fromkeys((member.id for member in members), 0)
    targets: dict[str, ClientState] = {}

    def has_room(member: ClientState) -> bool:
        full = sum(load > least for load in loads.values())
        return loads[member.id] < least or (loads[member.id] == least and full < more)

    def give(task: str, member: ClientState) -> None:
        targets[task] = member
        loads[member.id] += 1

    wishes = sorted((_distance(task, member), task, member.id, member) for task in tasks for member in members
                    if _distance(task, member) < UNKNOWN)  # fmt: skip
    for _, task, _, member in wishes:
        if task not in targets and has_room(member):
            give(task, member)
    for task in tasks:
        if task not in targets:
            free = [member for member in members if has_room(member)]
            give(task, min(free, key=lambda member: (loads[member.id], member.id)))
    return targets


UNKNOWN = (3, 0)


def _distance(task: str, member: ClientState) -> tuple[int, int]:
    """Return how far a member is from answering for a task; the more of it a member has, the nearer it is."""
    if task in member.ready:
        return (0 if task in member.active else 1, 0)
    position = member.positions.get(task, 0)
    return (2, -position) if position else UNKNOWN


def _standbys(
    tasks: Sequence[str],
    members: Sequence[ClientState],
    active: Mapping[str, str],
    warmup: Mapping[str, tuple[str, ...]],
) -> dict[str, tuple[str, ...]]:
    """Return who keeps replicas: members that have one already, unless they exceed their share of all copies."""
    copies = min(max(member.standbys for member in members), len(members) - 1)
    loads = {member.id: sum(owner == member.id for owner in active.values()) for member in members}
    most = -(-len(tasks) * (1 + copies) // len(members))
    found: dict[str, tuple[str, ...]] = {}
    for task in tasks if copies else ():
        taken = {active[task], *warmup.get(task, ())}
        free = [member for member in members if member.id not in taken]
        near = sorted(free, key=lambda member: (loads[member.id] >= most, _distance(task, member), loads[member.id]))
        found[task] = tuple(member.id for member in near[:copies])
        for member in found[task]:
            loads[member] += 1
    return found
