"""`KafkaStreams`: a topology, running."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Unpack

import pandas as pd
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit.api.stream_partitioner import Partitioner
from streamskit.api.streams_config import StreamsConfig, StreamsSettings
from streamskit.broker import ExternalBroker
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError, StreamsNotStartedError, UnknownStateStoreError
from streamskit.environment.session import spark_session
from streamskit.kafka.topic_reader import Isolation
from streamskit.kafka.topics import TopicExtent
from streamskit.planning.plan import Plan, is_readable
from streamskit.planning.planner import plan
from streamskit.queries import LocalStore, Replica, local_store
from streamskit.queries.group.discovery import ask_group, metadata_for_key, metadata_of
from streamskit.queries.metadata import KeyQueryMetadata, StreamsMetadata
from streamskit.queries.query_server import QueryServer
from streamskit.queries.queryable_instance import InstanceHealth
from streamskit.runtime.catch_up import CatchUp
from streamskit.runtime.checkpoint_copies import CheckpointCopies
from streamskit.runtime.failures import explain
from streamskit.runtime.global_stores import FilledStore, filled_by_processors
from streamskit.runtime.global_tables import GlobalTableRecords
from streamskit.runtime.purging import Purging
from streamskit.runtime.query import RunningQuery, query_options
from streamskit.runtime.recovery.application_folder import ApplicationFolder
from streamskit.runtime.recovery.checkpoint_errors import telling_of_a_full_disk
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.recovery.rebuilding import Rebuilding
from streamskit.runtime.side_effects import SideEffects
from streamskit.runtime.sole_runner import ApplicationLock, SoleRunner
from streamskit.runtime.spark_io import KafkaTopics, check_slots, fence_off
from streamskit.runtime.spark_reports import in_words, spark_plan
from streamskit.runtime.startup_checks import StartupChecks
from streamskit.runtime.states import ENDING, Listener, State, StateMachine
from streamskit.runtime.supervisor import STARTING, Supervisor
from streamskit.runtime.topic_watch import TopicWatch
from streamskit.runtime.topics import ApplicationTopics, catalogue, filled_stores, partition_of_key, side_effects
from streamskit.runtime.uncaught_exceptions import Handler, check_handler
from streamskit.runtime.watchdog import Watchdog
from streamskit.topology import Topology
from streamskit.topology.explicit_names import check_names_are_explicit
from streamskit.topology.wiring import check_read_once

logger = logging.getLogger("streamskit")

STORES_READER = "the thread that reads the changelogs"

FILL_SECONDS = 600.0
"""How long start() waits for the stores to be filled from their changelogs."""


class KafkaStreams:
    """Runs a topology: one Spark streaming query for each sub-topology, and local copies of its stores.

    Args:
        topology: what to run, from `StreamsBuilder.build()`.
        config: how to run it: a `StreamsConfig`, or the application's id.
        bootstrap_servers: the Kafka brokers, as "host:port".
        application_id: the application's name, where there is no config.
        spark: the session to run on; streamskit's own when not given.
        uncaught_exception_handler: says what to do when a query fails: see `set_uncaught_exception_handler`.
        settings: the keys of `StreamsConfig`, which go before those of the config.

    Raises:
        StreamsError: a setting is unknown, missing, or has a value that it does not take; or the name of an internal
            topic would be too long for Kafka.

    >>> streams = KafkaStreams(topology, "trades-app", broker.bootstrap_servers)  # doctest: +SKIP
    >>> streams.start()  # doctest: +SKIP
    >>> KafkaStreams(topology, "trades-app", broker.bootstrap_servers, commit_interval="1 second")  # doctest: +SKIP
    >>> config = StreamsConfig.from_properties("streams.properties")  # doctest: +SKIP
    >>> streams = KafkaStreams(topology, config, num_standby_replicas=1)  # doctest: +SKIP

    Mirrors `org.apache.kafka.streams.KafkaStreams`.
    """

    running: ClassVar[dict[str, "KafkaStreams"]] = {}
    """The applications that run in this process, by id: a notebook can close one whose variable is gone."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | str | None = None,
        bootstrap_servers: str | None = None,
        *,
        application_id: str | None = None,
        spark: SparkSession | None = None,
        uncaught_exception_handler: Handler | None = None,
        **settings: Unpack[StreamsSettings],
    ) -> None:
        self.topology = topology
        self.config = StreamsConfig.of(config, bootstrap_servers, application_id, **settings)
        self._spark = spark
        self._brokers = ExternalBroker(self.config.bootstrap_servers)
        if self.config.ensure_explicit_internal_resource_naming:
            check_names_are_explicit(topology)
        self._plans = plan(topology, self.application_id, query_options(self.config))
        self._topics = ApplicationTopics(self.application_id, self._plans, self.config.exactly_once)
        self._topics.check_names()
        self._states = StateMachine()
        self._catalogue = catalogue(self.application_id, topology, self._plans)
        self._build_stores()
        self._build_supervision()
        if uncaught_exception_handler is not None:
            self.set_uncaught_exception_handler(uncaught_exception_handler)

    def _build_stores(self) -> None:
        """Make the stores to be queried, and what fills them: a replica of all, or an instance with a share of them."""
        self._stores = {store.name: local_store(store) for store in self.topology.stores.values() if is_readable(store)}
        self._changelogs: dict[str, list[LocalStore | FilledStore]] = {
            topic: [self._stores[store] for store in stores]
            for topic, stores in filled_stores(self.topology, self._plans).items()
        }
        self._global_records = GlobalTableRecords(self.topology, self._plans, self.config.handlers)
        if self.config.application_server is None:  # an instance has no copies of what processors make global
            for topic, filling in filled_by_processors(self.topology).items():
                self._changelogs.setdefault(topic, []).extend(
                    FilledStore(node, self.application_id, topic, self._stores[store.name])
                    for node in filling for store in node.stores
                )  # fmt: skip
        self._copies: Replica | QueryServer = (
            Replica(self.bootstrap_servers, self._changelogs, self._global_records.keep)
            if self.config.application_server is None
            else QueryServer(self._catalogue, self.config, keeps=self._global_records.keep)
        )

    def _build_supervision(self) -> None:
        """Make what watches over the queries, and what they need before they start."""
        config, application_id, servers, folder = self.config, self.application_id, self.bootstrap_servers, self.folder
        self._losses = DataLoss(application_id, folder, config.on_data_loss)
        self._supervisor = Supervisor(
            application_id,
            self._states,
            servers,
            config.milliseconds("task_timeout"),
            self._copies.say_stopped,
            self._losses,
        )
        self._side_effects = SideEffects(
            servers, side_effects(self._plans), folder, self._supervisor.call_failed, self._supervisor.fail
        )
        self._home = ApplicationFolder(application_id, folder)
        self._purging = Purging(servers, self._read_by_itself, self._topics.windowed)
        self._lock = ApplicationLock(application_id, folder)
        self._runner = SoleRunner(application_id, servers, folder, self._supervisor.fail)
        self._checks = StartupChecks(folder, self._topics, self._brokers, self._losses)
        self._checkpoint_copies = CheckpointCopies(application_id, folder, lambda plan_: self._checks.about(plan_))
        self._topic_watch = TopicWatch(servers, self._supervisor.look_at_topics)
        self._watchdog = Watchdog(self._parts, self._part_died)
        if isinstance(self._copies, QueryServer):
            self._copies.instance.application = self._health

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
    def application_id(self) -> str:
        """The application's name."""
        return self.config.application_id

    @property
    def failure(self) -> StreamsError | None:
        """Why the application has stopped, if it has failed."""
        return self._supervisor.failure

    @property
    def folder(self) -> Path:
        """Where its checkpoints and stores are: a folder for each query, and `stores` for those of an instance."""
        return self.config.folder

    @property
    def bootstrap_servers(self) -> str:
        """The Kafka brokers, as "host:port"."""
        return self.config.bootstrap_servers

    @property
    def plans(self) -> Sequence[Plan]:
        """The plan of each query. For the inside of the package: live views show them."""
        return self._plans

    @property
    def failures(self) -> list[StreamsError]:
        """Why the application has failed, or why those of its queries failed that wait to run again.

        For the inside of the package: live views show them.
        """
        return self._supervisor.failures

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

        >>> replace = UncaughtExceptionResponse.REPLACE_THREAD
        >>> streams.set_uncaught_exception_handler(lambda failure: replace)  # doctest: +SKIP
        >>> streams.set_uncaught_exception_handler(MaxFailures(3, "1 minute"))  # doctest: +SKIP

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
            with telling_of_a_full_disk(self.folder):
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
        that is under way now is run again then. The functions of `foreach`, `peek` and `print` are called for all that
        was processed; those for which the time does not suffice are called at the next start.

        Mirrors `KafkaStreams#close`.
        """
        began, most = time.monotonic(), to_milliseconds(timeout, "timeout") / 1000
        if self.state is State.CREATED:
            return self._states.move(State.NOT_RUNNING)
        self._states.await_none_of(ENDING, most)  # a failure may be stopping it at this moment
        if not self._states.move(State.PENDING_SHUTDOWN):
            return self.state is State.NOT_RUNNING
        self._watchdog.stop()
        self._topic_watch.stop()
        in_time = self._supervisor.stop(most)
        self._checkpoint_copies.stop()
        if in_time and self.failure is None:
            deadline = began + most
            ends = partial(self._catch_up(deadline).ends, self._topics.side_effects)
            in_time = self._side_effects.drain(ends, deadline)
            self._purging.stop()
        self._copies.stop()
        self._side_effects.stop()
        self._release_lock()
        self._states.move(State.NOT_RUNNING)
        return in_time and time.monotonic() - began < most

    def clean_up(self) -> None:
        """Forget everything: checkpoints, state and changelogs. The next start reads its topics from the beginning.

        Raises:
            StreamsError: the application is running, here or elsewhere; or what lies where its folder would be is not
                its own. Then nothing is deleted.

        Mirrors `KafkaStreams#cleanUp` and the application reset tool in one.
        """
        if self.state not in (State.CREATED, State.NOT_RUNNING):
            raise StreamsError(f"'{self.application_id}' is {self.state.name}: close() it before clean_up().")
        self._home.check()
        self._lock.take(self.running)
        try:
            self._match_topics()
            self._runner.claim(self._a_topic)
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
        catch_up = self._catch_up(deadline)
        with self._supervisor.calls_of_spark():
            catch_up.of_queries()
        catch_up.of_readers(self._copies, self._changelogs, self._side_effects, self._topics.side_effects)
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
        return metadata_of(ask_group(self.bootstrap_servers, self._catalogue), self._catalogue)

    def streams_metadata_for_store(self, name: str) -> list[StreamsMetadata]:
        """Return the instances that have a part of a store. Mirrors `KafkaStreams#streamsMetadataForStore`.

        Raises:
            UnknownStateStoreError: there is no such store.
        """
        self._known(name)
        return [each for each in self.metadata_for_all_streams_clients() if name in each.state_store_names]

    def query_metadata_for_key(self, name: str, key: Any, partitioner: Partitioner | None = None) -> KeyQueryMetadata:
        """Return which instance has a key of a store, and which have a standby replica of it.

        Args:
            name: the store.
            key: the key.
            partitioner: the one that has shared out the records of which the store is made; it is asked for the one
                partition of the key, with the value None. By default Kafka's own.

        Raises:
            UnknownStateStoreError: there is no such store.
            StreamsError: a processor fills the store, or it lies behind a partitioner that is not named, so that a key
                may be in any of its partitions; or the partitioner does not choose exactly one.

        >>> streams.query_metadata_for_key("counts", "KO").active_host  # doctest: +SKIP
        HostInfo(host='127.0.0.1', port=8080)

        Mirrors `KafkaStreams#queryMetadataForKey`.
        """
        self._known(name)
        topics = self._brokers.topics()
        placement = ask_group(self.bootstrap_servers, self._catalogue)
        partition = partition_of_key(self._plans, name, key, partitioner, topics)
        return metadata_for_key(placement, self._catalogue.with_partitions(topics), name, key, partition)

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
            with self._supervisor.calls_of_spark():
                now = query.metrics.update()
            for node, count in now.dropped.items() or [("", 0)]:
                name = query.plan.name
                rows.append((name, now.batches, now.processed, node, count, query.restarts, self._losses.lost[name]))
        # The topic of a global table is read without a query where no step looks into it.
        rows += [("global", 0, 0, node, count, 0, 0) for node, count in self._global_records.dropped.items()]
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
        with self._supervisor.calls_of_spark():
            return "\n\n".join(f"{in_words(query.plan)}\n\n{spark_plan(query.query)}" for query in queries)

    def _parts(self) -> dict[str, bool]:
        """Return of each part of the application whether it lives."""
        return {
            **self._supervisor.parts(),
            STORES_READER: self._copies.lives,
            "the thread that calls functions": self._side_effects.lives,
            "the thread that speaks for it in its group": self._runner.lives,
            "the thread that looks at its topics": self._topic_watch.lives,
        }

    def _part_died(self, name: str) -> None:
        if name != STORES_READER:
            self._supervisor.part_died(name)
            return
        # Processing needs no copies: it goes on, and who asks for the stores is told.
        logger.error("'%s': its stores are not brought up to date any more, and it processes on.", self.application_id)
        self._copies.say_stopped("Their changelogs are not read any more.")

    def _health(self) -> InstanceHealth:
        state = self.state
        waits_for = "" if state is State.RUNNING else f"'{self.application_id}' is {state.name}."
        return InstanceHealth(state.name, str(self.failure or ""), waits_for, self._parts())

    def _known(self, name: str) -> None:
        if name not in self._stores or not self.topology.stores[name].queryable:
            known = ", ".join(sorted(n for n, s in self.topology.stores.items() if s.queryable))
            raise UnknownStateStoreError(
                f"There is no store '{name}' to query in '{self.application_id}'; "
                + (f"its stores are: {known}." if known else "name one with materialized='a-name'.")
            )

    def _match_topics(self) -> None:
        """Find the topics that match the program's patterns.

        Raises:
            StreamsError: none does.
            TopologyError: one matches several.
        """
        if not any(plan_.waits_for_topics for plan_ in self._plans):
            return
        own = (*self._topics.internal, "__consumer_offsets", "__transaction_state", "__share_group_state")
        there = [topic for topic in self._brokers.topics() if topic not in own]
        for topic in there:
            check_read_once(topic, [source for source in self.topology.sources if source.reads_topic(topic)])
        self._plans = [plan_.with_topics(there) for plan_ in self._plans]
        for plan_ in self._plans:
            for each in plan_.inputs:
                if not each.topics:
                    raise StreamsError(
                        f"{each.node.name} ({each.node.call_site}): no topic matches the pattern "
                        f"'{each.node.topic_names[0]}'. Create one before start()."
                    )
        self._topics = replace(self._topics, plans=self._plans)
        self._checks = StartupChecks(self.folder, self._topics, self._brokers, self._losses)

    def _start(self) -> None:
        self._home.check()
        self._match_topics()
        self._checks.compare(self._topics.partitions(self._brokers))
        self._runner.claim(self._a_topic)
        spark = self._spark or spark_session()
        self._runner.confirm()
        self.running[self.application_id] = self
        partitions = self._checks.prepare(
            lambda: self._topics.prepare(self._brokers), self._forget, partial(self._rebuild, spark)
        )
        self._home.claim()
        self._catalogue.save(self.folder)
        if self.config.real_time is not None:
            check_slots(spark, self._plans, partitions)
        topics = KafkaTopics(spark, self.config, partitions, self._losses.ids_of, self._checks.about)
        self._supervisor.broker.start()
        self._side_effects.start()
        self._copies.start()
        # Before the first query begins: whatever begins has a note of what it is.
        self._checks.note()
        for plan_ in self._plans:
            try:
                folder = self.folder / plan_.name
                self._supervisor.watch(RunningQuery(plan_, self._starter(topics, plan_), folder))
            except (PySparkException, Py4JError, ConnectionError) as failure:
                raise explain(failure, plan_, folder) from failure
        if not self.config.exactly_once:
            self._checkpoint_copies.start(spark, topics.transactions(self._plans))
        self._watchdog.start()
        self._purging.start()
        self._topic_watch.start(dict.fromkeys(topic for plan_ in self._plans for topic in plan_.topics))
        filled = self._catch_up(time.monotonic() + FILL_SECONDS)
        self._copies.wait_for(filled.ends(self._changelogs), filled.deadline, self._supervisor.raise_failure)

    @property
    def _a_topic(self) -> str:
        """A topic that it reads: of a query, or of a global table, where it has nothing else."""
        return self._plans[0].topics[0] if self._plans else self.topology.sources[0].topics[0]

    def _starter(self, topics: KafkaTopics, plan_: Plan) -> Callable[[], StreamingQuery]:
        return lambda: topics.start(plan_, self.folder / plan_.name)

    def _catch_up(self, deadline: float) -> CatchUp:
        isolation: Isolation = "read_committed" if self.config.exactly_once else "read_uncommitted"
        return CatchUp(self._supervisor, self._states, self._brokers, deadline, isolation)

    def _read_by_itself(self) -> dict[str, dict[int, int]]:
        """Return how far it has read the topics that it writes for itself."""
        between, found = self._topics.between, self._side_effects.done
        for query in self._supervisor.queries:
            # A rebuilt checkpoint may go on with records that were processed and are not in its copy yet.
            copied = None if self.config.exactly_once else self._checkpoint_copies.copied(query.plan)
            offsets = query.progress.offsets if copied is None else copied
            found |= {topic: offsets[topic] for topic in between if topic in offsets}
        return found

    def _forget(self) -> None:
        self._home.delete()
        if self._topics.internal:
            self._brokers.delete_topics(*self._topics.internal, missing_ok=True)

    def _rebuild(self, spark: SparkSession, extents: Mapping[str, TopicExtent]) -> str:
        self._home.claim()
        fence = partial(fence_off, spark, self.config)
        place = self.application_id, self.folder, self._plans
        return Rebuilding(*place, spark, self.bootstrap_servers, fence).run(extents)

    def _release_lock(self) -> None:
        self._runner.release()
        if self.running.get(self.application_id) is self:
            del self.running[self.application_id]
        self._lock.release()
