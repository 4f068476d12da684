"""`python -m streamskit class-sharing`, where what should load the classes fails."""

import subprocess
from pathlib import Path

import pytest

from streamskit.cli import class_sharing
from streamskit.cli.commands import main


@pytest.fixture
def fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the archives below `tmp_path`; the program that should load the classes fails."""
    failed = subprocess.CompletedProcess[str]([], 1, "", "Traceback ...\nSetupError: Java does not start.\n")
    monkeypatch.setattr(class_sharing, "archive", lambda program, java: tmp_path / f"{program}.jsa")
    monkeypatch.setattr(class_sharing, "base_archive", lambda java: tmp_path)
    monkeypatch.setattr(class_sharing, "has_own_archive", lambda java: True)
    monkeypatch.setattr(subprocess, "run", lambda *what, **how: failed)


@pytest.mark.usefixtures("fails")
def test_classes_that_could_not_be_kept_are_not_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["class-sharing"]) == 1
    said = capsys.readouterr()
    assert "done" not in said.out
    assert said.err.endswith("ended with code 1; its last output: SetupError: Java does not start.\n")


@pytest.mark.usefixtures("fails")
def test_what_a_killed_process_had_begun_to_keep_is_removed(tmp_path: Path) -> None:
    (tmp_path / "draft-killed" / "broker").mkdir(parents=True)
    main(["class-sharing"])
    assert list(tmp_path.glob("draft-*")) == []
