"""An application under a prefix: its id, what it reads and writes, and its dead letters."""

import re
from typing import Any

import pytest

from streamskit import DeadLetter, LogAndContinue, Response, StreamsBuilder, StreamsConfig, Topology
from streamskit.runtime.own_names import own_config, own_topology
from streamskit.topology.nodes import Sink, Source

SERVERS = "127.0.0.1:9"


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "ann")
    return "ann-"


def program() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders").join(builder.global_table("countries"), lambda a, b: a, key_selector=lambda k: k)
    orders.select_key(lambda v: v).group_by_key().count("counts").to_stream().to("counted")
    builder.stream(re.compile("late-.*")).to(lambda v: v)
    return builder.build()


@pytest.mark.usefixtures("prefix")
def test_topics_that_are_read_and_written_get_the_prefix_and_internal_ones_do_not() -> None:
    plain, own = program(), own_topology(program())
    read = {topic for source in own.sources if not source.internal for topic in source.topics}
    assert read == {"ann-orders", "ann-countries"}
    assert [sink.topic for sink in own.sinks if isinstance(sink.topic, str) and not sink.internal] == ["ann-counted"]
    inner = [[node.topic_names for node in of.nodes.values() if _is_internal(node)] for of in (plain, own)]
    assert inner[0] == inner[1] != []
    assert list(own.stores) == list(plain.stores)
    assert [node.topic_names for node in own_topology(own).sources] == [node.topic_names for node in own.sources]


@pytest.mark.usefixtures("prefix")
def test_a_pattern_matches_only_topics_under_the_prefix() -> None:
    pattern = next(source for source in own_topology(program()).sources if source.pattern)
    assert (pattern.reads_topic("ann-late-1"), pattern.reads_topic("late-1"), pattern.reads_topic("ben-late-1")) == (
        True, False, False
    )  # fmt: skip


@pytest.mark.usefixtures("prefix")
def test_the_id_and_the_topics_of_dead_letters_get_the_prefix() -> None:
    def keep(context: Any, record: Any, exception: Exception) -> Response:
        return Response.resume(DeadLetter("dead", b"1", None), DeadLetter("ann-dead", b"2", None))

    config = own_config(
        StreamsConfig("app", SERVERS, deserialization_handler=LogAndContinue("dead"), processing_handler=keep)
    )
    assert config.application_id == own_config(config).application_id == "ann-app"
    assert config.deserialization_handler == LogAndContinue("ann-dead")
    assert config.processing_handler is not None
    letters = config.processing_handler(None, None, ValueError()).dead_letters  # type: ignore[arg-type]
    assert [(letter.topic, letter.key) for letter in letters] == [("ann-dead", b"1"), ("ann-dead", b"2")]


def test_without_a_prefix_topology_and_config_are_the_same_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "")
    topology, config = program(), StreamsConfig("app", SERVERS)
    assert own_topology(topology) is topology
    assert own_config(config) is config


def _is_internal(node: Any) -> bool:
    return isinstance(node, Source | Sink) and node.internal
