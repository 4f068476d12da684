"""The live diagram of an application: what is measured, how far tasks are, and which node is red."""

from typing import Any

import pandas as pd
import pytest

from streamskit import Materialized, Serdes, State, StreamsBuilder, StreamsError, Topology
from streamskit.views import topology_view
from streamskit.views.streams_source import blamed
from streamskit.views.topology_view import TopologySnapshot, topology_snapshot
from streamskit.widgets import TopologyView


def topology() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=Serdes.string(), value=Serdes.string())
    orders.map_values(lambda v: v).group_by_key().count(Materialized("counts")).to_stream().to("out")
    return builder.build()


class FakeStreams:
    """An application whose numbers a test sets."""

    def __init__(self) -> None:
        self.topology, self.application_id, self.state = topology(), "app", State.RUNNING
        self.offsets = {0: 0, 1: 0}
        self.dropped: list[tuple[str, int]] = [("", 0)]
        self.failures: list[StreamsError] = []

    @property
    def failure(self) -> Any:
        return self.failures[0] if self.state is State.ERROR else None

    def metrics(self) -> pd.DataFrame:
        rows = [("0", 1, 1, node, count, 2) for node, count in self.dropped]
        return pd.DataFrame(rows, columns=["query", "batches", "records", "node", "dropped", "restarts"])

    def committed_offsets(self) -> dict[str, dict[str, dict[int, int]]]:
        return {"0": {"orders": self.offsets}}


def taken(streams: FakeStreams, ends: dict[str, dict[int, int]], at: float, before: Any = None) -> TopologySnapshot:
    return topology_snapshot(streams, lambda topics: ends, before, clock=lambda: at)  # type: ignore[arg-type]


def notes(snapshot: TopologySnapshot) -> dict[str, str]:
    return {name: words for name, words in snapshot.notes.items() if words}


def test_rates_stand_where_records_are_counted_and_nowhere_else() -> None:
    streams = FakeStreams()
    first = taken(streams, {"orders": {0: 0, 1: 0}, "out": {0: 0}, "app-counts-changelog": {0: 0}}, 100.0)
    assert notes(first) == {}
    streams.offsets = {0: 30, 1: 10}
    ends = {"orders": {0: 50, 1: 10}, "out": {0: 9}, "app-counts-changelog": {0: 80}}
    second = taken(streams, ends, 102.0, first)
    assert notes(second) == {
        "KSTREAM-SOURCE-0000000000": "20 records/s",
        "KSTREAM-AGGREGATE-0000000002": "40 updates/s",
        "KSTREAM-SINK-0000000004": "4.5 records/s",
    }
    assert ">20 records/s</text>" in topology_view.diagram(second)


def test_a_topic_that_is_not_there_has_no_rate() -> None:
    streams = FakeStreams()
    first = taken(streams, {"out": {0: 0}}, 100.0)
    assert "KSTREAM-SINK-0000000004" not in notes(taken(streams, {}, 101.0, first))


def test_a_rate_is_of_the_last_seconds() -> None:
    streams = FakeStreams()
    last = None
    for second in range(20):
        last = taken(streams, {"out": {0: min(second, 10) * 100}}, 100.0 + second, last)
    assert last is not None
    assert notes(last)["KSTREAM-SINK-0000000004"] == "0 records/s"


def test_dropped_records_stand_at_the_node_that_dropped_them() -> None:
    streams = FakeStreams()
    streams.dropped = [("KSTREAM-AGGREGATE-0000000002", 1234)]
    assert notes(taken(streams, {}, 1.0)) == {"KSTREAM-AGGREGATE-0000000002": "1,234 dropped"}


def test_each_partition_has_its_offsets_and_its_lag() -> None:
    streams = FakeStreams()
    streams.offsets = {0: 30, 1: 10}
    snapshot = taken(streams, {"orders": {0: 50, 1: 10}}, 1.0)
    assert [(task.sub_topology, task.topic, task.partition, task.read, task.lag) for task in snapshot.tasks] == [
        ("0", "orders", 0, 30, 20),
        ("0", "orders", 1, 10, 0),
    ]
    assert "20 records behind" in TopologyView.PAGE.header(snapshot, "live")
    assert "run again 2 times" in TopologyView.PAGE.header(snapshot, "live")
    assert taken(streams, {}, 1.0).tasks[0].lag is None


def test_the_failing_node_is_red_and_named_with_the_reason() -> None:
    streams = FakeStreams()
    place = "KSTREAM-MAPVALUES-0000000001 (written at cell 3 line 2) failed on a record"
    said = f"{place}: ValueError: KSTREAM-SINK-0000000004"
    streams.failures, streams.state = [StreamsError(said)], State.ERROR
    snapshot = taken(streams, {}, 1.0)
    assert snapshot.failed == ["KSTREAM-MAPVALUES-0000000001"]
    assert snapshot.stopped == said
    assert "✕ failed" in topology_view.diagram(snapshot)
    header = TopologyView.PAGE.header(snapshot, "stopped")
    assert "✕ failed: KSTREAM-MAPVALUES-0000000001" in header
    assert "written at cell 3 line 2" in header


def test_a_query_that_waits_to_run_again_is_red_until_it_does() -> None:
    streams = FakeStreams()
    streams.failures = [StreamsError("KSTREAM-SINK-0000000004 (written at x): no")]
    assert taken(streams, {}, 1.0).failed == ["KSTREAM-SINK-0000000004"]
    assert "▲ failed" in TopologyView.PAGE.header(taken(streams, {}, 1.0), "live")
    streams.failures = []
    assert taken(streams, {}, 1.0).failed == []


def test_where_nobody_knows_the_node_the_whole_sub_topology_is_red() -> None:
    every = topology()
    names = ", ".join(every.nodes)
    assert blamed(f"Sub-topology 0 of 'app' ({names}) failed: a disk is full", every) == tuple(every.nodes)


def test_a_closed_application_is_stopped() -> None:
    streams = FakeStreams()
    streams.state = State.NOT_RUNNING
    assert "The application is closed" in taken(streams, {}, 1.0).stopped


def test_the_saved_page_has_the_diagram_as_an_image_in_words() -> None:
    html = TopologyView.PAGE.saved(taken(FakeStreams(), {}, 1.0))
    assert "<svg" not in html
    assert 'alt="Sub-topology 0: topic orders → map values' in html


def test_only_an_application_can_be_viewed() -> None:
    with pytest.raises(TypeError, match=r"TopologyView\(streams\), or topology.diagram\(\)"):
        TopologyView(topology())  # type: ignore[arg-type]
