"""Runs programs made up at random in Spark's real-time mode, in a process of its own, whose Spark has more slots.

    python -m tests.integration.random_real_time SERVERS SEED COUNT

prints a line for each program that does not do what a test driver does, and at last how many programs there were.
"""

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamskit import StreamsError, TopologyError
from streamskit.broker import ExternalBroker
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from tests.conformance.inventor import Inventor
from tests.conformance.random_programs import Program, handlers_of, topology_of
from tests.integration.live_outcomes import difference
from tests.integration.live_vectors import IN_REAL_TIME, QUEUE_SECONDS, WAITING_FOR_NONE, Bench
from tests.integration.random_programs import cuts_of, live, replayed
from tests.integration.real_time_vectors import begin_session

SLOTS_EACH = 24
"""How many slots a program may need: it has more sub-topologies than a vector has."""


def fitting(seed: int) -> Iterator[tuple[Program, str, dict[str, Any]]]:
    """Yield programs that keep state and fit real-time mode, each with a way to cut its records, and settings."""
    inventor, chance = Inventor(seed), random.Random(seed)
    while True:
        program = live(inventor.program())
        with suppress(StreamsError, TopologyError):  # the inventor makes up what the DSL refuses, too
            if (cuts := cuts_of(program)) and (settings := _settings(program)):
                # Where no topic waits for another, only records that come one by one have an order.
                yield program, chance.choice(cuts) if settings is IN_REAL_TIME else "each", settings


def _settings(program: Program) -> dict[str, Any] | None:
    """Return the settings with which a program runs in real-time mode as a whole, or None if none do.

    Its records lose the headers that its results would not have there.
    """
    topology = topology_of(program)
    for settings in (IN_REAL_TIME, WAITING_FOR_NONE):
        plans = plan(topology, "app", QueryOptions(real_time=True, as_they_come=settings is WAITING_FOR_NONE))
        if all(each.fits_real_time for each in plans) and any(each.is_stateful for each in plans):
            if any(each.native is not None for each in plans):
                for record in program["records"]:
                    record.pop("headers", None)  # the results of Spark's own counts have none
            return settings
    return None


def main(servers: str, seed: int, count: int) -> None:
    """Run programs, several beside each other, and say of each that comes out otherwise what it was."""
    begin_session(SLOTS_EACH)
    with tempfile.TemporaryDirectory() as scratch:
        bench, runs = Bench(ExternalBroker(servers), Path(scratch)), []
        for number, (program, how, settings) in zip(range(count), fitting(seed), strict=False):
            vector = replayed(program)
            settings = settings | handlers_of(program)
            run = bench.run_made(f"invented-{seed}-{number}.", topology_of(program), vector, how, settings)
            runs.append((program, how, vector, run))
        for program, how, vector, run in runs:
            if said := difference(vector, run.result(QUEUE_SECONDS), ["failure", "outputs", "stores", "dropped"]):
                print(json.dumps({"program": program, "cut": how, "difference": said}), flush=True)
        bench.close()
    print(json.dumps({"programs": len(runs)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
