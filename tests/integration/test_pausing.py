"""An application that is paused, and goes on."""

import time

import pytest

from streamskit import Processor, ProcessorContext, Record, Serdes, StreamsBuilder, StreamsError
from streamskit.broker import Broker
from tests.integration.conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_a_paused_application_processes_nothing_answers_queries_and_goes_on_where_it_stopped(
    guarantee: str, broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    builder = StreamsBuilder()
    counts = builder.stream(f"{name}-in", value=Serdes.long()).group_by_key().reduce(lambda a, b: a + b, "sums")
    counts.to_stream().to(f"{name}-out")
    streams = run(builder.build(), processing_guarantee=guarantee)
    broker.produce(f"{name}-in", [("a", 1), ("b", 2)])
    streams.await_processed("120 seconds")
    assert not streams.is_paused

    streams.pause()
    assert (streams.is_paused, streams.state.name) == (True, "RUNNING")
    broker.produce(f"{name}-in", [("a", 10), ("c", 3)])
    time.sleep(3)
    assert {row.key: row.value for row in streams.store("sums").all()} == {"a": 1, "b": 2}
    assert list(streams.metrics()["lag"]) == [2]
    with pytest.raises(StreamsError, match=r"is paused and processes nothing: call resume\(\) first"):
        streams.await_processed("10 seconds")

    streams.resume()
    streams.await_processed("120 seconds")
    assert {row.key: row.value for row in streams.store("sums").all()} == {"a": 11, "b": 2, "c": 3}
    assert sorted(broker.consume(f"{name}-out", value=Serdes.long(), isolation="read_committed")["value"]) == [
        1,
        2,
        3,
        11,
    ]
    assert list(streams.metrics()["restarts"]) == [0]


class Numbering(Processor):
    """Numbers the records since `init`."""

    def init(self, context: ProcessorContext) -> None:
        self.context, self.seen = context, 0

    def process(self, record: Record) -> None:
        self.seen += 1
        self.context.forward(record.with_value(self.seen))


def test_a_pause_leaves_processors_and_their_fields_as_they_are(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    builder = StreamsBuilder()
    numbered = builder.stream(f"{name}-in", value=Serdes.long()).process(Numbering, value=Serdes.long())
    numbered.to(f"{name}-out")
    streams = run(builder.build())
    broker.produce(f"{name}-in", [("a", 7), ("a", 7)])
    streams.await_processed("120 seconds")
    streams.pause()
    streams.resume()
    broker.produce(f"{name}-in", [("a", 7)])
    streams.await_processed("120 seconds")
    assert list(broker.consume(f"{name}-out", value=Serdes.long())["value"]) == [1, 2, 3]


def test_a_paused_application_can_be_closed_and_one_that_does_not_run_cannot_be_paused(
    broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").to(f"{name}-out")
    streams = run(builder.build())
    streams.pause()
    assert streams.close()
    with pytest.raises(StreamsError, match="is NOT_RUNNING: only a running application can be paused"):
        streams.pause()
