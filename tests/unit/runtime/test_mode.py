"""Which mode an application runs in where its config leaves that to the start, and what it is told of that."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import JoinWindows, Serdes, StreamsBuilder, StreamsConfig, StreamsError, TimeWindows
from streamskit.planning.planner import plan
from streamskit.runtime import mode
from streamskit.runtime.mode import against, against_settings
from streamskit.runtime.query import query_options
from streamskit.runtime.slots import MOST_EXTRA
from tests.unit.runtime.test_real_time import begun

pytestmark = pytest.mark.columns

Write = Callable[[StreamsBuilder], object]
WINDOWS = TimeWindows.of_size_with_no_grace("10 seconds")


def why(write: Write, folder: Path, partitions: int = 2, **settings: Any) -> str:
    """Return why a program runs in micro-batches; "" if it runs in real-time mode."""
    builder = StreamsBuilder()
    write(builder)
    topology = builder.build()
    config = StreamsConfig("app", "localhost:9092", state_dir=folder, **settings)
    told, off = replace(config, real_time="5 seconds"), replace(config, real_time="off")
    plans, others = (plan(topology, "app", query_options(each)) for each in (told, off))
    topics = {topic: partitions for each in plans for topic in each.topics}
    return against(config, plans, others, lambda: topics, None)


def loud(builder: StreamsBuilder) -> None:
    builder.stream("in").filter(lambda v: v != "hush").map_values(F.upper).to("out")


def counted(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count("counts").to_stream().to("out", value=Serdes.long())


def counted_by_value(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by(lambda v: v).windowed_by(WINDOWS).count("counts")


def joined(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_with_no_grace("10 seconds")
    builder.stream("in").join(builder.stream("other"), lambda one, other: one, windows).to("out")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("write", "settings"),
    [
        (loud, {}),
        (counted, {"statestore_cache_max_bytes": 0}),
        (lambda builder: builder.stream("one", "other").to("out"), {"max_task_idle_ms": -1}),
        (counted_by_value, {"statestore_cache_max_bytes": 0, "max_task_idle_ms": -1}),
        (lambda builder: builder.stream("in").foreach(print), {}),
    ],
)
def test_what_writes_the_same_records_in_real_time_runs_in_it(
    write: Write, settings: dict[str, Any], tmp_path: Path
) -> None:
    assert why(write, tmp_path, **settings) == ""


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("write", "settings", "said"),
    [
        (counted, {}, "the record cache folds the updates of KSTREAM-AGGREGATE-0000000001"),
        (
            lambda builder: builder.stream("in").group_by_key().reduce(lambda one, other: one + other, "joined"),
            {"statestore_cache_max_bytes": 0},
            "KSTREAM-REDUCE-0000000001 runs in Python, which takes more records a second there",
        ),
        (joined, {}, "takes several topics in the order of their time, and they are read side by side there"),
        (lambda builder: builder.stream("one", "other").to("out"), {}, "it takes several topics in the order of"),
        (counted_by_value, {"statestore_cache_max_bytes": 0}, "its records meet in app-counts-repartition in the"),
        (
            lambda builder: builder.stream("in").map_values(lambda v: F.udf(lambda text: text)(v)).to("out"),
            {},
            "a function of sub-topology 0 calls F.udf",
        ),
        (
            lambda builder: builder.stream("in", value=Serdes.list(Serdes.string())).to("out"),
            {},
            "a serde of KSTREAM-SOURCE-0000000000 runs in Python",
        ),
    ],
)
def test_what_real_time_would_change_stays_in_micro_batches(
    write: Write, settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    assert said in why(write, tmp_path, **settings)


@pytest.mark.usefixtures("spark")
def test_one_sub_topology_that_stays_in_micro_batches_keeps_all_there(tmp_path: Path) -> None:
    def both(builder: StreamsBuilder) -> None:
        loud(builder)
        builder.stream("words").group_by_key().count("counts")

    assert why(both, tmp_path).startswith("in sub-topology 1 the record cache folds the updates of")


@pytest.mark.usefixtures("spark")
def test_a_topic_with_many_partitions_stays_in_micro_batches(tmp_path: Path) -> None:
    assert why(loud, tmp_path, partitions=MOST_EXTRA) == ""
    said = why(loud, tmp_path, partitions=MOST_EXTRA + 1)
    assert said == "real-time mode would keep 65 of Spark's slots busy, and adds 64 at most"


def test_executors_elsewhere_stay_in_micro_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mode, "can_add_slots", lambda session: False)
    assert why(loud, tmp_path).startswith("Spark gets no further slots")


@pytest.mark.usefixtures("spark")
def test_state_stays_in_the_mode_that_it_was_kept_in(tmp_path: Path) -> None:
    uncached = {"statestore_cache_max_bytes": 0}
    begun(tmp_path / "batches" / "app" / "0", "v1")
    goes_on = "sub-topology 0 has kept its state in micro-batches, and goes on in them"
    assert why(counted, tmp_path / "batches", **uncached) == goes_on
    assert why(loud, tmp_path / "batches") == ""  # it keeps no state

    def reduced(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().reduce(lambda one, other: one + other, "joined")

    # Micro-batches cannot go on with what Python has kept in real time.
    begun(tmp_path / "real-time" / "app" / "0", "v2")
    assert why(reduced, tmp_path / "real-time") == ""


def test_settings_that_need_micro_batches_have_them() -> None:
    given = StreamsConfig("app", "localhost:9092")
    assert (given.real_time, given.in_real_time, against_settings(given)) == ("auto", False, "")
    assert against_settings(replace(given, processing_guarantee="exactly_once")).startswith("exactly-once output")
    assert against_settings(replace(given, num_stream_threads=2)).startswith("num_stream_threads limits")


@pytest.mark.parametrize("chosen", ["auto", "off", 7_000])
def test_the_mode_goes_through_a_properties_file(chosen: Any) -> None:
    given = StreamsConfig("app", "localhost:9092", real_time=chosen)
    assert StreamsConfig.from_properties(given.as_properties()) == given


def test_none_is_no_mode() -> None:
    with pytest.raises(StreamsError, match=r"real_time is None; give a duration.*; or 'auto', or 'off'"):
        StreamsConfig("app", "localhost:9092", real_time=None)  # type: ignore[arg-type]
