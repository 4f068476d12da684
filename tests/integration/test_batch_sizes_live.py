"""Micro-batches of a running application: few records make a short one, and large records come in small ones."""

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
KAFKAS_WAIT = 500
"""For how many milliseconds a broker keeps a request for records that are not there yet, unless it is asked not to."""


def test_a_micro_batch_that_reaches_the_end_of_a_topic_does_not_wait_there(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    builder = StreamsBuilder()
    builder.stream(f"{name}-in", value=Serdes.string()).to(f"{name}-out")
    application = run(builder.build(), real_time="off")
    for number in range(10):
        broker.produce(f"{name}-in", [("k", str(number))])
        application.await_processed("60 seconds")
    [query] = application.queries()
    batches = [each.durationMs["addBatch"] for each in query.recentProgress if each.numInputRows]
    assert len(batches) == 10
    assert min(batches) < KAFKAS_WAIT  # each would be longer, however fast the machine


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
