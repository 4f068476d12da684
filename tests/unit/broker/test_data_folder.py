"""The folder of an embedded broker: its settings as Kafka reads them, and whose it is; no broker takes part."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamskit.broker import EmbeddedBroker
from streamskit.broker.java_process import DataFolder
from streamskit.common.errors import BrokerError
from streamskit.common.properties_files import lines
from streamskit.environment.processes import wait_until


def written(path: Path, **settings: str) -> dict[str, str]:
    folder = DataFolder(path)
    folder.write_settings(20_001, 20_002, {name.replace("__", "."): value for name, value in settings.items()})
    assert folder.properties.read_bytes().isascii()
    return {line.name: line.value for line in lines(folder.properties)}


@pytest.mark.parametrize("name", ["jörg", "データ", "a\\b", "a=b:c #d !e", " a"])
def test_kafka_finds_a_folder_whatever_its_name(tmp_path: Path, name: str) -> None:
    assert written(tmp_path / name)["log.dirs"] == (tmp_path / name / "kafka").as_posix()


@pytest.mark.parametrize("value", ["C:\\user\\keys", "a\nb", " a ", "Müsli", ""])
def test_kafka_gets_a_setting_as_it_was_given(tmp_path: Path, value: str) -> None:
    assert written(tmp_path, ssl__keystore__location=value)["ssl.keystore.location"] == value


def test_the_port_of_last_time_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert DataFolder(tmp_path).last_port is None
    written(tmp_path)
    assert DataFolder(tmp_path).last_port == 20_001


def test_the_port_of_last_time_is_read_from_a_file_without_escapes_too(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("log.dirs=/jörg\nlisteners=PLAINTEXT://127.0.0.1:20003,B://c:4\n")
    assert DataFolder(tmp_path).last_port == 20_003


def test_a_folder_with_a_comma_in_its_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        BrokerError, match=r"one, two' has a comma in its path, .* Choose a data_dir without one\. The broker of a"
    ):
        EmbeddedBroker(tmp_path / "one, two").start()
    assert not (tmp_path / "one, two").exists()


def test_an_editor_that_has_the_settings_open_is_not_taken_for_a_broker(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen([*waiting, str(folder.properties)], stdin=subprocess.PIPE):
        assert folder.owner() is None
        with subprocess.Popen([*waiting, "kafka.Kafka", str(folder.properties)], stdin=subprocess.PIPE) as broker:
            wait_until(lambda: folder.owner() == broker.pid, "the process of a broker", 30)
