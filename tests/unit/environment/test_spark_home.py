"""Spark's home: each Python of Spark's finds the installed PySpark, which is compiled."""

import os
import socket
import threading
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from streamskit.broker.settings import free_ports
from streamskit.common.errors import SetupError
from streamskit.environment import spark_processes
from streamskit.environment.jars import pyspark_jars


def where_pyspark_is(_: int) -> str:
    import pyspark

    return str(pyspark.__file__)


@pytest.mark.spark
def test_python_that_spark_starts_takes_the_installed_pyspark_and_not_the_zip(spark: SparkSession) -> None:
    (found,) = spark.sparkContext.parallelize([0], 1).map(where_pyspark_is).collect()
    assert Path(found) == pyspark_jars().parent / "__init__.py"


def test_the_home_has_all_that_starts_spark_and_no_zip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMSKIT_CACHE", str(tmp_path))
    home = spark_processes.spark_home()
    assert home.is_relative_to(tmp_path)
    assert (home / "bin" / "spark-submit").is_file()
    assert {jar.name for jar in (home / "jars").iterdir()} == {jar.name for jar in pyspark_jars().iterdir()}
    assert not [file for file in home.glob("**/*") if zipfile.is_zipfile(file) and file.suffix == ".zip"]
    assert spark_processes.spark_home() == home


def test_another_python_is_given_pysparks_own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMSKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/another-python3")
    assert spark_processes.spark_home() == pyspark_jars().parent


def test_where_links_cannot_be_made_spark_starts_from_pysparks_own_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: Path, target: Path) -> NoReturn:
        raise PermissionError("this file system has no links")

    monkeypatch.setenv("STREAMSKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert spark_processes.spark_home() == pyspark_jars().parent


def test_a_home_that_the_user_names_stays_and_ours_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with spark_processes.started_from(tmp_path / "ours"):
        assert os.environ["SPARK_HOME"] == str(tmp_path / "ours")
    assert "SPARK_HOME" not in os.environ
    monkeypatch.setenv("SPARK_HOME", "the-users")
    with spark_processes.started_from(tmp_path / "ours"):
        assert os.environ["SPARK_HOME"] == "the-users"


@pytest.mark.parametrize("host", ["nowhere.invalid", "127.0.0.1"])
def test_a_master_that_nobody_answers_for_is_told_before_spark_would_try_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(spark_processes, "MASTER_SECONDS", 0.5)
    (port,) = free_ports(1)
    with pytest.raises(SetupError, match=rf"No Spark master answers at spark://{host}:{port} \(\[Errno .*STREAMSKIT_M"):
        spark_processes.check_master_answers(f"spark://{host}:{port}")


def test_one_of_several_masters_is_enough_and_one_that_is_about_to_start_is_waited_for() -> None:
    first, second = free_ports(2)
    threading.Timer(1, lambda: listening.append(socket.create_server(("127.0.0.1", second)))).start()
    listening: list[socket.socket] = []
    spark_processes.check_master_answers(f"spark://127.0.0.1:{first},127.0.0.1:{second}")
    listening.pop().close()


@pytest.mark.parametrize("master", ["local[*]", "yarn", "k8s://https://nowhere.invalid:6443", "spark://", "spark://a"])
def test_other_masters_are_left_to_spark(master: str) -> None:
    spark_processes.check_master_answers(master)
