"""`TopologyTestDriver`: a topology run one record at a time, without a broker."""

import uuid
from collections import Counter, defaultdict, deque
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Protocol, Self, Unpack
from weakref import WeakSet

from pyspark.sql import SparkSession

from streamskit.api.client_settings import NO_BROKER
from streamskit.api.streams_config import StreamsConfig, StreamsSettings
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError, TopologyError
from streamskit.environment.session import spark_session
from streamskit.environment.spark_processes import is_local
from streamskit.kafka.topic_reader import TopicRecord
from streamskit.operators.global_store import can_be_read
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import CLOCK_TOPIC, STREAM_TIME_KEY, Plan, check_seen_outside, is_readable
from streamskit.planning.planner import follows_stream_time, plan
from streamskit.queries import LocalStore
from streamskit.runtime.failures import explain, explain_call
from streamskit.runtime.global_records import GlobalRecords
from streamskit.runtime.global_stores import FilledStore, filled_by_processors
from streamskit.runtime.query import query_options
from streamskit.runtime.topics import ApplicationTopics, changelogs, global_tables, local_stores, side_effects
from streamskit.serdes import Serde, Serdes
from streamskit.testing.memory import MemoryQuery, Raw
from streamskit.testing.partitions import Declared, TopicPartitions
from streamskit.testing.real_time import NotInRealTimeError, RealTimeQuery
from streamskit.testing.topics import TestInputTopic, TestOutputTopic
from streamskit.testing.waiting import WaitingRecords
from streamskit.topology import Topology, check_topology
from streamskit.topology.explicit_names import check_names_are_explicit
from streamskit.topology.nodes import GlobalTableSource, Node, Sink, of_kind
from streamskit.topology.source_topics import check_read_once

DriverQuery = MemoryQuery | RealTimeQuery
"""A query of a test driver, in either of Spark's modes."""

CLOSED = "The test driver is closed; this is the last that was seen of it."
"""Why nothing more comes from a closed driver."""


class _Watcher(Protocol):
    """Sees what each query is about to read, records between two queries included."""

    def note(self, query: DriverQuery, records: list[Raw]) -> None: ...


class TopologyTestDriver:
    """Runs a topology on records that a test pipes in, one after another, with the same plan as live.

    Spark's real-time mode processes a record in about a millisecond. What does not run in that mode (functions that
    Spark calls in Python between two steps, such as UDFs, serdes, partitioners and error handlers, and several
    partitions) takes a micro-batch for each record, with the same results but about fifty times as slowly.

    Args:
        topology: what to run.
        config: how to run it: a `StreamsConfig`, or the application's id. Only what concerns records is used from a
            config: the cache, the `emit_interval` and the handlers.
        cache: whether the record cache folds the updates that one record makes to one key, in a sub-topology; by
            default as the config says, or off without one.
        partitions: how many partitions the topics that are not the application's own have: one number for all, or
            numbers by name for those with more than one. Each partition is then a task, with its own state and stream
            time. By default every topic has one.
        settings: keys of `StreamsConfig`, which override those of the config. The `emit_interval` is measured in the
            wall-clock time that `advance_wall_clock_time` moves.

    A record whose processing fails ends its query: the error is raised where the record was piped in, and again for
    whatever reaches that query afterwards, with a sentence that says so.

    >>> with TopologyTestDriver(topology) as driver:
    ...     driver.create_input_topic("orders").pipe_input("key", "value", timestamp=0)
    ...     driver.create_output_topic("out").read_records_to_list()

    >>> with TopologyTestDriver(topology, partitions={"orders": 3}) as driver:
    ...     driver.create_input_topic("orders").pipe_input("key", "value", partition=2)
    ...     driver.create_output_topic("out").read_records_by_partition()

    Mirrors `org.apache.kafka.streams.TopologyTestDriver`, and for `partitions` KIP-1238, which Kafka has put off.
    """

    _is_for_real_time = True
    """Whether queries run in Spark's real-time mode where they can; a subclass may have all run in micro-batches."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | str = "test",
        *,
        cache: bool | None = None,
        partitions: Declared = None,
        **settings: Unpack[StreamsSettings],
    ) -> None:
        self.topology = check_topology(topology)
        if cache is None:
            cache = isinstance(config, StreamsConfig) and config.statestore_cache_max_bytes > 0
        broker = None if isinstance(config, StreamsConfig) else NO_BROKER
        config = StreamsConfig.of(config, broker, **settings)
        options = query_options(config, cache=cache, test=True, real_time=False, bootstrap_servers="", threads_of="")
        self._queries: list[DriverQuery] = []
        self._failures: dict[DriverQuery, StreamsError] = {}
        self._watchers = WeakSet[_Watcher]()  # weakly: a view that nobody has any more is to be forgotten
        self._is_closed = False
        spark = spark_session()
        if partitions is None and self._is_for_real_time and is_local(spark.sparkContext.master or ""):
            with suppress(NotInRealTimeError):
                self._open(spark, config, replace(options, real_time=True), None)
        if not self._queries:
            self._open(spark, config, options, partitions)

    def _open(self, spark: SparkSession, config: StreamsConfig, options: QueryOptions, partitions: Declared) -> None:
        """Start the queries, and keep what has to be known about them.

        Raises:
            NotInRealTimeError: one of them cannot run in real-time mode, which the options request.
        """
        topology = self.topology
        self._plans = plan(topology, config.application_id, options)
        self._partitions = TopicPartitions(topology, self._plans, partitions)
        self._changelogs = {topic: store.name for topic, store in changelogs(self._plans).items()}
        self._side_effects = side_effects(self._plans)
        self._global_tables = global_tables(topology)
        self._unread = _unread_tables(topology, self._plans)
        self._global_topics = _global_topics(topology)
        self._global_records = GlobalRecords(topology, self._plans, config.handlers)
        if config.ensure_explicit_internal_resource_naming:
            check_names_are_explicit(topology)
        self._own = frozenset(ApplicationTopics(config.application_id, self._plans).internal)
        self._internal = {topic for topic in self._written() if self._is_read(topic)}
        self._handovers = {topic for plan_ in self._plans for topic in plan_.handovers.values()}
        self._waiting = WaitingRecords(self._plans, outside=self._global_topics)
        self._dropped: Counter[str] = Counter()
        self._stores = local_stores(topology)
        self._filled = {
            topic: [FilledStore(node, config.application_id, self._stores[store.name])
                    for node in filling for store in node.stores]
            for topic, filling in filled_by_processors(topology).items()
        }  # fmt: skip
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._outputs: dict[str, deque[Raw]] = defaultdict(deque)
        self._produced: set[str] = set()
        self._wall_clock = 0
        self._start(spark)
        # Without partitions all sub-topologies are one task, as in Kafka Streams' driver, and have one stream time.
        is_one_task = partitions is None and len(self._queries) > 1
        self._timed = [query for query in self._queries if is_one_task and follows_stream_time(query.plan)]
        self._stream_time = -1

    def __repr__(self) -> str:
        return f"<TopologyTestDriver of {len(self.topology.nodes)} nodes>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if failure is None:
            self.close()
        else:
            self._stop()

    def create_input_topic(
        self,
        name: str,
        key: Serde | None = None,
        value: Serde | None = None,
        *,
        start_timestamp: int = 0,
        auto_advance: Duration = 0,
    ) -> TestInputTopic:
        """Return an input topic for a source topic.

        Args:
            name: its name.
            key: the serde of its keys; the source's own by default.
            value: the serde of its values; the source's own by default.
            start_timestamp: where the topic's clock stands at first, in milliseconds since 1970. It times the records
                that are piped without a timestamp.
            auto_advance: by how much such a record moves the clock.

        Raises:
            TopologyError: the topology does not read that topic.
            StreamsError: the start is no whole number of milliseconds.
            ValueError: the step is no duration, or negative.

        Mirrors `TopologyTestDriver#createInputTopic`.
        """
        sources = [source for source in self.topology.sources if not source.internal]
        reading = [source for source in sources if source.reads_topic(name)]
        if not reading:
            known = ", ".join(topic for source in sources for topic in source.topic_names)
            raise TopologyError(f"The topology reads no topic '{name}'; it reads: {known}.")
        check_read_once(name, reading)
        key, value = key or reading[0].key, value or reading[0].value
        return TestInputTopic(
            name, key, value, self._pipe, self._partitions, start_timestamp=start_timestamp, auto_advance=auto_advance
        )

    def create_output_topic(self, name: str, key: Serde | None = None, value: Serde | None = None) -> TestOutputTopic:
        """Return an output topic for a topic that the topology writes; by default with the sink's own serdes.

        Raises:
            TopologyError: the topology does not write that topic, or only records name it, and the sinks that may write
                it have different serdes.
        """
        sinks = {self._name(sink): sink for sink in self.topology.sinks if isinstance(sink.topic, str)}
        dynamic = [sink for sink in self.topology.sinks if not isinstance(sink.topic, str)]
        stores = {topic: self.topology.store(store) for topic, store in self._changelogs.items()}
        written = sinks.get(name) or stores.get(name)
        if written is None and dynamic:
            _check_serdes(name, dynamic, [title for title, given in (("key", key), ("value", value)) if given is None])
            written = dynamic[0]
        if written is not None:
            return self._output_topic(name, key or written.key, value or written.value)
        raise TopologyError(f"The topology writes no topic '{name}'; it writes: {', '.join([*sinks, *stores])}.")

    def dead_letters(self, topic: str) -> TestOutputTopic:
        """Return an output topic for a topic to which error handlers write; keys and values are bytes."""
        return self._output_topic(topic, Serdes.byte_array(), Serdes.byte_array())

    def _output_topic(self, name: str, key: Serde, value: Serde) -> TestOutputTopic:
        return TestOutputTopic(name, key, value, self._outputs[name], self._partitions)

    def advance_wall_clock_time(self, duration: Duration) -> None:
        """Move the wall clock forward, which nothing else does. Mirrors `TopologyTestDriver#advanceWallClockTime`."""
        self._check_open()
        self._wall_clock += to_milliseconds(duration, "duration")
        self._waiting.by_time = True
        for query in self._queries:
            if query.plan.operators:
                self._run(query, [Raw(CLOCK_TOPIC, None, None, self._wall_clock)])
        self._work()

    def state_store(self, name: str, partition: int | None = None) -> LocalStore:
        """Return a store by name, to be read. Mirrors `TopologyTestDriver#getStateStore`.

        Args:
            name: its name.
            partition: the number of a task, to read only what that task has; a global table has no tasks.

        Raises:
            TopologyError: there is no such store, or the program gave it no name.
            StreamsError: it has no changelog, so that nothing tells of its rows.
        """
        store = self.topology.store(name)
        if store.name not in self._stores:
            readable = ", ".join(sorted(self._stores)) or "none"
            raise TopologyError(
                f"Store '{name}' belongs to streamskit and is not written out; give it a name with materialized= to "
                f"read it. Those with a name: {readable}."
            )
        check_seen_outside(self.topology, store)
        if partition is None:
            return self._stores[store.name]
        changelog = next((topic for topic, kept in self._changelogs.items() if kept == store.name), None)
        if changelog is None:
            raise TopologyError(f"Store '{name}' is whole in every task: read it without partition=.")
        self._partitions.check(changelog, partition)
        return self._stores[store.name].following(partition)

    def produced_topic_names(self) -> set[str]:
        """Return the topics to which something was written, internal ones such as changelogs included.

        Mirrors `TopologyTestDriver#producedTopicNames`.
        """
        return set(self._produced)

    def metrics(self) -> dict[str, int]:
        """Return how many records each node has dropped, by the node's name.

        Late records count once for each window that they missed. Mirrors the metric `dropped-records-total`.
        """
        return dict(sum((query.dropped for query in self._queries), self._dropped + self._global_records.dropped))

    def dropped(self) -> int:
        """Return how many records were dropped in all: too late, or without the key or value that a step needs."""
        return sum(self.metrics().values())

    def close(self) -> None:
        """Stop the queries and forget all state.

        Raises:
            StreamsError: a processor holds something that an application could not keep from one micro-batch to the
                next.
        """
        try:
            for query in self._queries if not self._is_closed else ():
                query.finish()
        except Exception as failure:
            raise explain(failure, query.plan) from failure
        finally:
            self._stop()

    def _stop(self) -> None:
        self._is_closed = True
        for store in self._stores.values():
            store.stopped = CLOSED
        for query in self._queries:
            query.stop()

    def _start(self, spark: SparkSession) -> None:
        """Start the queries, or none of them."""
        try:
            for plan_ in self._plans:
                self._queries.append(self._query(spark, plan_))
        except BaseException:
            while self._queries:
                self._queries.pop().stop()
            raise

    def _query(self, spark: SparkSession, plan_: Plan) -> DriverQuery:
        if plan_.runs_in_real_time:
            return RealTimeQuery(spark, replace(plan_, options=replace(plan_.options, driver=uuid.uuid4().hex)))
        tasks = self._partitions.tasks(plan_)
        # A task keeps what its partition brings, whatever the keys.
        plan_ = replace(plan_, keeps_partitions=True) if tasks > 1 else plan_
        return MemoryQuery(spark, plan_, tasks, self._partitions.counts)

    # ---- records on their way ----------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise StreamsError("The test driver is closed, and its state is gone: open a new one, and pipe into that.")

    def _pipe(self, records: list[Raw]) -> None:
        self._check_open()
        placed = [self._placed(record) for record in records]
        for part in [[record] for record in placed] if self._timed else [placed]:
            self._waiting.by_time = len(part) == 1
            self._waiting.extend(part)
            self._work()

    def _placed(self, record: Raw) -> Raw:
        """Return a record with its partition: its key's, unless one was chosen."""
        return replace(record, partition=self._partitions.of(record)) if record.partition is None else record

    def _work(self) -> None:
        """Run queries until no topic between them holds an unprocessed record."""
        commits = self._plans and self._plans[0].options.cache and self._waiting.by_time  # after every single record
        while self._waiting:
            batch = self._waiting.next_batch(singly=bool(self._timed or commits))
            self._process(batch[0].topic, batch)
            if self._timed:
                self._advance_stream_time(batch[0])

    def _process(self, topic: str, batch: list[Raw]) -> None:
        """Pass records of a topic to everything that reads it."""
        self._fill_global(topic, batch)
        for query in self._queries:
            if not self._reads(query.plan, topic):
                continue
            # Spark's own aggregations fold what a micro-batch brings, as only a cache should.
            alone = query.plan.native is not None and (topic in self._internal or not query.plan.options.cache)
            for part in [[record] for record in batch] if alone else [batch]:
                self._run(query, part)

    def _fill_global(self, topic: str, batch: list[Raw]) -> None:
        """Put records of a global table's or store's topic there, and count those that are dropped."""
        for node in self._global_tables.get(topic, ()):
            if node.store is not None:
                self._fill(self._stores[node.store.name], node, batch)
        for node in self._unread.get(topic, ()):
            self._dropped[node.name] += sum(each.key is None or not _is_readable(node, each) for each in batch)
        if topic in self._filled:
            kept = [each for each in batch if self._global_records.keep(topic, each.key, each.value)]
            for filled in self._filled[topic]:
                filled.take(0, [self._in_topic(record) for record in kept])

    def _advance_stream_time(self, record: Raw) -> None:
        """Inform queries with processors how far a record that other queries read has advanced stream time.

        A time from an extractor is known only inside the query, and advances nothing here.
        """
        topic, time = record.topic, record.timestamp
        if time <= self._stream_time or topic in self._global_topics:
            return
        sources = [source for source in self.topology.sources if source.reads_topic(topic)]
        # Only topics that an application keeps between its own sub-topologies have no source by their full name.
        if not sources or any(each.timestamps is None and _is_readable(each, record) for each in sources):
            self._stream_time = time
            for query in self._timed:
                if not query.plan.reads(topic):
                    self._run(query, [Raw(CLOCK_TOPIC, STREAM_TIME_KEY, None, time)])

    def _in_topic(self, record: Raw) -> TopicRecord:
        """Return a record as it would be in a global store's topic."""
        place, headers = (record.topic, record.partition or 0), [*record.headers]
        self._offsets[place] += 1
        return TopicRecord(*place, self._offsets[place] - 1, record.timestamp, record.key, record.value, headers)

    def _fill(self, store: LocalStore, node: Node, records: list[Raw]) -> None:
        """Take records of a global table's topic into its store; one without a key is dropped."""
        for record in records:
            if record.key is None or not _is_readable(node, record):
                is_counted = any(record.topic in query.plan.topics for query in self._queries)
                self._dropped[node.name] += not is_counted
            else:
                store.apply(record.key, record.value, record.timestamp)

    def _name(self, sink: Sink) -> str:
        """Return the real name of a sink's topic."""
        return next((plan_.topic(sink) for plan_ in self._plans if sink.name in plan_.node_names), str(sink.topic))

    def _is_read(self, topic: str) -> bool:
        """Return whether a topic's records are read: by a query, or into a global table or store."""
        return topic in self._global_topics or any(self._reads(plan_, topic) for plan_ in self._plans)

    def _reads(self, plan_: Plan, topic: str) -> bool:
        """Return whether a query reads a topic; the application's own match no pattern, as when it runs live."""
        return topic in plan_.topics if topic in self._own else plan_.reads(topic)

    def _written(self) -> set[str]:
        """Return the topics that queries write, as far as they are named."""
        return set[str]().union(*(plan_.named_topics.union(plan_.handovers.values()) for plan_ in self._plans))

    def _run(self, query: DriverQuery, records: list[Raw]) -> None:
        if query in self._failures:
            raise _stays_failed(self._failures[query])
        for watcher in list(self._watchers):
            watcher.note(query, records)
        try:
            written = query.run(records)
        except Exception as failure:
            explained = explain(failure, query.plan)
            if query.has_failed:
                self._failures[query] = explained
            raise explained from failure
        if query.plan.native is not None:
            # Kafka Streams updates the windows of a record from the earliest on; their keys differ by the start only.
            windowed = query.plan.windowed_topics()
            written = sorted(written, key=lambda record: record.key or b"" if record.topic in windowed else b"")
        placed = [self._placed(record) for record in written]
        for record in placed:
            self._take(record)
        # In Kafka Streams the next step is called there and then, before any other record.
        between = set(query.plan.handovers.values())
        handed_over = (record for record in placed if record.topic in between)
        for topic, together in groupby(handed_over, key=lambda record: record.topic):
            self._process(topic, list(together))

    def _take(self, record: Raw) -> None:
        if (call := self._side_effects.get(record.topic)) is not None:
            try:
                call.action(call.key.deserialize(record.key), call.value.deserialize(record.value))
            except Exception as failure:
                raise explain_call(failure, call) from failure
            return
        if record.topic not in self._handovers and self._is_read(record.topic):
            self._internal.add(record.topic)  # the name of a topic may be known from a record only
            self._waiting.extend([record])
        self._keep(record)

    def _keep(self, record: Raw) -> None:
        """Put a record that was written where it can be read: into its topic and, from a changelog, into its store."""
        if (store := self._changelogs.get(record.topic)) is not None:
            self._stores[store].apply(record.key or b"", record.value, record.timestamp, record.partition or 0)
        self._outputs[record.topic].append(record)
        if record.topic not in self._handovers:
            self._produced.add(record.topic)


def _stays_failed(failure: StreamsError) -> StreamsError:
    """Return the error for a record or a time that reaches a query after the record on which the query failed."""
    return StreamsError(
        "Nothing was processed: the test driver has failed on an earlier record, and its state is gone. Open a new "
        "driver for what comes next, or give it a handler that leaves such records out and goes on, as in "
        f"TopologyTestDriver(topology, processing_handler=LogAndContinue()). The earlier failure: {failure}"
    )


def _check_serdes(topic: str, sinks: list[Sink], titles: list[str]) -> None:
    """Check that sinks which may all write a topic have the same serdes for its keys, its values or both."""
    for title in titles:
        serdes = {str(getattr(sink, title)): f"{sink.name} ({sink.call_site})" for sink in reversed(sinks)}
        if len(serdes) > 1:
            found = ", ".join(f"{serde} of {sink}" for serde, sink in reversed(serdes.items()))
            raise TopologyError(
                f"Records choose the topic '{topic}', and the sinks that may write it have different serdes for its "
                f"{title}s: {found}. Say which: create_output_topic('{topic}', {title}=...)."
            )


def _global_topics(topology: Topology) -> set[str]:
    """Return the topics of global tables and global stores, also of those that nobody can query."""
    nodes = (node for node in topology.nodes.values() if node.is_global)
    return {topic for node in nodes for topic in topology[node.parents[0]].topic_names}


def _unread_tables(topology: Topology, plans: list[Plan]) -> dict[str, list[GlobalTableSource]]:
    """Return the topics of global tables that no query and no user reads, each with the tables' nodes."""
    found: dict[str, list[GlobalTableSource]] = {}
    for node in of_kind(GlobalTableSource, topology.nodes.values()):
        for topic in topology[node.parents[0]].topic_names:
            if not (node.store and is_readable(node.store)) and not any(each.reads(topic) for each in plans):
                found.setdefault(topic, []).append(node)
    return found


def _is_readable(node: Node, record: Raw) -> bool:
    """Return whether a record of a global table can be read; one that cannot is no failure in a test driver."""
    return can_be_read(record.key, record.value, node.key, node.value)
