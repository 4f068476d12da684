"""What a source can be told to read: names, collections of names, or one pattern, and nothing else."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from streamskit import Processor, Serdes, Stores, StreamsBuilder, Topology, TopologyError


def streamed(*topics: Any) -> Topology:
    builder = StreamsBuilder()
    builder.stream(*topics).to("out")
    return builder.build()


def wired(*topics: Any) -> Topology:
    return Topology().add_source("read", *topics).add_sink("write", "out", "read")


of_both = pytest.mark.parametrize("read", [streamed, wired])


@of_both
@pytest.mark.parametrize("given", [["b", "a"], ("b", "a"), {"b", "a"}, frozenset({"b", "a"})])
def test_a_collection_of_names_is_read_as_the_names_are(read: Callable[..., Topology], given: Any) -> None:
    names = ("a", "b") if isinstance(given, set | frozenset) else ("b", "a")
    assert [source.topics for source in read(given).sources] == [names]
    assert [source.topics for source in read(*names).sources] == [names]


@of_both
@pytest.mark.parametrize("given", [None, 5, b"a", {"a": 1}, [["a", "b"]], ["a", None], re.compile(b"a-.*")])
def test_what_is_no_name_of_a_topic_is_refused_with_the_step(read: Callable[..., Topology], given: Any) -> None:
    with pytest.raises(TopologyError) as refused:
        read(given)
    wrong = given[-1] if isinstance(given, list) else given
    step = "stream()" if read is streamed else "add_source('read')"
    assert str(refused.value).startswith(f"{step} at test_topics_of_a_source.py line ")
    assert f"{wrong!r} is no topic. Give names, 'orders', 'returns'" in str(refused.value)


@of_both
@pytest.mark.parametrize("given", [[], (), set[str]()])
def test_an_empty_collection_of_names_is_refused(read: Callable[..., Topology], given: Any) -> None:
    with pytest.raises(TopologyError, match=re.escape(f"{given!r} names no topic; give at least one")):
        read(given)


def test_a_topic_that_a_collection_names_twice_is_refused() -> None:
    with pytest.raises(TopologyError, match="topic 'a' is named twice"):
        streamed(["a", "b", "a"])


def test_a_global_store_reads_one_topic_by_its_name() -> None:
    store = Stores.persistent_key_value_store("names", Serdes.string(), Serdes.string()).with_logging(False)
    topics: Any = ["names-in", "more-names"]
    with pytest.raises(TopologyError, match=r"a global store reads one topic; give its name, and not \['names-in'"):
        Topology().add_global_store(store, "source", topics, "fill", Processor)
