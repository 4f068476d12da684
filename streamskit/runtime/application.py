"""The parts of an application: what they are, the order in which they start and stop, and which are alive."""

import logging
import math
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit.api.config_keys import AUTO, OFF
from streamskit.api.streams_config import SHORTEST_REAL_TIME, StreamsConfig
from streamskit.broker import ExternalBroker
from streamskit.common.errors import BrokerError, StreamsError, StreamsKitError
from streamskit.environment.session import spark_session
from streamskit.environment.spark_java import LOST, end_interrupted_calls_alone
from streamskit.environment.spark_processes import let_workers_import
from streamskit.kafka.topic_partition import ChangelogRecord
from streamskit.kafka.topic_reader import Isolation, changelog_records, topic_records
from streamskit.kafka.topics import TopicExtent, TopicIdentity
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.queries import LocalStore, Replica
from streamskit.queries.group.shutdown import shut_down_instances
from streamskit.queries.measures import Measure
from streamskit.queries.query_server import QueryServer
from streamskit.queries.queryable_instance import InstanceHealth
from streamskit.queries.rest_service import RestService
from streamskit.queries.restore_listener import Restorations, StateRestoreListener
from streamskit.runtime.catch_up import CatchUp
from streamskit.runtime.checkpoint_copies import LAST_COPY_SECONDS, CheckpointCopies
from streamskit.runtime.co_partitioning import watch_out
from streamskit.runtime.failures import explain
from streamskit.runtime.global_records import GlobalRecords
from streamskit.runtime.global_stores import FilledStore, filled_by_processors
from streamskit.runtime.group_offsets import LAST_COMMIT_SECONDS, GroupOffsets, forget, least
from streamskit.runtime.measures import measures
from streamskit.runtime.mode import against, against_settings
from streamskit.runtime.purging import LAST_PURGE_SECONDS, Purging
from streamskit.runtime.query import RunningQuery, query_options
from streamskit.runtime.real_time import check_some_fit, check_states
from streamskit.runtime.recovery.application_folder import ApplicationFolder
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.recovery.evolution import other_partitions
from streamskit.runtime.recovery.rebuilding import Rebuilding
from streamskit.runtime.side_effects import SideEffects
from streamskit.runtime.slots import give_back_slots, in_real_time, slots_kept_busy, take_slots
from streamskit.runtime.sole_runner import ApplicationLock, SoleRunner
from streamskit.runtime.spark_io import KafkaTopics, fence_off
from streamskit.runtime.startup_checks import StartupChecks
from streamskit.runtime.states import ACTIVE, State, StateMachine
from streamskit.runtime.stream_threads import StreamThreads
from streamskit.runtime.supervisor import FINISH_SECONDS, SESSION, Supervisor
from streamskit.runtime.topic_patterns import is_wanted, matched, widened
from streamskit.runtime.topic_watch import TopicWatch
from streamskit.runtime.topics import (
    ApplicationTopics,
    catalogue,
    ever_made,
    filled_stores,
    global_tables,
    local_stores,
    side_effects,
)
from streamskit.runtime.watchdog import Watchdog
from streamskit.runtime.written_topics import watched
from streamskit.topology import Topology
from streamskit.topology.explicit_names import check_names_are_explicit

logger = logging.getLogger("streamskit")

STORES_READER = "the thread that reads the changelogs"

READER_SECONDS = RELEASE_SECONDS = 10.0
"""How long a closing application waits at most for what reads its topics, and for its group."""

FILL_SECONDS = 600.0
"""How long a start waits for the stores to be filled from their changelogs."""


class Application:
    """What `KafkaStreams` is made of: plans, stores, the queries' supervisor, and what runs beside the queries.

    Args:
        topology: what to run.
        config: how to run it.
        spark: the session to run on; streamskit's own when not given.
        rest_service: the application's own routes, if it has any.
        states: holds its state, if an `Application` was already created for the same application.
        server: that `Application`'s, which has not started: its address and its dashboard are taken over.

    Raises:
        StreamsError: the topology, the names of its topics or the routes do not fit the config.
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        spark: SparkSession | None,
        rest_service: RestService | None = None,
        states: StateMachine | None = None,
        server: QueryServer | None = None,
    ) -> None:
        if rest_service is not None and config.application_server is None:
            raise StreamsError(
                "rest_service has routes, and nothing would serve them: give an application_server, such as "
                "application_server='127.0.0.1:8080'."
            )
        self.topology, self.config, self._spark = topology, config, spark
        self._rest_service = rest_service
        self.brokers = ExternalBroker(config.connection)
        if config.ensure_explicit_internal_resource_naming:
            check_names_are_explicit(topology)
        self.plans = plan(topology, config.application_id, query_options(config))
        if config.in_real_time:
            check_some_fit(config.application_id, self.plans)
        self.why_mode = ""
        """The mode it runs in and the reason, in words; "" before the start, and if micro-batches were configured."""
        self.topics = ApplicationTopics(
            config.application_id, self.plans, config.exactly_once, config.replication_factor
        )
        self.topics.check_names()
        self.states = states or StateMachine()
        self.threads = StreamThreads(config.application_id, config.num_stream_threads)
        self.catalogue = catalogue(config.application_id, topology, self.plans)
        self._partitions: dict[str, int] = {}
        self._has_slots = False  # another KafkaStreams of the same application may have taken some
        self._build_stores(server)
        self._build_supervision()

    def _build_stores(self, server: QueryServer | None) -> None:
        """Create the queryable stores and what fills them: a replica of all, or an instance with a share of them."""
        self.stores = local_stores(self.topology)
        self.changelogs: dict[str, list[LocalStore]] = {
            topic: [self.stores[store] for store in stores]
            for topic, stores in filled_stores(self.topology, self.plans).items()
        }
        self.global_records = GlobalRecords(self.topology, self.plans, self.config.handlers)
        self.made_global = {
            topic: [
                FilledStore(node, self.config.application_id, self.stores[store.name])
                for node in filling for store in node.stores
            ]
            for topic, filling in filled_by_processors(self.topology).items()
        }  # fmt: skip
        # Only this program knows what a processor makes of a topic, so no other instance is queried.
        self.global_copies = Replica(
            self.config.connection,
            self.made_global,
            topic_records(self.global_records.keep),
            self._global_store_failed,
        )
        self.copies: Replica[ChangelogRecord] | QueryServer = (
            Replica(self.config.connection, self.changelogs, changelog_records(self.global_records.keep))
            if self.config.application_server is None
            else QueryServer(
                self.catalogue, self.config, keeps=self.global_records.keep, service=self._rest_service, before=server
            )
        )

    def _global_store_failed(self, failure: StreamsError) -> None:
        """End the application: a global store's processor failed. The queries handle a broker that is away."""
        if not isinstance(failure.__cause__, BrokerError):
            self.supervisor.global_store_failed(failure)

    def _build_supervision(self) -> None:
        """Make what watches over the queries, and what they need before they start."""
        config, application_id = self.config, self.config.application_id
        servers, folder = config.connection, config.folder
        self.losses = DataLoss(application_id, folder, config.on_data_loss)
        self.supervisor = Supervisor(
            application_id,
            self.states,
            servers,
            config.milliseconds("task_timeout"),
            self._say_stopped,
            self.losses,
            self._shut_down_instances,
        )
        self.side_effects = SideEffects(
            servers, side_effects(self.plans), folder, self.supervisor.call_failed, self.supervisor.fail
        )
        self.home = ApplicationFolder(application_id, folder)
        self.group_offsets = GroupOffsets(servers, application_id, self.processed)
        self._purging = Purging(servers, self._read_by_itself, self.topics.windowed)
        self.lock = ApplicationLock(application_id, folder)
        self._runner = SoleRunner(application_id, servers, folder, self.supervisor.fail)
        self._checks = StartupChecks(config, self.topics, self.brokers, self.losses)
        self.checkpoint_copies = CheckpointCopies(application_id, folder, lambda plan_: self._checks.about(plan_))
        self._topic_watch = TopicWatch(servers, self._look_at_topics)
        self._watchdog = Watchdog(self._parts, self._part_died)
        if isinstance(self.copies, QueryServer):
            self.copies.instance.application = self._health
            self.copies.instance.measure = self._measures

    def in_chosen_mode(self) -> "Application":
        """Return the application in real-time mode or in micro-batches: as configured, or as suits it for "auto".

        Raises:
            StreamsError: a topic is missing, or its folder holds something else.
        """
        if self.config.real_time != AUTO:
            return self
        self.home.check()
        if why_not := against_settings(self.config) or self._against_real_time():
            self.config = replace(self.config, real_time=OFF)  # as it is planned already
            self.why_mode = f"in micro-batches, because {why_not}"
            return self
        batch = max(SHORTEST_REAL_TIME, self.config.milliseconds("commit_interval"))
        config = replace(self.config, real_time=batch)
        server = self.copies if isinstance(self.copies, QueryServer) else None
        chosen = Application(self.topology, config, self._spark, self._rest_service, self.states, server)
        chosen.supervisor.handler = self.supervisor.handler
        if (listener := self._restorations.listener) is not None:
            chosen.tell_of_restoring(listener)
        return chosen

    def _against_real_time(self) -> str:
        """Return why the program, its state or Spark does not suit real-time mode; "" if they do."""
        config = replace(self.config, real_time=SHORTEST_REAL_TIME)
        plans = self._matched(plan(self.topology, config.application_id, query_options(config)))
        partitions = partial(replace(self.topics, plans=plans).partitions, self.brokers)
        return against(config, plans, self.plans, partitions, self._spark)

    def slots_kept_busy(self) -> int:
        """Return how many of Spark's slots it occupies permanently."""
        if not self.config.in_real_time or self.states.state not in ACTIVE:
            return 0
        return slots_kept_busy(self.plans, self._partitions)

    def claim(self, busy: int = 0) -> None:
        """Become the sole runner of the application; change nothing if that is not possible.

        Args:
            busy: how many slots of Spark's other applications of this process keep busy.

        Raises:
            StreamsError: it runs elsewhere, its folder or its topics do not fit, or Spark does not start.
        """
        self.home.check()
        self.match_topics()
        partitions = self.topics.partitions(self.brokers)
        self._checks.compare(partitions, self.why_mode)
        check_states(self.plans, self.config)
        self._checks.check_rights()
        self._runner.claim(self._a_topic)
        self._spark = self._spark or spark_session()
        end_interrupted_calls_alone()  # a session of the user's own may be the first
        let_workers_import(self._spark.sparkContext)
        if self.config.in_real_time:
            take_slots(self._spark, str(self.config.folder), self.plans, partitions, busy)
            self._has_slots = True
            self.why_mode = in_real_time(self.plans, partitions)
        self._checks.warn_of_files(self._spark.sparkContext.master or "local")
        self._runner.confirm()

    def run(self) -> None:
        """Make the internal topics, start the queries and fill the stores; the application has been claimed.

        Raises:
            StreamsError: a topic is missing, or a query does not start.
        """
        assert self._spark is not None, "claim() comes before run()"
        partitions = self._checks.prepare(lambda: self.topics.prepare(self.brokers), self._forget, self._rebuild)
        self.home.claim()
        self.catalogue.save(self.config.folder)
        self._partitions = partitions
        topics = KafkaTopics(self._spark, self.config, partitions, self.losses.ids_of, self._checks.about)
        self.supervisor.broker.start()
        self.side_effects.start()
        self.copies.start()
        self.global_copies.start()
        self.threads.start()
        # Before the first query begins, so that every query that begins has a note of what it is.
        self._checks.note()
        for plan_ in self.plans:
            self._start_query(topics, plan_)
        self.supervisor.raise_failure()  # one of them may have failed while the next one started
        if not self.config.exactly_once:
            self.checkpoint_copies.copy(topics.transactions(self.plans))
        watch_out(self.config.connection, self.topics.meetings)
        self._watchdog.start()
        self._purging.start()
        self.group_offsets.start()
        topics_of_queries = [topic for plan_ in self.plans for topic in (*plan_.topics, *watched(plan_))]
        self._topic_watch.watch(
            dict.fromkeys([*topics_of_queries, *self._global_topics]),
            partial(is_wanted, topics=self.topics, plans=self.plans) if self._has_patterns else None,
        )
        filled = self._catch_up(time.monotonic() + FILL_SECONDS)
        for copies, topics_ in self._readers:
            copies.wait_for(filled.ends(topics_), filled.deadline, self.supervisor.raise_failure)

    def _start_query(self, topics: KafkaTopics, plan_: Plan) -> None:
        folder = self.config.folder / plan_.name

        def start(producers: str, goes_on: bool) -> StreamingQuery:
            now = next(each for each in self.plans if each.name == plan_.name)  # it may read more topics by now
            return topics.start(now, folder, producers, goes_on)

        try:
            self.supervisor.watch(RunningQuery(plan_, start, folder))
        except (PySparkException, Py4JError, ConnectionError) as failure:
            raise explain(failure, plan_, folder) from failure

    def stop(self, deadline: float, leave_group: bool = True) -> bool:
        """Stop all parts and let another process run the application; return whether everything was finished in time.

        Args:
            deadline: how long that may take, in seconds of the monotonic clock.
            leave_group: whether an instance leaves the group with which it shares the stores.
        """

        def still(most: float = math.inf) -> float:
            return max(0.0, min(most, deadline - time.monotonic()))

        with ExitStack() as left:  # runs in reverse order; an exception in one callback does not skip the others
            left.callback(lambda: self.release(still(RELEASE_SECONDS)))
            if self._has_slots:
                left.callback(give_back_slots, str(self.config.folder))
            left.callback(self.threads.stop)
            left.callback(lambda: self.side_effects.stop(still(READER_SECONDS)))
            left.callback(lambda: self.global_copies.stop(still(READER_SECONDS)))
            if isinstance(self.copies, QueryServer):
                left.callback(self.copies.stop, leave_group)
            else:
                stop_copies = self.copies.stop
                left.callback(lambda: stop_copies(still(READER_SECONDS)))
            for beside in (self.group_offsets, self._purging, self.checkpoint_copies):
                left.callback(beside.stop)
            self._watchdog.stop()
            self._topic_watch.stop()
            in_time = self.supervisor.stop(still(), FINISH_SECONDS)
            self.checkpoint_copies.finish(still(LAST_COPY_SECONDS))
            if in_time and self.supervisor.failure is None:
                ends = partial(self._catch_up(deadline).ends, self.topics.side_effects)
                in_time = self.side_effects.drain(ends, deadline)
                self._purging.finish(still(LAST_PURGE_SECONDS))
                self.group_offsets.finish(still(LAST_COMMIT_SECONDS))
        return in_time

    def let_go(self) -> None:
        """Close what is open before a start; the application will not be started."""
        if isinstance(self.copies, QueryServer):
            self.copies.let_go()

    def pause(self) -> None:
        """Process nothing until the supervisor resumes."""
        self.supervisor.pause(FINISH_SECONDS)

    def slots(self) -> int:
        """Return how many slots Spark has for all applications together."""
        assert self._spark is not None, "queries run"
        return self._spark.sparkContext.defaultParallelism

    def clean_up(self) -> None:
        """Delete its folder and its internal topics; it runs nowhere. The topics that it read may be gone by now."""
        self._runner.claim(self._a_topic)
        self._runner.confirm()
        self._forget()

    def tell_of_restoring(self, listener: StateRestoreListener) -> None:
        """Notify a listener of how the local stores are restored."""
        for each in (self._restorations, self.global_copies.restorations):
            each.listener = listener

    @property
    def _restorations(self) -> Restorations:
        copies = self.copies.instance if isinstance(self.copies, QueryServer) else self.copies
        return copies.restorations

    def release(self, seconds: float = RELEASE_SECONDS) -> None:
        """Let another process run it; saying so to the group may take this many seconds."""
        try:
            self._runner.release(seconds)
        finally:
            self.lock.release()

    def store(self, name: str) -> Any:
        """Return a store for queries: an instance fetches what it lacks from the others."""
        if isinstance(self.copies, QueryServer) and name in {entry.name for entry in self.catalogue}:
            return self.copies.store(name)
        return self.stores[name]

    def await_processed(self, deadline: float) -> None:
        """Wait until all records now in the source topics are processed and have reached the stores and functions."""
        catch_up = self._catch_up(deadline)
        with self.supervisor.calls_of_spark():
            catch_up.of_queries()
        catch_up.of_readers(*self._readers, (self.side_effects, self.topics.side_effects))
        self.supervisor.raise_failure()

    def _catch_up(self, deadline: float) -> CatchUp:
        isolation: Isolation = "read_committed" if self.config.exactly_once else "read_uncommitted"
        waits = self.config.milliseconds("commit_interval"), self.config.max_task_idle_ms
        return CatchUp(self.supervisor, self.states, self.brokers, deadline, isolation, *waits)

    def match_topics(self) -> None:
        """Find the topics that match the program's patterns.

        Raises:
            StreamsError: none does.
            TopologyError: one matches several.
        """
        plans = self._matched(self.plans)
        if plans is self.plans:
            return
        self.plans = plans
        self.topics = replace(self.topics, plans=self.plans)
        self._checks = StartupChecks(self.config, self.topics, self.brokers, self.losses)

    def _matched(self, plans: list[Plan]) -> list[Plan]:
        return matched(plans, self.brokers, self.topics, self.topology)

    def _look_at_topics(self, found: Mapping[str, TopicIdentity]) -> None:
        """React to the topics as they are now: add those that match a pattern, and have the others checked."""
        if self._has_patterns:
            try:
                for number, wider, new in widened(self.plans, found, self.topics, self.topology):
                    self._take_in(number, wider, new)
            except StreamsKitError as refusal:
                self.supervisor.fail(StreamsError(str(refusal)))
        if self.config.in_real_time:
            self._take_slots_for_added(found)
        counts = {topic: found[topic].partitions for topic in self._global_topics if topic in found}
        for copies, _ in self._readers:
            copies.widen(counts)
        self.supervisor.look_at_topics(found)

    def _take_slots_for_added(self, found: Mapping[str, TopicIdentity]) -> None:
        """Have a slot for each partition that was added: a batch reads all side by side, and would never reach some."""
        assert self._spark is not None, "queries run"
        now = self._partitions | {topic: found[topic].partitions for topic in self._partitions.keys() & found.keys()}
        if now != self._partitions:
            try:
                take_slots(self._spark, str(self.config.folder), self.plans, now)
            except StreamsError as refusal:
                self.supervisor.fail(refusal)
            except LOST:
                logger.debug("No slots for added partitions: Spark's Java has ended.", exc_info=True)

    def _take_in(self, number: int, wider: Plan, new: Mapping[str, TopicIdentity]) -> None:
        """Have a query read topics that were made while it ran.

        Raises:
            StreamsError: they have more partitions than the query has tasks, and it keeps state; or Spark has too few
                slots.
        """
        counts = self._partitions | {topic: identity.partitions for topic, identity in new.items()}
        before, after = self.plans[number].tasks(self._partitions), wider.tasks(counts)
        if wider.is_stateful and before != after:
            raise other_partitions(self.config.application_id, wider.name, wider.topics_as_written, before, after)
        self.plans[number] = wider
        if self.config.in_real_time:
            assert self._spark is not None, "queries run"
            take_slots(self._spark, str(self.config.folder), self.plans, counts)
        self._partitions |= counts  # those who start queries and look for losses have the same dict
        ids = {topic: identity.id for topic, identity in new.items()}
        self.losses.add(wider, ids)
        self._checks.note_topics(ids)
        said = f"reads {', '.join(map(repr, new))} too from now on: the name matches its pattern."
        self.supervisor.replan(wider, said, FINISH_SECONDS)

    @property
    def _global_topics(self) -> list[str]:
        """The topics of global tables and stores."""
        return [*global_tables(self.topology), *self.made_global]

    @property
    def _has_patterns(self) -> bool:
        return any(plan_.patterns for plan_ in self.plans)

    @property
    def _a_topic(self) -> str:
        """A topic that a query or a global table reads; one of its own where all that it reads is named by patterns."""
        read = [topic for plan_ in self.plans for each in plan_.inputs if not each.pattern for topic in each.topics]
        read += [topic for source in self.topology.sources for topic in source.topics]
        return [*read, *self.topics.internal][0]

    def processed(self) -> dict[str, dict[int, int]]:
        """Return how far all queries have come: by topic and partition, the offset to go on from."""
        with suppress(*LOST):
            return least((query.plan.topics, query.position) for query in self.supervisor.queries)
        return {}

    def _read_by_itself(self) -> dict[str, dict[int, int]]:
        """How far it has read its own internal topics: by topic and partition, the offset to continue from."""
        between = set(self.topics.between)

        def position(query: RunningQuery) -> dict[str, Mapping[int, int]]:
            # A rebuilt checkpoint may still need records that were processed but are not in its copy yet.
            copied = None if self.config.exactly_once else self.checkpoint_copies.copied(query.plan)
            offsets = query.position if copied is None else copied
            return {topic: found for topic, found in offsets.items() if topic in between}

        # Several queries may read one topic, and the slowest of them still needs its records.
        read = least((between.intersection(query.plan.topics), position(query)) for query in self.supervisor.queries)
        return self.side_effects.done | read

    def _forget(self) -> None:
        made = ever_made(self.topology, self.config.application_id, query_options(self.config))
        self.home.delete()
        if made:
            self.brokers.delete_topics(*made, missing_ok=True)
        forget(self.config.connection, self.config.application_id)

    def _rebuild(self, extents: Mapping[str, TopicExtent], why: str) -> str:
        assert self._spark is not None, "Spark runs before a start looks at what there is"
        self.home.claim()
        fence = partial(fence_off, self.config)
        place = self.config.application_id, self.config.folder, self.plans
        return Rebuilding(*place, self.config.connection, fence).run(extents, why)

    @property
    def _readers(self) -> list[tuple[Replica[Any] | QueryServer, Iterable[str]]]:
        """What fills stores to be queried, each with the topics that it reads."""
        return [(self.copies, self.changelogs), (self.global_copies, self.made_global)]

    def _say_stopped(self, why: str) -> None:
        for copies, _ in self._readers:
            copies.say_stopped(why)

    def _shut_down_instances(self, why: str) -> None:
        """Tell every instance that answers for the stores, wherever it runs, to stop."""
        shut_down_instances(self.config.connection, self.catalogue, why)

    def _parts(self) -> dict[str, bool]:
        """Return for each part of the application whether it is alive."""
        return {
            **self.supervisor.parts(),
            SESSION: self._spark is None or self._spark.sparkContext._jsc is not None,
            STORES_READER: all(copies.lives for copies, _ in self._readers),
            "the thread that calls functions": self.side_effects.lives,
            "the thread that speaks for it in its group": self._runner.lives,
            "the thread that looks at its topics": self._topic_watch.lives,
            "the thread that deletes what nobody reads again": self._purging.lives,
            "the thread that copies its checkpoints": self.checkpoint_copies.lives,
            "the thread that commits its offsets": self.group_offsets.lives,
        }

    def _part_died(self, name: str) -> None:
        if name != STORES_READER:
            self.supervisor.part_died(name)
            return
        # Processing does not need the copies, so it goes on; the stores report that they have stopped.
        application_id = self.config.application_id
        logger.error("'%s': its stores are no longer updated; it goes on processing records.", application_id)
        self._say_stopped("Their changelogs are not read any more.")

    def _health(self) -> InstanceHealth:
        state = self.states.state
        waits_for = "" if state is State.RUNNING else f"'{self.config.application_id}' is {state.name}."
        return InstanceHealth(state.name, str(self.supervisor.failure or ""), waits_for, self._parts())

    def _measures(self) -> Iterable[Measure]:
        skipped = self.global_records.dropped
        return measures(self.states.state, self.supervisor, self.losses, self.group_offsets, skipped)
