"""The bytes in the labs are those that were recorded from the Java serdes."""

from pathlib import Path

import pytest


def test_the_recorded_bytes_of_the_labs_are_those_of_the_serdes_tests(request: pytest.FixtureRequest) -> None:
    root = Path(request.config.rootpath)
    copy = root / "streamskit" / "course" / "labs" / "recorded" / "java" / "serdes.json"
    assert copy.read_bytes() == (root / "tests" / "java" / "serdes.json").read_bytes()
