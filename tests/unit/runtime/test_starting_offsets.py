"""Where a query begins to read, and what becomes of its position when its program reads other topics than before."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from streamskit import AutoOffsetReset, KStream, StreamsBuilder, StreamsError
from streamskit.api.streams_config import StreamsConfig
from streamskit.kafka.topics import TopicExtent
from streamskit.planning.planner import plan
from streamskit.runtime import spark_io
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.spark_io import KafkaTopics

HELD = {"old": TopicExtent("1", {0: 0}, {0: 9}), "new": TopicExtent("2", {0: 5}, {0: 20})}


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Returns the position of a query that has read 'old' and 'gone' when its program reads other topics."""
    monkeypatch.setattr(spark_io, "extents", lambda servers, names: {name: HELD[name] for name in names})
    monkeypatch.setattr(spark_io, "first_from", lambda servers, times: {name: HELD[name].end for name in times})

    def follow(read: Callable[[StreamsBuilder], KStream]) -> Any:
        (tmp_path / "offsets").mkdir()
        (tmp_path / "commits").mkdir()
        (tmp_path / "offsets/0").write_text("v1\n{}\n" + json.dumps({"old": {"0": 7}, "gone": {"0": 3}}))
        (tmp_path / "commits/0").write_text("v1\n{}")
        builder = StreamsBuilder()
        read(builder).to("out")
        (now,) = plan(builder.build(), "app")
        topics = KafkaTopics(
            cast(Any, None), StreamsConfig("app", "nowhere:1"), dict.fromkeys(now.topics, 1), lambda plan: {}, str
        )
        kept = Checkpoint(tmp_path)
        topics._follow(now, kept)
        return kept.position()

    return follow


def test_a_topic_that_was_added_begins_with_its_first_record_though_older_ones_have_expired(
    followed: Callable[..., Any],
) -> None:
    assert followed(lambda b: b.stream("old", "new")) == {"old": {0: 7}, "new": {0: 5}}


def test_a_topic_that_was_added_begins_where_its_reset_policy_says(followed: Callable[..., Any]) -> None:
    assert followed(lambda b: b.stream("old").merge(b.stream("new", auto_offset_reset="latest"))) == {
        "old": {0: 7},
        "new": {0: 20},
    }


def test_a_duration_that_goes_back_beyond_1970_asks_for_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_io, "first_from", lambda servers, times: times)
    builder = StreamsBuilder()
    builder.stream("in", auto_offset_reset=AutoOffsetReset.by_duration("40000 days")).to("out")
    (copied,) = plan(builder.build(), "app")
    asked: Any = spark_io.starting_offsets(StreamsConfig("app", "nowhere:1"), copied)
    assert asked == {"in": 0}


def test_a_topic_that_was_added_and_may_not_begin_is_refused_without_those_that_go_on(
    followed: Callable[..., Any],
) -> None:
    with pytest.raises(StreamsError, match=r"'app' has no position in new yet\. To begin, choose 'earliest'"):
        followed(lambda b: b.stream("old", "new", auto_offset_reset="none"))


def test_a_topic_that_is_not_read_any_more_is_left_out(followed: Callable[..., Any]) -> None:
    assert followed(lambda b: b.stream("old")) == {"old": {0: 7}}
