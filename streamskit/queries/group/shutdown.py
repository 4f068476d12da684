"""Requests, through their consumer group, that all instances of an application stop.

Mirrors how Kafka Streams' `SHUTDOWN_APPLICATION` travels: a member joins with the request, and the leader passes it on.
"""

import logging
import time
import uuid

from kafka.errors import KafkaError

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError
from streamskit.kafka.connection import admin_client
from streamskit.kafka.group_member import GroupMember
from streamskit.queries.group.assignment import Assignment, SubscriptionInfo
from streamskit.queries.group.assignor import ClientState
from streamskit.queries.group.catalogue import Catalogue
from streamskit.queries.group.membership import ShareAssignor

logger = logging.getLogger("streamskit")

TELL_SECONDS = 15.0
"""How long to wait for the group's answer: the group waits for a member that hangs until its session is over."""

STAY_SECONDS = 3.0
"""How long to stay in the group after it has agreed: not all members learn of it at once."""

SESSION_MILLISECONDS = 6000


def shut_down_instances(bootstrap_servers: BootstrapServers, catalogue: Catalogue, why: str) -> bool:
    """Tell all instances that are in the group now to stop; return whether the group has passed it on.

    Args:
        bootstrap_servers: the broker's address.
        catalogue: the application's stores; the group has the application's id.
        why: the reason, which is passed on to them.
    """
    group = catalogue.application_id
    if not catalogue.shared:
        return True
    try:
        with admin_client(bootstrap_servers, TELL_SECONDS) as admin:
            if not admin.describe_groups([group])[group]["members"]:
                return True
        return _told(bootstrap_servers, catalogue, why)
    except (KafkaError, BrokerError) as failure:
        logger.warning("'%s': its instances could not be told to stop: %s", group, failure)
        return False


def _told(bootstrap_servers: BootstrapServers, catalogue: Catalogue, why: str) -> bool:
    request = SubscriptionInfo(ClientState(f"shutdown-{uuid.uuid4()}", ""), time.time(), shutdown=why)
    heard: list[Assignment] = []
    assignor = ShareAssignor(catalogue, lambda: request, heard.append)
    topics = [entry.changelog for entry in catalogue.shared]
    deadline = time.monotonic() + TELL_SECONDS
    with GroupMember(bootstrap_servers, catalogue.application_id, assignor, topics, SESSION_MILLISECONDS) as member:
        while not any(each.shutdown for each in heard):
            if time.monotonic() > deadline:
                logger.warning(
                    "'%s': its instances have not all heard within %.0f s that they are to stop; stop them yourself.",
                    catalogue.application_id, TELL_SECONDS,
                )  # fmt: skip
                return False
            member.poll()
        # A slow member makes the group agree once more, and learns of the request then if this member still makes it.
        stays = time.monotonic() + STAY_SECONDS
        while time.monotonic() < stays:
            member.poll()
    return True
