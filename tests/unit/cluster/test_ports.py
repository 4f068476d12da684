"""The ports of a cluster's processes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from streamskit.broker import settings
from streamskit.cluster import daemons


def test_a_master_and_its_page_get_two_ports_however_few_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CANDIDATES", range(20_000, 20_200))
    monkeypatch.setattr(settings, "is_free", lambda port: port < 20_002)
    monkeypatch.setattr(daemons, "Dependent", lambda *how: SimpleNamespace(process=None))
    monkeypatch.setattr(daemons, "_comes_up", lambda daemon: True)
    for _ in range(20):
        master = daemons.start_master(tmp_path)
        assert {master.port, master.page} == {20_000, 20_001}
