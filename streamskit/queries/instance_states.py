"""What can be seen of an instance from outside: whether it lives, what it hosts, and how far that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["active", "standby"]


@dataclass(frozen=True)
class TaskState:
    """One partition of a store, or of its changelog topic, on an instance: `restored` of `total` records are there."""

    store: str
    partition: int
    role: Role
    restored: int
    total: int

    @property
    def is_restoring(self) -> bool:
        """Whether it still fills its store from the changelog."""
        return self.restored < self.total


@dataclass(frozen=True)
class InstanceState:
    """An instance: where it answers, as "host:port", whether it is alive, and what it hosts."""

    server: str
    alive: bool
    tasks: Sequence[TaskState]
