"""A lab that is opened in a notebook: Spark starts in the background, and the learner's cells take that session."""

import logging
import threading
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from streamskit.course.labs import warming_up

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CELLS = [
    "from streamskit.labs import check, try_out",
    """
import threading

(thread,) = [each for each in threading.enumerate() if "warming up" in each.name]
thread.join(240)
print(thread.is_alive())
""",
    """
from pyspark.sql import SparkSession

from streamskit import spark_session
from streamskit.environment.session import running_session

print(running_session() is spark_session() is SparkSession._instantiatedSession)
""",
    """
from streamskit import SetupError

try:
    spark_session("local[7]")
except SetupError as refusal:
    print("local[7] was asked for" in str(refusal))
""",
    """
def echo(builder):
    builder.stream("in").to("out")

print(list(try_out(echo, [("in", "k", "v", 0)])["value"]))
""",
]


def test_a_lab_in_a_notebook_starts_spark_in_a_thread_and_the_cells_use_its_session(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = ["".join(output.get("text", "") for output in cell["outputs"]).strip() for cell in notebook["cells"]]
    assert printed == ["", "False", "True", "True", "['v']"]


def test_a_script_and_a_test_start_nothing() -> None:
    assert warming_up.warm_up_in_a_kernel() is None
    assert not [each for each in threading.enumerate() if "warming up" in each.name]


def test_what_goes_wrong_is_left_to_the_learners_own_cell(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(warming_up, "records_of", lambda *_: 1 / 0)
    with caplog.at_level(logging.DEBUG, "streamskit"):
        warming_up._warm_up()
    assert "Warming up for a lab ended early." in caplog.text
