"""An instance's membership in the consumer group of its application, from which it learns what its share is."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.errors import (
    AuthorizationError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    KafkaError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError
from streamskit.kafka.access import Right, no_right
from streamskit.kafka.group_member import GroupMember
from streamskit.queries.group.assignment import Assignment, SubscriptionInfo, latest_of_each_server
from streamskit.queries.group.assignor import assign_tasks
from streamskit.queries.group.catalogue import Catalogue

logger = logging.getLogger("streamskit")

RETRY_SECONDS = 1.0
REFUSED_SECONDS = 30.0
"""After how long to try again where the broker does not let it join."""

LONGEST_SESSION = 2**31 - 1
"""How many milliseconds a request to join has room for."""


class ShareAssignor(AbstractPartitionAssignor):
    """Speaks for an instance in the group, and decides for all when its member is the leader.

    Args:
        catalogue: the application's stores.
        report: returns what the instance has to say of itself.
        learn: called with what was agreed.

    Mirrors `org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor`.
    """

    name = "streamskit"
    version = 1

    def __init__(
        self,
        catalogue: Catalogue,
        report: Callable[[], SubscriptionInfo],
        learn: Callable[[Assignment], None],
    ) -> None:
        self._catalogue, self._report, self._learn = catalogue, report, learn

    def metadata(self, topics: Sequence[str]) -> ConsumerProtocolSubscription:
        """Return what this member says when it joins."""
        return ConsumerProtocolSubscription(self.version, sorted(topics), self._report().to_bytes())

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        """Return each member's share: its active partitions, and what was agreed for all."""
        reports = {each.member_id: SubscriptionInfo.from_bytes(each.metadata.user_data or b"") for each in members}
        known = [report for report in reports.values() if report is not None]
        chosen = latest_of_each_server(report for report in known if not report.shutdown)
        shares = assign_tasks(self._catalogue.tasks(), [report.member for report in chosen])
        servers = {report.member.id: report.member.server for report in chosen}
        assignment = Assignment(servers, shares, next((report.shutdown for report in known if report.shutdown), ""))
        return {
            name: ConsumerProtocolAssignment(self.version, self._partitions(report, assignment), assignment.to_bytes())
            for name, report in reports.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Pass on what was agreed."""
        if (agreed := Assignment.from_bytes(assignment.user_data or b"")) is not None:
            self._learn(agreed)

    def _partitions(self, report: SubscriptionInfo | None, assignment: Assignment) -> list[tuple[str, list[int]]]:
        """Return a member's active partitions, for those who look at the group with Kafka's own tools."""
        found: dict[str, list[int]] = {}
        for task, owner in assignment.shares.active.items():
            if report is not None and owner == report.member.id:
                for topic, partition in self._catalogue.changelog_partitions(task):
                    found.setdefault(topic, []).append(partition)
        return sorted((topic, sorted(partitions)) for topic, partitions in found.items())


class Membership:
    """Keeps an instance in its group, in a thread of its own.

    Args:
        bootstrap_servers: the broker's address.
        catalogue: the application's stores; the group has the application's id.
        report: returns what the instance has to say of itself.
        learn: called, in the membership's thread, with what was agreed.
        session_timeout: after how many milliseconds without a sign of life an instance counts as dead.
        refused: called with the reason when the broker does not allow it to join, or not with this session timeout, or
            because of other consumers in the group.
    """

    def __init__(
        self,
        bootstrap_servers: BootstrapServers,
        catalogue: Catalogue,
        report: Callable[[], SubscriptionInfo],
        learn: Callable[[Assignment], None],
        session_timeout: int,
        refused: Callable[[BrokerError], None],
    ) -> None:
        self._refused = refused
        self._bootstrap_servers, self._catalogue, self._session_timeout = bootstrap_servers, catalogue, session_timeout
        self._learned: list[Assignment] = []
        self._report, self._learn = report, learn
        self._stopping = threading.Event()
        self._member: GroupMember | None = None
        self._leaves = True
        self._thread = threading.Thread(target=self._run, name="streamskit: the group", daemon=True)

    def start(self, catalogue: Catalogue) -> None:
        """Join the group; the catalogue says by now how many partitions each changelog has."""
        self._catalogue = catalogue
        if catalogue.shared:
            self._thread.start()

    def stop(self, timeout: float = 10.0, leave_group: bool = True) -> None:
        """Leave the group, so that the others take over at once; or stop and stay in it until the session is over."""
        self._leaves = leave_group
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def rejoin(self) -> None:
        """Have the group agree on the shares again: this instance has caught up with what it is to take over."""
        if (member := self._member) is not None:  # a member that has yet to join will report that itself
            member.rejoin()

    @property
    def in_touch(self) -> bool:
        """Whether the group still counts this instance in, as far as it can know."""
        if not self._catalogue.shared:
            return True
        return (member := self._member) is not None and member.in_touch

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._take_part()
            except AuthorizationError:  # it may be allowed later, and nobody should have to guess what is missing
                self._refused(no_right(self._bootstrap_servers, Right("Read", "group", self._catalogue.application_id)))
                self._stopping.wait(REFUSED_SECONDS)
            except InvalidSessionTimeoutError:  # the limits are the broker's, and may be changed while it runs
                self._refused(self._outside_limits())
                self._stopping.wait(REFUSED_SECONDS)
            except InconsistentGroupProtocolError:  # they may leave it
                self._refused(self._among_others())
                self._stopping.wait(REFUSED_SECONDS)
            except KafkaError as failure:
                logger.debug("The group could not be joined: %s", failure)
                self._stopping.wait(RETRY_SECONDS)
            except Exception:
                logger.exception("The group of '%s' could not be joined", self._catalogue.application_id)
                self._stopping.wait(RETRY_SECONDS)

    def _outside_limits(self) -> BrokerError:
        return BrokerError(
            f"The broker at {self._bootstrap_servers} does not take a session_timeout of {self._session_timeout} ms: "
            "its group.min.session.timeout.ms and group.max.session.timeout.ms say what it takes, 6 seconds to 30 "
            "minutes by default. Start again with a session_timeout between the two."
        )

    def _among_others(self) -> BrokerError:
        group = self._catalogue.application_id
        return BrokerError(
            f"The group '{group}' at {self._bootstrap_servers} has consumers that are not instances of '{group}', so "
            "no instance can join it: the group with an application's id belongs to its instances. Close those "
            "consumers, or give them a group.id of their own; kafka-consumer-groups --describe --members --group "
            f"{group} lists them."
        )

    def _take_part(self) -> None:
        if not 0 < self._session_timeout <= LONGEST_SESSION:  # the client would not even ask
            raise InvalidSessionTimeoutError
        topics = [entry.changelog for entry in self._catalogue.shared]
        assignor = ShareAssignor(self._catalogue, self._report, self._learned.append)
        with GroupMember(
            self._bootstrap_servers, self._catalogue.application_id, assignor, topics, self._session_timeout
        ) as member:
            self._member = member
            try:
                while not self._stopping.is_set():
                    member.poll()
                    while self._learned:
                        self._learn(self._learned.pop(0))
            finally:
                member.leaves = self._leaves
                self._member = None
