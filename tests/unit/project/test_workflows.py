"""What runs on a server or before a commit is valid, pinned, and calls only what there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
workflows = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)


def read(workflow: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(workflow.read_text()))


def jobs(workflow: Path) -> list[dict[str, Any]]:
    return list(read(workflow)["jobs"].values())


def commands(workflow: Path) -> Iterator[str]:
    yield from (step["run"] for job in jobs(workflow) for step in job["steps"] if "run" in step)


def hooks() -> list[dict[str, Any]]:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    return list(repositories[0]["hooks"])


def test_there_is_a_workflow_for_tests_documents_and_releases() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test"]


@workflows
def test_a_workflow_may_do_nothing_but_read_unless_a_job_says_so_and_every_job_ends(workflow: Path) -> None:
    assert read(workflow)["permissions"] == {"contents": "read"}
    assert [job for job in jobs(workflow) if "timeout-minutes" not in job] == []
    assert True in read(workflow)  # what YAML 1.1 makes of the key "on"


@workflows
def test_every_action_is_pinned_to_a_commit_and_its_version_is_told(workflow: Path) -> None:
    used = re.findall(r"uses: (.+)", workflow.read_text())
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


@workflows
def test_a_workflow_runs_targets_modules_and_scripts_that_there_are(workflow: Path) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    said = "\n".join(commands(workflow))
    assert [name for name in re.findall(r"make ([\w-]+)", said) if name not in targets] == []
    modules = [ROOT / name.replace(".", "/") for name in re.findall(r"-m ([\w.]+)", said)]
    assert [path for path in modules if not (path.is_dir() or path.with_suffix(".py").exists())] == []
    assert [name for name in re.findall(r"bash (\S+)", said) if not (ROOT / name).exists()] == []


def test_no_workflow_puts_what_others_wrote_into_a_command() -> None:
    assert [command for path in WORKFLOWS for command in commands(path) if "${{" in command] == []


def test_hooks_before_a_commit_are_of_this_project_alone() -> None:
    for hook in hooks():
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")
        named = re.findall(r"tests/\S+\.py", hook["entry"])
        assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_hooks_look_at_code_layers_and_notebooks() -> None:
    assert [hook["id"] for hook in hooks()] == ["ruff", "ruff-format", "layers", "notebooks"]
