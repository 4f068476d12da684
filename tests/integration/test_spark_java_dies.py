"""Spark's Java dies, or its session is stopped: the application says so, and the same process starts again."""

from pathlib import Path

import pytest

from streamskit.broker.base import Broker
from tests.integration.own_process import seen_by

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_a_dead_java_ends_the_application_with_a_sentence_and_a_new_one_starts_in_the_same_process(
    broker: Broker, name: str, state_dir: Path
) -> None:
    seen = seen_by("java_death_program", broker.bootstrap_servers, name, str(state_dir))
    row, health, ready = seen["before"]
    assert (row[0], row[1]["value"]) == (200, 1)
    assert health == ready == [200, health[1]]
    assert (health[1]["status"], health[1]["state"], set(health[1]["parts"].values())) == ("ok", "RUNNING", {True})
    row, health, ready = seen["after"]
    assert (row[0], health[0], ready[0]) == (503, 503, 503)
    assert "application has stopped: Spark's Java process has ended (killed by SIGKILL" in row[1]["error"]
    assert health[1]["error"].startswith("Spark's Java process has ended")
    assert (health[1]["status"], health[1]["state"], health[1]["parts"]["Spark's Java"]) == ("failed", "ERROR", False)
    assert seen["told"] == [health[1]["error"]]
    assert seen["raised"] == [health[1]["error"]] * 3
    assert seen["count"] == 2


def test_applications_whose_session_is_stopped_end_with_a_sentence_and_a_new_session_goes_on(
    broker: Broker, name: str, state_dir: Path
) -> None:
    seen = seen_by("session_stop_program", broker.bootstrap_servers, name, str(state_dir))
    for said, application_id in zip(seen["told"], (name, f"{name}-copies"), strict=True):
        assert said.startswith(f"The Spark session of '{application_id}' was stopped, and nobody has closed the appl")
    assert len(seen["raised"]) == 2
    assert all(said.startswith(f"The Spark session of '{name}' was stopped") for said in seen["raised"])
    assert (seen["closed"], seen["texts"]) == ([True, True], "xy")
