"""A program may begin with any step: none needs a Spark session that is there already."""

import subprocess
import sys

import pytest

FIRST_LINES = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from streamskit import Serdes, StreamsBuilder, TimestampExtractor, TimeWindows

JSON = Serdes.json("customer string, time long")
FIRST = {
    "timestamps of a stream": lambda b: b.stream("in", value=JSON, timestamps=lambda v: v.time),
    "timestamps of a table": lambda b: b.table("in", value=JSON, timestamps=lambda v: v.time),
    "timestamps of a global table": lambda b: b.global_table("in", value=JSON, timestamps=lambda v: v.time),
    "an extractor": lambda b: b.stream("in", value=JSON, timestamps=TimestampExtractor.of(lambda v: v.time)),
    "what a stream shows": lambda b: repr(b.stream("in", value=JSON)),
    "a type": lambda b: Serdes.for_type(JSON.data_type),
    "a list": lambda b: b.stream("in", value=Serdes.list(JSON)).map_values(lambda v: F.size(v)),
    "a key": lambda b: b.stream("in", value=JSON).select_key(lambda v: v.customer),
    "a topic of each record": lambda b: b.stream("in", value=JSON).to(lambda v: v.customer),
    "a filtered table": lambda b: b.table("in", value=JSON).filter(lambda v: v.time > 0),
    "a join": lambda b: b.table("in", value=JSON).join(b.table("other", value=JSON), lambda one, other: one.time),
    "a count": lambda b: b.stream("in", value=JSON).group_by(lambda v: v.customer).count("counts"),
}
for name, first in FIRST.items():
    first(StreamsBuilder())
    print("began with", name)
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
"""


@pytest.mark.spark
def test_a_program_may_begin_with_any_step() -> None:
    run = subprocess.run([sys.executable, "-c", FIRST_LINES], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.count("began with") == FIRST_LINES.count("lambda b:")
