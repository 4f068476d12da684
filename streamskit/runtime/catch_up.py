"""Waits until an application has processed all that its topics hold."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from streamskit.broker import ExternalBroker
from streamskit.common.durations import spell
from streamskit.common.errors import BrokerError, StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Isolation, Offsets
from streamskit.planning.plan import Plan
from streamskit.queries import Replica
from streamskit.queries.query_server import QueryServer
from streamskit.runtime.progress import TopicOffsets
from streamskit.runtime.query import RunningQuery
from streamskit.runtime.side_effects import SideEffects
from streamskit.runtime.states import ACTIVE, State, StateMachine
from streamskit.runtime.supervisor import Supervisor

NOT_RUNNING = "The application did not run again in time: look at its metrics()."
FEEDING = "Its queries still feed each other. Give await_processed() a longer timeout."


class CatchUp:
    """What `await_processed` waits for: queries, then stores, then side effects; a broker that is away only takes time.

    Args:
        supervisor: has the queries.
        states: the application's state.
        brokers: says where topics end.
        deadline: when to give up, as `time.monotonic()` counts.
        isolation: the queries' isolation level: "read_committed" if they skip uncommitted transactions' records.
        commit_interval: how many milliseconds pass from the begin of a micro-batch to that of the next.
        max_task_idle: how many milliseconds a query waits for a topic that has no records.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        states: StateMachine,
        brokers: ExternalBroker,
        deadline: float,
        isolation: Isolation = "read_uncommitted",
        commit_interval: int = 0,
        max_task_idle: int = 0,
    ) -> None:
        self._supervisor, self._states, self._brokers, self.deadline = supervisor, states, brokers, deadline
        self._isolation = isolation
        self._commit_interval, self._max_task_idle = commit_interval, max_task_idle
        self._began = time.monotonic()

    def of_queries(self) -> None:
        """Wait until all queries have processed what is in their topics now, and the records that result from it.

        The end offsets of topics written by others are read only once, as records may keep arriving all the time.

        Raises:
            StreamsError: a query failed, or it took too long.
        """
        self._until_running()
        queries = self._supervisor.queries
        plans = [query.plan for query in queries]
        now = {topic: self._end(topic, self._isolation) for topic in from_outside(plans)}
        order = feeding_order(plans)
        if order:
            queries = sorted(queries, key=lambda query: order.index(query.plan.name))
        before: TopicOffsets | None = None
        while True:
            ends: dict[str, dict[int, int]] = {}
            for query in queries:
                self._until_running()
                # Read only now, when the queries that feed this one are done.
                mine = {
                    topic: now[topic] if topic in now else self._end(topic, self._isolation)
                    for topic in query.plan.topics
                }
                self._wait_for(query, mine)
                ends |= mine
            # In a cycle, a query may have got new records meanwhile: all is done once a round changes no end offset.
            if order or ends == before:
                return
            before = ends
            self._check_time(lambda: FEEDING)

    def of_readers(self, *readers: tuple[Replica[Any] | QueryServer | SideEffects, Iterable[str]]) -> None:
        """Wait until the stores hold the updates that were written, and the functions were called.

        Args:
            readers: what reads, each with its topics.

        Raises:
            StreamsError: the application failed, or it took too long.
        """
        for reader, topics in readers:
            reader.wait_for(self.ends(topics), self.deadline, self._check)

    def ends(self, topics: Iterable[str]) -> Offsets:
        """Return where the partitions of topics end now for what fills stores and calls functions.

        Whatever the queries' isolation level, those read no further than to the first open transaction.

        Raises:
            StreamsError: the broker does not say so in time.
        """
        return {
            TopicPartition(topic, partition): offset
            for topic in topics
            for partition, offset in self._end(topic, "read_committed").items()
        }

    def _until_running(self) -> None:
        while self._states.state is State.REBALANCING:
            self._check_time()
            time.sleep(0.05)
        self._check()

    def _wait_for(self, query: RunningQuery, ends: TopicOffsets) -> None:
        """Wait until a query has processed what is in its topics before some offsets."""
        while not query.progress.has_reached(ends):
            self._check_time(partial(self._not_done, query, ends))
            if query.plan.runs_in_real_time:
                query.end_batch(ends)
            time.sleep(0.02)

    def _end(self, topic: str, isolation: Isolation) -> dict[int, int]:
        while True:
            try:
                return self._brokers.end_offsets(topic, isolation)
            except BrokerError as failure:
                # The broker may have gone away a moment ago.
                if not self._supervisor.broker.was_away():
                    raise StreamsError(str(failure)) from failure
            self._check_time()
            time.sleep(0.5)

    def _check(self) -> None:
        self._supervisor.raise_failure()
        if self._states.state not in ACTIVE:
            raise StreamsError(f"The application is {self._states.state.name}: it processes nothing more.")
        if self._supervisor.is_paused:
            raise StreamsError("The application is paused and processes nothing: call resume() first.")

    def _check_time(self, otherwise: Callable[[], str] = lambda: NOT_RUNNING) -> None:
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
        raise StreamsError(otherwise())

    def _not_done(self, query: RunningQuery, ends: TopicOffsets) -> str:
        seconds, plan = time.monotonic() - self._began, query.plan
        if plan.runs_in_real_time and not query.can_end_batch:
            return (
                f"Sub-topology {plan.name} runs in real-time mode on executors of other machines, where only the end "
                "of a batch, after the time in real_time=, shows what was processed. Wait for a result that you know "
                "instead, with wait_until() of streamskit.testing, or give await_processed() a timeout longer than a "
                f"batch.{query.trouble}"
            )
        left = query.lag(ends)
        records = "1 record is" if left == 1 else f"{left} records are"
        advice = 'Give await_processed() a longer timeout, such as "5 minutes".'
        if not plan.runs_in_real_time and self._commit_interval > seconds * 1000:
            advice = (
                f"With commit_interval={spell(self._commit_interval)!r} a micro-batch begins only as often as that: "
                "set a shorter one."
            )
        elif len(plan.topics) > 1 and self._max_task_idle > seconds * 1000:
            advice = (
                f"With max_task_idle_ms={self._max_task_idle} it waits as long as that for a topic that has no "
                f"records, and it reads {', '.join(plan.topics)}: send records to the one that has none, or set a "
                "smaller value."
            )
        return f"Sub-topology {plan.name} is not done after {seconds:.1f} s: {records} left. {advice}{query.trouble}"


def from_outside(plans: Sequence[Plan]) -> set[str]:
    """Return the topics that queries read but do not write; none if a function chooses the topic for each record."""
    if any(not isinstance(sink.topic, str) for plan in plans for sink in plan.sinks):
        return set()
    written = set().union(*map(_written, plans))
    return {topic for plan in plans for topic in plan.topics} - written


def feeding_order(plans: Sequence[Plan]) -> list[str]:
    """Return the names of the plans, each after those that feed it; none if they feed each other in a cycle."""
    feeders = {plan.name: [other.name for other in plans if _feeds(other, plan)] for plan in plans}
    try:
        return list(TopologicalSorter(feeders).static_order())
    except CycleError:
        return []


def _feeds(plan: Plan, reader: Plan) -> bool:
    chooses = any(not isinstance(sink.topic, str) for sink in plan.sinks)
    return chooses or not _written(plan).isdisjoint(reader.topics)


def _written(plan: Plan) -> set[str]:
    topics = plan.named_topics
    return topics | set(plan.handovers.values()) | {plan.changelog(store) for store in plan.stores}
