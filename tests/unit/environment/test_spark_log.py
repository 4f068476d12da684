"""Where Spark's Java writes its log."""

import os
from pathlib import Path

import pytest

from streamskit.environment import spark_log
from streamskit.environment.spark_log import KEPT, forget_old_logs


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(spark_log, "state_dir", lambda: tmp_path)
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def test_each_process_has_a_log_of_its_own(logs: Path) -> None:
    mine = spark_log.spark_log()
    child = os.fork()
    if child == 0:
        os._exit(0 if spark_log.spark_log() != mine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_last_logs_of_ended_programs_stay_and_those_of_living_ones(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.pid_exists", lambda pid: pid == 1)
    for number in range(1, KEPT + 4):  # 1 lives, and has not written for the longest
        for name in (f"spark-{number}.log", f"spark-{number}.log.1"):
            (logs / name).touch()
            os.utime(logs / name, (number, number))
    (logs / "spark-of-mine.log").touch()
    forget_old_logs()
    numbers = [1, *range(4, KEPT + 4)]
    expected = {f"spark-{number}.log{rolled}" for number in numbers for rolled in ("", ".1")}
    assert {log.name for log in logs.iterdir()} == expected | {"spark-of-mine.log"}
