"""Spark asks a query for its state variables in a Python of its own, which has to come up quickly."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.serializers import CPickleSerializer

from streamskit.execution.stage_processor import StageProcessor
from streamskit.execution.stage_rows import StageInputs
from streamskit.execution.task_processor import TaskProcessor
from streamskit.operators import CountOperator
from streamskit.planning.options import QueryOptions

ASKING = """
import pickle, sys
import pyspark.sql.streaming.transform_with_state_driver_worker
before = set(sys.modules)
with open(sys.argv[1], "rb") as file:
    pickle.load(file).init(type("Handle", (), {"getMapState": lambda *_: print("asked for a map")})())
print(*sorted(name for name in set(sys.modules) - before if name.startswith(("streamskit", "numpy", "pandas"))))
"""


def packed() -> bytes:
    """Return a stage that counts as Spark carries it."""
    inputs = StageInputs({}, single=True, tasks=(7,))
    made: bytes = CPickleSerializer().dumps(  # type: ignore[no-untyped-call]
        StageProcessor(TaskProcessor([CountOperator("n")], [3], inputs, QueryOptions()))
    )
    return made


def test_asking_for_state_variables_imports_no_operator(tmp_path: Path) -> None:
    file = tmp_path / "stage.pickle"
    file.write_bytes(packed())
    said = subprocess.run([sys.executable, "-c", ASKING, file], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.split("\n")[:2] == [
        "asked for a map",
        "streamskit streamskit.execution streamskit.execution.stage_processor",
    ]


def test_what_cannot_be_pickled_is_told_when_the_query_is_made() -> None:
    class Unwilling:
        def __reduce__(self) -> str:
            raise TypeError("not to be sent anywhere")

    with pytest.raises(Exception, match="not to be sent anywhere"):
        StageProcessor(Unwilling())  # type: ignore[arg-type]
