"""How many records a second each case gets through, beside the same written by hand."""

import statistics
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from streamskit.broker.base import Broker
from tests.benchmarks.cases import Case
from tests.benchmarks.load import load
from tests.benchmarks.measure import Run, by_hand, with_streamskit
from tests.benchmarks.table import Row

Measure = Callable[[Case, SparkSession, Broker], Run]
WARM_UP = 100_000


def rows(cases: list[Case], spark: SparkSession, broker: Broker, records: int, rounds: int) -> Iterator[Row]:
    """Measure cases, each both ways in turn, so that a machine that slows down slows both; yield the median runs.

    Args:
        cases: what to run.
        spark: the session for both.
        broker: the broker that has the topics.
        records: how many there are in all topics of a case together.
        rounds: how often each is run.
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
        broker.delete_topics(*case.topics)
        yield _row(case, hand, kit)


def fill(spark: SparkSession, broker: Broker, case: Case, records: int) -> None:
    """Make the topics of a case anew, with so many records in all of them."""
    streams = [topic for topic in case.topics if topic != "users"]
    for topic in case.topics:
        load(spark, broker, topic, records // len(streams), case.keys)


def median(runs: list[Run]) -> Run:
    """Return the run that took the median time."""
    middle = statistics.median_low(run.seconds for run in runs)
    return next(run for run in runs if run.seconds == middle)


def _row(case: Case, hand: Run, kit: Run) -> Row:
    told = f"{kit.steady:,.0f}/s in Spark's batches, {1 - kit.inside_spark / kit.seconds:.1%} outside"
    if case.slow_by_hand is not None:
        told += f"; by hand {case.slow_by_hand:,} records"
    return Row(case.name, f"{hand.rate:,.0f}/s", f"{kit.rate:,.0f}/s", hand.rate / kit.rate, told)
