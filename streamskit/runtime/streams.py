"""`KafkaStreams`: a topology, running."""

import logging
import shutil
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
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
from streamskit.lowering import Options, Plan, is_readable, plan
from streamskit.runtime.calls import Calls
from streamskit.runtime.explanation import in_words, spark_plan
from streamskit.runtime.failures import explain, explain_call
from streamskit.runtime.kafka import KafkaTopics
from streamskit.runtime.progress import Metrics, Progress
from streamskit.runtime.states import Listener, State, StateMachine
from streamskit.runtime.topics import Topics
from streamskit.topology import GlobalTableSource, Node, SideEffect, Source, Topology

logger = logging.getLogger("streamskit")


class KafkaStreams:
    """Runs a topology: one Spark streaming query for each sub-topology, and local copies of its stores.

    Args:
        topology: what to run, from `StreamsBuilder.build()`.
        application_id: the application's name; its topics, checkpoints and consumer groups are named after it.
        bootstrap_servers: the Kafka brokers, as "host:port".
        spark: the session to run on; streamskit's own when not given.
        state_dir: the folder for checkpoints; `.streamskit/applications` of the project when not given.
        commit_interval: how long a micro-batch gathers records before it is run, a duration.
        max_records_per_batch: the most records that a micro-batch takes; when not given all there are, or 500,000 where
            records are processed one by one in Python.
        statestore_cache_max_bytes: 0 switches the record cache off, so that every update of a table goes out. With any
            other number the updates of a key are folded within a micro-batch, which is what Spark's own aggregations
            do in any case; the commit interval is how long that folds.
        emit_interval: how often unmatched results of outer joins and final results of windows are looked for, a
            duration of wall-clock time; 0 for at every record.

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
        statestore_cache_max_bytes: int = 10 * 1024 * 1024,
        emit_interval: Duration = 0,
    ) -> None:
        self.topology = topology
        self.application_id = application_id
        self._spark = spark
        self._brokers = ExternalBroker(bootstrap_servers)
        self._folder = Path(state_dir or project_state_dir() / "applications") / application_id
        self._commit_interval = to_milliseconds(commit_interval, "commit_interval")
        self._max_records = max_records_per_batch
        options = Options(statestore_cache_max_bytes > 0, to_milliseconds(emit_interval, "emit_interval"))
        self._plans = plan(topology, application_id, options)
        self._topics = Topics(application_id, self._plans)
        self._queries: list[tuple[Plan, StreamingQuery]] = []
        self._metrics: list[Metrics] = []
        self._stores = {store.name: local_store(store) for store in topology.stores.values() if is_readable(store)}
        self._changelogs = {
            plan_.changelog(store): self._stores[store.name] for plan_ in self._plans for store in plan_.stores
        }
        for node in topology.nodes.values():
            if isinstance(node, GlobalTableSource) and node.store is not None and is_readable(node.store):
                self._changelogs |= dict.fromkeys(_topics_of(topology[node.parents[0]]), self._stores[node.store.name])
        self._replica = Replica(bootstrap_servers, self._changelogs)
        nodes = {plan_.calls_topic(node): node for plan_ in self._plans for node in plan_.side_effects}
        self._calls = Calls(bootstrap_servers, nodes, self._call_failed)
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
        if self.state is not State.CREATED or not self._states.move(State.REBALANCING):
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
        self._calls.stop()
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
        if self._topics.internal:
            self._brokers.delete_topics(*self._topics.internal, missing_ok=True)

    def await_processed(self, timeout: Duration = "60 seconds") -> None:
        """Wait until all that is in the source topics now is processed, and its outputs and store updates can be seen.

        Args:
            timeout: how long to wait at most.

        Raises:
            StreamsError: a query failed, or it took too long.
        """
        deadline = time.monotonic() + to_milliseconds(timeout, "timeout") / 1000
        self._check_running("await_processed")
        waited = True
        while waited:  # one query's output may be another's input: go round until there is nothing to wait for
            waited = False
            for plan_, query in self._queries:
                waited |= not self._has_caught_up(plan_, query, deadline)
        self._replica.wait_for(self._ends(self._changelogs), deadline)
        self._calls.wait_for(self._ends(self._topics.calls), deadline)
        self._raise_failure()

    def _has_caught_up(self, plan_: Plan, query: StreamingQuery, deadline: float) -> bool:
        """Wait until a query has processed what is in its topics now, and return whether it had before."""
        wanted = {topic: self._brokers.end_offsets(topic) for topic in plan_.topics}
        if Progress.of(query).has_reached(wanted):
            return True
        while not (progress := Progress.of(query)).has_reached(wanted):
            self._raise_failure()
            if time.monotonic() > deadline:
                raise StreamsError(
                    f"Sub-topology {plan_.name} is not done in time: {progress.lag(wanted)} records are left. Give "
                    "await_processed() a longer timeout."
                )
            time.sleep(0.02)
        return False

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

    def metrics(self) -> pd.DataFrame:
        """Return what each query has done: its micro-batches, its records, and how many each of its nodes dropped.

        One row for each node that dropped records, at least one for each query. Of late records those that Spark's own
        operators drop count once for each window and batch, so that the number is a lower bound there.

        Mirrors `KafkaStreams#metrics`, the metrics `process-total` and `dropped-records-total`.
        """
        rows = []
        for (plan_, _), metrics in zip(self._queries, self._metrics, strict=True):
            now = metrics.update()
            for node, count in now.dropped.items() or [("", 0)]:
                rows.append((plan_.name, now.batches, now.processed, node, count))
        return pd.DataFrame(rows, columns=["query", "batches", "records", "node", "dropped"])

    def explain(self) -> str:
        """Return what runs each sub-topology: which steps are Spark's own, which Python's and why, and Spark's plan.

        The plan is that of the last micro-batch, its outermost step first.

        Raises:
            StreamsError: the application has not started.

        Mirrors `StreamingQuery.explain`.
        """
        if not self._queries:
            raise StreamsError(f"'{self.application_id}' has no Spark query until start() is called.")
        return "\n\n".join(f"{in_words(plan_)}\n\n{spark_plan(query)}" for plan_, query in self._queries)

    def _start(self) -> None:
        partitions = self._topics.prepare(self._brokers)
        spark = self._spark or spark_session()
        topics = KafkaTopics(spark, self._brokers.bootstrap_servers, partitions, self._max_records)
        self._calls.start()
        if self._stores:
            self._replica.start()
        for plan_ in self._plans:
            try:
                query = topics.start(plan_, self._folder / plan_.name, self._commit_interval)
            except PySparkException as failure:
                raise explain(failure, plan_) from failure
            self._queries.append((plan_, query))
            self._metrics.append(Metrics(query, plan_))
            threading.Thread(target=self._watch, args=(plan_, query), name="streamskit-watch", daemon=True).start()
        if self._stores:
            self._replica.wait_for(self._ends(self._changelogs), time.monotonic() + 600)

    def _watch(self, plan_: Plan, query: StreamingQuery) -> None:
        """Wait for the end of a query; if it is a failure, say so once and stop the others."""
        metrics = next(
            metrics for (_, each), metrics in zip(self._queries, self._metrics, strict=True) if each is query
        )
        try:
            while not query.awaitTermination(1):
                metrics.update()
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

    def _ends(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        return {
            TopicPartition(topic, partition): offset
            for topic in topics
            for partition, offset in self._brokers.end_offsets(topic).items()
        }

    def _call_failed(self, node: SideEffect, failure: Exception) -> None:
        self._stop_failed(explain_call(failure, node))
        logger.error("'%s' stopped: %s", self.application_id, self._failure)


def _topics_of(node: Node) -> tuple[str, ...]:
    return node.topics if isinstance(node, Source) else ()
