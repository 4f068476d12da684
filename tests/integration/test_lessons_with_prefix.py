"""`make soak`: every lesson runs to its end where names have a prefix, as on a broker that a class shares."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("lesson", sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_lesson_runs_where_names_have_a_prefix(lesson: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "ann")
    notebook = nbformat.read(NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
