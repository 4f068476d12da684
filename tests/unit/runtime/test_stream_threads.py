"""The number of stream threads: what Spark is told, the names that come and go, and where it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamskit import KafkaStreams, StreamsBuilder, StreamsError
from streamskit.jvm import java_class
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.runtime.spark_reports import in_words
from streamskit.runtime.stream_threads import StreamThreads

pytestmark = pytest.mark.columns

SLOTS = 3


def known_to_spark() -> int:
    """Return the number that Spark's planner finds; 0 for none."""
    found = java_class("StreamThreads").of("app")
    return int(found.get()) if found.isDefined() else 0


@pytest.fixture
def threads(spark: object, request: pytest.FixtureRequest) -> Iterator[StreamThreads]:
    made = StreamThreads("app", getattr(request, "param", None))
    made.start()
    yield made
    made.stop()
    assert known_to_spark() == 0


@pytest.mark.parametrize("threads", [2], indirect=True)
def test_threads_come_and_go_under_the_names_that_kafka_streams_gives_them(threads: StreamThreads) -> None:
    assert (threads.number, known_to_spark()) == (2, 2)
    assert [threads.add(SLOTS) for _ in range(2)] == ["app-StreamThread-3", "app-StreamThread-4"]
    assert (threads.number, known_to_spark()) == (4, 4)  # there may be more than slots: a worker may join
    assert [threads.remove(SLOTS) for _ in range(3)] == [f"app-StreamThread-{number}" for number in (4, 3, 2)]
    with pytest.raises(StreamsError, match=r"'app' has one stream thread, .*pause\(\) stops the processing"):
        threads.remove(SLOTS)
    assert (threads.number, known_to_spark()) == (1, 1)


def test_without_a_number_all_slots_are_used_and_one_can_be_taken_away(threads: StreamThreads) -> None:
    assert (threads.number, known_to_spark()) == (None, 0)
    with pytest.raises(StreamsError, match=r"all slots that Spark has, 3 at the moment\. .*local\[4\]"):
        threads.add(SLOTS)
    assert threads.remove(SLOTS) == "app-StreamThread-3"
    assert (threads.number, known_to_spark()) == (2, 2)


def test_where_spark_has_one_slot_none_can_be_taken_away(threads: StreamThreads) -> None:
    with pytest.raises(StreamsError, match="has one stream thread"):
        threads.remove(1)


def built(tmp_path: Path, **settings: str) -> KafkaStreams:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return KafkaStreams(builder.build(), "app", "127.0.0.1:9", state_dir=tmp_path, **settings)  # type: ignore[arg-type]


@pytest.mark.usefixtures("spark")
def test_threads_come_and_go_while_an_application_runs_and_not_in_real_time(tmp_path: Path) -> None:
    for streams in (built(tmp_path), built(tmp_path, real_time="5 seconds")):
        said = "runs in real-time mode" if streams.config.in_real_time else "is CREATED: stream threads come and go"
        for change in (streams.add_stream_thread, streams.remove_stream_thread):
            with pytest.raises(StreamsError, match=said):
                change()
        streams.close()


@pytest.mark.usefixtures("spark")
def test_an_explanation_says_how_many_slots_a_query_uses() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    (only,) = plan(builder.build(), "app", QueryOptions())
    assert "slot" not in in_words(only)
    assert "  Uses one slot of Spark's at most, as num_stream_threads says" in in_words(only, 1)
    assert "  Uses 2 slots of Spark's at most, as num_stream_threads says" in in_words(only, 2)
