"""A project of a learner's own: how it begins, and what is judged without running a record."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from streamskit.course.project import judging, new
from streamskit.course.project.new import ProjectError, create
from streamskit.environment.diagnosis import Check
from streamskit.environment.spark_processes import further_path

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return create("page-visits", tmp_path)


def judged(name: str, folder: Path) -> Check:
    """One check of a project of which nothing but the folder matters."""
    nothing = judging.Project(folder, None, None, ())  # type: ignore[arg-type]
    return judging._examined(name, judging.CHECKS[name], nothing)


def test_a_project_has_its_own_name_wherever_the_template_has_one(project: Path) -> None:
    files = [path for path in project.rglob("*") if path.is_file()]
    assert len(files) == len(new.template_files())
    assert [path for path in files if "my-app" in path.read_text() or "my_app" in f"{path}{path.read_text()}"] == []
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    assert settings["project"]["name"] == "page-visits"
    assert settings["tool"]["streamskit"]["package"] == "page_visits"
    assert (project / "page_visits" / "topology.py").is_file()
    assert (project / ".gitignore").is_file()


def test_what_a_project_begins_with_is_in_the_house_style(project: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    for command in (["check", *settings, "."], ["format", "--check", *settings, "."]):
        done = subprocess.run([*ruff, *command], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_notebook_of_a_project_is_one_and_has_no_outputs(project: Path) -> None:
    cells = json.loads((project / "notebooks" / "explore.ipynb").read_text())["cells"]
    assert [cell["outputs"] for cell in cells if cell["cell_type"] == "code"] == [[], []]


@pytest.mark.parametrize("name", ["Page-Visits", "page_visits", "1st", "a/b", "import", "-x", ""])
def test_a_name_that_cannot_be_one_of_a_package_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="small letters, digits and hyphens"):
        create(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("statistics", "statistics is a module of Python's own"),
        ("queue", "queue is a module of Python's own"),
        ("tests", "tests is a folder that every project has"),
        ("notebooks", "notebooks is a folder that every project has"),
        ("pandas", "pandas is a module that is installed"),
        ("streamskit", "streamskit is a module that is installed"),
    ],
)
def test_a_name_that_would_hide_a_module_is_refused(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=f"{said}, which its own package would hide. Choose .*, as in my-{name}"):
        create(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_beside_a_project_does_not_take_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page_visits").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert create("page-visits", tmp_path).is_dir()


def test_a_folder_that_exists_is_not_written_to(project: Path) -> None:
    (project / "README.md").write_text("Mine.")
    with pytest.raises(ProjectError, match="exists"):
        create("page-visits", project.parent)
    assert (project / "README.md").read_text() == "Mine."


def test_new_makes_a_project_where_one_is_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert new.main(["page-visits"]) == 0
    assert "cd page-visits" in capsys.readouterr().out
    assert (tmp_path / "page-visits" / "pyproject.toml").is_file()


def test_a_broker_that_a_new_application_cannot_reach_is_a_sentence_and_no_stack_trace(project: Path) -> None:
    command = [sys.executable, "-m", "page_visits", "--demo", "--bootstrap-servers", "localhost"]
    python_path = os.pathsep.join([str(project), *sys.path])
    ran = subprocess.run(
        command, cwd=project, env={**os.environ, "PYTHONPATH": python_path}, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("bootstrap_servers is 'localhost'; give host:port, such as 'localhost:9092'")


STANDS_IN = """
import sys, time
from contextlib import nullcontext
from types import SimpleNamespace
from page_visits import __main__ as program

program.ExternalBroker = lambda servers: SimpleNamespace(topics=lambda: [], create_topics=lambda *_, **__: None,
                                                         bootstrap_servers=servers)
program.KafkaStreams = lambda *_: (time.sleep(60) if "slow:1" in sys.argv
                                   else nullcontext(SimpleNamespace(failure=None)))
print("ready", flush=True)
program.main()
"""
"""A new application's program, with a broker and streams that do nothing in place of its own."""


@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("servers", "lines", "code"),
    [("some:1", ["ready\n", "Running at some:1; Ctrl-C ends it.\n"], 0), ("slow:1", ["ready\n"], 1)],
)
def test_ctrl_c_and_docker_stop_end_a_new_application_without_a_stack_trace(
    project: Path, servers: str, lines: list[str], code: int, wish: signal.Signals
) -> None:
    command = [sys.executable, "-c", STANDS_IN, "--bootstrap-servers", servers]
    told = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project), *sys.path]), "PYTHONUNBUFFERED": ""}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=project, env=told, text=True, **pipes) as ran:  # type: ignore[call-overload]
        assert [ran.stdout.readline() for _ in lines] == lines
        if code:
            time.sleep(1)  # until it starts
        ran.send_signal(wish)
        assert ran.communicate(timeout=60)[1] == ("Interrupted.\n" if code else "")
    assert ran.returncode == code


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"has to name the package below \[tool.streamskit\]"):
        judging.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'[tool.streamskit]\npackage = "page_visits', r"cannot be read: Unterminated string .* Correct that"),
        (b'# Gr\xfc\xdfe\n[tool.streamskit]\npackage = "page_visits"\n', "cannot be read: 'utf-8' codec"),
        (b"[tool]\nstreamskit = 3\n", r"has to name the package below \[tool.streamskit\]"),
    ],
)
def test_a_pyproject_with_a_mistake_is_said_to_have_one(text: bytes, said: str, project: Path) -> None:
    (project / "pyproject.toml").write_bytes(text)
    with pytest.raises(ProjectError, match=said):
        judging.load(project)


def test_a_package_that_lacks_what_the_checks_need_is_refused(project: Path) -> None:
    (project / "page_visits").rename(project / "another_package")
    with pytest.raises(ProjectError, match=r"has to offer build\(\) in topology.py"):
        judging.load(project)


@pytest.fixture
def path_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.usefixtures("path_as_before")
def test_a_project_that_is_checked_from_elsewhere_stays_where_python_imports_from(tmp_path: Path) -> None:
    project = create("seen-from-elsewhere", tmp_path)
    for _ in range(2):
        assert judging.load(project).records
    assert [sys.path.count(str(project)), further_path().count(str(project))] == [1, 1]


@pytest.mark.usefixtures("path_as_before")
@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        ("torn-lines", "def (", r"torn_lines cannot be imported: SyntaxError: .*\(topology\.py, line \d+\)\. Correct"),
        ("lost-names", "oops", r"NameError: name 'oops' is not defined \(.*topology\.py, line \d+\)\. Correct that"),
    ],
)
def test_a_mistake_in_a_project_is_a_sentence_with_its_line(name: str, line: str, says: str, tmp_path: Path) -> None:
    project = create(name, tmp_path)
    topology = project / name.replace("-", "_") / "topology.py"
    topology.write_text(f"{topology.read_text()}\n{line}\n")
    with pytest.raises(ProjectError, match=says):
        judging.load(project)


@pytest.mark.parametrize("name", ["Repeats", "Garbage", "Nulls", "Late"])
def test_without_samples_nothing_is_tried_with_them(name: str, project: Path) -> None:
    assert judged(name, project).says == "There are no samples to try it with."


def test_lines_that_are_still_to_be_written_are_counted(project: Path) -> None:
    assert judged("README", project).says == '5 lines of README.md still say "To do".'
    (project / "README.md").write_text("# Visits\n\nWhich pages are visited most?")
    assert judged("README", project).status == "ok"
    (project / "README.md").unlink()
    assert judged("README", project).status == "problem"


def test_a_container_in_which_the_application_is_root_is_a_problem(project: Path) -> None:
    assert judged("Container", project).status == "ok"
    dockerfile = project / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("USER app\n", ""))
    assert judged("Container", project).says == "The Dockerfile lets the application run as root."
    dockerfile.unlink()
    assert judged("Container", project).says == "There is no Dockerfile."


def test_too_few_tests_are_a_problem(project: Path) -> None:
    tests = project / "tests" / "test_topology.py"
    tests.write_text("def test_one():\n    pass\n")
    assert judged("Tests", project).says == "There are 1 tests."


def test_tests_that_do_not_end_are_a_problem(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "TESTS_SECONDS", 1)
    (project / "tests" / "test_topology.py").write_text("import time\n\n\ndef test_one():\n    time.sleep(60)\n")
    check = judged("Tests", project)
    assert (check.status, check.says) == ("problem", "The tests did not end within 0 minutes.")
    assert check.do.startswith("Let no test wait without an end, even if no record arrives.")


def test_tests_that_cannot_fail_are_a_problem(project: Path) -> None:
    tests = project / "tests" / "test_topology.py"
    tests.write_text("".join(f"def test_{number}():\n    assert True\n" for number in range(3)))
    assert judged("Tests", project).status == "ok"
    assert judged("Can fail", project).says == "All tests pass even when no record arrives."


def test_the_page_of_the_project_tells_of_every_check() -> None:
    page = (ROOT / "docs" / "project.md").read_text()
    assert [name for name in judging.CHECKS if f"\n| {name} | " not in page] == []
