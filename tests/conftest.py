"""Fixtures that every kind of test may use."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

# How fast examples are made says something of the machine, not of what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user cache of the test's own, with nothing in it."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("STREAMSKIT_CACHE", str(folder))
    return folder


@pytest.fixture
def empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder of the test's own: no broker, no state."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("STREAMSKIT_PROJECT", str(folder))
    monkeypatch.delenv("STREAMSKIT_BOOTSTRAP_SERVERS", raising=False)
    return folder


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The Spark session that all tests share: it takes seconds to start."""
    from streamskit.environment.session import spark_session

    return spark_session()
