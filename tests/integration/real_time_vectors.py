"""Runs the programs of recorded vectors in Spark's real-time mode, in a process of its own, whose Spark has more slots.

    python -m tests.integration.real_time_vectors SERVERS FOLDER CUT NAME...

writes what came of each to FOLDER/NAME.json. CUT is one of "real time" and "as they come".
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from streamskit.broker import ExternalBroker
from streamskit.environment.session import spark_session
from tests.integration.live_outcomes import Outcome
from tests.integration.live_vectors import AT_ONCE, COMPILED, Bench, Run

SLOTS_EACH = 8
"""How many slots an application of these has, at most."""


def outcome(file: Path) -> Outcome:
    """Return what came of a run."""
    said = json.loads(file.read_text())
    outputs = {topic: {int(number): rows for number, rows in each.items()} for topic, each in said["outputs"].items()}
    return Outcome(**said | {"outputs": outputs})


def begin_session(slots_each: int = SLOTS_EACH) -> None:
    """Begin a session with slots for as many applications as run beside each other."""
    spark_session(
        f"local[{AT_ONCE * slots_each}]", **{name.replace(".", "__"): value for name, value in COMPILED.items()}
    )


def main(servers: str, folder: Path, how: str, names: Sequence[str]) -> None:
    """Run the programs, several beside each other."""
    begin_session()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(ExternalBroker(servers), Path(scratch))
        runs = [Run(name, how) for name in names]
        bench.submit(runs)
        for run in runs:
            (folder / f"{run.name}.json").write_text(json.dumps(asdict(bench.outcome(run))))
        bench.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
