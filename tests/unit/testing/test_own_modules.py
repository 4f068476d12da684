"""Functions in modules of the learner's own, in a folder that is put on `sys.path` after Spark has started."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import Serdes, StreamsBuilder, TopologyTestDriver

pytestmark = pytest.mark.spark

MODULE = "rules_of_the_visit_counter"

RULES = """
def start():
    return 0

def add(key, value, so_far):
    return so_far + len(value)

def twice(value):
    return value * 2
"""


@pytest.fixture
def rules(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    assert spark.range(1).count() == 1
    (tmp_path / f"{MODULE}.py").write_text(RULES)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(MODULE)
    del sys.modules[MODULE]


def test_spark_s_workers_find_a_function_of_a_module_of_one_s_own(rules: Any) -> None:
    builder = StreamsBuilder()
    twice = F.udf(rules.twice)
    visits = builder.stream("visits").map_values(lambda v: F.concat(twice(v), v))
    visits.group_by_key().aggregate(rules.start, rules.add, "letters", value=Serdes.long()).to_stream().to("letters")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("visits").pipe_input("k", "ab", 0)
        assert driver.create_output_topic("letters").read_record().value == 6
