"""How long a record takes through a pipeline, one record at a time, beside the same written by hand."""

import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamskit import KafkaStreams, QueryClient, Serdes, SessionWindows, StreamsBuilder
from streamskit.broker import ExternalBroker
from streamskit.broker.base import Broker
from streamskit.environment.processes import wait_until
from streamskit.environment.session import settings, spark_session
from streamskit.widgets import StoreView
from tests.benchmarks.cases import (
    Sources,
    count,
    count_by_hand,
    filter_and_map,
    filter_and_map_by_hand,
    orders,
    processor,
    reducer,
)
from tests.benchmarks.table import Row

Look = Callable[[set[str]], set[str]]
"""Takes the keys that are awaited, and returns those that have come."""

PARTITIONS = 2
SLOTS = 8
"""How many slots Spark has: real-time mode keeps one busy for each partition, and one more for each with state."""

JAVA_PROGRAM = Path(__file__).parent / "java" / "KafkaStreamsLatency.java"

EVERY_SECONDS = 0.1
REAL_TIME_BATCH = "30 seconds"
MICRO_BATCHES = {"processingTime": "100 milliseconds"}
REAL_TIME = {"realTime": REAL_TIME_BATCH}
PLAIN = {"spark.sql.shuffle.partitions": str(PARTITIONS), "spark.sql.streaming.noDataMicroBatches.enabled": "false"}
"""Settings of the pipelines by hand, which streamskit's have too."""


def visits(builder: StreamsBuilder) -> None:
    """Count the orders of each session, under the user's name."""
    windows = SessionWindows.of_inactivity_gap_with_no_grace("200 ms")
    counts = orders(builder).group_by_key().windowed_by(windows).count()
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
    by_hand: Callable[[Sources], DataFrame] | None
    real_time: bool
    seen: str = "topic"
    store: str = "counts"
    load: int = 0


CASES = (
    Case("no state, micro-batches", filter_and_map, filter_and_map_by_hand, False),
    Case("no state, real-time mode", filter_and_map, filter_and_map_by_hand, True),
    Case("a count, micro-batches", count, count_by_hand, False),
    Case("a count, real-time mode", count, count_by_hand, True),
    Case("a count to its query, micro-batches", count, count_by_hand, False, "store"),
    Case("a count to its query, real-time mode", count, count_by_hand, True, "store"),
    Case("a count to REST, micro-batches", count, count_by_hand, False, "REST"),
    Case("a count to REST, real-time mode", count, count_by_hand, True, "REST"),
    Case("a count to a StoreView, micro-batches", count, None, False, "view"),
    Case("a count to a StoreView, real-time mode", count, None, True, "view"),
    *(
        Case(
            f"{what}, {'real-time mode' if real_time else 'micro-batches'}", program, None, real_time, seen, store, load
        )
        for what, program, seen, store, load in (
            ("a reducer in Python", reducer, "topic", "", 0),
            ("a reducer in Python to its query", reducer, "store", "totals", 0),
            ("a reducer in Python to its query, 1,000 others a second", reducer, "store", "totals", 1000),
            ("a reducer in Python to REST", reducer, "REST", "totals", 0),
            ("a processor", processor, "topic", "", 0),
            ("a session window", visits, "topic", "", 0),
        )
        for real_time in (False, True)
    ),
)


def rows(cases: Iterable[Case], broker: Broker, probes: int) -> Iterator[Row]:
    """Measure pipelines with and without state in both modes, in a process of its own for a Spark with more slots.

    Args:
        cases: what to measure.
        broker: the broker to go through.
        probes: how many records to time, ten a second.
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


def beside_kafka_streams(classpath: str, broker: Broker, probes: int) -> Iterator[Row]:
    """Measure Kafka Streams with two threads and no cache, beside streamskit's real-time mode.

    Args:
        classpath: with the jars of Kafka Streams and of Jackson, as Java takes it.
        broker: the broker to go through.
        probes: how many records to time, ten a second.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        for case in CASES:
            if case.real_time and case.seen == "topic":
                program = "count" if case.program is count else "filter-and-map"
                theirs = _with_kafka_streams(classpath, broker, program, probes)
                ours = process.submit(_timed, broker.bootstrap_servers, case, probes).result(3600)
                yield replace(_row(f"latency, {case.what}", theirs, ours), more="not by hand: Kafka Streams")


def _with_kafka_streams(classpath: str, broker: Broker, program: str, probes: int) -> list[float]:
    _fresh(broker)
    with tempfile.TemporaryDirectory() as folder:
        command = ["java", "-cp", classpath, str(JAVA_PROGRAM), program, broker.bootstrap_servers, folder]
        application = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            with _arriving(broker) as look:
                return _time(broker, look, probes)
        finally:
            application.terminate()
            application.wait(60)


def _timed_by_hand(servers: str, case: Case, probes: int) -> list[float]:
    spark, trigger = spark_session(f"local[{SLOTS}]"), REAL_TIME if case.real_time else MICRO_BATCHES
    mode = "append" if case.by_hand is filter_and_map_by_hand and not case.real_time else "update"
    assert case.by_hand is not None
    return _by_hand(spark, ExternalBroker(servers), case.by_hand, mode, trigger, probes)


def _timed(servers: str, case: Case, probes: int) -> list[float]:
    spark, real_time = spark_session(f"local[{SLOTS}]"), REAL_TIME_BATCH if case.real_time else "off"
    return with_streamskit(
        spark,
        ExternalBroker(servers),
        case.program,
        probes,
        real_time,
        seen=case.seen,
        store=case.store,
        load=case.load,
    )


def _row(what: str, hand: list[float], kit: list[float]) -> Row:
    ratio = statistics.median(kit) / statistics.median(hand)
    return Row(what, _spelled(hand), _spelled(kit), ratio, "ratio of the medians")


def _spelled(seconds: list[float]) -> str:
    fast, slow = cuts(seconds)
    return f"p50 {fast:,.0f} p99 {slow:,.0f} ms"


def cuts(seconds: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49] * 1000, cuts[98] * 1000


def with_streamskit(
    spark: SparkSession,
    broker: Broker,
    program: Callable[[StreamsBuilder], None],
    probes: int,
    real_time: str,
    seen: str = "topic",
    processing_guarantee: str = "at_least_once",
    store: str = "counts",
    load: int = 0,
) -> list[float]:
    """Return how long each of so many records took through a program: to its topic, or to an answer of its store."""
    _fresh(broker)
    builder = StreamsBuilder()
    program(builder)
    with tempfile.TemporaryDirectory() as folder:
        streams = KafkaStreams(
            builder.build(),
            "latency",
            broker.bootstrap_servers,
            spark=spark,
            state_dir=folder,
            real_time=real_time,
            processing_guarantee=processing_guarantee,
            application_server="127.0.0.1:0" if seen == "REST" else None,
        )
        streams.clean_up()
        with streams:
            if seen == "view":
                with _shown(streams.store(store)) as look:
                    times = _time(broker, look, probes, load)
            elif seen != "topic":
                address = f"http://{streams.application_server}"
                counts = streams.store(store) if seen == "store" else QueryClient(address).store(store)
                times = _time(broker, lambda keys: {key for key in keys if counts.get(key) is not None}, probes, load)
            else:
                with _arriving(broker) as look:
                    times = _time(broker, look, probes, load)
        streams.clean_up()
    return times


def _by_hand(
    spark: SparkSession,
    broker: Broker,
    made: Callable[[Sources], DataFrame],
    mode: str,
    trigger: dict[str, str],
    probes: int,
) -> list[float]:
    _fresh(broker)
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    orders = {"subscribe": "orders", "startingOffsets": "earliest"}  # the first one may be there before the query is
    source = spark.readStream.format("kafka").options(**options, **orders).load()
    with (
        tempfile.TemporaryDirectory() as folder,
        settings(spark, PLAIN),
    ):
        frame = made({"orders": source}).where(F.col("topic") == "out")
        writer = frame.writeStream.format("kafka").outputMode(mode).options(**options)
        query = writer.option("checkpointLocation", folder).trigger(**trigger).start()
        with _arriving(broker) as look:
            times = _time(broker, look, probes)
        query.stop()
    return times


def _fresh(broker: Broker) -> None:
    for topic in ("orders", "out"):
        broker.delete_topics(topic, missing_ok=True)
        broker.create_topics(topic, partitions=PARTITIONS)


def _time(broker: Broker, look: Look, probes: int, load: int = 0) -> list[float]:
    """Send records at random moments, each with a key of its own, and return how long each took to be seen."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    sent, took, chance = dict[str, float](), list[float](), random.Random(17)
    stopping = threading.Event()

    def watch() -> None:
        while not stopping.is_set():
            for key in look(set(sent)):
                took.append(time.perf_counter() - sent.pop(key))
            time.sleep(0.0005)

    def send(key: str) -> None:
        sent[key] = time.perf_counter()
        producer.produce("orders", key=key, value=f'{{"user": "{key}", "amount": 900}}')
        producer.flush()

    def add_load() -> None:
        began, number = time.perf_counter(), 0
        while not stopping.wait(0.01):
            while number < load * (time.perf_counter() - began):
                others.produce("orders", key=f"other-{number % 500}", value='{"user": "other", "amount": 900}')
                number += 1
            others.poll(0)
        others.flush()

    others = Producer({"bootstrap.servers": broker.bootstrap_servers})
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    loading = threading.Thread(target=add_load, daemon=True)
    loading.start()
    for number in range(20):  # until the query runs, and has compiled what it needs
        send(f"warm-up-{number}")
        wait_until(lambda: not sent, "the output of a record")
    took.clear()
    for number in range(probes):
        send(f"user-{number}")
        time.sleep(chance.uniform(0.5, 1.5) * EVERY_SECONDS)
    wait_until(lambda: not sent, "the output of the last records")
    stopping.set()
    watching.join(60)
    loading.join(60)
    return took


@contextmanager
def _shown(store: Any) -> Iterator[Look]:
    """Look at what a live view of a store shows."""
    view = StoreView(store, rows=200)
    leave = view.follow()

    def look(keys: set[str]) -> set[str]:
        table = view.seen()["table"]
        return {key for key in keys if f">{key}<" in table}

    try:
        yield look
    finally:
        leave()


@contextmanager
def _arriving(broker: Broker) -> Iterator[Look]:
    """Look at what comes out, with a plain consumer."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "look", "fetch.wait.max.ms": 5})
    consumer.assign([TopicPartition("out", partition, 0) for partition in range(PARTITIONS)])

    def look(keys: set[str]) -> set[str]:
        return keys.intersection((message.key() or b"").decode() for message in consumer.consume(100, 0.001))

    try:
        yield look
    finally:
        consumer.close()
