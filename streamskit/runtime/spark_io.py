"""Spark's Kafka source and sink, with the settings that make them behave as Kafka Streams' consumer and producer."""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit.api.auto_offset_reset import AutoOffsetReset
from streamskit.api.client_settings import Role
from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import BrokerError, StreamsError
from streamskit.environment.session import CHECKPOINTS, query_settings
from streamskit.execution.compiler import compile_plan
from streamskit.execution.partitioning import writers
from streamskit.jvm import with_time_of_each_record
from streamskit.kafka.client_libraries import for_java, java_text
from streamskit.kafka.topics import configs, extents, first_from
from streamskit.planning.options import ANY_TIME, TopicRules
from streamskit.planning.plan import Plan
from streamskit.runtime.batch_limits import BATCH_BYTES, BatchLimits
from streamskit.runtime.real_time import FROM_ANY_CHECKPOINT, IN_REAL_TIME, UNLISTED, WITH_STATE_IDS, check_no_udf
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.exactly_once import SINK, Transactions
from streamskit.topology.nodes import Source

IN_ORDER = "org.apache.spark.sql.kafka010.KafkaInOrder"
"""The source (in `streamskit/jvm`) that takes the records of several topics in the order of their timestamps."""

AS_IT_COMES = "org.apache.spark.sql.kafka010.KafkaInRealTime"
"""The source (in `streamskit/jvm`) whose batch in real-time mode can be ended before its time is over."""

WITH_TIME = "org.apache.spark.sql.kafka010.KafkaWithTime"
"""The sink (in `streamskit/jvm`) that writes records with their timestamps, in the order of their time if need be."""

SETTINGS = {
    # A batch without records would only move the watermark.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINTS,
}

CONSUMER = {
    # A call that waits for a broker that is away keeps its query from being stopped: let it wait 45 s, not 60. A task
    # makes each call once, and fails if it times out.
    "kafka.request.timeout.ms": "10000",
    "kafka.default.api.timeout.ms": "45000",
    # A deleted topic must not be created again, empty, just because a client requests its metadata.
    "kafka.allow.auto.create.topics": "false",
    # With each poll of its client, Spark also asks the broker where the partition begins and ends: so poll for many.
    "kafka.max.poll.records": "10000",
    "fetchOffset.numRetries": "2",
    "fetchOffset.retryIntervalMs": "1000",
}
"""Settings of the source. It bridges an outage of 40 s; a longer one may restart the query."""

MICRO_BATCH_CONSUMER = {
    # One of several brokers may die: a client that asks for end offsets keeps asking it, a new client asks the others.
    "kafka.default.api.timeout.ms": "12000",
    "fetchOffset.numRetries": "3",
    "patience": CONSUMER["kafka.default.api.timeout.ms"],
    # A consumer sends its next fetch before it returns what it has, and at the end of a topic the broker would hold
    # that fetch for half a second, along with the request behind it: for the end offset, which Spark sends each time.
    "kafka.fetch.max.wait.ms": "5",
}
"""Settings of the source of micro-batches, which can tell the driver's clients from those of tasks.

It bridges an outage of the same length.
"""

PRODUCER = {
    # Spark flushes at the end of each task: a short wait turns many requests into a few large ones.
    "kafka.linger.ms": "20",
    "kafka.batch.size": "131072",
}
"""Settings of the sink; an application's own go before them.

It bridges an outage of two minutes, Kafka's own `delivery.timeout.ms`.
"""

LARGEST_CALL = 32 * 1024 * 1024
"""The most bytes of a record that travels to a function: as many as Kafka's producer holds (`buffer.memory`)."""

StartingOffsets = Mapping[str, Mapping[int, int]]
"""By topic and partition, where to begin."""

EARLIEST = -2
"""What Spark calls the first record of a partition."""

END_OF_TIME = 2**62
"""No record is as late as this: reading from this time begins after the last record."""


@dataclass(frozen=True)
class KafkaTopics:
    """Where queries read and write: the topics of an application, with the number of partitions of each."""

    spark: SparkSession
    config: StreamsConfig
    partitions: dict[str, int]
    ids: Callable[[Plan], Mapping[str, str]]
    """Returns the ids of the topics that a plan reads, as they were when it began."""
    about: Callable[[Plan], str]
    """Returns what is stored with each position in the copy of a plan's checkpoint."""

    def read(self, plan: Plan, topics: list[str], most: int | None, begin: StartingOffsets) -> DataFrame:
        """Return the raw records of topics; at most `most` in a micro-batch.

        A query that has no position yet begins at the offsets in `begin`, by topic and partition, or else with the
        first record that still exists.

        The frame has the columns key, value, topic, partition, offset, timestamp, timestampType and headers of Spark's
        Kafka source.
        """
        options = {} if most is None else {"maxOffsetsPerTrigger": str(most)}
        source = AS_IT_COMES if plan.runs_in_real_time else IN_ORDER
        ids = self.ids(plan)
        options["ids"] = ",".join(f"{topic}={ids[topic]}" for topic in topics if topic in ids)
        if source == AS_IT_COMES:
            options["batch"] = str(self.config.folder / plan.name)
        else:
            options |= {} if most is None else {"bytes": str(BATCH_BYTES)}
            options |= MICRO_BATCH_CONSUMER | {"idle": "-1"}  # one topic alone needs no order
        if source == IN_ORDER and self._reads_in_order(plan, topics):
            options |= {} if most is None else {"most": str(most)}
            options |= {"idle": str(self.config.max_task_idle_ms), "first": ",".join(plan.broadcast_topics)}
            # Task operators put their records in order themselves.
            options |= {"merged": str(len(topics) > 1 and not plan.operators).lower()}
        reader = (
            self.spark.readStream.format(source)
            .option("subscribe", ",".join(topics))
            .option("startingOffsets", self._starting(topics, begin))
            .option("includeHeaders", "true")
            .options(**_told(self.config, "consumer") | CONSUMER | options)
        )
        if self.config.exactly_once:
            reader = reader.option("kafka.isolation.level", "read_committed")
        return reader.load()

    def start(self, plan: Plan, checkpoint: Path, producers: str, goes_on: bool = False) -> StreamingQuery:
        """Start the query of a plan.

        Args:
            plan: the sub-topology to run.
            checkpoint: the folder where Spark notes what is done.
            producers: the `client.id` of its producers, where they write no transactions.
            goes_on: whether its processors stay as they are, because the query was ended only to go on.
        """
        plan = replace(plan, options=replace(plan.options, rules=self._rules(plan)))
        sink, options = self._sink(plan, checkpoint, producers)
        kept = Checkpoint(checkpoint)
        kept.settle()
        begin = {} if kept.has_begun else starting_offsets(self.config, plan)
        if kept.has_begun:
            self._follow(plan, kept)
        runs, tasks = kept.begin_run(plan.runs_in_real_time, goes_on), plan.tasks(self.partitions)
        if plan.runs_in_real_time:
            limits = BatchLimits(None)
            mode, trigger = "update", {"realTime": f"{self.config.real_time} milliseconds"}
        else:
            limits = BatchLimits.looked_up(self.config, plan).at_most(kept.most_records)
            mode, trigger = plan.output_mode, {"processingTime": f"{self.config.commit_interval} milliseconds"}
        if limits.records is not None:
            kept.shorten(limits.records, self.config.max_task_idle_ms >= 0 and self._reads_in_order(plan, plan.topics))
        sizes = {
            "spark.sql.shuffle.partitions": str(tasks),
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(limits.rows),
        } | (WITH_STATE_IDS if kept.has_state_ids else {})
        sizes |= ({} if plan.is_stateful else FROM_ANY_CHECKPOINT) | (UNLISTED if plan.runs_in_real_time else {})
        with query_settings(self.spark, SETTINGS | sizes):
            frame = compile_plan(
                plan,
                lambda topics: self.read(plan, topics, limits.records, begin),
                tasks,
                str(checkpoint),
                runs,
                self.partitions,
                by_time=self._writes_by_time(plan),
            )
            if plan.runs_in_real_time:
                check_no_udf(plan, frame)
                frame = with_time_of_each_record(frame)
            return (
                frame.writeStream.format(sink)
                .queryName(f"{plan.application_id}: sub-topology {plan.name}")
                .outputMode(mode)
                .option("checkpointLocation", str(checkpoint))
                .options(**options)
                .trigger(**trigger)
                .start()
            )

    def _follow(self, plan: Plan, kept: Checkpoint) -> None:
        """Have a query that has begun read the topics of a changed program: begin with new ones, and leave others out.

        A topic that has come to a pattern since the last start is read from its first record, as while the query runs.

        Raises:
            StreamsError: a new topic has `auto_offset_reset` "none"; or the checkpoint cannot be read.
            BrokerError: no broker answers.
        """
        known = kept.known()
        if not known:
            return
        if gone := known.keys() - set(plan.topics):
            kept.forget(gone)
        new = [topic for topic in plan.topics if known.get(topic, {}).keys() < set(range(self.partitions[topic]))]
        if new:
            begin = starting_offsets(self.config, plan, [topic for topic in new if topic not in known])
            held = extents(self.config.connection, new).items()
            starts = {topic: {**extent.first, **begin.get(topic, {})} for topic, extent in held}
            kept.add(
                {
                    topic: {number: first for number, first in each.items() if number not in known.get(topic, {})}
                    for topic, each in starts.items()
                }
            )

    def _starting(self, topics: Sequence[str], begin: StartingOffsets) -> str:
        """Return where to begin reading topics, in Spark's format."""
        if not any(topic in begin for topic in topics):
            return "earliest"
        return json.dumps(
            {topic: begin.get(topic) or dict.fromkeys(range(self.partitions[topic]), EARLIEST) for topic in topics}
        )

    def transactions(self, plans: Sequence[Plan]) -> list[tuple[Plan, dict[str, str]]]:
        """Return the settings of a producer for transactions beside each plan's query."""
        return [(plan, _transactions(self.config, plan).settings) for plan in plans]

    def _rules(self, plan: Plan) -> dict[str, TopicRules]:
        """Return the rules of the topics that the plan's sinks write to; they are read at each start of a query."""
        topics = plan.outer_topics
        try:
            found = configs(self.config.connection, topics) if topics else {}
        except BrokerError:  # it has just gone away: it will refuse records itself when it is back
            return {}
        # Not every client that may write to a topic may read its settings.
        return {topic: _rules_of(config) for topic, config in found.items() if config}

    def _reads_in_order(self, plan: Plan, topics: Sequence[str]) -> bool:
        """Return whether a query's source orders records: those of one topic alone need no order."""
        return len(topics) > 1 or self._writes_by_time(plan)

    def _writes_by_time(self, plan: Plan) -> bool:
        """Return whether tasks of a plan meet in a repartition topic, so that their records need to be ordered."""
        if plan.runs_in_real_time or self.config.max_task_idle_ms < 0 or not plan.topics_by_time:
            return False
        return plan.tasks(self.partitions) > 1

    def _sink(self, plan: Plan, checkpoint: Path, producers: str) -> tuple[str, dict[str, str]]:
        """Return the sink of a plan's query and its options."""
        partitioned = {plan.topic(sink) for sink in plan.partitioned_sinks if isinstance(sink.topic, str)}
        windowed = ",".join(
            f"{topic}:{suffix}:{self.partitions[topic]}"
            for topic, suffix in plan.windowed_topics().items()
            if topic not in partitioned  # where a partitioner defers to the default, the whole key decides
        )
        told = _told(self.config, "producer")
        producer = (
            PRODUCER
            | (IN_REAL_TIME if plan.runs_in_real_time else {})
            | told
            | {"kafka.max.request.size": str(_largest_request(plan)), "windowed": windowed}
            | self._looks_for_topics(plan, told)
        )
        transactions = Transactions(plan, producer, java_text(self.config.connection, "consumer"))
        if self.config.exactly_once:
            return SINK, transactions.begin(Checkpoint(checkpoint), self.about(plan))
        if plan.transactions_topic in self.partitions:  # it ran with exactly_once before, and may have been killed
            transactions.abort()
        client = f"{told['kafka.client.id']}-{producers}" if "kafka.client.id" in told else producers
        options = producer | {"kafka.client.id": client}
        if self._writes_by_time(plan):
            options |= {"writers": str(writers(plan, self.partitions)), "threads": plan.options.threads_of}
        return WITH_TIME, options

    def _looks_for_topics(self, plan: Plan, producer: Mapping[str, str]) -> dict[str, str]:
        """Return the option with which a sink tells early that there is no such topic, where records choose theirs.

        Who gives producers another `max.block.ms` has said how long they are to wait for a topic.
        """
        if "kafka.max.block.ms" in producer or all(isinstance(sink.topic, str) for sink in plan.sinks):
            return {}
        return {"chosen": java_text(self.config.connection, "admin")}


def starting_offsets(config: StreamsConfig, plan: Plan, new: Collection[str] | None = None) -> StartingOffsets:
    """Return where a query begins in topics that it has not read before and does not read from the first record.

    Topics of global tables and the application's own topics are read completely.

    Args:
        config: the application's.
        plan: what the query runs.
        new: those of its topics that it has not read before; all if it has not run before.

    Raises:
        StreamsError: a topic without a position has `auto_offset_reset` "none".
        BrokerError: no broker answers.
    """
    now, times = int(time.time() * 1000), dict[str, int]()
    for source, topics, reset in reset_policies(config, plan):
        if new is not None and (source.pattern or {*new}.isdisjoint(topics)):
            continue
        asked = [topic for topic in topics if new is None or topic in new]
        if reset.kind == "none":
            before = "Did it have another application_id or state_dir before? " if new is None else ""
            raise StreamsError(
                f"{source.name} ({source.call_site}) has auto_offset_reset='none', so that it only goes on, and "
                f"'{config.application_id}' has no position in {', '.join(asked)} yet. {before}To begin, choose "
                "'earliest' or 'latest'."
            )
        if reset.kind != "earliest":
            times |= dict.fromkeys(asked, max(0, now - reset.milliseconds) if reset.milliseconds else END_OF_TIME)
    return first_from(config.connection, times) if times else {}


def reset_policies(config: StreamsConfig, plan: Plan) -> Iterator[tuple[Source, Sequence[str], AutoOffsetReset]]:
    """Yield the sources of a query that have a policy of where to begin, each with its topics."""
    for each in plan.inputs:
        source = each.node
        if isinstance(source, Source) and not (source.internal or each.is_broadcast or each.is_handover):
            yield source, each.topics, source.auto_offset_reset or AutoOffsetReset.of(config.auto_offset_reset)


def _largest_request(plan: Plan) -> int:
    """Return the limit of a plan's producer, which must not keep a record that was read from a function."""
    limit = plan.options.handlers.max_request_size
    return max(limit, LARGEST_CALL) if plan.side_effects else limit


def _rules_of(config: Mapping[str, str]) -> TopicRules:
    has_own_times = config.get("message.timestamp.type") == "CreateTime"
    return TopicRules(
        "compact" in config.get("cleanup.policy", ""),
        int(config["message.timestamp.before.max.ms"]) if has_own_times else ANY_TIME,
        int(config["message.timestamp.after.max.ms"]) if has_own_times else ANY_TIME,
        int(config["max.message.bytes"]),
    )


def fence_off(config: StreamsConfig, plan: Plan) -> None:
    """Abort a transaction that an earlier run of a query left open, so that all it has committed can be read.

    Raises:
        StreamsError: the broker takes no transactions.
    """
    _transactions(config, plan).abort()


def _transactions(config: StreamsConfig, plan: Plan) -> Transactions:
    """Return a query's transactions for what is written in addition to its records."""
    producer, reader = _told(config, "producer"), java_text(config.connection, "consumer")
    return Transactions(plan, PRODUCER | producer, reader)


def _told(config: StreamsConfig, role: Role) -> dict[str, str]:
    """Return Spark's options for a client: where the cluster is, and the credentials for it."""
    return {f"kafka.{name}": value for name, value in for_java(config.connection, role).items()}
