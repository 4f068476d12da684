"""The programs of the vectors `basic-*`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import Serdes, StreamPartitioner, StreamsBuilder
from tests.conformance.registry import NOTES, note, note_elsewhere, program, spelled


@program
def basic_filter(builder: StreamsBuilder) -> None:
    builder.stream("in", value=Serdes.long()).filter(lambda v: v > 10).to("out")


@program
def basic_filter_not(builder: StreamsBuilder) -> None:
    builder.stream("in", value=Serdes.long()).filter_not(lambda v: v.isNull() | (v > 10)).to("out")


@program
def basic_map(builder: StreamsBuilder) -> None:
    builder.stream("in").map(lambda k, v: (F.substring(v, 1, 1), F.length(v))).to("out", value=Serdes.integer())


@program
def basic_map_values(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(lambda v: F.upper(v)).to("out")


@program
def basic_map_values_with_key(builder: StreamsBuilder) -> None:
    doubled = builder.stream("in", value=Serdes.long()).map_values(
        # A shift wraps around where a product of longs would fail.
        lambda k, v: F.concat(k, F.lit(":"), F.shiftleft(v, 1).cast("string"))
    )
    doubled.to("out")


@program
def basic_select_key(builder: StreamsBuilder) -> None:
    builder.stream("in", value=Serdes.json("user string, n long")).select_key(lambda v: v.user).to("out")


@program
def basic_flat_map(builder: StreamsBuilder) -> None:
    def parts(k: Column, v: Column) -> Column:
        return F.transform(
            F.filter(F.split(v, ","), lambda part: v != ""),
            lambda part: F.struct(part.alias("key"), k.alias("value")),
        )

    builder.stream("in").flat_map(parts).to("out")


@program
def basic_word_count(builder: StreamsBuilder) -> None:
    (
        builder.stream("lines")
        .flat_map_values(lambda line: F.filter(F.split(F.lower(line), r"\W+"), lambda word: word != ""))
        .group_by(lambda word: word, name="words")
        .count("counts")
        .to_stream()
        .to("counts-out")
    )


@program
def basic_peek_foreach(builder: StreamsBuilder) -> None:
    kept = builder.stream("in").peek(lambda k, v: note("peek", k, v)).filter(lambda v: v != "")
    kept.foreach(lambda k, v: note("foreach", k, v))
    kept.to("out")


@program
def basic_split_branch(builder: StreamsBuilder) -> None:
    branches = (
        builder.stream("in", value=Serdes.long())
        .split("b-")
        .branch(lambda v: v > 100, name="high")
        .branch(lambda v: v > 10, name="mid")
        .default_branch(name="low")
    )
    branches["b-high"].to("high")
    branches["b-mid"].to("mid")
    branches["b-low"].to("low")


class TopicByType:
    """Names the topic of a record by the type in its value."""

    def __call__(self, v: Any) -> Column:
        return F.concat(F.lit("type-"), v.type)


@program
def basic_to_dynamic_topic(builder: StreamsBuilder) -> None:
    builder.stream("in", value=Serdes.json("type string, n long")).to(TopicByType())


@program
def basic_two_topics_one_stream(builder: StreamsBuilder) -> None:
    builder.stream("in1", "in2").map_values(lambda v: F.concat(v, F.lit("!"))).to("out")


@program
def basic_group_by_key_count(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count("counts").to_stream().to("out")


@program
def basic_group_by_count(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .group_by(lambda v: F.when(v.isNull(), "none").when(v != "", v), name="by-value")
        .count("counts")
        .to_stream()
        .to("out")
    )


@program
def basic_reduce(builder: StreamsBuilder) -> None:
    (
        builder.stream("in", value=Serdes.long())
        .group_by_key()
        .reduce(lambda total, value: None if total + value == 0 else total + value, "sums")
        .to_stream()
        .to("out")
    )


@program
def basic_aggregate(builder: StreamsBuilder) -> None:
    def add(key: str, value: int, stats: dict[str, Any]) -> dict[str, Any]:
        values = [*stats["values"], value]
        return {"count": stats["count"] + 1, "sum": stats["sum"] + value, "values": values}

    (
        builder.stream("in", value=Serdes.long())
        .group_by_key()
        .aggregate(
            lambda: {"count": 0, "sum": 0, "values": []},
            add,
            "stats",
            value=Serdes.json("count long, sum long, values array<long>"),
        )
        .to_stream()
        .to("out")
    )


@program
def basic_aggregate_same_stream_twice(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", value=Serdes.long()).group_by_key()
    counts = grouped.count("n").to_stream()
    sums = grouped.reduce(lambda total, value: total + value, "s").to_stream()
    counts.to("counts")
    sums.to("sums")
    labelled = counts.map_values(lambda v: F.concat(F.lit("n="), v.cast("string")))
    labelled.merge(sums.map_values(lambda v: F.concat(F.lit("s="), v.cast("string")))).to("both")


@program
def basic_merge_rekeyed_count(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left"), builder.stream("right")
    by_letter = left.select_key(lambda v: F.when(v != "", F.substring(v, 1, 1)))
    by_letter.merge(right).group_by_key(name="merged").count("counts").to_stream().to("out")


@program
def basic_same_topic_twice(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(lambda v: F.upper(v)).to("out")
    builder.stream("in").map_values(lambda v: F.concat(F.lit("#"), v)).to("out")


@program
def basic_topic_pattern(builder: StreamsBuilder) -> None:
    builder.stream(re.compile("store-.*")).map_values(lambda v: F.concat(v, F.lit("!"))).to("out")


@dataclass(frozen=True)
class ByLength(StreamPartitioner):
    """Notes what it is asked, and sends a record to partition 0, or nowhere."""

    notes: Path

    def partitions(self, topic: str, key: str, value: str | None, num_partitions: int) -> set[int]:
        note_elsewhere(self.notes, "partitions", f"{topic}: {spelled(key, value)}")
        return set() if value == "nowhere" else {0}


@program
def basic_partitioner(builder: StreamsBuilder) -> None:
    builder.stream("in").repartition("by-length", partitions=1, partitioner=ByLength(NOTES)).to("out")
