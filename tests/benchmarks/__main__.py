"""`make bench`: what streamskit costs beside the plain way to do the same, in one run and one table."""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.environment.session import spark_session
from tests.benchmarks import (
    guarantees,
    instances,
    latency,
    real_time,
    rest_lookups,
    startup,
    state_writes,
    table,
    throughput,
)
from tests.benchmarks.cases import CASES
from tests.benchmarks.kafka_streams import KafkaStreamsJava

PARTS = ("throughput", "real-time", "latency", "guarantees", "startup", "queries", "state")


def main() -> None:
    """Measure what was asked for, and print a row of the table as soon as there is one."""
    arguments = argparse.ArgumentParser(prog="make bench", description=__doc__)
    arguments.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS, help="what to measure; all if not given")
    arguments.add_argument("--only", nargs="*", default=[], help="parts of the cases' names, of throughput and latency")
    arguments.add_argument("--records", type=int, default=1_000_000, help="in all topics of a throughput case together")
    arguments.add_argument("--rounds", type=int, default=3, help="how often to run each throughput case")
    arguments.add_argument("--probes", type=int, default=200, help="how many records to follow for latencies")
    arguments.add_argument("--keys", type=int, nargs="*", default=[100_000, 300_000, 1_000_000], help="to restore")
    arguments.add_argument("--seconds", type=float, default=10.0, help="of each load of look-ups")
    arguments.add_argument("--updates", type=int, default=20_000, help="a second, during the look-ups")
    arguments.add_argument("--kafka-streams", help="a class path with its jars, to measure it beside ours")
    chosen = arguments.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        EmbeddedBroker(data_dir=Path(folder) / "broker") as broker,
    ):
        table.begin()
        for row in _rows(chosen, broker, Path(folder)):
            table.show(row)


def _rows(chosen: argparse.Namespace, broker: Broker, folder: Path) -> Iterator[table.Row]:
    java = KafkaStreamsJava(chosen.kafka_streams, broker) if chosen.kafka_streams else None
    cases = [case for case in CASES if not chosen.only or any(part in case.name for part in chosen.only)]
    if "startup" in chosen.parts:  # before this process takes memory for a Spark of its own
        yield from startup.rows(broker)
    if "queries" in chosen.parts:
        yield from rest_lookups.rows(broker, folder, chosen.seconds, chosen.updates)
        yield from instances.rows(broker, folder, chosen.keys, chosen.probes)
    if "latency" in chosen.parts:
        timed = [case for case in latency.CASES if not chosen.only or any(part in case.what for part in chosen.only)]
        yield from latency.rows(timed, broker, chosen.probes, java)
    if "real-time" in chosen.parts:
        yield from real_time.rows(cases, broker, chosen.records, chosen.rounds, java)
    if "guarantees" in chosen.parts:
        yield from guarantees.rows(spark_session(), broker, chosen.records, chosen.rounds, chosen.probes)
    if "state" in chosen.parts:
        yield from state_writes.rows(spark_session(), broker)
    if "throughput" in chosen.parts:
        yield from throughput.rows(cases, spark_session(), broker, chosen.records, chosen.rounds, java)


if __name__ == "__main__":
    main()
