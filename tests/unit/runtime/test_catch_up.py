"""What `await_processed` waits for: what is in the topics now and what becomes of it, not what comes meanwhile."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamskit import StreamsBuilder, StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan as planned
from streamskit.runtime.catch_up import CatchUp, feeding_order, from_outside
from streamskit.runtime.query import RunningQuery
from streamskit.runtime.states import State


class Log:
    """Topics of one partition on a broker; the one that `grows` gets two records each time its end is asked for."""

    def __init__(self, grows: str = "") -> None:
        self.ends: dict[str, int] = {}
        self.grows = grows

    def end_offsets(self, topic: str, isolation: str) -> dict[int, int]:
        end = self.ends.setdefault(topic, 0)
        self.ends[topic] += 2 * (topic == self.grows)  # faster than the queries read
        return {0: end}


class Query:
    """Processes one record each time it is asked how far it is, and writes one to each of its outputs."""

    trouble = ""

    def __init__(self, plan: Plan, log: Log) -> None:
        self.plan, self._log = plan, log
        self.read: dict[str, int] = dict.fromkeys(plan.topics, 0)

    @property
    def progress(self) -> Any:
        for topic, read in self.read.items():
            if read < self._log.ends.get(topic, 0):
                self.read[topic] += 1
                for sink in self.plan.sinks:
                    name = self.plan.topic(sink)
                    self._log.ends[name] = self._log.ends.get(name, 0) + (self._log.ends[topic] < 20)
        reached = dict(self.read)
        return SimpleNamespace(
            has_reached=lambda ends: all(reached[topic] >= parts[0] for topic, parts in ends.items())
        )

    def lag(self, ends: Any) -> int:
        return 1


def plans(write: Callable[[StreamsBuilder], Any]) -> list[Plan]:
    builder = StreamsBuilder()
    write(builder)
    return planned(builder.build(), "app")


def wait(queries: list[Query], log: Log, seconds: float = 2, **waits: int) -> None:
    supervisor = SimpleNamespace(queries=queries, raise_failure=lambda: None, is_paused=False,
                                 broker=SimpleNamespace(seconds_away=0))  # fmt: skip
    states = SimpleNamespace(state=State.RUNNING)
    deadline = time.monotonic() + seconds
    catch_up = CatchUp(cast(Any, supervisor), cast(Any, states), cast(Any, log), deadline, **cast(Any, waits))
    catch_up.of_queries()


def through(builder: StreamsBuilder) -> None:
    builder.stream("in").to("out")


def joined(builder: StreamsBuilder) -> None:
    builder.stream("left").join(builder.table("right"), lambda v, other: v).to("out")


def in_two_steps(builder: StreamsBuilder) -> None:
    builder.stream("in").repartition("again").to("out")


def in_a_circle(builder: StreamsBuilder) -> None:
    builder.stream("in").to("round")
    builder.stream("round").repartition("again").to("round")


def to_any_topic(builder: StreamsBuilder) -> None:
    builder.stream("in").repartition("again").to(lambda value: value)


def test_records_that_keep_coming_are_not_waited_for() -> None:
    log = Log(grows="in")
    log.ends["in"] = 5
    query = Query(plans(through)[0], log)
    wait([query], log)
    assert query.read["in"] >= 5


@pytest.mark.parametrize("order", [1, -1])
def test_what_one_query_hands_to_another_is_waited_for_in_any_order(order: int) -> None:
    log = Log(grows="in")
    log.ends["in"] = 5
    queries = [Query(each, log) for each in plans(in_two_steps)][::order]
    wait(queries, log)
    assert max(query.read.get("app-again-repartition", 0) for query in queries) >= 5


def test_what_goes_round_is_waited_for_until_it_comes_to_rest() -> None:
    log = Log()
    log.ends["in"] = 3
    wait([Query(each, log) for each in plans(in_a_circle)], log)
    assert log.ends["round"] >= 20


class Waiting(Query):
    """Processes nothing, as its settings let it wait."""

    can_end_batch = True

    @property
    def progress(self) -> Any:
        return SimpleNamespace(has_reached=lambda ends: False)

    def lag(self, ends: Any) -> int:
        return 2


@pytest.mark.parametrize(
    ("write", "waits", "said"),
    [
        (through, {}, r"2 records are left\. Give await_processed\(\) a longer timeout"),
        (through, {"commit_interval": 3_600_000}, r"With commit_interval='1 h' .* set a shorter one"),
        (through, {"max_task_idle": 60_000}, r"Give await_processed\(\) a longer timeout"),
        (joined, {"max_task_idle": 60_000}, r"max_task_idle_ms=60000 .* reads left, right: send records to the one"),
    ],
)
def test_records_that_a_setting_holds_up_are_told_with_the_setting(
    write: Callable[[StreamsBuilder], Any], waits: dict[str, int], said: str
) -> None:
    with pytest.raises(StreamsError, match=said):
        wait([Waiting(each, Log()) for each in plans(write)], Log(), 0.1, **waits)


def test_what_goes_round_for_ever_is_given_up_in_time() -> None:
    log = Log(grows="round")
    log.ends["in"] = 3
    with pytest.raises(StreamsError, match=r"Give await_processed\(\) a longer timeout"):
        wait([Query(each, log) for each in plans(in_a_circle)], log, seconds=0.1)


def test_a_query_that_does_not_get_there_in_time_is_told_of() -> None:
    log = Log()
    log.ends["in"] = 10_000
    with pytest.raises(StreamsError, match=r"Sub-topology 0 is not done after 0\.1 s: 1 record is left"):
        wait([Query(plans(through)[0], log)], log, seconds=0.1)


def test_what_is_left_counts_from_where_a_query_stands_that_was_just_run_again(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "commits").mkdir()
    (tmp_path / "offsets/0").write_text('v1\n{}\n{"in":{"0":7}}')
    (tmp_path / "commits/0").write_text("v1\n{}")
    started: Any = SimpleNamespace(_jsq=SimpleNamespace(lastProgress=lambda: None))
    query = RunningQuery(plans(through)[0], lambda producers, goes_on: started, tmp_path)
    assert query.lag({"in": {0: 9}}) == 2


def test_only_topics_that_nobody_here_writes_come_from_outside() -> None:
    assert from_outside(plans(in_two_steps)) == {"in"}
    assert from_outside(plans(in_a_circle)) == {"in"}


def test_a_query_comes_behind_those_that_feed_it_unless_they_feed_each_other_in_a_circle() -> None:
    assert feeding_order(plans(through)) == ["0"]
    assert feeding_order(plans(in_two_steps)[::-1]) == ["0", "1"]
    assert feeding_order(plans(in_a_circle)) == feeding_order(plans(to_any_topic)) == []


@pytest.mark.parametrize("program", [in_two_steps, to_any_topic])
def test_what_a_query_hands_over_while_others_are_looked_at_is_waited_for(
    program: Callable[[StreamsBuilder], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first query is done between a look at the second and a look at it."""
    log = Log()
    log.ends["in"] = 1
    first, second = (Query(each, log) for each in plans(program))
    ends = log.end_offsets

    def end_offsets(topic: str, isolation: str) -> dict[int, int]:
        end = ends(topic, isolation)
        if topic == "in":
            assert first.progress.has_reached({"in": {0: 1}})
        return end

    monkeypatch.setattr(log, "end_offsets", end_offsets)
    wait([second, first], log)
    assert second.read["app-again-repartition"] == 1


def test_stores_and_functions_are_not_waited_for_beyond_the_open_transaction_before_which_they_stop() -> None:
    class WithAnOpenTransaction(Log):
        def end_offsets(self, topic: str, isolation: str) -> dict[int, int]:
            return {0: 7 if isolation == "read_uncommitted" else 4}

    class Reader:
        waits_for: Any = None

        def wait_for(self, offsets: Any, deadline: float, check: Callable[[], None]) -> None:
            self.waits_for = offsets

    supervisor = SimpleNamespace(raise_failure=lambda: None, is_paused=False)
    states, log, reader = SimpleNamespace(state=State.RUNNING), WithAnOpenTransaction(), Reader()
    catch_up = CatchUp(cast(Any, supervisor), cast(Any, states), cast(Any, log), time.monotonic() + 2)
    catch_up.of_readers((cast(Any, reader), ["rates"]))
    assert reader.waits_for == {TopicPartition("rates", 0): 4}
