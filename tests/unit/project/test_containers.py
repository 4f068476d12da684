"""The container of the course: it holds what the course needs, and nothing of the machine on which it was made."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_what_is_copied_into_the_image_is_there_and_reaches_the_builder() -> None:
    sources = [word for line in re.findall(r"^COPY --chown=\S+ (.+)$", DOCKERFILE, re.M) for word in line.split()[:-1]]
    let_in = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.M)
    assert sources
    assert sorted(sources) == sorted(let_in)
    assert [name for name in sources if not (ROOT / name).exists()] == []


def test_the_image_installs_the_pinned_packages_of_the_course_and_no_tools_for_tests() -> None:
    assert "-c constraints.txt -e '.[course]'" in DOCKERFILE


def test_the_image_names_no_host_and_keeps_no_settings_of_a_mirror() -> None:
    assert re.findall(r"https?://|\b[\w-]+\.(?:com|org|io|net)\b", DOCKERFILE) == []
    assert re.findall(r"^ENV (?!PATH=).*$", DOCKERFILE, re.M) == []


def test_learners_are_not_root() -> None:
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.M) == ["learner"]


def test_the_devcontainer_is_the_same_image_on_ones_own_checkout() -> None:
    settings = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    folder = re.findall(r"^WORKDIR (.+)$", DOCKERFILE, re.M)[-1]
    assert (ROOT / ".devcontainer" / settings["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert settings["workspaceFolder"] == folder
    assert f"target={folder}," in settings["workspaceMount"]
    assert settings["remoteUser"] == "learner"
