"""What a query's sink is told beside the settings of its producer."""

from typing import Any, cast

import pytest

from streamskit import StreamsBuilder
from streamskit.api.streams_config import StreamsConfig
from streamskit.planning.planner import plan
from streamskit.runtime import spark_io
from streamskit.runtime.spark_io import KafkaTopics


def chosen(client_settings: dict[str, str], to: Any) -> str | None:
    """Return where the sink of a program asks for the topics that records choose."""
    builder = StreamsBuilder()
    builder.stream("in").to(to)
    (copied,) = plan(builder.build(), "app")
    config = StreamsConfig("app", "nowhere:1", client_settings=client_settings)
    topics = KafkaTopics(cast(Any, None), config, {"in": 1, "out": 1}, lambda plan: {}, str)
    return topics._looks_for_topics(copied, spark_io._told(config, "producer")).get("chosen")


def test_a_sink_looks_for_topics_only_where_records_choose_them() -> None:
    assert chosen({}, lambda v: v) == "nowhere:1"
    assert chosen({}, "out") is None


@pytest.mark.parametrize("name", ["producer.max.block.ms", "max.block.ms"])
def test_a_topic_is_waited_for_as_long_as_the_setting_of_the_producer_says(name: str) -> None:
    assert chosen({name: "300000"}, lambda v: v) is None
