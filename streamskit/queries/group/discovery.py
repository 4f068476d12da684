"""Who hosts what, read from the consumer group of an application by anybody who can reach the broker."""

import time
from collections.abc import Iterable
from typing import Any

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import StreamsError
from streamskit.kafka.access import Right, needing, no_right
from streamskit.kafka.connection import admin_client
from streamskit.kafka.topic_partition import TopicPartition, partition_for
from streamskit.queries.group.assignment import Assignment
from streamskit.queries.group.catalogue import Catalogue, split
from streamskit.queries.metadata import (
    HostInfo,
    Hosts,
    KeyQueryMetadata,
    Placement,
    StreamsMetadata,
)

REBALANCING = ("PreparingRebalance", "CompletingRebalance")
"""The states of a group in which Kafka does not report what was agreed before."""

REBALANCE_SECONDS = 10.0


def ask_group(bootstrap_servers: BootstrapServers, catalogue: Catalogue) -> Placement:
    """Return who hosts what, as the group says it; nobody hosts anything while it has no members.

    While the group rebalances, this waits for what it agrees on, for at most `REBALANCE_SECONDS`.

    Raises:
        BrokerError: no broker answers.
    """
    name, deadline = catalogue.application_id, time.monotonic() + REBALANCE_SECONDS
    with (
        admin_client(bootstrap_servers) as client,
        needing(bootstrap_servers, Right("Describe", "group", name)),
    ):
        group = client.describe_groups([name])[name]
        while group["group_state"] in REBALANCING and time.monotonic() < deadline:
            time.sleep(0.1)
            group = client.describe_groups([name])[name]
        if "AUTHORIZATION_FAILED" in (group.get("error") or ""):
            raise no_right(bootstrap_servers, Right("Describe", "group", name))
    return placement_of(next(filter(None, map(_agreed, group["members"])), Assignment()), catalogue)


def placement_of(assignment: Assignment, catalogue: Catalogue) -> Placement:
    """Return who hosts which partition of which changelog."""
    hosts = {}
    shares = assignment.shares
    for task, owner in shares.active.items():
        active = _hosts([owner], assignment)
        group, partition = split(task)
        # An instance that warms up is queried like a standby: it answers once it has caught up.
        standbys = _hosts([*shares.standby.get(task, ()), *shares.warmup.get(task, ())], assignment)
        for topic in catalogue.changelogs(group):
            hosts[TopicPartition(topic, partition)] = Hosts(active[0] if active else None, standbys)
    members = tuple(sorted(HostInfo.of(server) for server in assignment.servers.values()))
    return Placement(hosts, members)


def metadata_of(placement: Placement, catalogue: Catalogue) -> list[StreamsMetadata]:
    """Return what each instance has."""
    global_stores = frozenset(entry.name for entry in catalogue if entry.is_global)
    found = []
    for host in placement.members:
        active = frozenset(where for where, hosts in placement.hosts.items() if hosts.active == host)
        standby = frozenset(where for where, hosts in placement.hosts.items() if host in hosts.standbys)
        found.append(
            StreamsMetadata(
                host, _stores(active, catalogue) | global_stores, active, _stores(standby, catalogue), standby
            )
        )
    return found


def metadata_for_key(
    placement: Placement, catalogue: Catalogue, name: str, key: Any, partition: int | None = None
) -> KeyQueryMetadata:
    """Return which instances have a key.

    Args:
        placement: who hosts what.
        catalogue: the application's stores, with the numbers of their partitions.
        name: the store.
        key: the key.
        partition: where a partitioner puts the key, if one was asked.

    Raises:
        StreamsError: the partition of the store does not follow from the key.
    """
    entry = next(entry for entry in catalogue if entry.name == name)
    if entry.is_global:
        return KeyQueryMetadata(placement.members[0] if placement.members else None, placement.members[1:], -1)
    if partition is None and not entry.routed:
        raise StreamsError(
            f"Store '{name}' is filled by a processor, in the partition of the records it gets, or behind a "
            "partitioner: where a key is does not follow from the key. Name the partitioner, "
            f"query_metadata_for_key('{name}', {key!r}, partitioner); or ask each of streams_metadata_for_store(), or "
            "a QueryClient, which does so."
        )
    if partition is None:
        partition = partition_for(entry.store.key.serialize(key) or b"", entry.partitions)
    hosts = placement.of(entry.changelog, partition)
    return KeyQueryMetadata(hosts.active, hosts.standbys, partition)


def _stores(partitions: Iterable[TopicPartition], catalogue: Catalogue) -> frozenset[str]:
    topics = {where.topic for where in partitions}
    return frozenset(entry.name for entry in catalogue.shared if entry.changelog in topics)


def _hosts(members: Iterable[str], assignment: Assignment) -> tuple[HostInfo, ...]:
    return tuple(HostInfo.of(assignment.servers[member]) for member in members if member in assignment.servers)


def _agreed(member: dict[str, object]) -> Assignment | None:
    assignment = member.get("member_assignment")
    data = assignment.get("user_data") if isinstance(assignment, dict) else getattr(assignment, "user_data", None)
    if isinstance(data, str):
        data = data.encode()
    return Assignment.from_bytes(data) if isinstance(data, bytes) else None
