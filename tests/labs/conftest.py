"""Fixtures of the labs' tests."""

from pathlib import Path

import pytest


@pytest.fixture
def empty_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep progress in a file of the test's own."""
    monkeypatch.setattr("streamskit.course.labs.scores._file", lambda: tmp_path / "progress.json")
    return tmp_path / "progress.json"
