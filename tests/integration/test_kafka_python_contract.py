"""What streamskit leans on in kafka-python beyond its public calls: private names, and what they do, on a broker.

The groups of instances and of runners stand on them (`streamskit/kafka/group_member.py`). A kafka-python that has
changed them fails here, with a sentence, and not in a group that never agrees.
"""

import importlib.metadata
import inspect
import time
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.partitioner.default import murmur2
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from streamskit.broker.base import Broker
from streamskit.kafka.group_member import GroupMember
from tests.integration.conftest import members
from tests.integration.test_group_member import Roll

pytestmark = [pytest.mark.broker]


@pytest.fixture
def joined(broker: Broker, name: str) -> Iterator[tuple[GroupMember, Roll]]:
    broker.create_topics(name)
    roll = Roll()
    with GroupMember(broker.bootstrap_servers, name, roll, [name], 3000) as member:
        poll_until(member, lambda: bool(roll.heard))
        yield member, roll


def poll_until(member: GroupMember, wanted: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < deadline, "kafka-python's group did not do that in time"
        member.poll()


def test_it_is_a_version_whose_private_names_were_tried() -> None:
    major, minor, *_ = importlib.metadata.version("kafka-python").split(".")
    assert (major, minor) == ("3", "0"), (
        "kafka-python's private names may have changed: run this file, look at streamskit/kafka/group_member.py, and "
        "move the pin in pyproject.toml."
    )


def test_a_consumer_has_the_private_parts_that_a_member_asks(joined: tuple[GroupMember, Roll]) -> None:
    member, _ = joined
    coordinator = member._consumer._coordinator
    poll_until(member, lambda: coordinator.rejoining is False)  # on a busy machine it joins once more
    assert coordinator.heartbeat.session_timeout_expired() is False
    for call in (coordinator.request_rejoin, coordinator.reset_generation):
        needed = [each for each in inspect.signature(call).parameters.values() if each.default is each.empty]
        assert needed == []


def test_to_request_a_rejoin_tells_the_assignor_anew(joined: tuple[GroupMember, Roll]) -> None:
    member, roll = joined
    roll.says = b"second"
    member.rejoin()
    poll_until(member, lambda: roll.heard[-1] == b"second")


def test_a_member_that_leaves_is_gone_at_once_and_one_that_stays_when_its_session_is_over(
    broker: Broker, name: str
) -> None:
    broker.create_topics(name)
    for leaves in (True, False):
        group, roll = f"{name}-{leaves}", Roll()
        with GroupMember(broker.bootstrap_servers, group, roll, [name], 3000) as member:
            poll_until(member, lambda said=roll: bool(said.heard))  # type: ignore[misc]
            member.leaves = leaves
        assert members(broker, group) == (0 if leaves else 1)
    deadline = time.monotonic() + 10
    while members(broker, f"{name}-False"):
        assert time.monotonic() < deadline, "the session of 3 s does not end"
        time.sleep(0.2)


def test_an_assignor_is_called_with_what_the_instances_send() -> None:
    wanted = {"metadata": ["topics"], "assign": ["cluster", "members"], "on_assignment": ["assignment", "generation"]}
    for name, parameters in wanted.items():
        found = list(inspect.signature(getattr(AbstractPartitionAssignor, name)).parameters)
        assert [each for each in found if each not in ("self", "cls")] == parameters
    subscription = ConsumerProtocolSubscription(1, ["a-topic"], b"said")
    assert (subscription.topics, subscription.user_data) == (["a-topic"], b"said")
    assignment = ConsumerProtocolAssignment(1, [("a-topic", [0])], b"agreed")
    assert assignment.user_data == b"agreed"


def test_a_consumer_can_be_kept_from_making_topics(broker: Broker) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    try:
        assert hasattr(consumer, "_cluster")
    finally:
        consumer.close()


def test_its_murmur2_is_kafkas() -> None:
    # The numbers of UtilsTest in Kafka's own sources.
    known = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    assert {key: murmur2(key) - (murmur2(key) >> 31 << 32) for key in known} == known
