"""Fixtures of the labs' tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def empty_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep progress in a file of the test's own."""
    monkeypatch.setattr("streamskit.course.labs.scores._file", lambda: tmp_path / "progress.json")
    return tmp_path / "progress.json"


@pytest.fixture
def python_s_own_interrupt() -> Iterator[None]:
    """Ctrl-C as Python and notebooks have it, whoever runs the tests and whatever Spark has put there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
