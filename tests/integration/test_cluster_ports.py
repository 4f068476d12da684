"""The ports of a cluster's processes, of which another program may be quicker to take one."""

import socket
from pathlib import Path

import pytest

from streamskit.broker import settings
from streamskit.cluster.daemons import start_master


@pytest.mark.parametrize("which", ["of the master", pytest.param("of its page", marks=pytest.mark.soak)])
def test_a_port_that_another_program_has_taken_meanwhile_is_not_used(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken, free = other.getsockname()[1], [settings.free_port() for _ in range(3)]
        offered = iter([taken, *free] if which == "of the master" else [free[0], taken, *free[1:]])
        monkeypatch.setattr(settings, "free_port", lambda apart_from: next(offered))
        master = start_master(tmp_path)
        assert master.is_alive
        assert taken not in (master.port, master.page)
        master.running.end()
