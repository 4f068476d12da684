"""The id of a new Kafka cluster."""

from uuid import UUID

import pytest

from streamskit.broker import java_process


def test_an_id_never_starts_with_a_dash_which_kafka_would_take_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [UUID(int=0xF8 << 120), UUID(int=0xFB << 120), UUID(int=1)]
    monkeypatch.setattr("uuid.uuid4", lambda: drawn.pop(0))
    made = java_process.new_cluster_id()
    assert len(made) == 22
    assert not made.startswith("-")
    assert not drawn
