"""Members of a group that are there for what they tell each other."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from streamskit import Serdes
from streamskit.broker.base import Broker
from streamskit.kafka import group_member
from streamskit.kafka.group_member import GroupMember
from streamskit.queries import Catalogue, Instance, QueryableStore
from streamskit.queries.group import membership
from streamskit.queries.metadata import HostInfo
from streamskit.state.stores import Store
from streamskit.testing import wait_until

pytestmark = [pytest.mark.broker]


class Roll(AbstractPartitionAssignor):
    """Tells a member what it has said."""

    name, version = "roll", 1

    def __init__(self) -> None:
        self.says, self.heard = b"first", list[bytes]()

    def metadata(self, topics: Sequence[str]) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(self.version, sorted(topics), self.says)

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        return {
            each.member_id: ConsumerProtocolAssignment(self.version, [], each.metadata.user_data) for each in members
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        self.heard.append(assignment.user_data)


def test_a_member_of_a_group_about_a_topic_that_is_not_there_does_not_create_it(
    default_broker: Broker, name: str
) -> None:
    with GroupMember(default_broker.bootstrap_servers, name, Roll(), [name], 6000) as member:
        for _ in range(5):
            member.poll()
    assert name not in default_broker.topics()


def test_a_session_of_half_an_hour_is_joined_with_as_kafka_allows(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    roll = Roll()
    with GroupMember(broker.bootstrap_servers, name, roll, [name], 1_800_000) as member:

        def has_joined() -> bool:
            member.poll()
            return bool(roll.heard)

        wait_until(has_joined, "its place in the group", 30)


@pytest.mark.parametrize("session_timeout", ["0 ms", "1 ms", "3 seconds", "2 hours", "100 days"])
def test_an_instance_whose_session_timeout_the_broker_refuses_says_between_which_it_has_to_be(
    default_broker: Broker, name: str, session_timeout: str
) -> None:
    store = Store("counts", "key-value", Serdes.string(), Serdes.long())
    stores = Catalogue(name, (QueryableStore(store, f"{name}-changelog", 0),))
    default_broker.create_topics(f"{name}-changelog")
    here = HostInfo("127.0.0.1", 9)
    instance = Instance(stores, default_broker.bootstrap_servers, here, session_timeout=session_timeout)
    instance.start()
    says = "group.min.session.timeout.ms and group.max.session.timeout.ms say what it takes"
    wait_until(lambda: says in instance.health().waits_for, "the reason why it has no share", 30)
    instance.stop()


def test_an_instance_says_that_others_are_in_its_group_and_joins_it_when_they_have_left(
    broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "REFUSED_SECONDS", 0.2)
    store = Store("counts", "key-value", Serdes.string(), Serdes.long())
    stores = Catalogue(name, (QueryableStore(store, f"{name}-changelog", 0),))
    broker.create_topics(f"{name}-changelog")
    instance = Instance(stores, broker.bootstrap_servers, HostInfo("127.0.0.1", 9))
    with GroupMember(broker.bootstrap_servers, name, (roll := Roll()), [f"{name}-changelog"], 6000) as other:

        def has_joined() -> bool:
            other.poll()
            return bool(roll.heard)

        def waits_for_it() -> bool:
            other.poll()
            return f"has consumers that are not instances of '{name}'" in instance.health().waits_for

        wait_until(has_joined, "the other consumer's place in the group", 30)
        instance.start()
        wait_until(waits_for_it, "the reason why it has no share", 30)
    wait_until(lambda: not instance.health().waits_for, "its share, after the other has left", 30)
    instance.stop()


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
            assert roll.heard[-1] == b"first"


def test_what_a_member_has_to_say_while_it_joins_is_heard_by_joining_once_more(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    roll, done, waits = Roll(), threading.Event(), threading.Event()

    def take_part() -> None:
        with GroupMember(broker.bootstrap_servers, name, Roll(), [name], 5000) as other:
            while not done.is_set():
                if not waits.is_set():
                    other.poll()

    other = threading.Thread(target=take_part)
    with GroupMember(broker.bootstrap_servers, name, roll, [name], 5000) as member:

        def poll_for(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                member.poll()

        poll_for(1)  # it is the leader, for whom all join again
        other.start()
        try:
            poll_for(2)
            waits.set()
            time.sleep(0.3)
            member.rejoin()
            poll_for(1)  # it has joined with what it says now, and waits for the other
            roll.says = b"later"
            member.rejoin()
            waits.clear()
            poll_for(3)
        finally:
            done.set()
            other.join(60)
        assert roll.heard[-1] == b"later"
