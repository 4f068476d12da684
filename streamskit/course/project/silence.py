"""A pytest plugin that lets no record arrive: tests that still pass do not check anything.

`python -m streamskit check-project` runs a project's tests once with it, by `-p streamskit.course.project.silence`.
"""

from typing import Any

import pytest

from streamskit.testing import TestInputTopic


def pytest_configure(config: pytest.Config) -> None:
    """Replace the calls that send records with calls that do nothing."""
    for name in ("pipe_input", "pipe_records"):
        setattr(TestInputTopic, name, _nothing)


def _nothing(*records: Any, **more: Any) -> None:
    """Take records, and send none."""
