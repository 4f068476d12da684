"""Records that become large while an application runs: its micro-batches take fewer of them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from streamskit import Serdes, StreamsBuilder
from streamskit.broker.base import Broker
from streamskit.runtime import spark_io
from streamskit.runtime.recovery.checkpoint import Checkpoint
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

MOST_BYTES = 1_000_000


@pytest.mark.parametrize("topics", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_a_micro_batch_is_bounded_by_bytes_when_records_become_large_while_it_runs(
    topics: int, broker: Broker, run: Run, name: str, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_io, "BATCH_BYTES", MOST_BYTES)
    names = [f"{name}-{number}" for number in range(topics)]
    broker.create_topics(*names)
    builder = StreamsBuilder()
    streams = [builder.stream(topic, value=Serdes.string()) for topic in names]
    both = streams[0].merge(streams[1]) if topics > 1 else streams[0]
    both.group_by_key().reduce(lambda old, new: new, "last")
    for topic in names:
        broker.produce(topic, [("k", "small")] * 600)
    application = run(builder.build())
    application.await_processed("120 seconds")
    checkpoint = Checkpoint(state_dir / name / application.plans[0].name)
    before = checkpoint.last_begun
    for topic in names:
        broker.produce(topic, [(f"k{number}", "x" * 10_000) for number in range(700)])
    application.await_processed("120 seconds")
    assert len(application.store("last")) == 701
    taken = [_offsets(checkpoint, number) for number in range(before, checkpoint.last_begun + 1)]
    sizes = [later - earlier for earlier, later in pairwise(taken)]
    assert sum(sizes) == 700 * topics
    # The first of them may have come while the last were still being written.
    assert max(sizes) * 10_000 < 5 * MOST_BYTES


def _offsets(checkpoint: Checkpoint, number: int) -> int:
    said = (checkpoint.folder / "offsets" / str(number)).read_text().splitlines()
    found = [json.loads(line) for line in said if line.startswith("{") and "batchWatermarkMs" not in line]
    return sum(offset for topics in found for partitions in topics.values() for offset in partitions.values())
