"""What is logged as JSON."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamskit import log_as_json
from streamskit.cli.commands import main

LOGGER = logging.getLogger("streamskit")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leaves the logger as it was."""
    handlers, level, propagate = list(LOGGER.handlers), LOGGER.level, LOGGER.propagate
    yield
    LOGGER.handlers, LOGGER.propagate = handlers, propagate
    LOGGER.setLevel(level)


def test_a_message_is_one_object_with_the_application_that_it_is_about() -> None:
    written = io.StringIO()
    log_as_json(stream=written)
    LOGGER.warning("'%s': topic '%s' is new.", "trades-app", "trades")
    LOGGER.info("Nothing in particular.")
    about_one, about_none = map(json.loads, written.getvalue().splitlines())
    assert about_one["message"] == "'trades-app': topic 'trades' is new."
    assert (about_one["level"], about_one["application_id"]) == ("WARNING", "trades-app")
    assert about_one["timestamp"].endswith("+00:00")
    assert "application_id" not in about_none


def test_a_second_call_takes_the_place_of_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    log_as_json(stream=first)
    log_as_json(logging.ERROR, stream=second)
    LOGGER.warning("A warning.")
    LOGGER.error("An error.")
    assert first.getvalue() == ""
    assert [json.loads(line)["message"] for line in second.getvalue().splitlines()] == ["An error."]


def test_what_was_raised_stays_in_one_line() -> None:
    written = io.StringIO()
    log_as_json(stream=written)
    try:
        raise ValueError("no number")
    except ValueError:
        LOGGER.exception("It failed.")
    [line] = written.getvalue().splitlines()
    assert "ValueError: no number" in json.loads(line)["exc_info"]


def test_the_service_of_an_instance_logs_as_json_where_it_is_asked_to(
    capsys: pytest.CaptureFixture[str], empty_project: Path
) -> None:
    main(["serve", "..", "--bootstrap-servers=127.0.0.1:1", "--log-json"])  # it ends at once: that is no id
    capsys.readouterr()
    LOGGER.warning("'%s': no broker answers.", "trades-app")
    assert json.loads(capsys.readouterr().err)["application_id"] == "trades-app"
