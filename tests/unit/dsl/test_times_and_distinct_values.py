"""Times of wired sources, distinct aggregates, and serdes in a topic's place: refused on their line."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import Processor, Serdes, Stores, StreamsBuilder, TimestampExtractor, Topology, TopologyError

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

TRADE = Serdes.json("user string, price double, at timestamp, time long")


class Filling(Processor):
    def process(self, record: Any) -> None: ...


def with_source(timestamps: Any) -> Topology:
    return Topology().add_source("trades", "trades-topic", value=TRADE, timestamps=timestamps)


def with_global_store(timestamps: Any) -> Topology:
    store = Stores.persistent_key_value_store("all", Serdes.string(), TRADE).with_logging(False)
    return Topology().add_global_store(
        store, "trades", "trades-topic", "fill", Filling, value=TRADE, timestamps=timestamps
    )


@pytest.mark.parametrize("wire", [with_source, with_global_store])
def test_a_wired_source_takes_only_milliseconds_as_time(wire: Callable[[Any], Topology]) -> None:
    for seconds in (TimestampExtractor.of(lambda v: v.at), lambda v: v.at):
        with pytest.raises(TopologyError, match=r"add_source\('trades'\).*returns a timestamp.*F\.unix_millis"):
            wire(seconds)


@pytest.mark.parametrize("wire", [with_source, with_global_store])
def test_a_wired_source_takes_a_bare_function_for_its_times(wire: Callable[[Any], Topology]) -> None:
    extractor = wire(lambda v: v.time).sources[0].timestamps
    assert extractor is not None
    assert extractor.invalid == "fail"


@pytest.mark.parametrize(
    "function",
    [
        lambda v: F.count_distinct(v.user),
        lambda v: F.sum_distinct(v.price) + 1,
        lambda v: F.struct(F.count("*").alias("n"), F.count_distinct(v.user).alias("users")),
    ],
)
def test_a_distinct_aggregate_is_refused_on_its_line(function: Callable[..., Any]) -> None:
    grouped = StreamsBuilder().stream("trades", value=TRADE).group_by_key()
    with pytest.raises(TopologyError, match=r"no distinct aggregates.*F\.size\(F\.collect_set.*F\.approx"):
        grouped.aggregate(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda v: F.approx_count_distinct(v.user),
        lambda v: F.size(F.collect_set(v.user)),
        lambda v: F.count(F.lit("distinct")),
    ],
)
def test_what_only_sounds_distinct_is_an_aggregate(function: Callable[..., Any]) -> None:
    StreamsBuilder().stream("trades", value=TRADE).group_by_key().aggregate(function)


def test_a_serde_in_the_place_of_a_topic_is_told() -> None:
    with pytest.raises(TopologyError, match=r"Serdes\.string\(\) is a serde, and no topic: write key=\.\.\. or value="):
        StreamsBuilder().stream("trades", Serdes.string(), TRADE)  # type: ignore[arg-type]
