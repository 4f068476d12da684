"""The command line: what it lists, what it passes on, and what it says to a command that there is not."""

import os
import re
import subprocess
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

import streamskit
from streamskit.cli.commands import COMMANDS, main
from streamskit.common.errors import BrokerError

WITHOUT_SPARK = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "pandas", "kafka", "confluent_kafka")))  # importing one of them fails
from streamskit.cli.commands import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The module of `labs`, in whose place this one stands for the test."""
    module = types.ModuleType(COMMANDS["labs"].module)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_help_lists_every_command_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("usage: python -m streamskit")
    for name, listed in COMMANDS.items():
        assert f"{name} {listed.summary}" in said


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"streamskit {streamskit.__version__}\n"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            "borker",
            "There is no command 'borker': did you mean 'broker'? The commands are: lab, doctor, broker, serve,",
        ),
        ("class_sharing", "There is no command 'class_sharing': did you mean 'class-sharing'? The commands are:"),
        (
            "xyz",
            "There is no command 'xyz'. The commands are: lab, doctor, broker, serve, class-sharing, new,",
        ),
    ],
)
def test_an_unknown_command_is_answered_with_the_one_that_may_be_meant(
    word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([word, "--port=1"])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_no_command_is_an_error_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2
    assert "the following arguments are required: COMMAND" in capsys.readouterr().err


def test_what_follows_a_command_is_passed_on_as_it_is(command: types.ModuleType) -> None:
    taken: list[Sequence[str]] = []

    def take(arguments: Sequence[str]) -> int:
        taken.append(arguments)
        return 7

    command.main = take  # type: ignore[attr-defined]
    assert main(["labs", "--help", "--version", "broker"]) == 7
    assert taken == [["--help", "--version", "broker"]]


def test_what_cannot_be_done_is_a_sentence_and_no_stack_trace(
    command: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(arguments: Sequence[str]) -> int:
        raise BrokerError("The broker is away.")

    command.main = refuse  # type: ignore[attr-defined]
    assert main(["labs"]) == 1
    assert capsys.readouterr().err == "The broker is away.\n"


def test_ctrl_c_ends_a_command_without_a_stack_trace(
    command: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def wait(arguments: Sequence[str]) -> int:
        raise KeyboardInterrupt

    command.main = wait  # type: ignore[attr-defined]
    assert main(["labs"]) == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"


@pytest.mark.parametrize("name", ["broker", "serve", "class-sharing", "doctor"])
def test_a_command_has_a_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"usage: python -m streamskit {name}" in capsys.readouterr().out


def test_the_brokers_commands_say_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["broker", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"start Start the broker.* stop Stop the broker.* status Say whether.* clean Stop", said)


def test_a_broker_elsewhere_that_does_not_answer_is_not_said_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAMSKIT_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert main(["broker", "start"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err[:41]) == ("", "No Kafka broker answers at 127.0.0.1:1. I")


@pytest.mark.usefixtures("empty_project")
def test_labs_can_be_made_only_where_their_sources_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["labs"]) == 1
    assert "is not there: labs are in a copy of the whole course." in capsys.readouterr().err


def test_names_of_labs_that_would_be_ignored_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["labs", "write", "08-windows"])
    assert "`write` makes all labs: leave out 08-windows." in capsys.readouterr().err


@pytest.mark.parametrize("words", [["broker", "start"], ["broker", "clean"], ["lab", "--no-browser"]])
def test_a_project_that_is_read_only_is_a_sentence(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAMSKIT_PROJECT", str(tmp_path))
    monkeypatch.delenv("STREAMSKIT_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr("streamskit.common.ownership.os.access", lambda path, mode: False)
    assert main(words) == 1
    assert capsys.readouterr().err.startswith(f"Nothing can be written to {tmp_path / '.streamskit'}: work in a folder")


def test_the_doctor_works_where_neither_spark_nor_pandas_can_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK, "doctor"], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Java" in done.stdout
    assert done.returncode in (0, 1)


def test_a_terminal_that_has_ascii_only_gets_the_doctors_signs_in_it() -> None:
    line = [sys.executable, "-m", "streamskit", "doctor"]
    told = os.environ | {"PYTHONIOENCODING": "ascii", "STREAMSKIT_JAVA_HOME": "/nowhere/é"}
    done = subprocess.run(line, env=told, capture_output=True, encoding="ascii", check=False)
    assert "Traceback" not in done.stderr
    assert "+ ok       System" in done.stdout
    assert "/nowhere/\\xe9" in done.stdout


def test_the_package_is_a_program() -> None:
    line = [sys.executable, "-m", "streamskit", "--version"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout == f"streamskit {streamskit.__version__}\n"
