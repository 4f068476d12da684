"""Waits until an application has processed all that its topics hold."""

import time
from collections.abc import Iterable

from streamskit.broker import ExternalBroker
from streamskit.common.errors import BrokerError, StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Isolation, Offsets
from streamskit.queries import Replica
from streamskit.queries.query_server import QueryServer
from streamskit.runtime.query import RunningQuery
from streamskit.runtime.side_effects import SideEffects
from streamskit.runtime.states import State, StateMachine
from streamskit.runtime.supervisor import Supervisor


class CatchUp:
    """What `await_processed` waits for: queries, then stores, then side effects; a broker that is away only takes time.

    Args:
        supervisor: has the queries.
        states: the application's state.
        brokers: says where topics end.
        deadline: when to give up, as `time.monotonic()` counts.
        isolation: of the queries: "read_committed" if they do not read what a transaction has not committed.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        states: StateMachine,
        brokers: ExternalBroker,
        deadline: float,
        isolation: Isolation = "read_uncommitted",
    ) -> None:
        self._supervisor, self._states, self._brokers, self.deadline = supervisor, states, brokers, deadline
        self._isolation = isolation

    def of_queries(self) -> None:
        """Wait until all queries have processed what is in their topics.

        Raises:
            StreamsError: a query failed, or it took too long.
        """
        waited = True
        while waited:  # one query's output may be another's input: go round until there is nothing to wait for
            self._until_running()
            waited = False
            for query in self._supervisor.queries:
                waited |= not self._has_caught_up(query)

    def of_readers(self, *readers: tuple[Replica | QueryServer | SideEffects, Iterable[str]]) -> None:
        """Wait until the stores hold the updates that were written, and the functions were called.

        Args:
            readers: what reads, each with its topics.

        Raises:
            StreamsError: the application failed, or it took too long.
        """
        for reader, topics in readers:
            reader.wait_for(self.ends(topics), self.deadline, self._check)

    def ends(self, topics: Iterable[str]) -> Offsets:
        """Return where the partitions of topics end now.

        Raises:
            StreamsError: the broker does not say so in time.
        """
        return {
            TopicPartition(topic, partition): offset
            for topic in topics
            for partition, offset in self._end(topic).items()
        }

    def _until_running(self) -> None:
        while self._states.state is State.REBALANCING:
            self._check_time()
            time.sleep(0.05)
        self._check()

    def _has_caught_up(self, query: RunningQuery) -> bool:
        """Wait until a query has processed what is in its topics now, and return whether it had before."""
        ends = {topic: self._end(topic) for topic in query.plan.topics}
        if query.progress.has_reached(ends):
            return True
        while not (progress := query.progress).has_reached(ends):
            self._check_time(
                f"Sub-topology {query.plan.name} is not done in time: {progress.lag(ends)} records are left. Give "
                f"await_processed() a longer timeout.{query.trouble}"
            )
            time.sleep(0.02)
        return False

    def _end(self, topic: str) -> dict[int, int]:
        while True:
            try:
                return self._brokers.end_offsets(topic, self._isolation)
            except BrokerError as failure:
                # The broker may have gone a moment ago.
                if not self._supervisor.broker.was_away():
                    raise StreamsError(str(failure)) from failure
            self._check_time()
            time.sleep(0.5)

    def _check(self) -> None:
        self._supervisor.raise_failure()
        if self._states.state not in (State.RUNNING, State.REBALANCING):
            raise StreamsError(f"The application is {self._states.state.name}: it processes nothing more.")
        if self._supervisor.is_paused:
            raise StreamsError("The application is paused and processes nothing: call resume() first.")

    def _check_time(self, otherwise: str = "The application did not run again in time: look at its metrics().") -> None:
        """Raise what ended the application, or a sentence if time is up."""
        self._check()
        if time.monotonic() <= self.deadline:
            return
        away = self._supervisor.broker.seconds_away
        if away:
            raise StreamsError(
                f"The broker at {self._brokers.bootstrap_servers} has not answered for {away:.0f} s, so that not all "
                "could be processed in time. Bring it back; the application goes on by itself."
            )
        raise StreamsError(otherwise)
