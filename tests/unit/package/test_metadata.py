"""What is published: the wheel, its licence, and how to cite it."""

import subprocess
import sys
import tomllib
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return ZipFile(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_string(wheel.read(name).decode())


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])


@pytest.mark.parametrize("name", ["__init__.pyi", "py.typed", "environment/ivy.xml", "environment/log4j2.properties"])
def test_the_wheel_holds_what_is_no_python(wheel: ZipFile, name: str) -> None:
    assert f"streamskit/{name}" in wheel.namelist()


def test_the_wheel_holds_the_scala_sources(wheel: ZipFile) -> None:
    sources = {f"streamskit/jvm/{path.name}" for path in (ROOT / "streamskit" / "jvm").glob("*.scala")}
    assert sources
    assert sources <= set(wheel.namelist())


def test_the_wheel_holds_the_package_and_nothing_else(wheel: ZipFile) -> None:
    assert {name.split("/")[0].split("-")[0] for name in wheel.namelist()} == {"streamskit"}


def test_the_wheel_names_its_licence_and_holds_it(wheel: ZipFile, metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    licence = next(name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
    assert wheel.read(licence).decode() == (ROOT / "LICENSE").read_text()


def test_the_wheel_carries_the_readme(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).strip() == (ROOT / "README.md").read_text().strip()


def test_the_licences_are_apache_2_and_cc_by_4() -> None:
    assert "Apache License\n                           Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()
    lessons = (ROOT / "notebooks" / "LICENSE").read_text()
    assert "Creative Commons Attribution 4.0 International Public License" in lessons
    assert "Section 8 -- Interpretation." in lessons


def test_the_citation_names_the_version_that_is_here(project: dict[str, Any]) -> None:
    import streamskit

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == project["version"] == streamskit.__version__
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"] == [{"name": "The streamskit authors"}]
