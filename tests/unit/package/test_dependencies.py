"""pyproject.toml, environment.yml, constraints.txt and the Makefile agree on what is installed for whom."""

import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


@pytest.fixture(scope="module")
def conda() -> list[Any]:
    return list(yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"])


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def requirements(project: dict[str, Any]) -> list[str]:
    groups: dict[str, list[str]] = project["optional-dependencies"]
    return [*project["dependencies"], *(each for group in groups.values() for each in group)]


def test_conda_installs_the_course_in_the_versions_that_were_tried_and_no_tools_for_tests(conda: list[Any]) -> None:
    from_pip = next(entry["pip"] for entry in conda if isinstance(entry, dict))
    assert from_pip == ["--constraint constraints.txt", "--editable .[course]"]


def test_conda_installs_the_same_python(project: dict[str, Any], conda: list[Any]) -> None:
    assert f"python{project['requires-python']}" in conda


def test_conda_installs_a_java_that_streamskit_takes(conda: list[Any]) -> None:
    from streamskit.environment.java import SUPPORTED

    assert any(f"openjdk={version}" in conda for version in SUPPORTED)


def test_every_dependency_is_pinned_inside_its_range(project: dict[str, Any], pins: dict[str, str]) -> None:
    for requirement in map(Requirement, requirements(project)):
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement.name} {version} is not {requirement.specifier}"


def test_every_dependency_has_a_range(project: dict[str, Any]) -> None:
    assert [text for text in requirements(project) if not Requirement(text).specifier] == []


def test_the_constraints_are_exact_versions_and_name_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    wrong = [line for line in lines[1:] if not re.fullmatch(r"[\w.-]+==[\w.+!-]+", line)]
    assert lines[0].startswith("#")
    assert wrong == []


def test_the_pinned_packages_install_on_the_oldest_python_that_is_taken(
    project: dict[str, Any], pins: dict[str, str]
) -> None:
    (lowest,) = [each.version for each in SpecifierSet(project["requires-python"]) if each.operator == ">="]
    oldest = f"{lowest}.0"
    installed = {canonicalize_name(each.name): each for each in distributions()}
    pinned = [each for name, each in installed.items() if pins.get(name) == each.version]
    assert len(pinned) > 50
    newer = [each for each in pinned if not SpecifierSet(each.metadata["Requires-Python"] or "").contains(oldest)]
    assert [f"{each.name} {each.version}" for each in newer] == []


SAFE_FROM = {
    "lz4-java": "1.10.1",  # CVE-2025-12183, CVE-2025-66566
    "commons-beanutils": "1.11.0",  # CVE-2025-48734
    "kafka-clients": "3.9.1",  # CVE-2025-27817, CVE-2025-27818
    "log4j-core": "2.25.3",  # CVE-2025-68161
    "jackson-core": "2.15.0",  # CVE-2025-52999
    "snakeyaml": "2.0",  # CVE-2022-1471
    "snappy-java": "1.1.10.4",  # CVE-2023-43642
}
"""Jars that have had a hole, each with the first version without it."""


def test_no_jar_is_older_than_the_version_that_closed_a_hole_in_it() -> None:
    from streamskit.environment.jars import CHECKSUMS, IVY_FILE

    jars = [line.split()[1].rpartition("/")[2].removesuffix(".jar") for line in CHECKSUMS.read_text().splitlines()]
    found = {
        (name, Version(version)) for name, _, version in (jar.rpartition("-") for jar in jars) if name in SAFE_FROM
    }
    assert {name for name, _ in found} == set(SAFE_FROM)
    assert [f"{name} {version}" for name, version in found if version < Version(SAFE_FROM[name])] == []
    assert 'org="org.lz4"' not in IVY_FILE.read_text()  # it has moved, and is not mended any more


TRIED_TOGETHER = {("4.3.0", "4.2.0")}
"""Versions of PySpark, each with one of Spark's Kafka connector that runs on it; the newest is not everywhere."""


def test_the_spark_connector_was_tried_with_the_pinned_pyspark(pins: dict[str, str]) -> None:
    from streamskit.environment.jars import CHECKSUMS, IVY_FILE

    connector = re.search(r'name="spark-sql-kafka-0-10_2.13" rev="([\d.]+)"', IVY_FILE.read_text())
    assert connector is not None
    assert (pins["pyspark"], connector[1]) in TRIED_TOGETHER
    assert f"spark-sql-kafka-0-10_2.13-{connector[1]}.jar" in CHECKSUMS.read_text()
