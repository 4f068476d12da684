"""What exactly-once output costs: the same program with both guarantees, in turn."""

from collections.abc import Iterator

from pyspark.sql import SparkSession

from streamskit.broker.base import Broker
from tests.benchmarks import latency
from tests.benchmarks.cases import CASES, count, filter_and_map
from tests.benchmarks.measure import with_streamskit
from tests.benchmarks.table import Row
from tests.benchmarks.throughput import WARM_UP, fill, median

GUARANTEES = "at_least_once", "exactly_once"
TIMED = latency.Case("no state", filter_and_map), latency.Case("a count", count, seen="store", store="counts")
BESIDE = "beside at least once, of streamskit"


def rows(spark: SparkSession, broker: Broker, records: int, rounds: int, probes: int) -> Iterator[Row]:
    """Measure a pipeline without state and a count; in place of what is written by hand stands at least once.

    Args:
        spark: the session for all.
        broker: the broker to go through.
        records: how many there are in a topic for throughput.
        rounds: how often each is run for throughput.
        probes: how many records to time for latency.
    """
    # First: Java's producer would remember the more partitions that a topic has had for throughput.
    for timed in TIMED:
        probed = (latency.with_streamskit(spark, broker, timed, probes, guarantee) for guarantee in GUARANTEES)
        then, now = (latency.cuts(seconds)[0] for seconds in probed)
        what = f"exactly once: latency, {timed.what}"
        yield Row(what, f"p50 {then:,.0f} ms", f"p50 {now:,.0f} ms", now / then, BESIDE)
    for case in (each for each in CASES if each.program in (filter_and_map, count)):
        fill(spark, broker, case, WARM_UP)
        for guarantee in GUARANTEES:
            with_streamskit(case, spark, broker, guarantee)
        fill(spark, broker, case, records)
        runs = [[with_streamskit(case, spark, broker, guarantee) for guarantee in GUARANTEES] for _ in range(rounds)]
        at_least, exactly = (median(list(each)) for each in zip(*runs, strict=True))
        broker.delete_topics(*case.topics)
        yield Row(
            f"exactly once: {case.name}",
            f"{at_least.rate:,.0f}/s",
            f"{exactly.rate:,.0f}/s",
            at_least.rate / exactly.rate,
            BESIDE,
        )
