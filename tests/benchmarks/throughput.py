"""How many records a second each case gets through, beside the same written by hand."""

from collections.abc import Iterator

from pyspark.sql import SparkSession

from streamskit.broker.base import Broker
from tests.benchmarks.cases import Case
from tests.benchmarks.kafka_streams import KafkaStreamsJava
from tests.benchmarks.load import load
from tests.benchmarks.measure import Run, by_hand, fresh, records_in, with_streamskit
from tests.benchmarks.table import Row

WARM_UP = 100_000


def rows(
    cases: list[Case],
    spark: SparkSession,
    broker: Broker,
    records: int,
    rounds: int,
    java: KafkaStreamsJava | None = None,
) -> Iterator[Row]:
    """Measure cases, each both ways in turn, so that a machine that slows down slows both; yield the median runs.

    Args:
        cases: what to run.
        spark: the session for both.
        broker: the broker that has the topics.
        records: how many there are in all topics of a case together.
        rounds: how often each is run.
        java: measures Kafka Streams with its default settings and two threads, if it is given.
    """
    for case in cases:
        fill(spark, broker, case, WARM_UP)
        with_streamskit(case, spark, broker)  # the first of its kind compiles
        if case.slow_by_hand is None:
            by_hand(case, spark, broker)
            fill(spark, broker, case, records)
            runs = [(by_hand(case, spark, broker), with_streamskit(case, spark, broker)) for _ in range(rounds)]
            hand, kit = median([run for run, _ in runs]), median([run for _, run in runs])
        else:
            fill(spark, broker, case, case.slow_by_hand)
            hand = median([by_hand(case, spark, broker) for _ in range(rounds)])
            fill(spark, broker, case, records)
            kit = median([with_streamskit(case, spark, broker) for _ in range(rounds)])
        yield row(case.name, hand, kit, case.slow_by_hand)
        if java is not None:
            yield row_beside(java, case.name, case, kit, rounds)
        broker.delete_topics(*case.topics)


def fill(spark: SparkSession, broker: Broker, case: Case, records: int) -> None:
    """Make the topics of a case anew, with so many records in all of them."""
    streams = [topic for topic in case.topics if topic != "users"]
    for topic in case.topics:
        load(spark, broker, topic, records // len(streams), case.keys)


def median(runs: list[Run]) -> Run:
    """Return the run that took the median time."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


def row(what: str, hand: Run, kit: Run, by_hand_with: int | None = None) -> Row:
    """Return how streamskit compares with what is written by hand.

    Args:
        what: the name of the row.
        hand: by hand.
        kit: with streamskit.
        by_hand_with: how many records the one by hand had, if they were others.
    """
    told = f"{kit.cost:.1f} µs of processor time a record beside {hand.cost:.1f}"
    if kit.inside_spark:
        told += f"; {kit.steady:,.0f}/s in Spark's batches, {1 - kit.inside_spark / kit.seconds:.1%} outside"
    if by_hand_with is not None:
        told += f"; by hand {by_hand_with:,} records"
    return Row(what, f"{hand.rate:,.0f}/s", f"{kit.rate:,.0f}/s", hand.rate / kit.rate, told)


def row_beside(java: KafkaStreamsJava, what: str, case: Case, kit: Run, rounds: int, cache: int | None = None) -> Row:
    """Measure a case in Kafka Streams, and return how streamskit compares with it.

    Args:
        java: where Kafka Streams runs.
        what: the name of the row.
        case: what to run; its topics are full.
        kit: with streamskit.
        rounds: how often to run it.
        cache: of Kafka Streams' record cache, in bytes; its default if not given.
    """
    fresh(java.broker, "out")
    program = case.program.__name__
    theirs = median(java.timed(program, records_in(java.broker, *case.topics), rounds, cache))
    told = f"not by hand: Kafka Streams; {kit.cost:.1f} µs of processor time a record beside {theirs.cost:.1f}"
    return Row(what, f"{theirs.rate:,.0f}/s", f"{kit.rate:,.0f}/s", theirs.rate / kit.rate, told)
