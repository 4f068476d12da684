"""What the instances of an application tell each other through their consumer group: there is no other registry.

Each member says who and where it is and how far its copies are; the leader answers all with who has what. Both travel
as JSON in the group's own messages, so that whoever may look at the group can read them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from streamskit.queries.group.assignor import ClientState, TaskAssignment

VERSION = 2


@dataclass(frozen=True)
class SubscriptionInfo:
    """What an instance says when it joins: `since` is when it started, in seconds since 1970.

    With `shutdown` (the reason) it asks for no share, but for all instances to stop.
    """

    member: ClientState
    since: float
    shutdown: str = ""

    def to_bytes(self) -> bytes:
        """Return it as the group's messages carry it."""
        member = self.member
        said = asdict(member) | {"ready": sorted(member.ready), "active": sorted(member.active)}
        request = {"shutdown": self.shutdown} if self.shutdown else {}
        return json.dumps({"version": VERSION, "since": self.since, "member": said, **request}).encode()

    @staticmethod
    def from_bytes(data: bytes) -> "SubscriptionInfo | None":
        """Return the report in these bytes; None if they hold none, but what some other consumer says in the group."""
        said = _said(data)
        if said is None or "member" not in said:
            return None
        member = said["member"]
        tasks = {name: frozenset(member[name]) for name in ("ready", "active")}
        known = {name: value for name, value in (member | tasks).items() if name in ClientState.__dataclass_fields__}
        return SubscriptionInfo(ClientState(**known), said["since"], said.get("shutdown", ""))


@dataclass(frozen=True)
class Assignment:
    """Who has what: the members' ids with their addresses, and their shares of the tasks.

    With `shutdown`, the reason, all of them are to stop.
    """

    servers: Mapping[str, str] = field(default_factory=dict)
    shares: TaskAssignment = field(default_factory=TaskAssignment)
    shutdown: str = ""

    def to_bytes(self) -> bytes:
        """Return it as the group's messages carry it."""
        agreed = {"version": VERSION, "servers": dict(self.servers), "shares": asdict(self.shares)}
        return json.dumps(agreed | ({"shutdown": self.shutdown} if self.shutdown else {})).encode()

    @staticmethod
    def from_bytes(data: bytes) -> "Assignment | None":
        """Return the assignment in these bytes; None if they hold none."""
        said = _said(data)
        if said is None or "shares" not in said:
            return None
        shares = said["shares"]
        replicas = {
            name: {task: tuple(members) for task, members in shares[name].items()} for name in ("standby", "warmup")
        }
        return Assignment(said["servers"], TaskAssignment(shares["active"], **replicas), said.get("shutdown", ""))


def latest_of_each_server(reports: Iterable[SubscriptionInfo]) -> list[SubscriptionInfo]:
    """Return the reports without those of instances that another one has replaced at the same address.

    One that was killed stays in the group until its session is over; it is not to get a share meanwhile.
    """
    latest: dict[str, SubscriptionInfo] = {}
    for report in sorted(reports, key=lambda each: (each.since, each.member.id)):
        latest[report.member.server] = report
    return list(latest.values())


def _said(data: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(data)
    except ValueError:
        return None
    return said if isinstance(said, dict) and said.get("version") == VERSION else None
