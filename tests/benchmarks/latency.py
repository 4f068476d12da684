"""How long a record takes through a program, one record at a time, beside the same by hand and in Kafka Streams."""

import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamskit import KafkaStreams, Materialized, QueryClient, Serdes, SessionWindows, StreamsBuilder, TimeWindows
from streamskit.broker import ExternalBroker
from streamskit.broker.base import Broker
from streamskit.environment.session import settings, spark_session
from tests.benchmarks.cases import (
    Sources,
    count,
    count_by_hand,
    filter_and_map,
    filter_and_map_by_hand,
    orders,
    parsed,
    processor,
    reducer,
    stream_stream,
    stream_stream_by_hand,
    stream_table,
    stream_table_by_hand,
    twice,
)
from tests.benchmarks.kafka_streams import KafkaStreamsJava
from tests.benchmarks.measure import REAL_TIME, REAL_TIME_BATCH, source
from tests.benchmarks.probes import PARTITIONS, Look, in_output, in_store, in_view, make_topics, time_probes
from tests.benchmarks.table import Row

SLOTS = 8
"""How many slots Spark has: real-time mode keeps one busy for each partition, and one more for each with state."""

MICRO_BATCHES = {"processingTime": "100 milliseconds"}
PLAIN = {"spark.sql.shuffle.partitions": str(PARTITIONS), "spark.sql.streaming.noDataMicroBatches.enabled": "false"}
"""Settings of the pipelines by hand, which streamskit's have too."""


def windowed_count(builder: StreamsBuilder) -> None:
    """Count the orders of each five seconds, under the user's name."""
    windows = TimeWindows.of_size_with_no_grace("5 seconds")
    counts = orders(builder).group_by_key().windowed_by(windows).count("counts")
    counts.to_stream(lambda k, v: k.key).to("out", value=Serdes.long())


def windowed_count_by_hand(sources: Sources) -> DataFrame:
    timed = parsed(sources["orders"]).withWatermark("timestamp", "0 seconds")
    counts = timed.groupBy("key", F.window("timestamp", "5 seconds")).count()
    return twice(counts, F.col("key"), F.col("count").cast("string"))


def visits(builder: StreamsBuilder) -> None:
    """Count the orders of each session, under the user's name; its store keeps them until they are asked for."""
    windows = SessionWindows.of_inactivity_gap_with_no_grace("200 ms")
    counts = orders(builder).group_by_key().windowed_by(windows).count(Materialized("sessions", retention="1 hour"))
    counts.to_stream(lambda k, v: k.key).to("out", value=Serdes.long())


@dataclass(frozen=True)
class Case:
    """One comparison.

    Args:
        what: what is measured.
        program: takes a builder and writes to the topic "out".
        by_hand: the same in PySpark; None where PySpark has nothing of the kind in this mode.
        real_time: whether both run in real-time mode.
        seen: where a record of streamskit's is looked for: in the "topic", in the local "store", in a "view" of that,
            or over "REST".
        store: the store's name.
        load: how many other records a second come beside those that are timed.
    """

    what: str
    program: Callable[[StreamsBuilder], None]
    by_hand: Callable[[Sources], DataFrame] | None = None
    real_time: bool = False
    seen: str = "topic"
    store: str = ""
    load: int = 0

    @property
    def has_payments(self) -> bool:
        """Whether an order goes on only beside its payment."""
        return self.program is stream_stream

    @property
    def mode(self) -> str:
        """The output mode by hand."""
        is_appended = self.by_hand in (filter_and_map_by_hand, stream_stream_by_hand, stream_table_by_hand)
        return "append" if is_appended and not self.real_time else "update"


KINDS = (
    Case("no state", filter_and_map, filter_and_map_by_hand),
    Case("a count", count, count_by_hand, store="counts"),
    Case("a windowed count", windowed_count, windowed_count_by_hand, store="counts"),
    Case("a reducer in Python", reducer, store="totals"),
    Case("a processor", processor, store="totals"),
    Case("a session window", visits, store="sessions"),
    Case("a stream-table join", stream_table, stream_table_by_hand),
    Case("a stream-stream join", stream_stream, stream_stream_by_hand),
)
ONLY_IN_MICRO_BATCHES = stream_stream_by_hand, stream_table_by_hand
"""Spark has nothing of the kind in real-time mode."""


def _seen(kind: Case) -> Iterator[Case]:
    """Yield the ways in which a record is looked for."""
    yield kind
    if kind.store:
        yield replace(kind, what=f"{kind.what} to its query", seen="store")
        yield replace(kind, what=f"{kind.what} to REST", seen="REST")
    if kind.program is count:
        yield replace(kind, what=f"{kind.what} to a StoreView", seen="view", by_hand=None)
    if kind.program is reducer:
        yield replace(kind, what=f"{kind.what} to its query, 1,000 others a second", seen="store", load=1000)


def _in_mode(case: Case, real_time: bool) -> Case:
    by_hand = None if real_time and case.by_hand in ONLY_IN_MICRO_BATCHES else case.by_hand
    what = f"{case.what}, {'real-time mode' if real_time else 'micro-batches'}"
    return replace(case, what=what, real_time=real_time, by_hand=by_hand)


CASES = tuple(
    _in_mode(case, real_time) for kind in KINDS for case in _seen(kind) for real_time in (False, True)
)  # fmt: skip


def rows(cases: Iterable[Case], broker: Broker, probes: int, java: KafkaStreamsJava | None = None) -> Iterator[Row]:
    """Measure programs in both modes, in a process of its own for a Spark with more slots.

    Args:
        cases: what to measure.
        broker: the broker to go through.
        probes: how many records to time, ten a second.
        java: measures Kafka Streams, without a cache, beside what comes out in real-time mode.
    """
    by_hand: dict[tuple[Any, bool], list[float]] = {}
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        for case in cases:
            kind = case.by_hand, case.real_time
            if case.by_hand is not None and kind not in by_hand:
                by_hand[kind] = process.submit(_timed_by_hand, broker.bootstrap_servers, case, probes).result(3600)
            kit = process.submit(_timed, broker.bootstrap_servers, case, probes).result(3600)
            what = f"latency, {case.what}"
            yield _row(what, by_hand[kind], kit) if case.by_hand is not None else Row(what, "", _spelled(kit))
            if java is not None and case.real_time and case.seen == "topic":
                theirs = _in_kafka_streams(java, case, probes)
                yield replace(_row(what, theirs, kit), more="not by hand: Kafka Streams")


def _in_kafka_streams(java: KafkaStreamsJava, case: Case, probes: int) -> list[float]:
    make_topics(java.broker, probes)
    with java.following(case.program.__name__), in_output(java.broker) as look:
        return time_probes(java.broker, look, probes, payments=case.has_payments)


def _timed_by_hand(servers: str, case: Case, probes: int) -> list[float]:
    spark, broker = spark_session(f"local[{SLOTS}]"), ExternalBroker(servers)
    assert case.by_hand is not None
    make_topics(broker, probes)
    sources = {topic: source(spark, broker, topic) for topic in ("orders", "payments", "users")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, settings(spark, PLAIN):
        frame = case.by_hand(sources).where(F.col("topic") == "out")
        writer = frame.writeStream.format("kafka").outputMode(case.mode).option("kafka.bootstrap.servers", servers)
        trigger = REAL_TIME if case.real_time else MICRO_BATCHES
        query = writer.option("checkpointLocation", folder).trigger(**trigger).start()
        with in_output(broker) as look:
            times = time_probes(broker, look, probes, payments=case.has_payments)
        query.stop()
    return times


def _timed(servers: str, case: Case, probes: int) -> list[float]:
    return with_streamskit(spark_session(f"local[{SLOTS}]"), ExternalBroker(servers), case, probes)


def with_streamskit(
    spark: SparkSession, broker: Broker, case: Case, probes: int, processing_guarantee: str = "at_least_once"
) -> list[float]:
    """Return how long each of so many records took through a program: to its topic, or to an answer of its store."""
    make_topics(broker, probes)
    builder = StreamsBuilder()
    case.program(builder)
    with tempfile.TemporaryDirectory() as folder:
        streams = KafkaStreams(
            builder.build(),
            "latency",
            broker.bootstrap_servers,
            spark=spark,
            state_dir=folder,
            real_time=REAL_TIME_BATCH if case.real_time else "off",
            max_task_idle_ms=-1 if case.real_time else 0,  # there, joins take topics as they come
            processing_guarantee=processing_guarantee,
            application_server="127.0.0.1:0" if case.seen == "REST" else None,
        )
        streams.clean_up()
        with streams:
            streams.await_processed("2 minutes")  # a table has its rows
            with _looking(case, streams, broker) as look:
                times = time_probes(broker, look, probes, case.load, case.has_payments)
        streams.clean_up()
    return times


def _looking(case: Case, streams: KafkaStreams, broker: Broker) -> AbstractContextManager[Look]:
    if case.seen == "REST":
        return in_store(QueryClient(f"http://{streams.application_server}").store(case.store))
    if case.seen == "topic":
        return in_output(broker)
    return (in_view if case.seen == "view" else in_store)(streams.store(case.store))


def _row(what: str, hand: list[float], kit: list[float]) -> Row:
    ratio = statistics.median(kit) / statistics.median(hand)
    return Row(what, _spelled(hand), _spelled(kit), ratio, "ratio of the medians")


def _spelled(seconds: list[float]) -> str:
    fast, slow = cuts(seconds)
    return f"p50 {fast:,.0f} p99 {slow:,.0f} ms"


def cuts(seconds: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49] * 1000, cuts[98] * 1000
