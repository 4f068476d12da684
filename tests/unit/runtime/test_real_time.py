"""What Spark's real-time mode can run, how many slots that takes, and what it is told that cannot."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from streamskit import Serdes, StreamsBuilder, StreamsError, TimeWindows
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.runtime.real_time import check_some_fit, check_state, slots_needed
from streamskit.runtime.recovery.checkpoint_errors import checksum_file, checksums
from streamskit.runtime.spark_reports import in_words

pytestmark = pytest.mark.columns

HOPPING = TimeWindows.of_size_with_no_grace("10 seconds").advance_by("5 seconds")


def plans(write: Callable[[StreamsBuilder], object], cache: bool = False) -> list[Plan]:
    builder = StreamsBuilder()
    write(builder)
    return plan(builder.build(), "app", QueryOptions(cache, real_time=True))


def behind_a_repartition(builder: StreamsBuilder) -> None:
    builder.stream("words").group_by(lambda v: v).windowed_by(HOPPING).count("counts").to_stream().to("out")


def reduced(builder: StreamsBuilder) -> None:
    builder.stream("words").group_by_key().reduce(lambda one, other: one + other, "joined")


@pytest.mark.usefixtures("spark")
def test_counts_and_aggregates_of_columns_run_in_real_time_with_and_without_the_cache() -> None:
    for cache in (True, False):
        first, second = plans(behind_a_repartition, cache=cache)
        assert (first.fits_real_time, second.fits_real_time, second.operators) == (True, True, ())
        (only,) = plans(lambda builder: builder.stream("in").group_by_key().aggregate(lambda v: F.max(v), "most"))
        assert only.fits_real_time


@pytest.mark.usefixtures("spark")
def test_each_update_of_a_count_goes_out_also_where_one_record_becomes_several() -> None:
    (only,) = plans(
        lambda builder: builder.stream("in").flat_map_values(lambda v: F.split(v, " ")).group_by_key().count("counts")
    )
    assert only.fits_real_time


@pytest.mark.usefixtures("spark")
def test_what_python_does_cannot_run_in_real_time() -> None:
    assert plans(reduced)[0].against_real_time == "KSTREAM-REDUCE-0000000001 runs in Python"
    (only,) = plans(
        lambda builder: builder.stream("in").to("out", partitioner=lambda topic, key, value, partitions: [0])
    )
    assert only.against_real_time == "the partitioner of KSTREAM-SINK-0000000001 runs in Python"
    (only,) = plans(lambda builder: builder.stream("in", value=Serdes.list(Serdes.string())).to("out"))
    assert only.against_real_time == "a serde of KSTREAM-SOURCE-0000000000 runs in Python"


@pytest.mark.usefixtures("spark")
def test_windows_of_several_topics_go_by_the_time_of_all_and_so_in_micro_batches() -> None:
    for cache in (True, False):
        (only,) = plans(
            lambda builder: builder.stream("one", "other").group_by_key().windowed_by(HOPPING).count("counts"),
            cache=cache,
        )
        assert not only.fits_real_time
        assert bool(only.operators) is not cache  # without the cache each update has to go out there, too
    (only,) = plans(lambda builder: builder.stream("one", "other").group_by_key().count("counts"))
    assert only.fits_real_time


@pytest.mark.usefixtures("spark")
def test_a_slot_is_needed_for_each_partition_that_is_read_and_each_that_keeps_state() -> None:
    found = plans(behind_a_repartition)
    assert slots_needed(found, {"words": 3, "app-counts-repartition": 2}) == 3 + 2 + 2
    (two_topics,) = plans(lambda builder: builder.stream("one", "other").to("out"))
    assert slots_needed([two_topics], {"one": 3, "other": 1}) == 4
    assert slots_needed([two_topics, *plans(reduced)], {"one": 3, "other": 1, "words": 9}) == 5


@pytest.mark.usefixtures("spark")
def test_a_program_of_which_nothing_can_run_in_real_time_is_refused_with_the_reasons() -> None:
    check_some_fit("app", plans(behind_a_repartition))
    with pytest.raises(StreamsError, match=r"nothing to run in 'app': in sub-topology 0 KSTREAM-REDUCE-0000000001"):
        check_some_fit("app", plans(reduced))


@pytest.mark.usefixtures("spark")
def test_explain_says_in_which_mode_a_query_runs_and_why() -> None:
    assert "\n  Runs in real-time mode\n" in in_words(plans(behind_a_repartition)[1])
    said = in_words(plans(reduced)[0])
    assert "\n  Runs in micro-batches, because KSTREAM-REDUCE-0000000001 runs in Python\n" in said


def begun(folder: Path, version: str) -> Path:
    """Return a checkpoint of which a batch is done, noted in a version of Spark's format."""
    note = folder / "commits" / "0"
    note.parent.mkdir(parents=True)
    note.write_text(f'{version}\n{{"nextBatchWatermarkMs":0}}')
    checksum_file(note).write_bytes(checksums(note.read_bytes()))
    return folder


@pytest.mark.usefixtures("spark")
def test_state_of_micro_batches_is_refused_in_real_time_and_that_of_real_time_under_exactly_once(
    tmp_path: Path,
) -> None:
    first, second = plans(behind_a_repartition)
    of_batches = begun(tmp_path / "batches", "v1")
    of_real_time = begun(tmp_path / "real time", "v2")
    with pytest.raises(StreamsError, match=r"'app' has run in micro-batches.* that sub-topology 1 has kept then"):
        check_state(second, of_batches, in_real_time=True, exactly_once=False)
    with pytest.raises(StreamsError, match=r"'app' has run in real-time mode, and exactly-once output cannot go on"):
        check_state(second, of_real_time, in_real_time=False, exactly_once=True)
    check_state(second, tmp_path / "new", in_real_time=True, exactly_once=False)
    check_state(first, of_batches, in_real_time=True, exactly_once=False)  # it keeps no state
    check_state(second, of_real_time, in_real_time=True, exactly_once=False)
    check_state(second, of_real_time, in_real_time=False, exactly_once=False)
    check_state(second, of_batches, in_real_time=False, exactly_once=True)
