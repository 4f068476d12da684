"""How many records a second real-time mode gets through when they wait: each update goes out, one record after another.

Beside it stand the same by hand in Spark's real-time mode, and Kafka Streams without a cache.
"""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from pyspark.sql import SparkSession

from streamskit.broker import ExternalBroker
from streamskit.broker.base import Broker
from streamskit.environment.processes import wait_until
from streamskit.environment.session import settings, spark_session
from tests.benchmarks import throughput
from tests.benchmarks.cases import Case
from tests.benchmarks.kafka_streams import KafkaStreamsJava
from tests.benchmarks.measure import (
    PARTITIONS,
    REAL_TIME,
    REAL_TIME_BATCH,
    Clock,
    Run,
    fresh,
    records_in,
    source,
    with_streamskit,
)
from tests.benchmarks.table import Row

NAMES = "filter and map", "table count", "hopping window", "reducer in Python, 20,000 keys"
"""The cases that are measured."""

SLOTS = 2 * PARTITIONS
"""Source and state of each partition keep one busy at the same time."""

WAIT_SECONDS = 1200.0


def rows(
    cases: list[Case], broker: Broker, records: int, rounds: int, java: KafkaStreamsJava | None = None
) -> Iterator[Row]:
    """Measure cases in real-time mode, in a process of its own for a Spark with more slots.

    Args:
        cases: what to run; those that real-time mode is measured with.
        broker: the broker that has the topics.
        records: how many there are in all topics of a case together.
        rounds: how often each is run.
        java: measures Kafka Streams, if it is given.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        for case in (each for each in cases if each.name in NAMES):
            hand, kit = process.submit(_runs, broker.bootstrap_servers, case, records, rounds).result(7200)
            what = f"{case.name}, real-time mode"
            yield throughput.row(what, hand, kit)
            if java is not None:
                yield throughput.row_beside(java, what, case, kit, rounds, cache=0)
            broker.delete_topics(*case.topics)


def _runs(servers: str, case: Case, records: int, rounds: int) -> tuple[Run, Run]:
    """Return the median runs by hand and of streamskit."""
    spark, broker = spark_session(f"local[{SLOTS}]"), ExternalBroker(servers)
    for size in (throughput.WARM_UP, records):
        throughput.fill(spark, broker, case, size)
        pairs = []
        for _ in range(1 if size == throughput.WARM_UP else rounds):
            kit = with_streamskit(case, spark, broker, real_time=REAL_TIME_BATCH)
            pairs.append((_by_hand(case, spark, broker, records_in(broker, "out")), kit))
    return throughput.median([hand for hand, _ in pairs]), throughput.median([kit for _, kit in pairs])


def _by_hand(case: Case, spark: SparkSession, broker: Broker, updates: int) -> Run:
    """Run the same in plain PySpark, from start() until as many updates are in its topic as streamskit wrote."""
    for topic in ("out", "store"):
        fresh(broker, topic)
    sources = {topic: source(spark, broker, topic) for topic in case.topics}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        settings(spark, {"spark.sql.shuffle.partitions": str(PARTITIONS)}),
    ):
        clock = Clock(broker)
        writer = case.by_hand(sources).writeStream.format("kafka").outputMode("update")
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers)
        query = writer.option("checkpointLocation", folder).trigger(**REAL_TIME).start()
        wait_until(
            lambda: records_in(broker, "out") >= updates or query.exception(),
            f"{updates:,} updates of '{case.name}' by hand",
            WAIT_SECONDS,
        )
        run = clock.run(records_in(broker, *case.topics))
        if (failure := query.exception()) is not None:
            raise failure
        query.stop()
    return run
