"""The wall clock as a source of Spark's: how many ticks a query gets, after a pause as well."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamskit.execution.sources import CLOCK_SOURCE

pytestmark = [pytest.mark.spark]


def ticks(spark: SparkSession, folder: Path) -> list[float]:
    """Return the times that a query has got after its next micro-batches, in seconds since 1970."""
    clock = spark.readStream.format(CLOCK_SOURCE).option("every", 100).load()
    written = clock.writeStream.format("json").option("checkpointLocation", str(folder / "checkpoint"))
    query = written.start(str(folder / "ticks"))
    try:
        deadline = time.monotonic() + 60
        while query.lastProgress is None or query.lastProgress.numInputRows == 0:
            assert time.monotonic() < deadline, "the clock has not ticked for a minute"
            time.sleep(0.05)
    finally:
        query.stop()
    rows = spark.read.schema("timestamp timestamp").json(str(folder / "ticks")).collect()
    return sorted(row.timestamp.timestamp() for row in rows)


def test_ticks_that_were_missed_in_three_days_are_not_made_up_for(spark: SparkSession, tmp_path: Path) -> None:
    began = time.time()
    first = ticks(spark, tmp_path)
    assert all(began - 0.1 <= at <= time.time() for at in first)

    offsets = tmp_path / "checkpoint/offsets"
    last = max(offsets.glob("[0-9]*"), key=lambda file: int(file.name))
    *lines, at = last.read_text().split("\n")
    last.write_text("\n".join([*lines, str(int(at) - 3 * 24 * 60 * 60 * 1000)]))
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    began = time.time()
    after = [at for at in ticks(spark, tmp_path) if at not in first]
    assert after
    assert all(began - 1.2 <= at <= time.time() for at in after)
