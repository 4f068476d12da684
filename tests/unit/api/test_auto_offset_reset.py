"""Where a first start begins to read."""

import pytest

from streamskit import AutoOffsetReset, StreamsBuilder, StreamsConfig, StreamsError, TopologyError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("PT1H", 3_600_000), ("P1DT1S", 86_401_000), ("PT0.5S", 500), ("PT90M", 5_400_000)],
)
def test_a_duration_is_read_as_java_writes_it(text: str, milliseconds: int) -> None:
    assert AutoOffsetReset.of(f"by_duration:{text}").milliseconds == milliseconds


@pytest.mark.parametrize("given", ["earliest", "latest", "none", "by_duration:PT90S"])
def test_what_a_properties_file_says_is_written_as_it_was_read(given: str) -> None:
    config = StreamsConfig("app", "localhost:9092", auto_offset_reset=given)
    assert config.as_properties().get("auto.offset.reset", "earliest") == given


@pytest.mark.parametrize(
    ("duration", "written"),
    [("30 days", "PT2592000S"), ("1234567 ms", "PT1234.567S"), ("1 ms", "PT0.001S"), ("1 hour", "PT3600S")],
)
def test_a_duration_is_written_to_the_millisecond_and_read_back(duration: str, written: str) -> None:
    reset = AutoOffsetReset.by_duration(duration)
    assert str(reset) == f"by_duration:{written}"
    assert AutoOffsetReset.of(str(reset)) == reset


@pytest.mark.parametrize("given", ["newest", "by_duration", "by_duration:soon", "latest:PT1H", 5])
def test_what_is_unknown_is_refused_with_what_there_is(given: str) -> None:
    with pytest.raises(StreamsError, match="give 'earliest', 'latest', 'none' or"):
        StreamsConfig("app", "localhost:9092", auto_offset_reset=given)
    with pytest.raises(TopologyError, match=r"stream\(\) at .*(auto_offset_reset|duration)"):
        StreamsBuilder().stream("orders", auto_offset_reset=given)


def test_one_topic_is_not_read_from_two_places() -> None:
    builder = StreamsBuilder()
    builder.stream("orders", auto_offset_reset="latest")
    builder.stream("orders", auto_offset_reset="latest")
    with pytest.raises(TopologyError, match="orders"):
        builder.stream("orders")
