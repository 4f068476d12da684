"""The package alone, in a project that has nothing of the course."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
from pathlib import Path

import streamskit
from streamskit import StreamsBuilder, TopologyTestDriver

builder = StreamsBuilder()
builder.stream("words").group_by_key().count("counts").to_stream().to("counted")
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("words").pipe_input("k", "one", timestamp=0)
    print(driver.create_output_topic("counted").read_records_to_list())
    print(Path(streamskit.__file__).parent)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(folder))
    return next(folder.glob("*.whl"))


@pytest.mark.spark
def test_a_plain_project_installs_the_package_and_tests_a_topology(wheel: Path, tmp_path: Path) -> None:
    packages, project = tmp_path / "packages", tmp_path / "project"
    project.mkdir()
    pip("install", "--no-deps", "--target", str(packages), str(wheel))
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=project,
        env={name: value for name, value in os.environ.items() if name != "STREAMSKIT_PROJECT"}
        | {"PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    ).stdout.splitlines()
    assert said == ["[TestRecord(key='k', value=1, timestamp=0, headers=())]", str(packages / "streamskit")]
    assert [path.name for path in project.iterdir()] == [".streamskit"]


def test_the_wheel_has_all_that_is_not_python_and_nothing_of_the_course(wheel: Path) -> None:
    with ZipFile(wheel) as files:
        names = set(files.namelist())
    for needed in (
        "py.typed",
        "environment/ivy.xml",
        "jvm/ProducerRecords.scala",
        "course/labs/recorded/windows-tumbling-count.json",
    ):
        assert f"streamskit/{needed}" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"streamskit"}


def pip(*arguments: str) -> None:
    options = ["-q", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *arguments, *options], check=True, timeout=120)
