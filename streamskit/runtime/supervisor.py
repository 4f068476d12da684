"""Supervises an application's queries: what happens to one that fails, and to all when the broker is away."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.durations import spell
from streamskit.common.errors import BrokerError, StreamsError
from streamskit.environment.spark_java import LOST, has_ended, is_stopped, why_lost
from streamskit.kafka.topics import TopicIdentity
from streamskit.planning.plan import Plan
from streamskit.runtime.broker_watch import BrokerWatch
from streamskit.runtime.failures import explain, explain_call, session_stopped
from streamskit.runtime.query import PlannedEndError, RunningQuery
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.states import ACTIVE, ENDING, State, StateMachine
from streamskit.runtime.uncaught_exceptions import Handler, UncaughtExceptionResponse, ask, shutdown_client
from streamskit.runtime.written_topics import WrittenTopics
from streamskit.topology.nodes import SideEffect

logger = logging.getLogger("streamskit")

STARTING, AWAY, CALLING = "starting", "the broker is away", "a function failed"
"""Reasons for an application to be REBALANCING, beside its queries."""

JAVA, SESSION = "Spark's Java", "Spark's session"
"""The parts of an application that are not threads."""

STOP_SECONDS = 10.0
"""How long an application that has failed waits for its queries to stop."""

FINISH_SECONDS = 10.0
"""How long queries of a closing application may take to finish their current micro-batches."""

WORKER_LATE = re.compile("Python worker failed to connect back")
"""Spark waits ten seconds for a Python process, and no setting changes that."""

MOST_LATE_WORKERS = 5
"""How many times a query is run again for that: a worker that never starts has another reason."""

BROKER_AWAY = re.compile(
    r"\b(Timeout|Disconnect|Network|NotLeaderOrFollower|LeaderNotAvailable|BrokerNotAvailable|FencedLeaderEpoch"
    r"|CoordinatorNotAvailable|CoordinatorLoadInProgress|NotCoordinator|StaleMetadata|UnknownLeaderEpoch"
    # A transaction that was open during the outage was aborted by the broker when it came back.
    r"|ProducerFenced|InvalidProducerEpoch|InvalidTxnState|InvalidPidMapping|UnknownProducerId|OutOfOrderSequence"
    r")Exception\b"
    # Messages of Kafka's admin client, which Spark passes on without the name of the exception.
    r"|Timed out waiting (for a node assignment|to send the call)|\bCall\(callName=.* timed out"
)
"""What Spark's Kafka clients say when a broker does not answer; a missing topic can be the cause as well."""


class Supervisor:
    """Runs queries, each watched by a thread; calls the uncaught exception handler for those that fail.

    Args:
        application_id: the name to use in messages.
        states: the application's state.
        bootstrap_servers: the broker's address.
        task_timeout: for how many milliseconds the broker may be away.
        ended: called with the reason when the application has failed for good.
        shut_down: stops all other instances of the application, for the given reason.
        losses: decides about records that were deleted before they were read.

    Mirrors what `KafkaStreams` does for its stream threads there.
    """

    def __init__(
        self,
        application_id: str,
        states: StateMachine,
        bootstrap_servers: BootstrapServers,
        task_timeout: int,
        ended: Callable[[str], None],
        losses: DataLoss,
        shut_down: Callable[[str], object] = lambda why: None,
    ) -> None:
        self.handler: Handler = shutdown_client
        self.queries: list[RunningQuery] = []
        self.failure: StreamsError | None = None
        self.broker = BrokerWatch(
            bootstrap_servers, task_timeout, self._broker_went, self._broker_returned, self._asked
        )
        self._application_id, self._states, self._ended, self._losses = application_id, states, ended, losses
        self._shut_down, self._written = shut_down, WrittenTopics(application_id)
        self._bootstrap_servers, self._patience = bootstrap_servers, spell(task_timeout)
        self._changing, self._asking = threading.Lock(), threading.Lock()
        self._stopping, self._going = threading.Event(), threading.Event()
        self._going.set()
        self._watchers: list[tuple[RunningQuery, threading.Thread]] = []

    @property
    def failures(self) -> list[StreamsError]:
        """Why the application has failed, or why its queries failed that are waiting to run again."""
        if self.failure is not None:
            return [self.failure]
        with suppress(*LOST):
            return [query.last_failure for query in self.queries if query.last_failure and not query.query.isActive]
        return []

    def watch(self, query: RunningQuery) -> None:
        """Take on a query that has just been started; stop it again if the application is about to stop."""
        with self._changing:  # stop() stops the queries that are listed by then
            self.queries.append(query)
            comes_too_late = self._stopping.is_set()
        if comes_too_late:
            query.stop()
            return
        thread = threading.Thread(target=self._watch, args=(query,), name="streamskit: query", daemon=True)
        thread.start()
        self._watchers.append((query, thread))

    def stop(self, seconds: float = STOP_SECONDS, finish: float = 0.0) -> bool:
        """Stop all queries for good; return whether they stopped within this many seconds.

        Args:
            seconds: how long to wait for them.
            finish: how many of these seconds they may take to finish their current micro-batches, unless the broker
                is away.
        """
        deadline = time.monotonic() + seconds
        is_away = self.broker.is_away
        finish = 0.0 if is_away else min(finish, seconds / 2)
        self._stopping.set()
        self.broker.stop()
        is_held = self._changing.acquire(timeout=seconds)  # one may be starting again at this moment
        try:
            threads = {threading.Thread(target=each.stop, args=(finish,), daemon=True): each for each in self.queries}
        finally:
            if is_held:
                self._changing.release()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if still := [query for thread, query in threads.items() if thread.is_alive()]:
            for query in still:  # records that they still hold must not be sent after those of the next run
                query.close_producers()
            # Kafka's clients do not always close while they look for a broker.
            away = "but end only when the broker is back"
            self._warn(f"its queries do nothing more, {away if is_away else 'and end a moment after this call'}.")
            return False
        return True

    def fail(self, failure: StreamsError, loudly: bool = True) -> None:
        """Stop all queries because of a failure, and be in ERROR; `loudly` logs why."""
        self.failure = self.failure or failure
        with self._states.ending_here():
            if not self._states.move(State.PENDING_ERROR):
                return
            if loudly:  # otherwise, nobody might notice, as nobody may be waiting for this application
                logger.error("'%s' stopped: %s", self._application_id, self.failure)
            self._ended(str(self.failure))
            self.stop()
        self._states.move(State.ERROR)

    def call_failed(self, node: SideEffect, failure: Exception) -> bool:
        """Ask the handler about a function that failed in this process, and return whether to call it again."""
        if not self._asked(explain_call(failure, node)):
            return False
        self._states.hold(CALLING)
        self._warn(f"{node.name} calls its function again for the same record in 1 s.")
        self._stopping.wait(1)
        self._states.release(CALLING)
        return not self._stopping.is_set()

    def raise_failure(self) -> None:
        """Raise what ended the application, if something did, as soon as it has ended."""
        if self.failure is not None:
            self._states.await_none_of((*ACTIVE, *ENDING), 2 * STOP_SECONDS)
            raise StreamsError(str(self.failure)) from self.failure

    @contextmanager
    def calls_of_spark(self) -> Iterator[None]:
        """Turn what a call of Spark raises once its Java has ended, or its session, into a sentence.

        Raises:
            StreamsError: it has ended.
        """
        try:
            yield
        except LOST as failure:
            self._spark_is_lost(failure)
            self.raise_failure()
            raise StreamsError(why_lost(failure)) from failure
        except (Py4JError, PySparkException) as failure:
            if not is_stopped(failure):
                raise
            raise session_stopped(self._application_id) from failure

    def look_at_topics(self, found: Mapping[str, TopicIdentity]) -> None:
        """Stop queries whose topics have changed or gone while they run; how they continue is decided then.

        Args:
            found: the topics that are there, among those that queries read and write.
        """
        ids = {topic: identity.id for topic, identity in found.items()}
        partitions = {topic: identity.partitions for topic, identity in found.items()}
        self._written.look([query.plan for query in self.queries], found)
        with suppress(*LOST):  # the threads that wait for a query's end report it
            for query in self.queries:
                if self._stopping.is_set():
                    return
                try:
                    self._losses.check_partitions(query.plan, partitions)
                except StreamsError as refusal:
                    query.interrupt(refusal)
                if remade := self._losses.remade(query.plan, ids):
                    query.interrupt(StreamsError(f"Topic '{min(remade)}' was deleted and made anew."))
                if (refusal_to_write := self._written.refusal(query.plan)) is not None:
                    query.interrupt(refusal_to_write)

    def replan(self, plan: Plan, why: str, finish: float) -> None:
        """Have the query of a plan's name run that plan from now on.

        Args:
            plan: what to run, with the state of the one before.
            why: what the query now does differently, as the end of a sentence.
            finish: how many seconds its current micro-batch may take to finish.
        """
        query = next(each for each in self.queries if each.plan.name == plan.name)
        query.plan = plan
        self._end_to_run_again([query], PlannedEndError(why), finish)

    def pause(self, finish: float) -> None:
        """Process nothing until `resume`; current micro-batches may take this many seconds to finish."""
        self._going.clear()
        self._end_to_run_again(self.queries, PlannedEndError("is paused."), finish)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._going.set()

    @property
    def is_paused(self) -> bool:
        """Whether nothing is processed until `resume`."""
        return not self._going.is_set()

    def _end_to_run_again(self, queries: Sequence[RunningQuery], why: PlannedEndError, finish: float) -> None:
        with self._changing:
            if self._stopping.is_set():
                return
            threads = [threading.Thread(target=each.interrupt, args=(why, finish)) for each in queries]
            for thread in threads:
                thread.start()
        for thread in threads:  # not inside the lock: a signal's handler may call stop() in this very thread
            thread.join()

    def part_died(self, name: str) -> None:
        """End the application because a part of it ended by itself, and nothing can take its place."""
        if name == JAVA:
            self._spark_is_lost(ConnectionError("its process has ended"))
        elif name == SESSION:
            self.fail(session_stopped(self._application_id))
        else:
            self.fail(
                StreamsError(
                    f"{name[0].upper()}{name[1:]} of '{self._application_id}' has ended, though nobody stopped it; a "
                    "function that calls sys.exit() does that to its thread. close() it and make a new KafkaStreams."
                )
            )

    def parts(self) -> dict[str, bool]:
        """Return which parts are alive: each query's thread (the query runs or is about to run again), and others."""
        threads = {f"the thread of sub-topology {query.plan.name}": each.is_alive() for query, each in self._watchers}
        java = {JAVA: not has_ended()} if threads else {}
        return threads | java | {"the thread that asks for the broker": self.broker.lives}

    def _watch(self, query: RunningQuery) -> None:
        """Wait for the end of a query, and run it again for as long as it fails and is to be replaced."""
        try:
            failure = self._ended_by_itself(query, query.await_end())
            while failure is not None and self._is_to_run_again(query, failure):
                counts = not isinstance(failure, PlannedEndError)
                failure = self._ended_by_itself(query, self._run_again(query, counts))
        except LOST as lost:
            self._spark_is_lost(lost)
        except Exception as failure:
            # Nothing else would notice that the query is no longer supervised.
            self.fail(StreamsError(f"Sub-topology {query.plan.name} could not continue after a failure: {failure!r}"))
            raise

    def _ended_by_itself(self, query: RunningQuery, failure: Exception | None) -> Exception | None:
        """Return why a query has ended, including one that neither failed nor was stopped by the application."""
        if failure is not None and not isinstance(failure, (StreamsError, *LOST)) and is_stopped(failure):
            return session_stopped(self._application_id)
        if failure is not None or self._stopping.is_set():
            return failure
        return StreamsError(
            f"Spark ended sub-topology {query.plan.name} of '{self._application_id}', and nobody has closed the "
            "application. Was the Spark session stopped, or the query? Close the application before its session: "
            "close(), then spark.stop(). A new KafkaStreams goes on after the last whole micro-batch."
        )

    def _spark_is_lost(self, failure: BaseException) -> None:
        """End the application, as no query can run any more; the handler is called, but its answer has no effect."""
        with self._asking:
            if self._stopping.is_set() or self.failure is not None:
                return
            error = StreamsError(why_lost(failure))
            error.__cause__ = failure
            _, told = ask(self.handler, error)
            self.failure = told
        self.fail(told)

    def _is_to_run_again(self, query: RunningQuery, failure: Exception) -> bool:
        """Decide about a failed query, and wait until it may run again; the state is REBALANCING from then on."""
        if self._stopping.is_set():
            return False
        if isinstance(failure, LOST):
            self._spark_is_lost(failure)
            return False
        if isinstance(failure, PlannedEndError):
            logger.info("'%s': sub-topology %s %s", self._application_id, query.plan.name, failure)
            return not self._stopping.is_set()
        is_brokers = isinstance(failure, BrokerError) or BROKER_AWAY.search(str(failure)) is not None
        if is_brokers and self.broker.was_away():
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
            if self._losses.is_behind(failure, query.plan, partial(self._wait_for_topic, query)):
                self._states.hold(query.plan.name)
                return not self._stopping.is_set()
            query.heed_time(failure)
            query.last_failure = explain(failure, query.plan, query.checkpoint)
        except BrokerError as silence:  # whether records were lost can be said when it is back
            return self._is_to_run_again(query, silence)
        except StreamsError as refusal:
            query.last_failure = refusal
        if not self._asked(query.last_failure):
            return False
        wait = query.next_wait()
        said = f"runs again from its last whole micro-batch in {wait:.1f} s. It failed: {query.last_failure}"
        self._hold(query, said)
        return not self._stopping.wait(wait)

    def _wait_for_topic(self, query: RunningQuery, seconds: float) -> bool:
        """Wait, in REBALANCING, for a topic that a query reads, and return whether the application is to stop."""
        self._states.hold(query.plan.name)
        return self._stopping.wait(seconds)

    def _hold(self, query: RunningQuery, said: str) -> None:
        """Be REBALANCING because of a query, and say why."""
        self._states.hold(query.plan.name)
        self._warn(f"sub-topology {query.plan.name} {said}")

    def _warn(self, said: str) -> None:
        logger.warning("'%s': %s", self._application_id, said)

    def _run_again(self, query: RunningQuery, counts: bool) -> Exception | None:
        """Run a query again, and return why it failed when it has; None when it was stopped."""
        while not self._stopping.is_set() and not self._going.wait(0.2):
            pass
        with self._changing:
            if self._stopping.is_set():
                return None
            try:
                query.restart(counts)
            except Exception as failure:
                return failure
        self._states.release(query.plan.name)
        return query.await_end()

    def global_store_failed(self, failure: StreamsError) -> None:
        """Ask the handler about what ended a global store's updates, and end the application: nothing fills it again.

        Mirrors the end of the global stream thread.
        """
        if self._asked(failure):
            self._warn("REPLACE_THREAD cannot replace what fills its global stores, so the application stops.")
            self.fail(failure)

    def _asked(self, failure: StreamsError) -> bool:
        """Ask the handler about a failure, and return whether to go on; if not, the application has ended."""
        with self._asking:
            if self._stopping.is_set():
                return False
            answer, told = ask(self.handler, failure)
        if answer is UncaughtExceptionResponse.REPLACE_THREAD:
            return not self._stopping.is_set()  # the handler may have closed the application
        if answer is UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
            self._shut_down(str(told))
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
