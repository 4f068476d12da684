"""Copies of checkpoints that succeed for one query and fail for another."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from streamskit import StreamsBuilder
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.runtime.checkpoint_copies import CheckpointCopies

POSITION = '{"in":{"0":7}}'


class RefusedError(Py4JJavaError):
    """What a copier raises whose topic is gone."""

    def __init__(self) -> None:
        self.java_exception = SimpleNamespace(toString=lambda: "TimeoutException: Topic gone not present in metadata.")


class FakeCopier:
    """A copier of which a test says whether its topic is there."""

    def __init__(self) -> None:
        self.is_there = True

    def catchUp(self, about: str) -> str:  # noqa: N802  the name in Scala
        if not self.is_there:
            raise RefusedError
        return POSITION


@pytest.fixture
def plans() -> list[Plan]:
    builder = StreamsBuilder()
    for topic in ("in", "gone"):
        builder.stream(topic).to("out")
    return plan(builder.build(), "shop")


def test_a_copy_that_fails_is_told_once_though_those_of_other_queries_succeed(
    plans: list[Plan], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copies = CheckpointCopies("shop", tmp_path, str)
    one, other = FakeCopier(), FakeCopier()
    copiers: list[tuple[Plan, Any]] = list(zip(plans, (one, other), strict=True))
    copies._copiers = copiers
    other.is_there = False
    for _ in range(3):
        copies.turn()
    assert caplog.text.count("could not copy its checkpoints") == 1
    assert [copies.copied(each) for each in plans] == [{"in": {0: 7}}, None]

    other.is_there = True
    copies.turn()
    assert [copies.copied(each) for each in plans] == [{"in": {0: 7}}, {"in": {0: 7}}]
