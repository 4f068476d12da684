"""The command `python -m examples.music`, as far as that can be told without a broker."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from examples.music import __main__ as command


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
