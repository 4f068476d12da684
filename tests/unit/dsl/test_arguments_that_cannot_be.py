"""Names and numbers that no topic, store or buffer can have are refused on their line."""

from collections.abc import Callable
from typing import Any

import pytest

from streamskit import (
    BufferConfig,
    Materialized,
    Processor,
    Serdes,
    Stores,
    StreamsBuilder,
    Suppressed,
    Topology,
    TopologyError,
)

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

NAMES = Stores.persistent_key_value_store("names", Serdes.string(), Serdes.string()).with_logging(False)

TOPICS: dict[str, Callable[[StreamsBuilder, Any], Any]] = {
    "stream": lambda b, topic: b.stream("a", topic),
    "table": lambda b, topic: b.table(topic),
    "global_table": lambda b, topic: b.global_table(topic),
    "add_global_store": lambda b, topic: b.add_global_store(NAMES, topic, Processor),
    "to": lambda b, topic: b.stream("a").to(topic),
    "add_source": lambda b, topic: Topology().add_source("source", topic),
    "add_sink": lambda b, topic: Topology().add_source("source", "a").add_sink("sink", topic, "source"),
}


@pytest.mark.parametrize("topic", ["", "x y", "a/b", "ü", "..", "a" * 250])
@pytest.mark.parametrize("step", TOPICS)
def test_what_no_topic_can_be_called_is_refused(step: str, topic: str) -> None:
    with pytest.raises(TopologyError, match=rf"^{step}\(.* at \S+ line \d+: no topic can be called '{topic}': give"):
        TOPICS[step](StreamsBuilder(), topic)


def test_a_table_reads_one_topic_by_its_name() -> None:
    for topic in (None, 5, ["a", "b"]):
        with pytest.raises(TopologyError, match=r"table\(\) at \S+ line \d+: no topic can be called"):
            StreamsBuilder().table(topic)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a b", 5])
def test_what_no_store_can_be_called_is_refused(name: Any) -> None:
    with pytest.raises(TopologyError, match="cannot be"):
        StreamsBuilder().stream("a").group_by_key().count(name)
    with pytest.raises(TopologyError, match="cannot be"):
        Materialized(name)


@pytest.mark.parametrize("partitions", [0, -1, "3", 1.0, True])
def test_a_number_of_partitions_is_one_or_more(partitions: Any) -> None:
    with pytest.raises(TopologyError, match=r"repartition \(r\) at \S+ line \d+: partitions= has to be a whole number"):
        StreamsBuilder().stream("a").repartition("r", partitions=partitions)


@pytest.mark.parametrize("name", ["", "a b/c"])
def test_a_name_that_cannot_be_part_of_a_topic_s_is_refused(name: str) -> None:
    for named in (
        lambda: Suppressed.until_window_closes().with_name(name),
        lambda: StreamsBuilder().stream("a").repartition(name),
        lambda: StreamsBuilder().stream("a").group_by_key(name=name),
    ):
        with pytest.raises(TopologyError, match=f"'{name}' cannot be a name"):
            named()


@pytest.mark.parametrize("limit", ["x", -1, 1.5, True])
def test_a_buffer_has_a_whole_number_of_records_and_bytes(limit: Any) -> None:
    unlimited = BufferConfig.unbounded()
    for by_records in (BufferConfig.max_records, unlimited.with_max_records):
        with pytest.raises(ValueError, match="max_records has to be a whole number, 0 or more"):
            by_records(limit)
    for by_bytes in (BufferConfig.max_bytes, unlimited.with_max_bytes):
        with pytest.raises(ValueError, match="max_bytes has to be a whole number, 0 or more"):
            by_bytes(limit)


@pytest.mark.parametrize("given", ["5 seconds", 100, BufferConfig.unbounded])
def test_what_may_be_held_back_is_said_by_a_buffer_config(given: Any) -> None:
    for make in (Suppressed.until_window_closes, lambda buffer: Suppressed.until_time_limit("5 seconds", buffer)):
        with pytest.raises(ValueError, match=r"a BufferConfig, such as BufferConfig\.unbounded\(\).*, and not by "):
            make(given)
