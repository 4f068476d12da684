"""Watches over the queries of an application: what becomes of one that fails, and of all when the broker is away."""

import logging
import re
import threading
import time
from collections.abc import Callable

from streamskit.common.durations import spell
from streamskit.common.errors import StreamsError
from streamskit.runtime.broker_watch import BrokerWatch
from streamskit.runtime.failures import explain, explain_call
from streamskit.runtime.query import RunningQuery
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.states import ENDING, State, StateMachine
from streamskit.runtime.uncaught_exceptions import Handler, UncaughtExceptionResponse, ask, shutdown_client
from streamskit.topology.nodes import SideEffect

logger = logging.getLogger("streamskit")

STARTING, AWAY, CALLING = "starting", "the broker is away", "a function failed"
"""Reasons for an application to be REBALANCING, beside its queries."""

STOP_SECONDS = 10.0
"""How long an application that has failed waits for its queries to stop."""

WORKER_LATE = re.compile("Python worker failed to connect back")
"""Spark waits ten seconds for a Python process, and no setting changes that."""

MOST_LATE_WORKERS = 5
"""How many times a query is run again because of that: a worker that never starts has another reason."""

BROKER_AWAY = re.compile(
    r"\b(Timeout|Disconnect|Network|NotLeaderOrFollower|LeaderNotAvailable|BrokerNotAvailable|FencedLeaderEpoch"
    r"|CoordinatorNotAvailable|CoordinatorLoadInProgress|NotCoordinator|StaleMetadata|UnknownLeaderEpoch"
    # A transaction that was open all the while was aborted by the broker when it came back.
    r"|ProducerFenced|InvalidProducerEpoch|InvalidTxnState|InvalidPidMapping|UnknownProducerId|OutOfOrderSequence"
    r")Exception\b"
)
"""What Spark's Kafka clients say when a broker does not answer: it may as well be a topic that is not there."""


class Supervisor:
    """Runs queries, each watched by a thread; asks the uncaught exception handler about those that fail.

    Args:
        application_id: the name to speak of.
        states: the application's state.
        bootstrap_servers: the broker's address.
        task_timeout: for how many milliseconds the broker may be away.
        ended: called with the reason when the application has failed for good.
        losses: decides about records that were deleted before they were read.

    Mirrors what `KafkaStreams` does for its stream threads there.
    """

    def __init__(
        self,
        application_id: str,
        states: StateMachine,
        bootstrap_servers: str,
        task_timeout: int,
        ended: Callable[[str], None],
        losses: DataLoss,
    ) -> None:
        self.handler: Handler = shutdown_client
        self.queries: list[RunningQuery] = []
        self.failure: StreamsError | None = None
        self.broker = BrokerWatch(
            bootstrap_servers, task_timeout, self._broker_went, self._broker_returned, self._asked
        )
        self._application_id, self._states, self._ended, self._losses = application_id, states, ended, losses
        self._bootstrap_servers, self._patience = bootstrap_servers, spell(task_timeout)
        self._changing, self._asking = threading.Lock(), threading.Lock()
        self._stopping = threading.Event()

    @property
    def failures(self) -> list[StreamsError]:
        """Why the application has failed, or why those of its queries failed that wait to run again."""
        if self.failure is not None:
            return [self.failure]
        return [query.last_failure for query in self.queries if query.last_failure and not query.query.isActive]

    def watch(self, query: RunningQuery) -> None:
        """Take a query on that has just been started."""
        self.queries.append(query)
        threading.Thread(target=self._watch, args=(query,), name="streamskit: query", daemon=True).start()

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Stop all queries, none is run again; return whether they stopped in so many seconds."""
        deadline = time.monotonic() + seconds
        self._stopping.set()
        self.broker.stop()
        with self._changing:  # one may be starting again at this moment
            threads = [threading.Thread(target=query.stop, daemon=True) for query in self.queries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            # Kafka's clients do not always close while they look for a broker.
            self._warn("its queries do nothing more, but end only when the broker is back.")
            return False
        return True

    def fail(self, failure: StreamsError, loudly: bool = True) -> None:
        """Stop all queries because of a failure, and be in ERROR; `loudly` logs why."""
        self.failure = self.failure or failure
        if self._states.move(State.PENDING_ERROR):
            if loudly:  # nobody may be waiting for this application, and so nobody would be told
                logger.error("'%s' stopped: %s", self._application_id, self.failure)
            self._ended(str(self.failure))
            self.stop()
            self._states.move(State.ERROR)

    def call_failed(self, node: SideEffect, failure: Exception) -> bool:
        """Ask what to do about a function that failed in this process, and return whether to call it again."""
        if not self._asked(explain_call(failure, node)):
            return False
        self._states.hold(CALLING)
        self._warn(f"{node.name} calls its function again for that record in 1 s.")
        self._stopping.wait(1)
        self._states.release(CALLING)
        return not self._stopping.is_set()

    def raise_failure(self) -> None:
        """Raise what ended the application, if something did, as soon as it has ended."""
        if self.failure is not None:
            self._states.await_none_of((State.RUNNING, State.REBALANCING, *ENDING), 2 * STOP_SECONDS)
            raise StreamsError(str(self.failure)) from self.failure

    def _watch(self, query: RunningQuery) -> None:
        """Wait for the end of a query, and run it again for as long as it fails and that is wanted."""
        failure = query.await_end()
        while failure is not None and self._is_to_run_again(query, failure):
            failure = self._run_again(query)

    def _is_to_run_again(self, query: RunningQuery, failure: Exception) -> bool:
        """Decide about a failed query, and wait until it may run again; the state is REBALANCING from then on."""
        if self._stopping.is_set():
            return False
        if BROKER_AWAY.search(str(failure)) and self.broker.was_away():
            self._hold(
                query,
                "waited for the broker as long as Kafka's clients do, and runs again from its last whole micro-batch "
                "when the broker is back.",
            )
            self.broker.wait_until_back()
            return not self._stopping.is_set()
        if WORKER_LATE.search(str(failure)) and query.restarts < MOST_LATE_WORKERS:
            self._hold(
                query,
                "runs again from its last whole micro-batch: this machine is so busy that a Python process of Spark's "
                "took more than 10 s to start.",
            )
            return not self._stopping.wait(1)
        try:
            if self._losses.is_behind(failure, query.plan):
                self._states.hold(query.plan.name)
                return not self._stopping.is_set()
            query.last_failure = explain(failure, query.plan, query.checkpoint)
        except StreamsError as refusal:
            query.last_failure = refusal
        if not self._asked(query.last_failure):
            return False
        wait = query.next_wait()
        said = f"runs again from its last whole micro-batch in {wait:.1f} s. It failed: {query.last_failure}"
        self._hold(query, said)
        return not self._stopping.wait(wait)

    def _hold(self, query: RunningQuery, said: str) -> None:
        """Be REBALANCING because of a query, and say why."""
        self._states.hold(query.plan.name)
        self._warn(f"sub-topology {query.plan.name} {said}")

    def _warn(self, said: str) -> None:
        logger.warning("'%s': %s", self._application_id, said)

    def _run_again(self, query: RunningQuery) -> Exception | None:
        """Run a query again, and return why it failed when it has; None when it was stopped."""
        with self._changing:
            if self._stopping.is_set():
                return None
            try:
                query.restart()
            except Exception as failure:
                return failure
        self._states.release(query.plan.name)
        return query.await_end()

    def _asked(self, failure: StreamsError) -> bool:
        """Ask the handler about a failure, and return whether to go on; if not, the application has ended."""
        with self._asking:
            if self._stopping.is_set():
                return False
            answer, told = ask(self.handler, failure)
        if answer is UncaughtExceptionResponse.REPLACE_THREAD:
            return True
        self.fail(told)
        return False

    def _broker_went(self) -> None:
        self._states.hold(AWAY)
        self._warn(
            f"the broker at {self._bootstrap_servers} does not answer. Its queries wait for it, for {self._patience} "
            "(task_timeout); nothing is lost."
        )

    def _broker_returned(self, seconds: float) -> None:
        self._warn(f"the broker at {self._bootstrap_servers} answers again, after {seconds:.0f} s; the queries go on.")
        self._states.release(AWAY)
