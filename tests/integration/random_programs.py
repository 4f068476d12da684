"""Programs that are put together at random, records for them, and what a test driver makes of these."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    KStream,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from tests.conformance.test_vectors import Vector, row, stored

LONG = Serdes.long()
MOST = 10
"""The values are whole numbers below this."""

Step = Callable[[KStream], KStream]


@dataclass(frozen=True)
class RandomProgram:
    """Steps without state one after the other, and a way for their records to end, in words and numbers.

    >>> RandomProgram((("filter", 3),), ("count", 0, 0)).topology()
    <Topology of 5 nodes in 1 sub-topologies>
    """

    steps: tuple[tuple[str, int], ...]
    end: tuple[str, int, int]

    def topology(self) -> Topology:
        """Return the program, built."""
        builder = StreamsBuilder()
        stream = builder.stream("in", value=LONG)
        for name, number in self.steps:
            stream = STEPS[name](stream, number)
        name, first, second = self.end
        ENDS[name](builder, stream, first, second)
        return builder.build()

    @property
    def topics(self) -> list[str]:
        """The topics from which it reads."""
        return ["in", "other"] if self.end[0] in WITH_ANOTHER else ["in"]


STEPS: dict[str, Callable[[KStream, int], KStream]] = {
    "filter": lambda stream, number: stream.filter(lambda v: v % 3 != number % 3),
    "map_values": lambda stream, number: stream.map_values(lambda v: v + F.lit(number).cast("long")),
    "select_key": lambda stream, number: stream.select_key(lambda k, v: F.concat(F.lit("n"), v % (number + 1))),
    "flat_map_values": lambda stream, number: stream.flat_map_values(lambda v: F.array(v, v + 1)),
    "repartition": lambda stream, number: stream.repartition(),
}


def _count(builder: StreamsBuilder, stream: KStream, first: int, second: int) -> None:
    stream.group_by_key().count("store").to_stream().to("out")


def _reduce(builder: StreamsBuilder, stream: KStream, first: int, second: int) -> None:
    stream.group_by_key().reduce(lambda old, new: old + new, "store").to_stream().to("out")


def _windowed(builder: StreamsBuilder, stream: KStream, size: int, grace: int) -> None:
    windows = TimeWindows.of_size_and_grace(size, grace).advance_by(max(1, size // 2))
    stream.group_by_key().windowed_by(windows).count("store").to_stream().to("out")


def _reduced_in_windows(builder: StreamsBuilder, stream: KStream, size: int, grace: int) -> None:
    windows = TimeWindows.of_size_and_grace(size, grace)
    stream.group_by_key().windowed_by(windows).reduce(lambda old, new: old + new, "store").to_stream().to("out")


def _sliding(builder: StreamsBuilder, stream: KStream, size: int, grace: int) -> None:
    windows = SlidingWindows.of_time_difference_and_grace(size, grace)
    stream.group_by_key().windowed_by(windows).count("store").to_stream().to("out")


def _sessions(builder: StreamsBuilder, stream: KStream, gap: int, grace: int) -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace(gap, grace)
    stream.group_by_key().windowed_by(windows).count("store").to_stream().to("out")


def _suppressed(builder: StreamsBuilder, stream: KStream, size: int, grace: int) -> None:
    windows = TimeWindows.of_size_and_grace(size, grace)
    counts = stream.group_by_key().windowed_by(windows).count("store")
    counts.suppress(Suppressed.until_window_closes()).to_stream().to("out")


def _grouped_again(builder: StreamsBuilder, stream: KStream, first: int, second: int) -> None:
    table = stream.to_table("rows").filter(lambda v: v % 2 == 0)
    table.group_by(lambda k, v: (F.lit("all"), v)).count("store").to_stream().to("out")


def _looked_up(builder: StreamsBuilder, stream: KStream, first: int, second: int) -> None:
    rows = builder.table("other", value=LONG, materialized="store")
    join = stream.left_join if first % 2 else stream.join
    join(rows, lambda value, row: value + F.coalesce(row, F.lit(100).cast("long"))).to("out")


def _joined_tables(builder: StreamsBuilder, stream: KStream, first: int, second: int) -> None:
    rows = builder.table("other", value=LONG)
    table = stream.to_table()
    join = (table.join, table.left_join, table.outer_join)[first % 3]
    zero = F.lit(100).cast("long")
    join(rows, lambda a, b: F.coalesce(a, zero) + F.coalesce(b, zero), materialized="store").to_stream().to("out")


def _joined_streams(builder: StreamsBuilder, stream: KStream, difference: int, grace: int) -> None:
    other = builder.stream("other", value=LONG)
    windows = JoinWindows.of_time_difference_and_grace(difference, grace)
    join = (stream.join, stream.left_join, stream.outer_join)[difference % 3]
    zero = F.lit(100).cast("long")
    join(other, lambda a, b: F.coalesce(a, zero) + F.coalesce(b, zero), windows).to("out")


def _merged(builder: StreamsBuilder, stream: KStream, first: int, second: int) -> None:
    stream.merge(builder.stream("other", value=LONG)).to("out")


def _merged_and_counted(builder: StreamsBuilder, stream: KStream, first: int, second: int) -> None:
    stream.merge(builder.stream("other", value=LONG)).group_by_key().count("store").to_stream().to("out")


ENDS: dict[str, Callable[[StreamsBuilder, KStream, int, int], None]] = {
    "to": lambda builder, stream, first, second: stream.to("out"),
    "count": _count,
    "reduce": _reduce,
    "windowed count": _windowed,
    "windowed reduce": _reduced_in_windows,
    "sliding count": _sliding,
    "session count": _sessions,
    "suppressed count": _suppressed,
    "grouped again": _grouped_again,
    "stream-table join": _looked_up,
    "table-table join": _joined_tables,
    "stream-stream join": _joined_streams,
    "merge": _merged,
    "merge and count": _merged_and_counted,
}
WITH_ANOTHER = {"stream-table join", "table-table join", "stream-stream join", "merge", "merge and count"}
"""The ends that read another topic, too."""

PROGRAMS = st.builds(
    RandomProgram,
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 3)), max_size=2).map(tuple),
    st.tuples(st.sampled_from(sorted(ENDS)), st.integers(1, 60), st.integers(0, 40)),
)

RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "other": st.booleans(),
            "key": st.sampled_from(["a", "a", "b", "c", None]),
            "value": st.one_of(st.integers(0, MOST - 1), st.none()),
            "timestamp": st.integers(0, 300),
        }
    ),
    min_size=4,
    max_size=12,
)


def steps(program: RandomProgram, records: list[dict[str, Any]]) -> list[Vector]:
    """Return records as a vector's steps, each for one of the topics that the program reads."""
    return [
        {"pipe": {"topic": program.topics[-1 if record["other"] else 0]}
         | {name: record[name] for name in ("key", "value", "timestamp")}}
        for record in records
    ]  # fmt: skip


def replayed(program: RandomProgram, records: list[dict[str, Any]]) -> Vector:
    """Return what a test driver makes of records, as a vector."""
    topology, given = program.topology(), steps(program, records)
    topics = {name: {"role": "input", "value": "long"} for name in program.topics}
    kinds = {name: KINDS[store.kind] for name, store in topology.stores.items() if name in ("store", "rows")}
    with TopologyTestDriver(topology, "oracle") as driver:
        for each in given:
            pipe = each["pipe"]
            driver.create_input_topic(pipe["topic"]).pipe_input(pipe["key"], pipe["value"], pipe["timestamp"])
        written = [row(record, after_step=0) for record in driver.create_output_topic("out").read_records_to_list()]
        stores = {name: list(stored(driver, name, kind)) for name, kind in kinds.items()}
        return {
            "steps": given,
            "topics": topics | {"out": {"role": "output", "value": "long"}},
            "outputs": {"out": written},
            "stores": stores,
            "store_kinds": kinds,
            "dropped": driver.dropped(),
        }


KINDS = {"key-value": "timestamped-key-value", "window": "timestamped-window", "session": "session"}
"""What the vectors call the kinds of stores."""
