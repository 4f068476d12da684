"""A member of a consumer group that reads nothing: it only takes part in what the members tell each other."""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from streamskit.api.client_settings import BootstrapServers
from streamskit.kafka.client_libraries import for_kafka_python
from streamskit.kafka.connection import without_new_topics

POLL_MILLISECONDS = 200
CLOSE_MILLISECONDS = 3000
REQUEST_MILLISECONDS = 1000
"""How long a request may take at least: a broker has to be able to say that it takes no session as short as that."""
IDLE_MILLISECONDS = 540_000
"""kafka-python's own default; it has to be longer than a request may take."""


class GroupMember:
    """Joins a group, and leaves it at the end of a `with`; heartbeats are sent automatically in between.

    Args:
        bootstrap_servers: the broker's address.
        group: the name of the group.
        assignor: what this member says, and what it does as the leader.
        topics: what the group is about; at least one.
        session_timeout: after how many milliseconds without a sign of life a member counts as dead.
        client_id: what the broker reports about this member during a rebalance, when it reports nothing else; a client
            id in the connection's settings wins.

    Raises:
        KafkaError: no broker can be reached.
    """

    def __init__(
        self,
        bootstrap_servers: BootstrapServers,
        group: str,
        assignor: AbstractPartitionAssignor,
        topics: Sequence[str],
        session_timeout: int,
        client_id: str = "streamskit",
    ) -> None:
        self._consumer = KafkaConsumer(
            **for_kafka_python(bootstrap_servers, "consumer", client_id=client_id),
            group_id=group,
            partition_assignment_strategy=[assignor],
            session_timeout_ms=session_timeout,
            heartbeat_interval_ms=min(max(session_timeout // 10, 100), session_timeout // 2),
            # A broker that stood still may never answer earlier requests, and the group waits no longer for a member.
            request_timeout_ms=max(session_timeout, REQUEST_MILLISECONDS),
            connections_max_idle_ms=max(IDLE_MILLISECONDS, session_timeout + 1),
            max_poll_interval_ms=session_timeout,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            reconnect_backoff_max_ms=1000,
        )
        without_new_topics(self._consumer._cluster)
        self._again = threading.Event()
        self.leaves = True
        """Whether it leaves the group at the end; otherwise its place is kept until the session is over."""
        self._consumer.subscribe(list(topics))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if not self.leaves:
            self._coordinator.reset_generation()  # it forgets that it is in the group, and so does not leave it
        self._consumer.close(autocommit=False, timeout_ms=CLOSE_MILLISECONDS)

    def poll(self) -> None:
        """Take part for a moment: join if that is due, and receive what was agreed.

        Raises:
            KafkaError: the group does not let it in.
        """
        self._consumer.poll(timeout_ms=POLL_MILLISECONDS)
        self._consumer.pause(*self._consumer.assignment())
        # The client forgets a join that is still under way at the end of a poll, if new metadata triggered it.
        if self._coordinator.rejoining:
            self._coordinator.request_rejoin()
        elif self._again.is_set():
            self._again.clear()
            self._coordinator.request_rejoin()

    def rejoin(self) -> None:
        """Have the members report again, after a join under way, in which this member's report is out of date."""
        self._again.set()

    @property
    def in_touch(self) -> bool:
        """Whether the group still counts this member in, as far as it can know."""
        return not self._coordinator.heartbeat.session_timeout_expired()

    @property
    def _coordinator(self) -> Any:
        # Private in kafka-python, whose public calls neither rejoin nor say whether the session is alive. Only this
        # class uses it, test_kafka_python_contract.py says what it has to do, and pyproject.toml keeps kafka-python
        # below its next minor version.
        return self._consumer._coordinator
