"""`make bench`: how fast streamskit is, beside the same written by hand in PySpark, in one run."""

import argparse
import statistics
import tempfile
from collections.abc import Callable

from streamskit.broker import EmbeddedBroker
from streamskit.environment.session import spark_session
from tests.benchmarks.load import load_trades
from tests.benchmarks.trade_statistics import Run, by_hand, with_streamskit


def main() -> None:
    """Print one table: records a second for each pipeline and size, the ratio, and the share spent outside Spark."""
    arguments = argparse.ArgumentParser(prog="make bench", description=__doc__)
    arguments.add_argument("--records", type=int, nargs="+", default=[1_000_000, 3_000_000])
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()
    spark = spark_session()
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(data_dir=folder) as broker:
        load_trades(spark, broker, "bench-warm-up", 200_000)
        for run in (by_hand, with_streamskit):
            run(spark, broker, "bench-warm-up")
        print(f"{'trade statistics':>18} {'by hand':>12} {'streamskit':>12} {'ratio':>6} {'outside Spark':>14}")
        for count in chosen.records:
            topic = f"bench-trades-{count}"
            load_trades(spark, broker, topic, count)
            measure = _in_turn(lambda run, topic=topic: run(spark, broker, topic), chosen.rounds)
            hand, kit = (_median(runs) for runs in measure)
            outside = 1 - kit.inside_spark / kit.seconds
            rates = f"{hand.rate:>10,.0f}/s {kit.rate:>10,.0f}/s"
            print(f"{count:>18,} {rates} {kit.seconds / hand.seconds:>6.2f} {outside:>13.1%}", flush=True)
            broker.delete_topics(topic)
    spark.stop()


def _in_turn(measure: Callable[..., Run], rounds: int) -> tuple[list[Run], list[Run]]:
    """Measure both in turn, so that a machine that slows down slows both."""
    hand, kit = [], []
    for _ in range(rounds):
        hand.append(measure(by_hand))
        kit.append(measure(with_streamskit))
    return hand, kit


def _median(runs: list[Run]) -> Run:
    middle = statistics.median_low(run.seconds for run in runs)
    return next(run for run in runs if run.seconds == middle)


if __name__ == "__main__":
    main()
