"""`python -m streamskit check-project`: what every project has to hold, whatever it does.

Nothing here knows what a project computes. The checks look at what others need to run an application: names,
samples, results that are the same each time, unexpected records, tests that can fail.
"""

import argparse
import importlib
import subprocess
import sys
import tempfile
import tomllib
import traceback
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import StreamsKitError, TopologyError
from streamskit.common.paths import working_directory
from streamskit.course.project.new import ProjectError
from streamskit.environment.diagnosis import Check, Diagnosis, Status
from streamskit.planning.plan import is_readable
from streamskit.serdes import Serdes
from streamskit.testing.driver import TopologyTestDriver
from streamskit.topology import Topology
from streamskit.topology.explicit_names import check_names_are_explicit

FEWEST_SAMPLES, FEWEST_TESTS = 5, 3
TESTS_SECONDS = 600
GARBAGE = b"\x00\xff{half a te"
SILENCE = "streamskit.course.project.silence"
TEMPLATE_TOPICS = {"visits"}

Verdict = tuple[Status, str, str]
InputRecord = tuple[str, Any, Any, int]


@dataclass(frozen=True)
class Project:
    """A project as the checks see it: its folder, and what its package offers."""

    folder: Path
    build: Callable[[], Topology]
    config: Callable[[str], StreamsConfig]
    records: Sequence[InputRecord]

    @cached_property
    def results(self) -> dict[str, list[Any]]:
        """The results of its samples, from the first run."""
        return _results(self, self.records)


def judge(folder: Path) -> Diagnosis:
    """Judge the project in a folder.

    Returns:
        A check for each thing that a project has to hold; one that failed says what to do.

    Raises:
        ProjectError: there is no project in the folder, or its package cannot be imported.

    >>> judge(Path("page-visits")).healthy  # doctest: +SKIP
    True
    """
    project = load(folder)
    return Diagnosis(tuple(_examined(name, check, project) for name, check in CHECKS.items()))


def load(folder: Path) -> Project:
    """Import what a project offers: `build()` in `topology`, `config()` in `settings`, `RECORDS` in `samples`.

    Raises:
        ProjectError: one of them is missing; the sentence says which.
    """
    try:
        package = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["streamskit"]["package"]
    except ValueError as error:
        raise ProjectError(
            f"{folder / 'pyproject.toml'} cannot be read: {error}. Correct that, then check again."
        ) from error
    except (OSError, KeyError, TypeError) as error:
        raise ProjectError(
            f"{folder} is not a project: its pyproject.toml has to name the package below [tool.streamskit]. "
            "`python -m streamskit new my-app` begins one."
        ) from error
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # for good: Spark's workers import from there, too
    try:
        found = [
            getattr(importlib.import_module(f"{package}.{module}"), name)
            for module, name in (("topology", "build"), ("settings", "config"), ("samples", "RECORDS"))
        ]
    except (ImportError, AttributeError) as error:
        raise ProjectError(
            f"The package {package} has to offer build() in topology.py, config() in settings.py and RECORDS in "
            f"samples.py, and one of them is missing: {error}."
        ) from error
    except Exception as error:
        raise ProjectError(
            f"The package {package} cannot be imported: {type(error).__name__}: {error}{_line_of(error)}. "
            "Correct that line, then check again."
        ) from error
    return Project(folder, *found)


def _line_of(error: Exception) -> str:
    """Say in which file and line an error was raised; one of syntax says that itself."""
    if isinstance(error, SyntaxError):
        return ""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f" ({last.filename}, line {last.lineno})"


def _examined(name: str, check: Callable[[Project], Verdict], project: Project) -> Check:
    try:
        if check in NEED_SAMPLES and not project.records:
            return Check(name, "problem", "There are no samples to try it with.", "Write RECORDS in samples.py.")
        return Check(name, *check(project))
    except subprocess.TimeoutExpired:
        do = "Let no test wait without an end, even if no record arrives. On a slow machine, try again when it is idle."
        return Check(name, "problem", f"The tests did not end within {TESTS_SECONDS // 60} minutes.", do)
    except StreamsKitError as error:
        return Check(
            name, "problem", str(error), "The sentence says where; the other checks may fail for the same reason."
        )
    except Exception as error:
        return Check(name, "problem", f"{type(error).__name__}: {error}", "Run it in the notebook to see where.")


# ---- what the topology holds -----------------------------------------------------------------------------------------


def _topology(project: Project) -> Verdict:
    first, second = project.build(), project.build()
    if first.describe() != second.describe():
        return "problem", "build() makes another topology each time.", "Let nothing in it depend on time or chance."
    if not first.sinks and not _own_stores(first):
        return (
            "problem",
            "It writes no topic and keeps no store.",
            "Let results out: to a topic, or into a named store.",
        )
    topics = _topics(first)
    if topics == TEMPLATE_TOPICS:
        return "warning", "It still reads the template's topic.", "Ask a question of your own."
    return "ok", f"It reads {', '.join(sorted(topics))}, in {len(first.sub_topologies())} sub-topologies.", ""


def _names(project: Project) -> Verdict:
    try:
        check_names_are_explicit(project.build())
    except TopologyError as error:
        do = "Names that the library makes up change with the next step you add, and the state is lost."
        return "problem", f"Of the names, {str(error).partition(' is set, and ')[2]}", do
    return "ok", "Stores, changelogs and repartition topics have names of yours.", ""


def _state(project: Project) -> Verdict:
    stores = _own_stores(project.build())
    if not stores:
        return "problem", "No step keeps state.", "Count, aggregate, join or look something up."
    return "ok", f"It keeps {', '.join(stores)}.", ""


def _topics(topology: Topology) -> set[str]:
    return {topic for source in topology.sources if not source.internal for topic in source.topic_names}


def _own_stores(topology: Topology) -> list[str]:
    return sorted(store.name for store in topology.stores.values())


# ---- what it makes of records ----------------------------------------------------------------------------------------


def _samples(project: Project) -> Verdict:
    if len(project.records) < FEWEST_SAMPLES:
        says = f"There are {len(project.records)} sample records."
        return "problem", says, f"Write at least {FEWEST_SAMPLES}, with one out of order."
    if unused := _topics(project.build()) - {topic for topic, *_ in project.records}:
        return (
            "problem",
            f"No sample is for {', '.join(sorted(unused))}.",
            "Write samples for every topic that it reads.",
        )
    if not any(project.results.values()):
        return "problem", "Nothing comes of the samples.", "Write samples that the application has an answer to."
    return "ok", f"{len(project.records)} samples give {sum(map(len, project.results.values()))} results.", ""


def _repeatable(project: Project) -> Verdict:
    if project.results != _results(project, project.records):
        do = "Take nothing from clocks or chance: what runs again after a fault has to give the same."
        return "problem", "The same samples give other results the second time.", do
    return "ok", "The same samples give the same results.", ""


def _garbage(project: Project) -> Verdict:
    with _driver(project) as driver:
        for topic in dict.fromkeys(topic for topic, *_ in project.records):
            driver.create_input_topic(topic, Serdes.byte_array(), Serdes.byte_array()).pipe_input(b"?", GARBAGE, 0)
        _pipe(driver, project.records)
    return "ok", "A record that cannot be read does not stop it.", ""


def _nulls(project: Project) -> Verdict:
    with _driver(project) as driver:
        _pipe(driver, project.records)
        _pipe(driver, [(topic, key, None, timestamp) for topic, key, _, timestamp in project.records])
        _pipe(driver, [(topic, None, value, timestamp) for topic, _, value, timestamp in project.records])
    return "ok", "Records without a key or without a value do not stop it.", ""


def _late(project: Project) -> Verdict:
    latest = max(timestamp for *_, timestamp in project.records)
    with _driver(project) as driver:
        _pipe(driver, project.records)
        _pipe(driver, [(topic, key, value, latest + 365 * 86_400_000) for topic, key, value, _ in project.records[:1]])
        _pipe(driver, project.records)
    return "ok", "Records that come a year late do not stop it.", ""


def _results(project: Project, records: Sequence[InputRecord]) -> dict[str, list[Any]]:
    """What comes out of the topics, and what is in the stores after that."""
    with _driver(project) as driver:
        _pipe(driver, records)
        sinks = [str(sink.topic) for sink in project.build().sinks if isinstance(sink.topic, str) and not sink.internal]
        found: dict[str, list[Any]] = {
            topic: driver.create_output_topic(topic, Serdes.byte_array(), Serdes.byte_array()).read_records_to_list()
            for topic in sinks
        }
        for name in sorted(store.name for store in driver.topology.stores.values() if is_readable(store)):
            found[f"store {name}"] = driver.state_store(name).to_pandas().to_dict("records")
        return found


def _driver(project: Project) -> TopologyTestDriver:
    return TopologyTestDriver(project.build(), project.config("none"))


def _pipe(driver: TopologyTestDriver, records: Sequence[InputRecord]) -> None:
    for topic, key, value, timestamp in records:
        driver.create_input_topic(topic).pipe_input(key, value, timestamp)


# ---- what belongs to it ----------------------------------------------------------------------------------------------


def _tests(project: Project) -> Verdict:
    count, failed, said = _run_tests(project.folder)
    if count < FEWEST_TESTS:
        do = f"Write at least {FEWEST_TESTS}, one for each behaviour. `python -m pytest` runs them. {said}"
        return "problem", f"There are {count} tests.", do.strip()
    if failed:
        return "problem", f"{failed} of {count} tests fail.", "`python -m pytest` says which."
    return "ok", f"{count} tests pass.", ""


def _tests_can_fail(project: Project) -> Verdict:
    _, failed, _ = _run_tests(project.folder, "-x", "-p", SILENCE)
    if not failed:
        do = "Compare what comes out with what should, whole: a test that cannot fail says nothing."
        return "problem", "All tests pass even when no record arrives.", do
    return "ok", "The tests notice when no record arrives.", ""


def _run_tests(folder: Path, *options: str) -> tuple[int, int, str]:
    """Run a project's tests: how many there are, how many failed, and what pytest said if there are none."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TESTS_SECONDS)
        if not report.exists():
            return 0, 0, (done.stdout + done.stderr).strip().rpartition("\n")[2]
        suite = next(iter(ET.parse(report).getroot().iter("testsuite")))
    return int(suite.get("tests", 0)), int(suite.get("failures", 0)) + int(suite.get("errors", 0)), ""


def _readme(project: Project) -> Verdict:
    readme = project.folder / "README.md"
    if not readme.exists():
        return "problem", "There is no README.md.", "Say what it answers, what goes in and out, and what can go wrong."
    if left := sum("To do" in line for line in readme.read_text().splitlines()):
        return "warning", f'{left} lines of README.md still say "To do".', "Write them in your own words."
    return "ok", "README.md is written.", ""


def _container(project: Project) -> Verdict:
    file = project.folder / "Dockerfile"
    lines = file.read_text().splitlines() if file.exists() else []
    if not any(line.startswith("FROM ") for line in lines):
        return "problem", "There is no Dockerfile.", "The template has one: `python -m streamskit new` shows it."
    if not any(line.startswith("USER ") for line in lines):
        return "problem", "The Dockerfile lets the application run as root.", "Name a user, as the template does."
    return "ok", "A Dockerfile runs it, and not as root.", ""


CHECKS: dict[str, Callable[[Project], Verdict]] = {
    "Topology": _topology,
    "Names": _names,
    "State": _state,
    "Samples": _samples,
    "Repeats": _repeatable,
    "Garbage": _garbage,
    "Nulls": _nulls,
    "Late": _late,
    "Tests": _tests,
    "Can fail": _tests_can_fail,
    "README": _readme,
    "Container": _container,
}

NEED_SAMPLES = (_repeatable, _garbage, _nulls, _late)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the project in a folder; the exit code is 1 if it lacks something."""
    parser = argparse.ArgumentParser(prog="python -m streamskit check-project", description=__doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="the project's; where you are if not given"
    )
    diagnosis = judge((working_directory() / parser.parse_args(arguments).folder).resolve())
    print(diagnosis)
    return 0 if diagnosis.healthy else 1
