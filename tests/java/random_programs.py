"""Compares programs made up at random with Kafka Streams, and records some for the tests.

    python -m tests.java.random_programs compare JARS SEED COUNT
    python -m tests.java.random_programs record JARS FILE

JARS is a folder as for `tests.java.record_twins`. `compare` runs COUNT programs here and there and prints each that
differs, as JSON and in words; a SEED always gives the same ones. `record` takes a file of programs, one a line with a
`name`, and adds them, with the outcome that Kafka Streams has, to those that the tests replay.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from streamskit.common.errors import StreamsKitError
from streamskit.environment.java import find_java
from streamskit.environment.session import spark_session
from tests.conformance.inventor import Inventor
from tests.conformance.random_programs import RECORDED, Program, differences, outcome

SOURCE = Path(__file__).with_name("RandomPrograms.java")


def of_kafka_streams(programs: list[Program], jars: Path) -> list[Program]:
    """Return what Kafka Streams' test driver makes of programs."""
    java = [str(find_java().executable), "-cp", os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))]
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(json.dumps(program) + "\n" for program in programs)
        said = subprocess.run(
            [*java, f"-Djava.io.tmpdir={folder}", str(SOURCE)],
            input=lines, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
    if said.returncode:
        raise SystemExit(said.stderr)
    return [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]


def compare(jars: Path, seed: int, count: int) -> None:
    """Run programs here and there, and print each that differs."""
    spark_session()  # programs make Columns before their driver starts one
    programs = Inventor(seed).programs(count)
    for number, (program, expected) in enumerate(zip(programs, of_kafka_streams(programs, jars), strict=True)):
        if "failure" in expected:
            continue  # Kafka Streams refuses some, and fails on others
        try:
            found = differences(expected, outcome(program))
        except StreamsKitError as error:
            found = [str(error)]
        if found:
            print(json.dumps({"name": f"seed-{seed}-{number}", "program": program}), *found, sep="\n  ", flush=True)
        else:
            print(f"{number}: as in Kafka Streams", flush=True)


def record(jars: Path, file: Path) -> None:
    """Add programs and their outcomes to those that the tests replay."""
    lines = [*RECORDED.read_text().splitlines(), *file.read_text().splitlines()]
    rows = {row["name"]: row for row in map(json.loads, lines)}
    outcomes = of_kafka_streams([row["program"] for row in rows.values()], jars)
    for row, found in zip(rows.values(), outcomes, strict=True):
        row["outcome"] = found
    RECORDED.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for _, row in sorted(rows.items())))


if __name__ == "__main__":
    task, folder, *rest = sys.argv[1:]
    if task == "record":
        record(Path(folder), Path(rest[0]))
    else:
        compare(Path(folder), *map(int, rest))
