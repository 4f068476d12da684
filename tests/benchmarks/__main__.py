"""`make bench`: how fast streamskit is, beside the same written by hand in PySpark, in one run."""

import argparse
import statistics
import tempfile

from pyspark.sql import SparkSession

from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.environment.session import spark_session
from tests.benchmarks.cases import CASES, Case
from tests.benchmarks.load import load
from tests.benchmarks.measure import Run, by_hand, with_streamskit


def main() -> None:
    """Print one table: records a second of each case both ways, the ratio, and the share spent outside Spark."""
    arguments = argparse.ArgumentParser(prog="make bench", description=__doc__)
    arguments.add_argument("--records", type=int, default=1_000_000, help="in all topics of a case together")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", nargs="*", default=[], help="parts of the names of the cases to run")
    chosen = arguments.parse_args()
    cases = [case for case in CASES if not chosen.only or any(part in case.name for part in chosen.only)]
    spark = spark_session()
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(data_dir=folder) as broker:
        print(f"{'':<34} {'by hand':>12} {'streamskit':>12} {'ratio':>6} {'steady':>12} {'outside Spark':>14}")
        for case in cases:
            _fill(spark, broker, case, 100_000)
            for run in (by_hand, with_streamskit):
                run(case, spark, broker)  # a warm-up: the first of its kind compiles
            _fill(spark, broker, case, chosen.records)
            hand, kit = _in_turn(case, spark, broker, chosen.rounds)
            print(
                f"{case.name:<34} {hand.rate:>10,.0f}/s {kit.rate:>10,.0f}/s {kit.seconds / hand.seconds:>6.2f} "
                f"{kit.steady:>10,.0f}/s {1 - kit.inside_spark / kit.seconds:>13.1%}",
                flush=True,
            )
            broker.delete_topics(*case.topics)
    spark.stop()


def _fill(spark: SparkSession, broker: Broker, case: Case, records: int) -> None:
    streams = [topic for topic in case.topics if topic != "users"]
    for topic in case.topics:
        load(spark, broker, topic, records // len(streams), case.keys)


def _in_turn(case: Case, spark: SparkSession, broker: Broker, rounds: int) -> tuple[Run, Run]:
    """Measure both in turn, so that a machine that slows down slows both, and return the median runs."""
    hand, kit = [], []
    for _ in range(rounds):
        hand.append(by_hand(case, spark, broker))
        kit.append(with_streamskit(case, spark, broker))
    return _median(hand), _median(kit)


def _median(runs: list[Run]) -> Run:
    middle = statistics.median_low(run.seconds for run in runs)
    return next(run for run in runs if run.seconds == middle)


if __name__ == "__main__":
    main()
