"""A version is released only when all places that name one agree."""

import shutil
from pathlib import Path

import pytest

from tests import release


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of which everything is released."""
    (tmp_path / "streamskit").mkdir()
    for name in ("pyproject.toml", "CITATION.cff", "streamskit/__init__.py"):
        shutil.copy(release.ROOT / name, tmp_path / name)
    version = release.versions()["pyproject.toml"]
    write_changelog(tmp_path, version, "")
    return tmp_path


def write_changelog(project: Path, version: str, unreleased: str) -> None:
    parts = [
        "# Changelog",
        "## [Unreleased]",
        unreleased,
        f"## [{version}] - 2026-01-01",
        "New things.",
        "## [0.0.1]",
        "Old.",
    ]
    (project / "CHANGELOG.md").write_text("\n\n".join(parts))


def test_package_changelog_and_citation_name_one_version() -> None:
    assert len(set(release.versions().values())) == 1


def test_the_tag_of_the_version_that_is_here_can_be_released(project: Path) -> None:
    version = release.versions(project)["pyproject.toml"]
    assert release.check(f"v{version}", project) == "New things.\n"


def test_a_tag_of_another_version_is_refused_and_every_place_is_named(project: Path) -> None:
    with pytest.raises(SystemExit, match=r"pyproject\.toml says .*, streamskit/.*, CITATION.*, CHANGELOG"):
        release.check("v9.9.9", project)


def test_changes_that_belong_to_no_version_yet_are_not_released(project: Path) -> None:
    version = release.versions(project)["pyproject.toml"]
    write_changelog(project, version, "- A change.")
    with pytest.raises(SystemExit, match="below \\[Unreleased\\]"):
        release.check(f"v{version}", project)
