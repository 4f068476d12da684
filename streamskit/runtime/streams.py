"""`KafkaStreams`: a topology, running."""

import logging
import shutil
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout
from kafka import TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit.broker import ExternalBroker
from streamskit.durations import Duration, to_milliseconds
from streamskit.environment.paths import state_dir as project_state_dir
from streamskit.environment.session import spark_session
from streamskit.errors import InvalidStateStoreError, StreamsError
from streamskit.interactive import Replica, local_store
from streamskit.lowering import Plan, plan
from streamskit.runtime.explanation import spark_plan
from streamskit.runtime.failures import explain
from streamskit.runtime.kafka import KafkaTopics
from streamskit.runtime.progress import Progress
from streamskit.runtime.states import Listener, State, StateMachine
from streamskit.topology import Topology

logger = logging.getLogger("streamskit")

CHANGELOG_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}


class KafkaStreams:
    """Runs a topology: one Spark streaming query for each sub-topology, and local copies of its stores.

    Args:
        topology: what to run, from `StreamsBuilder.build()`.
        application_id: the application's name; its topics, checkpoints and consumer groups are named after it.
        bootstrap_servers: the Kafka brokers, as "host:port".
        spark: the session to run on; streamskit's own when not given.
        state_dir: the folder for checkpoints; `.streamskit/applications` of the project when not given.
        commit_interval: how long a micro-batch gathers records before it is run, a duration.
        max_records_per_batch: the most records that a micro-batch takes; all there are when not given.

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
        max_records_per_batch: int | None = None,
    ) -> None:
        self.topology = topology
        self.application_id = application_id
        self._spark = spark
        self._brokers = ExternalBroker(bootstrap_servers)
        self._folder = Path(state_dir or project_state_dir() / "applications") / application_id
        self._commit_interval = to_milliseconds(commit_interval, "commit_interval")
        self._max_records = max_records_per_batch
        self._plans = plan(topology, application_id)
        self._queries: list[tuple[Plan, StreamingQuery]] = []
        self._stores = {store.name: local_store(store) for store in topology.stores.values()}
        self._changelogs = {
            plan_.changelog(store): self._stores[store.name] for plan_ in self._plans for store in plan_.stores
        }
        self._replica = Replica(bootstrap_servers, self._changelogs)
        self._states = StateMachine()
        self._lock = FileLock(str(self._folder) + ".lock")
        self._failure: StreamsError | None = None

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

    def set_state_listener(self, listener: Listener) -> None:
        """Call `listener(new, old)` whenever the state changes. Mirrors `KafkaStreams#setStateListener`."""
        self._states.add_listener(listener)

    def start(self) -> None:
        """Create the internal topics, start the queries and begin to fill the stores.

        Raises:
            StreamsError: a topic is missing, the application runs already, or a query does not start.
        """
        if not self._states.move(State.REBALANCING):
            raise StreamsError(
                f"'{self.application_id}' is {self.state.name} and cannot start (again): make a new KafkaStreams."
            )
        try:
            self._take_lock()
            self.running[self.application_id] = self
            self._start()
        except BaseException as failure:
            self._stop_failed(
                failure if isinstance(failure, StreamsError) else StreamsError(f"Could not start: {failure}")
            )
            self.close()
            raise
        self._states.move(State.RUNNING)

    def close(self, timeout: Duration = "30 seconds") -> bool:
        """Stop the queries and the filling of the stores, and return whether that met the timeout.

        A closed application keeps its stores as they were. The next start goes on after the last whole micro-batch; one
        that is under way now is run again then.

        Mirrors `KafkaStreams#close`.
        """
        began = time.monotonic()
        if self.state is State.CREATED:
            return self._states.move(State.NOT_RUNNING)
        if not self._states.move(State.PENDING_SHUTDOWN):
            return True
        for _, query in self._queries:
            query.stop()
        self._replica.stop()
        self._release_lock()
        self._states.move(State.NOT_RUNNING)
        return time.monotonic() - began < to_milliseconds(timeout, "timeout") / 1000

    def clean_up(self) -> None:
        """Forget everything: checkpoints, state and changelogs. The next start reads its topics from the beginning.

        Raises:
            StreamsError: the application is running.

        Mirrors `KafkaStreams#cleanUp` and the application reset tool in one.
        """
        if self.state not in (State.CREATED, State.NOT_RUNNING):
            raise StreamsError(f"'{self.application_id}' is {self.state.name}: close() it before clean_up().")
        self._take_lock()
        try:
            self._forget()
        finally:
            self._release_lock()

    def _forget(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._changelogs:
            self._brokers.delete_topics(*self._changelogs, missing_ok=True)

    def await_processed(self, timeout: Duration = "60 seconds") -> None:
        """Wait until all that is in the source topics now is processed, and its outputs and store updates can be seen.

        Args:
            timeout: how long to wait at most.

        Raises:
            StreamsError: a query failed, or it took too long.
        """
        deadline = time.monotonic() + to_milliseconds(timeout, "timeout") / 1000
        self._check_running("await_processed")
        for plan_, query in self._queries:
            wanted = {topic: self._brokers.end_offsets(topic) for source in plan_.sources for topic in source.topics}
            while not Progress.of(query).has_reached(wanted):
                self._raise_failure()
                if time.monotonic() > deadline:
                    raise StreamsError(
                        f"Sub-topology {plan_.number} is not done after {timeout}: {Progress.of(query).lag(wanted)} "
                        "records are left. Give await_processed() a longer timeout."
                    )
                time.sleep(0.02)
        self._replica.wait_for(self._changelog_ends(), deadline)

    def store(self, name: str) -> Any:
        """Return a local, read-only view of a store, to be queried by key or whole.

        Raises:
            InvalidStateStoreError: there is no such store, or the application has not started.

        Mirrors `KafkaStreams#store(StoreQueryParameters)`.
        """
        if name not in self._stores or not self.topology.stores[name].queryable:
            known = ", ".join(sorted(n for n, s in self.topology.stores.items() if s.queryable))
            raise InvalidStateStoreError(
                f"There is no store '{name}' to query in '{self.application_id}'; "
                + (f"its stores are: {known}." if known else "name one with materialized='a-name'.")
            )
        if self.state in (State.CREATED, State.REBALANCING):
            raise InvalidStateStoreError(f"Store '{name}' is empty until the application runs: call start() first.")
        return self._stores[name]

    def queries(self) -> list[StreamingQuery]:
        """Return Spark's streaming queries, one for each sub-topology."""
        return [query for _, query in self._queries]

    def explain(self) -> str:
        """Return what Spark runs for each sub-topology: the plan of its last micro-batch, outermost step first.

        Raises:
            StreamsError: the application has not started.

        Mirrors `StreamingQuery.explain`.
        """
        if not self._queries:
            raise StreamsError(f"'{self.application_id}' has no Spark query until start() is called.")
        return "\n\n".join(f"Sub-topology {plan_.number}\n{spark_plan(query)}" for plan_, query in self._queries)

    def _start(self) -> None:
        partitions = self._prepare_topics()
        spark = self._spark or spark_session()
        topics = KafkaTopics(spark, self._brokers.bootstrap_servers, partitions, self._max_records)
        if self._stores:
            self._replica.start()
        for plan_ in self._plans:
            try:
                query = topics.start(plan_, self._folder / str(plan_.number), self._commit_interval)
            except PySparkException as failure:
                raise explain(failure, plan_) from failure
            self._queries.append((plan_, query))
            threading.Thread(target=self._watch, args=(plan_, query), name="streamskit-watch", daemon=True).start()
        if self._stores:
            self._replica.wait_for(self._changelog_ends(), time.monotonic() + 600)

    def _prepare_topics(self) -> dict[str, int]:
        """Check that all topics are there, create the changelogs, and return how many partitions each has."""
        partitions = self._brokers.topics()
        needed = [topic for plan_ in self._plans for source in plan_.sources for topic in source.topics]
        needed += [sink.topic for plan_ in self._plans for sink in plan_.sinks]
        if missing := [topic for topic in dict.fromkeys(needed) if topic not in partitions]:
            names = ", ".join(repr(topic) for topic in missing)
            raise StreamsError(
                f"'{self.application_id}' needs topics that are not there: {names}. "
                f"Create them before start(): broker.create_topics({names}, partitions=4)."
            )
        for plan_ in self._plans:
            tasks = plan_.tasks(partitions)
            for changelog in map(plan_.changelog, plan_.stores):
                if changelog not in partitions:
                    self._brokers.create_topics(changelog, partitions=tasks, config=CHANGELOG_CONFIG)
                    partitions[changelog] = tasks
        return partitions

    def _watch(self, plan_: Plan, query: StreamingQuery) -> None:
        """Wait for the end of a query; if it is a failure, say so once and stop the others."""
        try:
            query.awaitTermination()
        except Exception as failure:
            if self.state is not State.PENDING_SHUTDOWN:
                self._stop_failed(explain(failure, plan_))
                # Nobody may be waiting for this application, and so nobody would be told.
                logger.error("'%s' stopped: %s", self.application_id, self._failure)

    def _stop_failed(self, failure: StreamsError) -> None:
        self._failure = self._failure or failure
        for store in self._stores.values():
            store.stopped = store.stopped or str(self._failure)
        if not self._states.move(State.PENDING_ERROR):
            return
        for _, query in self._queries:
            if query.isActive:
                query.stop()
        self._states.move(State.ERROR)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise StreamsError(str(self._failure)) from self._failure

    def _check_running(self, what: str) -> None:
        self._raise_failure()
        if self.state is not State.RUNNING:
            raise StreamsError(f"{what}() needs a running application; '{self.application_id}' is {self.state.name}.")

    def _take_lock(self) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            here = self.application_id in self.running
            close = f"KafkaStreams.running['{self.application_id}'].close()" if here else "close it where it runs"
            raise StreamsError(
                f"An application with the id '{self.application_id}' is running already, in "
                f"{'this' if here else 'another'} process: {close}, or choose another application_id."
            ) from None

    def _release_lock(self) -> None:
        if self.running.get(self.application_id) is self:
            del self.running[self.application_id]
        self._lock.release()

    def _changelog_ends(self) -> dict[TopicPartition, int]:
        return {
            TopicPartition(topic, partition): offset
            for topic in self._changelogs
            for partition, offset in self._brokers.end_offsets(topic).items()
        }
