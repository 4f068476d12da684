"""Which stores instances are told of, and how they share them out."""

from streamskit import Materialized, Serdes, StreamsBuilder, TimeWindows
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.runtime.topics import catalogue


def test_all_stores_of_a_partition_of_a_sub_topology_are_one_task_however_many_queries_run_it() -> None:
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=Serdes.long()).group_by_key()
    trades.count("totals")
    trades.windowed_by(TimeWindows.of_size_with_no_grace("10 seconds")).count(Materialized("by-time"))
    topology = builder.build()
    plans = plan(topology, "app", QueryOptions(cache=True))
    assert [each.name for each in plans] == ["0.1", "0.2"]
    shared = catalogue("app", topology, plans)
    shared = shared.with_partitions({"app-totals-changelog": 2, "app-by-time-changelog": 2})
    assert shared.tasks() == ["0_0", "0_1"]
    assert {place.topic for place in shared.changelog_partitions("0_1")} == {
        "app-totals-changelog",
        "app-by-time-changelog",
    }
