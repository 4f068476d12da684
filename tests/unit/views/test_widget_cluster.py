"""The view of an application's instances: what each hosts, what changed hands, and its buttons."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances

from streamskit.queries.instances import task_states
from streamskit.views import cluster_view
from streamskit.views.cluster_view import ClusterSnapshot, cluster_snapshot
from streamskit.widgets import ClusterView, InstanceState, TaskState


class FakeInstances:
    """Two partitions on up to three instances; the first that is alive is active, the next has standbys."""

    def __init__(self) -> None:
        self.alive = ["h:1", "h:2"]
        self.dead: list[str] = []
        self.restored = 100
        self.refuses = ""

    def instances(self) -> list[InstanceState]:
        active, *others = self.alive
        found = [InstanceState(active, True, [TaskState("counts", n, "active", self.restored, 100) for n in (0, 1)])]
        found += [InstanceState(other, True, [TaskState("counts", n, "standby", 100, 100) for n in (0, 1)])
                  for other in others]  # fmt: skip
        return found + [InstanceState(server, False, []) for server in self.dead]

    def start(self) -> None:
        if self.refuses:
            raise RuntimeError(self.refuses)
        self.alive.append(f"h:{1 + len(self.alive) + len(self.dead)}")

    def kill(self, server: str) -> None:
        self.alive.remove(server)
        self.dead.append(server)


def eventually(condition: Callable[[], Any], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def taken(source: FakeInstances, previous: ClusterSnapshot | None = None) -> ClusterSnapshot:
    return cluster_snapshot("trades-app", source, previous, clock=lambda: 3600.0)


def test_the_table_has_each_partition_with_its_role_and_what_is_restored() -> None:
    source = FakeInstances()
    source.restored = 25
    html = cluster_view.table(taken(source))
    assert html.count(">active</td>") == html.count(">standby</td>") == 2
    assert '<progress max="100" value="25"' in html
    assert "25% of 100" in html
    assert "all 100 records" in html


def test_a_partition_that_is_not_ready_and_has_no_records_yet_is_no_failure() -> None:
    stores = {"counts": [{"partition": 0, "role": "active", "position": 0, "end": 0, "ready": False}]}
    source = FakeInstances()
    source.instances = lambda: [InstanceState("h:1", True, task_states(stores))]  # type: ignore[method-assign]
    view = ClusterView(source)
    view.refresh()
    assert "● live" in view._header.value
    assert "has nothing to restore yet" in view._parts["table"].value


def test_partitions_that_nobody_serves_in_full_are_named() -> None:
    source = FakeInstances()
    assert "no instance serves" not in ClusterView.PAGE.header(taken(source), "live")
    source.restored = 99
    assert "▲ Partitions that no instance serves in full at this moment: counts 0, counts 1" in ClusterView.PAGE.header(
        taken(source), "live"
    )


def test_a_hand_over_is_told() -> None:
    source = FakeInstances()
    first = taken(source)
    source.kill("h:1")
    second = taken(source, first)
    assert [move.sentence for move in second.moves] == [
        "h:1 is gone",
        "counts 0: active on h:2 (its standby until now), before on h:1",
        "counts 1: active on h:2 (its standby until now), before on h:1",
    ]
    assert "01:00:00 h:1 is gone" in cluster_view.moves(second)
    assert "h:1 (gone)" in cluster_view.table(second)
    assert "1 of 2 instances alive" in ClusterView.PAGE.header(second, "live")


def test_a_partition_that_nobody_had_for_a_while_is_told_with_the_instance_that_had_it_last() -> None:
    source = FakeInstances()
    first = taken(source)
    source.kill("h:1")
    standby, active = (TaskState("counts", 0, role, 1, 1) for role in ("standby", "active"))
    source.instances = lambda: [InstanceState("h:1", False, []), InstanceState("h:2", True, [standby])]  # type: ignore[method-assign]
    gap = taken(source, first)
    assert gap.moves[-2].sentence == "counts 0: active on no instance, before on h:1"
    source.instances = lambda: [InstanceState("h:1", False, []), InstanceState("h:2", True, [active])]  # type: ignore[method-assign]
    assert taken(source, gap).moves[-1].sentence == "counts 0: active on h:2 (its standby until now), before on h:1"


def test_only_what_has_changed_hands_last_is_read_out() -> None:
    source = FakeInstances()
    first = taken(source)
    source.start()
    second = taken(source, first)
    source.kill("h:1")
    third = cluster_snapshot("trades-app", source, second, clock=lambda: 3601.0)
    read_out, rest = re.findall("<ul.*?</ul>", cluster_view.moves(third))
    assert 'aria-live="polite"' in read_out
    assert "aria-live" not in rest
    assert ("h:1 is gone" in read_out, "h:3 has joined" in read_out, "h:3 has joined" in rest) == (True, False, True)


def test_a_partition_that_two_instances_claim_for_a_moment_is_told_with_both() -> None:
    source = FakeInstances()
    first = taken(source)
    task = TaskState("counts", 0, "active", 1, 1)
    both = [InstanceState(server, True, [task]) for server in ("h:1", "h:2")]
    source.instances = lambda: both  # type: ignore[method-assign]
    assert "counts 0: active on h:1 and h:2, before on h:1" in [move.sentence for move in taken(source, first).moves]


def test_a_hand_over_at_a_time_that_no_calendar_has_is_told() -> None:
    source = FakeInstances()
    first = taken(source)
    source.kill("h:1")
    second = cluster_snapshot("trades-app", source, first, clock=lambda: 1.7e12)
    assert "<li>1,700,000,000,000,000 ms h:1 is gone</li>" in cluster_view.moves(second)


def test_the_last_moves_are_remembered_and_no_more() -> None:
    source = FakeInstances()
    snapshot = taken(source)
    for _ in range(30):
        source.start()
        snapshot = taken(source, snapshot)
    assert len(snapshot.moves) == 12
    assert snapshot.moves[-1].sentence == "h:32 has joined"


def test_the_buttons_start_and_kill_and_the_view_shows_it() -> None:
    source = FakeInstances()
    view = ClusterView(source, "trades-app")
    view.refresh()
    assert [button.description for button in view._kills.children] == ["Kill h:1", "Kill h:2"]
    view._start.click()
    eventually(lambda: "h:3 has joined" in view._parts["moves"].value)
    next(button for button in view._kills.children if button.description == "Kill h:1").click()
    eventually(lambda: "h:1 is gone" in view._parts["moves"].value)
    assert [button.description for button in view._kills.children] == ["Kill h:2", "Kill h:3"]


def test_of_the_buttons_of_instances_that_are_gone_the_kernel_keeps_nothing() -> None:
    source = FakeInstances()
    view = ClusterView(source)
    view.refresh()
    before = len(_instances)
    for server in ("h:3", "h:4", "h:5"):
        source.alive = ["h:1", server]
        view.refresh()
    assert len(_instances) == before


def test_a_button_that_fails_says_why() -> None:
    source = FakeInstances()
    source.refuses = "no port is free"
    view = ClusterView(source)
    view._start.click()
    eventually(lambda: "start() failed: no port is free." in view._header.value)


def test_a_saved_page_has_no_buttons() -> None:
    assert not re.search(r"<(script|input|button|svg)", ClusterView.PAGE.saved(taken(FakeInstances())))


def test_only_instances_can_be_viewed() -> None:
    with pytest.raises(TypeError, match=re.escape("it needs instances(), start() and kill(server)")):
        ClusterView("h:1")  # type: ignore[arg-type]
