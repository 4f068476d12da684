"""`KafkaStreams`: a topology, running."""

import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit.api import error_handlers
from streamskit.broker import ExternalBroker
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError, StreamsNotStartedError, UnknownStateStoreError
from streamskit.common.paths import state_dir as project_state_dir
from streamskit.environment.session import spark_session
from streamskit.kafka.consumer import Isolation
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan, is_readable
from streamskit.planning.planner import plan
from streamskit.queries import Replica, local_store
from streamskit.queries.group.discovery import ask_group, metadata_for_key, metadata_of
from streamskit.queries.metadata import KeyQueryMetadata, StreamsMetadata
from streamskit.runtime import topic_roles
from streamskit.runtime.await_processed import AwaitProcessed
from streamskit.runtime.explanation import in_words, spark_plan
from streamskit.runtime.failures import explain
from streamskit.runtime.lock import ApplicationLock
from streamskit.runtime.query import RunningQuery
from streamskit.runtime.query_server import QueryServer
from streamskit.runtime.real_time import check_slots, real_time_batch
from streamskit.runtime.recovery.checkpoint_errors import telling_of_a_full_disk
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.recovery.exactly_once import is_exactly_once
from streamskit.runtime.side_effects import SideEffects
from streamskit.runtime.sole_runner import SoleRunner
from streamskit.runtime.spark_io import KafkaTopics
from streamskit.runtime.startup_checks import StartupChecks
from streamskit.runtime.states import ENDING, Listener, State, StateMachine
from streamskit.runtime.supervisor import STARTING, Supervisor
from streamskit.runtime.topics import ApplicationTopics
from streamskit.runtime.uncaught_exceptions import Handler, check_handler
from streamskit.topology import Topology

logger = logging.getLogger("streamskit")

FILL_SECONDS = 600.0
"""How long start() waits for the stores to be filled from their changelogs."""


class KafkaStreams:
    """Runs a topology: one Spark streaming query for each sub-topology, and local copies of its stores.

    Args:
        topology: what to run, from `StreamsBuilder.build()`.
        application_id: the application's name; its topics, checkpoints and consumer groups are named after it.
        bootstrap_servers: the Kafka brokers, as "host:port".
        spark: the session to run on; streamskit's own when not given.
        state_dir: the folder for checkpoints; `.streamskit/applications` of the project when not given.
        commit_interval: how long a micro-batch gathers records before it is run, a duration.
        real_time: runs each sub-topology without state in Spark's real-time mode, which passes every record on as it
            comes; the duration, of 5 seconds or more, is that of one batch, after which it notes how far it has come,
            and for which `await_processed` may wait. Not for `F.udf`. Mirrors Spark's `trigger(realTime=)`.
        max_records_per_batch: the most records that a micro-batch takes; when not given all there are, or 500,000 where
            records are processed one by one in Python.
        statestore_cache_max_bytes: 0 switches the record cache off, so that every update of a table goes out. With any
            other number the updates of a key are folded within a micro-batch, which is what Spark's own aggregations
            do in any case; the commit interval is how long that folds.
        emit_interval: how often unmatched results of outer joins and final results of windows are looked for, a
            duration of wall-clock time; 0 for at every record.
        task_timeout: for how long the broker may be away, a duration. The queries wait for it that long and lose
            nothing; the state is REBALANCING meanwhile. Mirrors `task.timeout.ms`.
        uncaught_exception_handler: says what to do when a query fails: see `set_uncaught_exception_handler`.
        deserialization_handler: decides about records that cannot be read: `LogAndFail()` unless another is given,
            such as `LogAndContinue("a-dead-letter-topic")`.
        processing_handler: likewise about records that a step fails on.
        production_handler: likewise about records that cannot be written.
        processing_guarantee: "at_least_once", or "exactly_once": then the records of a micro-batch are written in one
            transaction, and none twice. Readers have to read with `isolation.level=read_committed`.
        max_request_size: the most bytes of one record to write, as the producer's `max.request.size`.
        on_data_loss: what to do about records that were deleted before they were read: "stop", or "continue" behind
            them, with a warning; `metrics()` counts them.
        application_server: where to answer queries over REST, as "host:port"; port 0 takes a free one. The application
            is then one of the instances that share its stores, and has its share only. Without it, it has all of them
            whole and answers nobody but this program.
        num_standby_replicas: how many further instances are to keep a copy of each partition of the stores.
        session_timeout: after how long without a sign of life the others take an instance for dead, a duration.
        token: what those who query over REST have to show; needed for any address but loopback.

    >>> streams = KafkaStreams(topology, application_id="trades-app", bootstrap_servers=broker.bootstrap_servers)
    >>> streams.start()

    Mirrors `org.apache.kafka.streams.KafkaStreams`.
    """

    running: ClassVar[dict[str, "KafkaStreams"]] = {}
    """The applications that run in this process, by id: a notebook can close one whose variable is gone."""

    def __init__(
        self,
        topology: Topology,
        application_id: str,
        bootstrap_servers: str,
        *,
        spark: SparkSession | None = None,
        state_dir: str | Path | None = None,
        commit_interval: Duration = "100 ms",
        real_time: Duration | None = None,
        max_records_per_batch: int | None = None,
        statestore_cache_max_bytes: int = 10 * 1024 * 1024,
        emit_interval: Duration = 0,
        task_timeout: Duration = "5 minutes",
        uncaught_exception_handler: Handler | None = None,
        deserialization_handler: error_handlers.Handler | None = None,
        processing_handler: error_handlers.Handler | None = None,
        production_handler: error_handlers.Handler | None = None,
        processing_guarantee: str = "at_least_once",
        max_request_size: int = 1024 * 1024,
        on_data_loss: str = "stop",
        application_server: str | None = None,
        num_standby_replicas: int = 0,
        session_timeout: Duration = "6 seconds",
        token: str | None = None,
    ) -> None:
        self.topology = topology
        self.application_id = application_id
        self._spark = spark
        self._brokers = ExternalBroker(bootstrap_servers)
        self._folder = Path(state_dir or project_state_dir() / "applications") / application_id
        self._commit_interval = to_milliseconds(commit_interval, "commit_interval")
        self._real_time = real_time_batch(real_time)
        self._max_records = max_records_per_batch
        self._exactly_once = is_exactly_once(processing_guarantee, self._real_time)
        options = QueryOptions(
            statestore_cache_max_bytes > 0,
            to_milliseconds(emit_interval, "emit_interval"),
            handlers=error_handlers.Handlers.of(
                deserialization_handler, processing_handler, production_handler, max_request_size
            ),
            bootstrap_servers=bootstrap_servers,
        )
        self._plans = plan(topology, application_id, options)
        self._topics = ApplicationTopics(application_id, self._plans, self._exactly_once)
        self._states = StateMachine()
        patience = to_milliseconds(task_timeout, "task_timeout")
        self._stores = {store.name: local_store(store) for store in topology.stores.values() if is_readable(store)}
        self._changelogs = {
            topic: [self._stores[store] for store in stores]
            for topic, stores in topic_roles.filled_stores(topology, self._plans).items()
        }
        self._catalogue = topic_roles.catalogue(application_id, topology, self._plans)
        self._copies: Replica | QueryServer = (
            Replica(bootstrap_servers, self._changelogs)
            if application_server is None
            else QueryServer(
                self._catalogue,
                bootstrap_servers,
                application_server,
                self._folder / "stores",
                num_standby_replicas,
                session_timeout,
                token,
            )
        )
        self._losses = DataLoss(application_id, self._folder, on_data_loss)
        self._supervisor = Supervisor(
            application_id, self._states, bootstrap_servers, patience, self._copies.say_stopped, self._losses
        )
        self._calls = SideEffects(
            bootstrap_servers, topic_roles.calls(self._plans), self._supervisor.call_failed, self._supervisor.fail
        )
        self._lock = ApplicationLock(application_id, self._folder)
        self._runner = SoleRunner(application_id, bootstrap_servers, self._folder, self._supervisor.fail)
        self._beginning = StartupChecks(self._folder, self._topics, self._brokers, self._losses)
        if uncaught_exception_handler is not None:
            self.set_uncaught_exception_handler(uncaught_exception_handler)

    def __repr__(self) -> str:
        return f"<KafkaStreams '{self.application_id}': {self.state.name}>"

    def __enter__(self) -> "KafkaStreams":
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @property
    def state(self) -> State:
        """What the application is doing."""
        return self._states.state

    @property
    def failure(self) -> StreamsError | None:
        """Why the application has stopped, if it has failed."""
        return self._supervisor.failure

    @property
    def folder(self) -> Path:
        """Where its checkpoints and stores are: a folder for each query, and `stores` for those of an instance."""
        return self._folder

    @property
    def bootstrap_servers(self) -> str:
        """The Kafka brokers, as "host:port"."""
        return self._brokers.bootstrap_servers

    def set_state_listener(self, listener: Listener) -> None:
        """Call `listener(new, old)` whenever the state changes. Mirrors `KafkaStreams#setStateListener`."""
        self._states.add_listener(listener)

    def set_uncaught_exception_handler(self, handler: Handler) -> None:
        """Let a function say what to do when a query fails; without one, all queries stop and the state is ERROR.

        Args:
            handler: takes the error, which names the node and what went wrong, and returns an
                `UncaughtExceptionResponse`: REPLACE_THREAD, SHUTDOWN_CLIENT or SHUTDOWN_APPLICATION. It is called for
                each failure, one at a time, in a thread of the application's.

        Raises:
            StreamsError: it is no function, or the application has started.

        >>> streams.set_uncaught_exception_handler(lambda failure: UncaughtExceptionResponse.REPLACE_THREAD)
        >>> streams.set_uncaught_exception_handler(MaxFailures(3, "1 minute"))

        Mirrors `KafkaStreams#setUncaughtExceptionHandler`.
        """
        check_handler(handler)
        if self.state is not State.CREATED:
            raise StreamsError(
                f"'{self.application_id}' is {self.state.name}: set its uncaught exception handler before start()."
            )
        self._supervisor.handler = handler

    def start(self) -> None:
        """Create the internal topics, start the queries and begin to fill the stores.

        Raises:
            StreamsError: a topic is missing, the application runs already, or a query does not start.
        """
        if self.state is not State.CREATED or not self._states.hold(STARTING):
            raise StreamsError(
                f"'{self.application_id}' is {self.state.name} and cannot start (again): make a new KafkaStreams."
            )
        try:
            self._lock.take(self.running)
            with telling_of_a_full_disk(self._folder):
                self._start()
        except BaseException as failure:
            why = failure if isinstance(failure, StreamsError) else StreamsError(f"Could not start: {failure}")
            self._supervisor.fail(why, loudly=False)
            self.close()
            raise
        self._states.release(STARTING)

    def close(self, timeout: Duration = "30 seconds") -> bool:
        """Stop the queries and the filling of the stores, and return whether that met the timeout.

        A closed application keeps its stores as they were. The next start goes on after the last whole micro-batch; one
        that is under way now is run again then.

        Mirrors `KafkaStreams#close`.
        """
        began, most = time.monotonic(), to_milliseconds(timeout, "timeout") / 1000
        if self.state is State.CREATED:
            return self._states.move(State.NOT_RUNNING)
        self._states.await_none_of(ENDING, most)  # a failure may be stopping it at this moment
        if not self._states.move(State.PENDING_SHUTDOWN):
            return self.state is State.NOT_RUNNING
        in_time = self._supervisor.stop(most)
        self._copies.stop()
        self._calls.stop()
        self._release_lock()
        self._states.move(State.NOT_RUNNING)
        return in_time and time.monotonic() - began < most

    def clean_up(self) -> None:
        """Forget everything: checkpoints, state and changelogs. The next start reads its topics from the beginning.

        Raises:
            StreamsError: the application is running, here or elsewhere.

        Mirrors `KafkaStreams#cleanUp` and the application reset tool in one.
        """
        if self.state not in (State.CREATED, State.NOT_RUNNING):
            raise StreamsError(f"'{self.application_id}' is {self.state.name}: close() it before clean_up().")
        self._lock.take(self.running)
        try:
            self._runner.claim(self._plans[0].topics[0])
            self._runner.confirm()
            self._forget()
        finally:
            self._release_lock()

    def await_processed(self, timeout: Duration = "60 seconds") -> None:
        """Wait until all that is in the source topics now is processed, and its outputs and store updates can be seen.

        While the broker is away, or a failed query is about to run again, this goes on waiting.

        Args:
            timeout: how long to wait at most.

        Raises:
            StreamsError: a query failed for good, or it took too long.
        """
        deadline = time.monotonic() + to_milliseconds(timeout, "timeout") / 1000
        self._supervisor.raise_failure()
        if self.state not in (State.RUNNING, State.REBALANCING):
            raise StreamsError(
                f"await_processed() needs a running application; '{self.application_id}' is {self.state.name}."
            )
        waiting = self._catching_up(deadline)
        waiting.queries()
        waiting.followers(self._copies, self._changelogs, self._calls, self._topics.calls)
        self._supervisor.raise_failure()

    def store(self, name: str) -> Any:
        """Return a local, read-only view of a store, to be queried by key or whole.

        Raises:
            UnknownStateStoreError: there is no such store.
            StreamsNotStartedError: the application has not started.

        Mirrors `KafkaStreams#store(StoreQueryParameters)`.
        """
        self._known(name)
        if self.state is State.CREATED or self._states.is_held(STARTING):
            raise StreamsNotStartedError(f"Store '{name}' is empty until the application runs: call start() first.")
        return self._copies.store(name) if isinstance(self._copies, QueryServer) else self._stores[name]

    @property
    def application_server(self) -> str | None:
        """Where this instance answers over REST, as "host:port"; None if it does not."""
        return str(self._copies.here) if isinstance(self._copies, QueryServer) else None

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """Return the instances that share the stores, each with what it has.

        They are read from the consumer group of the application, so that any `KafkaStreams` of it can tell, also one
        without an `application_server`.

        Raises:
            BrokerError: no broker answers.

        Mirrors `KafkaStreams#metadataForAllStreamsClients`.
        """
        return metadata_of(ask_group(self._brokers.bootstrap_servers, self._catalogue), self._catalogue)

    def streams_metadata_for_store(self, name: str) -> list[StreamsMetadata]:
        """Return the instances that have a part of a store. Mirrors `KafkaStreams#streamsMetadataForStore`.

        Raises:
            UnknownStateStoreError: there is no such store.
        """
        self._known(name)
        return [each for each in self.metadata_for_all_streams_clients() if name in each.state_store_names]

    def query_metadata_for_key(self, name: str, key: Any) -> KeyQueryMetadata:
        """Return which instance has a key of a store, and which have a standby replica of it.

        Raises:
            UnknownStateStoreError: there is no such store.
            StreamsError: a processor fills the store, so that a key may be in any of its partitions.

        >>> streams.query_metadata_for_key("counts", "KO").active_host
        HostInfo(host='127.0.0.1', port=8080)

        Mirrors `KafkaStreams#queryMetadataForKey`.
        """
        self._known(name)
        placement = ask_group(self._brokers.bootstrap_servers, self._catalogue)
        return metadata_for_key(placement, self._catalogue.with_partitions(self._brokers.topics()), name, key)

    def queries(self) -> list[StreamingQuery]:
        """Return Spark's streaming queries, one for each sub-topology."""
        return [query.query for query in self._supervisor.queries]

    def metrics(self) -> pd.DataFrame:
        """Return what each query has done: its micro-batches, its records, and how many each of its nodes dropped.

        One row for each node that dropped records, at least one for each query. Of late records those that Spark's own
        operators drop count once for each window and batch, so that the number is a lower bound there. `restarts` is
        how often the query was run again, after a failure or because the broker was away. `lost` is how many records
        were deleted before the query read them.

        Mirrors `KafkaStreams#metrics`, the metrics `process-total` and `dropped-records-total`.
        """
        rows = []
        for query in self._supervisor.queries:
            now = query.metrics.update()
            for node, count in now.dropped.items() or [("", 0)]:
                name = query.plan.name
                rows.append((name, now.batches, now.processed, node, count, query.restarts, self._losses.lost[name]))
        return pd.DataFrame(rows, columns=["query", "batches", "records", "node", "dropped", "restarts", "lost"])

    def explain(self) -> str:
        """Return what runs each sub-topology: which steps are Spark's own, which Python's and why, and Spark's plan.

        The plan is that of the last micro-batch, its outermost step first.

        Raises:
            StreamsError: the application has not started.

        Mirrors `StreamingQuery.explain`.
        """
        queries = self._supervisor.queries
        if not queries:
            raise StreamsError(f"'{self.application_id}' has no Spark query until start() is called.")
        return "\n\n".join(f"{in_words(query.plan)}\n\n{spark_plan(query.query)}" for query in queries)

    def _known(self, name: str) -> None:
        if name not in self._stores or not self.topology.stores[name].queryable:
            known = ", ".join(sorted(n for n, s in self.topology.stores.items() if s.queryable))
            raise UnknownStateStoreError(
                f"There is no store '{name}' to query in '{self.application_id}'; "
                + (f"its stores are: {known}." if known else "name one with materialized='a-name'.")
            )

    def _start(self) -> None:
        self._beginning.compare(self._topics.partitions(self._brokers))
        self._runner.claim(self._plans[0].topics[0])
        spark = self._spark or spark_session()
        self._runner.confirm()
        self.running[self.application_id] = self
        partitions = self._beginning.prepare(lambda: self._topics.prepare(self._brokers), self._forget)
        self._catalogue.save(self._folder)
        if self._real_time is not None:
            check_slots(spark, self._plans, partitions)
        servers = self._brokers.bootstrap_servers
        topics = KafkaTopics(spark, servers, partitions, self._max_records, self._real_time, self._exactly_once)
        self._supervisor.broker.start()
        self._calls.start()
        self._copies.start()
        for plan_ in self._plans:
            try:
                folder = self._folder / plan_.name
                self._supervisor.watch(RunningQuery(plan_, self._starter(topics, plan_), folder))
            except (PySparkException, Py4JError) as failure:
                raise explain(failure, plan_, folder) from failure
        self._beginning.note()
        filled = self._catching_up(time.monotonic() + FILL_SECONDS)
        self._copies.wait_for(filled.ends(self._changelogs), filled.deadline, self._supervisor.raise_failure)

    def _starter(self, topics: KafkaTopics, plan_: Plan) -> Callable[[], StreamingQuery]:
        return lambda: topics.start(plan_, self._folder / plan_.name, self._commit_interval)

    def _catching_up(self, deadline: float) -> AwaitProcessed:
        isolation: Isolation = "read_committed" if self._exactly_once else "read_uncommitted"
        return AwaitProcessed(self._supervisor, self._states, self._brokers, deadline, isolation)

    def _forget(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._topics.internal:
            self._brokers.delete_topics(*self._topics.internal, missing_ok=True)

    def _release_lock(self) -> None:
        self._runner.release()
        if self.running.get(self.application_id) is self:
            del self.running[self.application_id]
        self._lock.release()
