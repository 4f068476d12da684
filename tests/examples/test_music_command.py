"""The command `python -m examples.music`, as far as that can be told without a broker."""

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from examples.music import __main__ as command
from examples.music.application import Music
from streamskit.broker import ExternalBroker


@pytest.fixture(autouse=True)
def the_log_as_before() -> Iterator[None]:
    """The command lowers the library's log for its process, which here is that of all tests."""
    logger = logging.getLogger("streamskit")
    level = logger.level
    yield
    logger.setLevel(level)


def test_ctrl_c_while_it_starts_ends_it_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Starting:
        def __init__(self, *_: Any) -> None:
            pass

        def start(self) -> None:
            raise KeyboardInterrupt

        def stop(self) -> None:
            print("stopped")

    monkeypatch.setattr(command, "Music", Starting)
    monkeypatch.setattr("sys.argv", ["music"])
    monkeypatch.setattr(command, "_listen", lambda told: None)
    assert command.main() == 130
    assert capsys.readouterr().out.splitlines()[-3:] == ["Stopping.", "stopped", "All of it has ended."]


def test_what_lets_clients_into_a_cluster_reaches_all_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    told: dict[str, Any] = {}

    class Part:
        def __init__(self, *_: Any, client_settings: Any = None, **__: Any) -> None:
            told[type(self).__name__] = client_settings

        def __enter__(self) -> "Part":
            return self

        def __exit__(self, *_: Any) -> None:
            pass

    class Group(Part):
        pass

    for name, part in (("KafkaStreams", Part), ("Instances", Group)):
        monkeypatch.setattr(f"examples.music.application.{name}", part)
    for name in ("__enter__", "__exit__", "create_topics"):
        monkeypatch.setattr(ExternalBroker, name, lambda *_, **__: None)
    monkeypatch.setattr(ExternalBroker, "topics", lambda _: {})
    monkeypatch.setattr("examples.music.application.registry", SimpleNamespace(is_mock=False))
    music = Music(instances=1, bootstrap_servers="127.0.0.1:1", state_dir=tmp_path, client_settings=file)
    music.start()
    assert told == {"Part": file, "Group": file}
    assert music.broker.connection.file == file


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bootstrap-servers=nonsense"], "bootstrap_servers is 'nonsense'; give host:port"),
        (
            ["--bootstrap-servers=localhost:9", "--command-config=/nowhere"],
            "The file with client settings, /nowhere,",
        ),
    ],
)
def test_a_wrong_address_or_file_is_a_sentence_and_no_stack_trace(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["music", *words])
    monkeypatch.setattr(command, "_listen", lambda told: None)
    assert command.main() == 1
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_there_is_not_is_refused_before_anything_starts(
    port: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["music", f"--port={port}"])
    monkeypatch.setattr(command, "Music", None)
    with pytest.raises(SystemExit):
        command.main()
    assert f"--port is {port}: give a number from 1 to 65535, or 0 for a free one." in capsys.readouterr().err


def test_client_settings_without_a_cluster_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["music", "--command-config=client.properties"])
    with pytest.raises(SystemExit):
        command.main()
    assert "name that cluster with --bootstrap-servers." in capsys.readouterr().err
