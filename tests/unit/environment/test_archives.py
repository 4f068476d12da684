"""Archives of Java classes: used where they are, and never in the way where they are not."""

import os
import subprocess
from pathlib import Path

import pytest

from streamskit.environment import archives
from streamskit.environment.java import Java, find_java


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive of the broker's that is there."""
    monkeypatch.delenv(archives.DRAFTS_VARIABLE, raising=False)
    place = tmp_path / "broker.jsa"
    place.touch()
    monkeypatch.setattr(archives, "archive", lambda program, java: place)
    return place


def test_without_an_archive_java_starts_as_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(archives.DRAFTS_VARIABLE, raising=False)
    monkeypatch.setattr(archives, "archive", lambda program, java: tmp_path / "none.jsa")
    assert archives.java_options("spark") == []


def test_an_archive_that_is_there_is_used(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "has_own_archive", lambda java: True)
    assert archives.java_options("broker") == [f"-XX:SharedArchiveFile={kept}", archives.QUIET]


def test_a_java_without_classes_of_its_own_stands_on_an_archive_of_ours(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "has_own_archive", lambda java: False)
    base = archives.base_archive(find_java())
    assert archives.java_options("broker")[0] == f"-XX:SharedArchiveFile={base}{os.pathsep}{kept}"


def test_a_damaged_archive_does_no_harm(kept: Path) -> None:
    kept.write_bytes(b"no archive")
    command = [str(find_java().executable), *archives.java_options("broker"), "-version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "archive" not in done.stdout + done.stderr


def test_another_java_has_another_archive(tmp_path: Path) -> None:
    here, there = find_java(), Java(tmp_path, 17, "a test")
    assert archives.archive("broker", here) != archives.archive("broker", there)
    assert archives.archive("broker", here) != archives.archive("spark", here)
