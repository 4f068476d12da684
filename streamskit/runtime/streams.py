"""`KafkaStreams` runs a topology."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Unpack

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit.api.close_options import CloseOptions
from streamskit.api.stream_partitioner import Partitioner
from streamskit.api.streams_config import StreamsConfig, StreamsSettings
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError, StreamsNotStartedError, UnknownStateStoreError
from streamskit.kafka.topics import list_topics
from streamskit.planning.plan import Plan, check_seen_outside
from streamskit.queries.group.discovery import ask_group, metadata_for_key, metadata_of
from streamskit.queries.metadata import KeyQueryMetadata, StreamsMetadata
from streamskit.queries.query_server import QueryServer
from streamskit.queries.rest_service import RestService
from streamskit.queries.restore_listener import StateRestoreListener
from streamskit.runtime.application import Application
from streamskit.runtime.measures import as_table
from streamskit.runtime.own_names import own_config, own_topology
from streamskit.runtime.progress import TopicOffsets
from streamskit.runtime.recovery.checkpoint_errors import telling_of_a_full_disk
from streamskit.runtime.spark_reports import in_words, spark_plan
from streamskit.runtime.states import ACTIVE, ENDING, Listener, State
from streamskit.runtime.supervisor import STARTING, STOP_SECONDS
from streamskit.runtime.topics import partition_of_key
from streamskit.runtime.uncaught_exceptions import Handler, check_handler
from streamskit.topology import Topology, check_topology

logger = logging.getLogger("streamskit")


class KafkaStreams:
    """Runs a topology: one Spark streaming query for each sub-topology, and local copies of its stores.

    Args:
        topology: what to run, from `StreamsBuilder.build()`.
        config: how to run it: a `StreamsConfig`, or the application's id.
        bootstrap_servers: the Kafka brokers, as "host:port".
        application_id: the application's name, where there is no config.
        spark: the session to run on; streamskit's own when not given.
        uncaught_exception_handler: says what to do when a query fails: see `set_uncaught_exception_handler`.
        rest_service: routes of the application's own, beside those of the REST layer; needs an `application_server`.
        settings: keys of `StreamsConfig`, which override those of the config.

    Raises:
        StreamsError: a setting is unknown, missing, or has a value that it does not take; or the name of an internal
            topic would be too long for Kafka.

    >>> streams = KafkaStreams(topology, "trades-app", broker.bootstrap_servers)  # doctest: +SKIP
    >>> streams.start()  # doctest: +SKIP
    >>> KafkaStreams(topology, "trades-app", broker.bootstrap_servers, commit_interval="1 second")  # doctest: +SKIP
    >>> KafkaStreams(topology, "trades-app", "broker:9093", client_settings="client.properties")  # doctest: +SKIP
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
        rest_service: RestService | None = None,
        **settings: Unpack[StreamsSettings],
    ) -> None:
        self.topology = own_topology(check_topology(topology))
        self.config = own_config(StreamsConfig.of(config, bootstrap_servers, application_id, **settings))
        self._application = Application(self.topology, self.config, spark, rest_service)
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
        return self._application.states.state

    @property
    def application_id(self) -> str:
        """The application's name."""
        return self.config.application_id

    @property
    def failure(self) -> StreamsError | None:
        """Why the application has stopped, if it has failed."""
        return self._application.supervisor.failure

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
        """The plan of each query. Package-internal: live views show them."""
        return self._application.plans

    @property
    def failures(self) -> list[StreamsError]:
        """Why the application has failed, or why its queries failed that are waiting to run again.

        Package-internal: live views show them.
        """
        return self._application.supervisor.failures

    def set_state_listener(self, listener: Listener) -> None:
        """Call `listener(new, old)` whenever the state changes; a listener that was set before is called, too.

        Raises:
            StreamsError: it is no function.

        Mirrors `KafkaStreams#setStateListener`.
        """
        if not callable(listener):
            raise StreamsError(
                f"A state listener is a function of the new state and the old one, not {listener!r}: "
                "lambda new, old: print(old, new)."
            )
        self._application.states.add_listener(listener)

    def set_uncaught_exception_handler(self, handler: Handler) -> None:
        """Let a function say what to do when a query fails; without one, all queries stop and the state is ERROR.

        Args:
            handler: takes the error, which names the node and what went wrong, and returns an
                `UncaughtExceptionResponse`: REPLACE_THREAD, SHUTDOWN_CLIENT or SHUTDOWN_APPLICATION. It is called for
                each failure, one at a time, in one of the application's threads.

        Raises:
            StreamsError: it is no function, or the application has started.

        >>> replace = UncaughtExceptionResponse.REPLACE_THREAD
        >>> streams.set_uncaught_exception_handler(lambda failure: replace)  # doctest: +SKIP
        >>> streams.set_uncaught_exception_handler(MaxFailures(3, "1 minute"))  # doctest: +SKIP

        Mirrors `KafkaStreams#setUncaughtExceptionHandler`.
        """
        check_handler(handler)
        self._check_created("uncaught exception handler")
        self._application.supervisor.handler = handler

    def set_global_state_restore_listener(self, listener: StateRestoreListener) -> None:
        """Notify a listener as the local stores are restored from their changelogs, including those of global tables.

        Args:
            listener: a `StateRestoreListener`. It is not notified of standby and warm-up replicas.

        Raises:
            StreamsError: it is none, or the application has started.

        >>> streams.set_global_state_restore_listener(Telling())  # doctest: +SKIP

        Mirrors `KafkaStreams#setGlobalStateRestoreListener`.
        """
        if not isinstance(listener, StateRestoreListener):
            raise StreamsError(
                f"A restore listener has to be an object of a subclass of StateRestoreListener, not {listener!r}."
            )
        self._check_created("restore listener")
        self._application.tell_of_restoring(listener)

    def start(self) -> None:
        """Create the internal topics, start the queries and begin to fill the stores.

        Raises:
            StreamsError: a topic is missing, the application runs already, a query does not start, or another thread
                has closed the application meanwhile.
        """
        if self.state is not State.CREATED or not self._application.states.hold(STARTING):
            raise StreamsError(
                f"'{self.application_id}' is {self.state.name} and cannot start (again): make a new KafkaStreams."
            )
        try:
            busy = sum(each._application.slots_kept_busy() for each in list(self.running.values()))
            self._application = application = self._application.in_chosen_mode()
            self.config = application.config
            self._check_not_closed()
            application.lock.take(self.running)
            with telling_of_a_full_disk(self.folder):
                application.claim(busy)
                self._check_not_closed()
                self.running[self.application_id] = self
                application.run()
            self._check_not_closed()
        except BaseException as failure:
            was_closed = self._is_closed and isinstance(failure, Exception)
            why = failure if isinstance(failure, StreamsError) else StreamsError(f"Could not start: {failure}")
            self._application.supervisor.fail(why, loudly=False)
            try:
                self._end_start()
            except Exception as trouble:  # the failure of the start says more
                logger.warning("'%s' did not start, and could not be closed in order: %s", self.application_id, trouble)
            if was_closed:  # what was under way then may fail in any way
                raise self._closed_meanwhile() from failure
            raise
        self._application.states.release(STARTING)

    @property
    def _is_closed(self) -> bool:
        """Whether somebody has called `close()`: another thread, a listener or a signal, if a start is under way."""
        return self.state in (State.PENDING_SHUTDOWN, State.NOT_RUNNING)

    def _check_not_closed(self) -> None:
        """Raise an error if the application was closed while it starts."""
        if self._is_closed:
            raise self._closed_meanwhile()

    def _closed_meanwhile(self) -> StreamsError:
        return StreamsError(f"'{self.application_id}' was closed while it started: make a new KafkaStreams.")

    def _end_start(self) -> None:
        """End what has been started."""
        if not self._is_closed:
            self.close()
            return
        # Whoever closed it could not stop what was started later.
        self._application.states.await_none_of(ENDING, 2 * STOP_SECONDS)
        self._application.stop(time.monotonic() + STOP_SECONDS)
        self._forget_running()

    def close(self, timeout: Duration | CloseOptions = "30 seconds") -> bool:
        """Stop the queries and the filling of the stores, and return whether that met the timeout.

        Args:
            timeout: how long it may take; or `CloseOptions`, which also say whether an instance leaves its group.

        A closed application keeps its stores as they were (one with an `application_server` gives its share to the
        other instances, and refuses questions), and the next start goes on after the last whole micro-batch.
        A micro-batch that is under way is finished if that takes no more than ten seconds, or half of the timeout; one
        in real-time mode ends at once. Otherwise, while the broker is away, or in real-time mode on executors of other
        machines, it is interrupted and runs again at the next start.
        The functions of `foreach`, `peek` and `print` are called for all processed records; calls for which there is no
        time are made at the next start.
        While a failure is stopping the application (PENDING_ERROR), `close` first waits for that, except in the thread
        that stops it: in a state listener it returns False at once, and closes the application when the listener is
        called for ERROR.

        Raises:
            StreamsError: the disk is full, and something could not be noted; the application is closed all the same.

        Mirrors `KafkaStreams#close`.
        """
        options = timeout if isinstance(timeout, CloseOptions) else CloseOptions(timeout)
        began, most = time.monotonic(), to_milliseconds(options.timeout, "timeout") / 1000
        if self.state is State.CREATED:
            self._application.let_go()
            return self._application.states.move(State.NOT_RUNNING)
        states = self._application.states
        states.await_none_of(ENDING, most)  # a failure may be stopping it at this moment
        with states.ending_here():
            if not states.move(State.PENDING_SHUTDOWN):
                if self.state is State.PENDING_ERROR:
                    logger.warning("'%s' is still stopping: close() it again when it is ERROR.", self.application_id)
                return self.state is State.NOT_RUNNING
            try:
                with telling_of_a_full_disk(self.folder):
                    in_time = self._application.stop(began + most, options.leave_group)
            finally:
                self._forget_running()
                states.move(State.NOT_RUNNING)
        return in_time and time.monotonic() - began < most

    def pause(self) -> None:
        """Process nothing more until `resume`; stores can be queried meanwhile, and the state stays RUNNING.

        A micro-batch that is under way is finished first, if that takes no more than ten seconds. No punctuation comes
        while the application is paused, and processors stay as they are: `init` is not called again. A new
        `KafkaStreams` of a closed application does not start paused.

        Raises:
            StreamsError: it does not run, or not yet.

        Mirrors `KafkaStreams#pause`.
        """
        self._application.supervisor.raise_failure()
        if self.state not in ACTIVE:
            state = self.state.name
            raise StreamsError(f"'{self.application_id}' is {state}: only a running application can be paused.")
        if self._application.states.is_held(STARTING):
            raise StreamsError(f"'{self.application_id}' is starting: pause() it when start() has returned.")
        self._application.pause()

    def resume(self) -> None:
        """Go on after `pause`, where it stopped. Mirrors `KafkaStreams#resume`."""
        self._application.supervisor.resume()

    @property
    def num_stream_threads(self) -> int | None:
        """How many of Spark's slots each query may use at a time; None for all of them."""
        return self._application.threads.number

    def add_stream_thread(self) -> str:
        """Let each query use one more of Spark's slots from its next micro-batch on; return the new thread's name.

        Nothing is interrupted or restarted. The next start begins with the number in the config again.

        Raises:
            StreamsError: it does not run, it runs in real-time mode, or its queries may use all slots anyway.

        >>> streams.add_stream_thread()  # doctest: +SKIP
        'trades-app-StreamThread-3'

        Mirrors `KafkaStreams#addStreamThread`.
        """
        self._check_threads_can_change()
        with self._application.supervisor.calls_of_spark():
            return self._application.threads.add(self._application.slots())

    def remove_stream_thread(self) -> str:
        """Let each query use one of Spark's slots less from its next micro-batch on; return the thread's name.

        A micro-batch that is under way keeps the slots it began with. If queries could use all slots until now, they
        can use all but one from then on.

        Raises:
            StreamsError: it does not run, it runs in real-time mode, or there is one thread left.

        >>> streams.remove_stream_thread()  # doctest: +SKIP
        'trades-app-StreamThread-4'

        Mirrors `KafkaStreams#removeStreamThread`.
        """
        self._check_threads_can_change()
        with self._application.supervisor.calls_of_spark():
            return self._application.threads.remove(self._application.slots())

    @property
    def is_paused(self) -> bool:
        """Whether the application processes nothing until `resume`. Mirrors `KafkaStreams#isPaused`."""
        return self._application.supervisor.is_paused

    def clean_up(self) -> None:
        """Forget everything: checkpoints, state and changelogs. The next start reads its topics from the beginning.

        Files that somebody else has put into the application's folder stay there, and a warning names them.

        Raises:
            StreamsError: the application is running, here or elsewhere; or what is in the place of its folder is not
                its own. Then nothing is deleted.

        Mirrors `KafkaStreams#cleanUp` and the application reset tool in one.
        """
        if self.state not in (State.CREATED, State.NOT_RUNNING):
            raise StreamsError(f"'{self.application_id}' is {self.state.name}: close() it before clean_up().")
        self._application.home.check()
        self._application.lock.take(self.running)
        try:
            self._application.clean_up()
        finally:
            self._forget_running()
            self._application.release()

    def await_processed(self, timeout: Duration = "60 seconds") -> None:
        """Wait until all records now in the source topics are processed, with outputs and store updates visible.

        While the broker is away, or a failed query is about to run again, it keeps waiting. In real-time mode it ends
        the batch as soon as that has read far enough. It cannot do so on executors of other machines: wait for a result
        there instead (`streamskit.testing.wait_until`).

        Args:
            timeout: how long to wait at most: "5 minutes", or a number of milliseconds.

        Raises:
            StreamsError: a query failed for good, or it took too long.
        """
        deadline = time.monotonic() + to_milliseconds(timeout, "timeout") / 1000
        self._application.supervisor.raise_failure()
        if self.state not in ACTIVE:
            raise StreamsError(
                f"await_processed() needs a running application; '{self.application_id}' is {self.state.name}."
                f"{self._another_that_runs()}"
            )
        self._application.await_processed(deadline)

    def store(self, name: str) -> Any:
        """Return a local, read-only view of a store, to be queried by key or whole.

        Raises:
            UnknownStateStoreError: there is no such store.
            StreamsNotStartedError: the application has not started.

        Mirrors `KafkaStreams#store(StoreQueryParameters)`.
        """
        self._known(name)
        if self.state is State.CREATED or self._application.states.is_held(STARTING):
            raise StreamsNotStartedError(
                f"Store '{name}' is empty until the application runs: call start() first.{self._another_that_runs()}"
            )
        return self._application.store(name)

    @property
    def application_server(self) -> str | None:
        """Where this instance answers over REST, as "host:port"; None if it does not."""
        return None if self.query_server is None else str(self.query_server.here)

    @property
    def query_server(self) -> QueryServer | None:
        """The server that answers over REST; None without an `application_server`.

        Package-internal: a dashboard is shown there.
        """
        copies = self._application.copies
        return copies if isinstance(copies, QueryServer) else None

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """Return the instances that share the stores, each with the partitions that it has.

        They are read from the application's consumer group, so any `KafkaStreams` of it can list them, even one
        without an `application_server`.

        Raises:
            BrokerError: no broker answers.

        Mirrors `KafkaStreams#metadataForAllStreamsClients`.
        """
        catalogue = self._application.catalogue
        return metadata_of(ask_group(self.config.connection, catalogue), catalogue)

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
            partitioner: the one that partitioned the records that the store is made of; it is called with the key
                and the value None, and returns its one partition. By default Kafka's own.

        Raises:
            UnknownStateStoreError: there is no such store.
            StreamsError: a processor fills the store, or a partitioner that is not given precedes it, so that a key
                may be in any of its partitions; or the partitioner does not choose exactly one.

        >>> streams.query_metadata_for_key("counts", "KO").active_host  # doctest: +SKIP
        HostInfo(host='127.0.0.1', port=8080)

        Mirrors `KafkaStreams#queryMetadataForKey`.
        """
        self._known(name)
        topics, catalogue = list_topics(self.config.connection, internal=False), self._application.catalogue
        placement = ask_group(self.config.connection, catalogue)
        partition = partition_of_key(self._application.plans, name, key, partitioner, topics)
        return metadata_for_key(placement, catalogue.with_partitions(topics), name, key, partition)

    def queries(self) -> list[StreamingQuery]:
        """Return Spark's streaming queries, one for each sub-topology.

        Raises:
            StreamsError: not this object was started, but another one with its id.
        """
        self._check_none_runs_instead()
        return [query.query for query in self._application.supervisor.queries]

    def committed_offsets(self) -> dict[str, TopicOffsets]:
        """Return by sub-topology, topic and partition the offset of the record to go on with.

        Before the first micro-batch of a start, these are the offsets where the sub-topology left off; one that has
        never run has none yet.

        Mirrors `TaskMetadata#committedOffsets`.
        """
        supervisor = self._application.supervisor
        with supervisor.calls_of_spark():
            return {query.plan.name: query.position for query in supervisor.queries}

    def metrics(self) -> pd.DataFrame:
        """Return what each query has done: its micro-batches, its records, and how many each of its nodes dropped.

        One row for each node that dropped records, at least one for each query. Late records that Spark's own operators
        drop count once for each window and batch, so that the number is a lower bound there. `restarts` is
        how often the query was run again, after a failure or because the broker was away. `lost` is how many records
        were deleted before the query read them. `lag` is how many records of its topics come after those it has
        processed; it is not known before its first micro-batch is done, nor while no broker answers. Kafka's own tools
        show the same for each partition: `kafka-consumer-groups --describe --group <application id>`.

        Raises:
            StreamsError: not this object was started, but another one with its id.

        Mirrors `KafkaStreams#metrics`: `process-total`, `dropped-records-total` and `records-lag`.
        """
        self._check_none_runs_instead()
        application = self._application
        skipped = application.global_records.dropped
        return as_table(application.supervisor, application.losses, application.group_offsets, skipped)

    def explain(self) -> str:
        """Return what runs each sub-topology: which steps are Spark's own, which Python's and why, and Spark's plan.

        The plan is that of the last batch, its outermost step first.

        Raises:
            StreamsError: the application has not started.

        Mirrors `StreamingQuery.explain`.
        """
        queries = self._application.supervisor.queries
        if not queries:
            raise StreamsError(
                f"'{self.application_id}' has no Spark query until start() is called.{self._another_that_runs()}"
            )
        with self._application.supervisor.calls_of_spark():
            threads = self.num_stream_threads
            mode = self._application.why_mode
            chosen = f"'{self.application_id}' runs {mode}.\n\n" if mode else ""
            return chosen + "\n\n".join(
                f"{in_words(query.plan, threads)}\n\n{spark_plan(query.query, self.config.in_real_time)}"
                for query in queries
            )

    def _known(self, name: str) -> None:
        if name not in self._application.stores or not self.topology.stores[name].queryable:
            known = ", ".join(sorted(n for n, s in self.topology.stores.items() if s.queryable))
            raise UnknownStateStoreError(
                f"There is no store '{name}' to query in '{self.application_id}'; "
                + (f"its stores are: {known}." if known else "name one with materialized='a-name'.")
            )
        check_seen_outside(self.topology, self.topology.stores[name])

    def _check_threads_can_change(self) -> None:
        self._application.supervisor.raise_failure()
        if self.config.in_real_time:
            raise StreamsError(
                f"'{self.application_id}' runs in real-time mode, which keeps a slot of Spark's busy for each "
                "partition all the while: stream threads can neither be added nor removed. Start it with "
                "num_stream_threads, and it runs in micro-batches."
            )
        if self.state not in ACTIVE:
            raise StreamsError(
                f"'{self.application_id}' is {self.state.name}: stream threads come and go while it runs. For a start, "
                "give num_stream_threads."
            )

    def _check_created(self, setting: str) -> None:
        if self.state is not State.CREATED:
            raise StreamsError(f"'{self.application_id}' is {self.state.name}: set its {setting} before start().")

    def _check_none_runs_instead(self) -> None:
        """Refuse an answer about nothing: a cell that was run twice has given `streams` to an object that never ran."""
        if self.state is State.CREATED and (another := self._another_that_runs()):
            raise StreamsError(f"'{self.application_id}' has not been started.{another}")

    def _another_that_runs(self) -> str:
        """Return a sentence about another object with this id that runs in this process; empty if there is none."""
        if self.running.get(self.application_id, self) is self:
            return ""
        name = f"KafkaStreams.running['{self.application_id}']"
        return f" An object made earlier runs with its id, {name}: use that one, or close() it before you start."

    def _forget_running(self) -> None:
        if self.running.get(self.application_id) is self:
            del self.running[self.application_id]
