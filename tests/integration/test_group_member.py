"""Members of a group that are there for what they tell each other."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from streamskit.broker import group_member
from streamskit.broker.base import Broker
from streamskit.broker.group_member import GroupMember

pytestmark = [pytest.mark.broker]


class Roll(AbstractPartitionAssignor):
    """Tells all members how many they are."""

    name, version = "roll", 1

    def __init__(self) -> None:
        self.heard: list[int] = []

    def metadata(self, topics: Sequence[str]) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(self.version, sorted(topics), b"")

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        return {each.member_id: ConsumerProtocolAssignment(self.version, [], bytes([len(members)])) for each in members}

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        self.heard.append(assignment.user_data[0])


def test_a_member_stays_in_its_group_however_its_polls_cut_into_joining(
    broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topics(name)
    monkeypatch.setattr(group_member, "POLL_MILLISECONDS", 5)
    for number in range(5):
        roll = Roll()
        with GroupMember(broker.bootstrap_servers, f"{name}-{number}", roll, [name], 1000) as member:
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                member.poll()
            assert member.in_touch
            assert roll.heard[-1] == 1
