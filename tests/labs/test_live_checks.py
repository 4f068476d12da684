"""Checks on the broker that use names which all know wait for each other."""

from pathlib import Path

import pytest
from filelock import FileLock

from streamskit.common.errors import StreamsKitError
from streamskit.common.names import PREFIX_VARIABLE
from streamskit.course.labs import catalogue
from streamskit.course.labs.exercises import live


def test_a_check_waits_for_another_one_and_says_so_when_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "state_dir", lambda: tmp_path)
    monkeypatch.setattr(live, "WAIT", 0.2)
    with (
        FileLock(tmp_path / "live-check.lock", thread_local=False),
        pytest.raises(StreamsKitError, match="Another check on the broker"),
        live.alone(),
    ):
        pass
    with live.alone():
        pass  # the other one has ended


def test_a_check_that_fails_lets_the_next_one_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "state_dir", lambda: tmp_path)
    monkeypatch.setattr(live, "WAIT", 0.2)
    with pytest.raises(ZeroDivisionError), live.alone():
        raise ZeroDivisionError
    with live.alone():
        pass


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.timeout(600)
def test_a_check_finds_the_folder_of_its_application_where_everybody_has_a_prefix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PREFIX_VARIABLE, "ann")
    verdict = catalogue.exercise("never_twice").examine_answer(lambda: {"processing_guarantee": "exactly_once"})
    assert verdict.passed, verdict.says
