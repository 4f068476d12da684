"""What is said before an application's queries start."""

import logging
from pathlib import Path
from typing import Any

import pytest

from streamskit.broker import ExternalBroker
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.startup_checks import StartupChecks
from streamskit.runtime.topics import ApplicationTopics

LINE = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hush";'
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": LINE}
ELSEWHERE = "spark://spark.example.org:7077"


def said(caplog: pytest.LogCaptureFixture, folder: Path, settings: Any, master: str) -> str:
    checks = StartupChecks(
        folder, ApplicationTopics("app", []), ExternalBroker("b:9", settings), DataLoss("app", folder, "stop")
    )
    with caplog.at_level(logging.WARNING, "streamskit"):
        checks.warn_of_files(master)
    return caplog.text


def test_executors_elsewhere_do_not_find_the_file_of_a_dict(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = said(caplog, tmp_path, SASL, ELSEWHERE)
    assert f"Spark runs elsewhere, on {ELSEWHERE}, and its executors look for the client settings in " in text
    assert "-client.properties, a file that only this machine has." in text
    assert "hush" not in text


@pytest.mark.parametrize(
    ("settings", "master"),
    [(SASL, "local[4]"), (SASL, "spark://127.0.0.1:7077"), (None, ELSEWHERE), ({"client.id": "me"}, ELSEWHERE)],
)
def test_nothing_is_said_where_no_executor_lacks_a_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: Any, master: str
) -> None:
    assert said(caplog, tmp_path, settings, master) == ""


def test_nothing_is_said_of_a_users_own_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in SASL.items()))
    assert said(caplog, tmp_path, file, ELSEWHERE) == ""
