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


@pytest.mark.parametrize(
    ("failure", "log", "why"),
    [
        (
            "An error occurred while calling None.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'\n\tat org.apache.spark",
            "",
            "Could not parse Master URL: 'local[x]'",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited.",
            'WARNING: Using incubator\nException in thread "main" org.apache.spark.SparkException: Master must be.\n',
            "Master must be",
        ),
        (
            "[JAVA_GATEWAY_EXITED] It exited.",
            "Error: Could not find main class foo\nCaused by",
            "Could not find main class foo",
        ),
        ("[JAVA_GATEWAY_EXITED] It exited.", "", "[JAVA_GATEWAY_EXITED] It exited"),
    ],
)
def test_the_reason_of_a_failed_start_is_what_java_has_said_without_its_stack_trace(
    logs: Path, failure: str, log: str, why: str
) -> None:
    spark_log.spark_log().write_text(log)
    assert spark_log.why_not_started(RuntimeError(failure)) == why


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
