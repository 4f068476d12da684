from pathlib import Path

import pytest

from streamskit.common.errors import SetupError
from streamskit.common.paths import cache_dir, project_dir, state_dir


def test_the_cache_is_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMSKIT_CACHE", str(tmp_path / "elsewhere"))
    assert cache_dir() == tmp_path / "elsewhere"


def test_the_cache_is_a_folder_of_the_user_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMSKIT_CACHE", raising=False)
    assert cache_dir().name == "streamskit"
    assert cache_dir().is_relative_to(Path.home())


@pytest.mark.parametrize("marker", [".streamskit", "pyproject.toml", ".git"])
def test_the_project_is_the_nearest_folder_upwards_with_a_marker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, marker: str
) -> None:
    (tmp_path / ".git").mkdir()
    project = tmp_path / "project"
    (project / marker).mkdir(parents=True)
    (project / "notebooks" / "deep").mkdir(parents=True)
    monkeypatch.delenv("STREAMSKIT_PROJECT", raising=False)
    monkeypatch.chdir(project / "notebooks" / "deep")
    assert project_dir() == project


def test_without_a_marker_the_project_is_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STREAMSKIT_PROJECT", raising=False)
    monkeypatch.setattr("streamskit.common.paths.PROJECT_MARKERS", ("no such marker",))
    monkeypatch.chdir(tmp_path)
    assert project_dir() == tmp_path


def test_a_working_directory_that_was_deleted_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STREAMSKIT_PROJECT", raising=False)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SetupError, match="is not there any more"):
        project_dir()


def test_the_state_folder_is_made_on_demand(empty_project: Path) -> None:
    assert not (empty_project / ".streamskit").exists()
    assert state_dir() == empty_project / ".streamskit"
    assert state_dir().is_dir()
