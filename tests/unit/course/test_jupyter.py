import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from streamskit.broker.external import ExternalBroker
from streamskit.broker.settings import free_port
from streamskit.common.errors import BrokerError
from streamskit.course import jupyter
from streamskit.course.jupyter import first_notebook, main, prepare

NOTEBOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def project(empty_project: Path) -> Path:
    """A project with two notebooks."""
    (empty_project / "notebooks").mkdir()
    for name in ("17-later.ipynb", "01-first.ipynb", "README.ipynb"):
        (empty_project / "notebooks" / name).write_text(json.dumps(NOTEBOOK))
    return empty_project


@pytest.fixture
def outside_broker(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a broker that is not the project's own, and answers."""
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    monkeypatch.setattr(ExternalBroker, "is_running", True)
    return "127.0.0.1:9"


def test_the_first_notebook_is_the_one_with_the_lowest_number(project: Path) -> None:
    assert first_notebook(project) == project / "notebooks" / "01-first.ipynb"


def test_a_project_without_notebooks_has_no_first_one(empty_project: Path) -> None:
    assert first_notebook(empty_project) is None


def test_a_lab_uses_the_broker_that_is_there(project: Path, outside_broker: str) -> None:
    ready = prepare(["--no-browser"], progress=lambda line: None)
    assert (ready.bootstrap_servers, ready.started_broker) == (outside_broker, False)
    assert ready.command[-1] == "--no-browser"
    assert ready.environment["STREAMSKIT_PROJECT"] == str(project)


def test_a_lab_does_not_open_on_a_broker_that_does_not_answer(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    with pytest.raises(BrokerError, match=r"No Kafka broker answers at 127\.0\.0\.1:1"):
        prepare(progress=lambda line: None)


def test_a_lab_keeps_jupyters_settings_in_the_project(
    project: Path, outside_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/of/the/user")
    environment = prepare(progress=lambda line: None).environment
    assert environment["JUPYTER_CONFIG_PATH"] == f"{project}/.streamskit/jupyter:/of/the/user"
    assert environment["JUPYTERLAB_WORKSPACES_DIR"] == f"{project}/.streamskit/jupyter/workspaces"


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_says_what_a_lab_is_and_starts_nothing(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jupyter, "prepare", lambda words: pytest.fail("a lab was prepared"))
    assert main(["--no-browser", word]) == 0
    said = capsys.readouterr().out
    assert "python -m streamskit lab [-h] [JupyterLab's options]" in said
    assert "python -m jupyterlab --help" in said


def test_every_long_step_is_timed(project: Path, outside_broker: str) -> None:
    said: list[str] = []
    prepare(progress=said.append)
    assert [line.partition(": ready in ")[0] for line in said if ": ready in " in line] == [
        "Jars",
        "Kafka broker",
    ]


def test_a_broker_that_was_there_before_goes_on(
    project: Path, outside_broker: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jupyter, "_run", lambda ready: 0)
    assert main([]) == 0
    assert f"The Kafka broker at {outside_broker} was running before and goes on." in capsys.readouterr().out


def test_the_broker_that_a_lab_has_started_goes_on_while_another_lab_of_the_project_runs(
    project: Path, outside_broker: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(jupyter, "_run", lambda ready: 0)
    monkeypatch.setattr(jupyter, "stop_shared_broker", lambda: stopped.append("broker"))
    prepared = dataclasses.replace(prepare(progress=lambda line: None), started_broker=True)
    monkeypatch.setattr(jupyter, "prepare", lambda words: prepared)
    labs = project / ".streamskit" / "jupyter" / "labs"
    labs.mkdir(parents=True)
    with FileLock(labs / "1.lock"):
        assert main([]) == 0
    assert stopped == []
    assert f"at {outside_broker} goes on, as another lab of this project uses it" in capsys.readouterr().out
    assert main([]) == 0
    assert stopped == ["broker"]
    assert "is stopped" in capsys.readouterr().out


def test_what_is_missing_is_a_sentence_and_no_stack_trace(
    project: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAMSKIT_MAVEN_URL", "http://127.0.0.1:9")
    assert main([]) == 1
    said = capsys.readouterr().err
    assert "Check the network" in said
    assert "make doctor" in said
    assert "Traceback" not in said


def await_listening(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, f"Nobody listens on port {port}."
            time.sleep(0.05)


@pytest.fixture
def running_lab(project: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A lab of the project, with a broker of its own; and its URL."""
    port = free_port()
    command = [sys.executable, "-m", "streamskit", "lab", "--no-browser", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=secret"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "is running at" in line:
                break
        else:
            pytest.fail("The lab ended before it was there: " + "".join(said))
        await_listening(port)  # JupyterLab says that it runs a moment before it does
        yield process, f"http://127.0.0.1:{port}"
        process.terminate()
        process.communicate()


def get(url: str) -> tuple[str, bytes]:
    request = urllib.request.Request(url, headers={"Authorization": "token secret"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.url, answer.read()


@pytest.mark.broker
def test_the_lab_opens_at_the_first_notebook_and_asks_nothing(
    running_lab: tuple[subprocess.Popen[str], str], project: Path
) -> None:
    process, url = running_lab
    assert get(url)[0] == f"{url}/lab/tree/notebooks/01-first.ipynb"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{url}/api/contents", timeout=20)
    setting = "@jupyterlab/apputils-extension:notification"
    news: dict[str, Any] = json.loads(get(f"{url}/lab/api/settings/{setting}")[1])
    assert news["schema"]["properties"]["fetchNews"]["default"] == "false"
    broker = json.loads((project / ".streamskit" / "broker.json").read_text())
    process.send_signal(signal.SIGTERM)
    assert "The Kafka broker that this lab started is stopped" in process.communicate(timeout=60)[0]
    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(broker["pid"], 0)
