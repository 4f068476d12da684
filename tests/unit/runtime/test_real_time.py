"""What Spark's real-time mode can run, how many slots that takes, and what it is told that cannot."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from streamskit import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    TimeWindows,
    Topology,
)
from streamskit.api.error_handlers import Handlers, Response
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.runtime.real_time import check_some_fit, check_state
from streamskit.runtime.recovery.checkpoint_errors import checksum_file, checksums
from streamskit.runtime.slots import slots_needed
from streamskit.runtime.spark_reports import in_words

pytestmark = pytest.mark.columns

HOPPING = TimeWindows.of_size_with_no_grace("10 seconds").advance_by("5 seconds")


def plans(write: Callable[[StreamsBuilder], object], cache: bool = False) -> list[Plan]:
    return plan(_built(write), "app", QueryOptions(cache, real_time=True))


def _built(write: Callable[[StreamsBuilder], object]) -> Topology:
    builder = StreamsBuilder()
    write(builder)
    return builder.build()


def behind_a_repartition(builder: StreamsBuilder) -> None:
    builder.stream("words").group_by(lambda v: v).windowed_by(HOPPING).count("counts").to_stream().to("out")


def reduced(builder: StreamsBuilder) -> None:
    builder.stream("words").group_by_key().reduce(lambda one, other: one + other, "joined")


def looked_up(builder: StreamsBuilder) -> None:
    builder.stream("words").join(builder.table("meanings"), lambda word, meaning: meaning).to("out")


class Ticking(Processor):
    """Does something once a second."""

    def init(self, context: ProcessorContext) -> None:
        context.schedule(1000, PunctuationType.WALL_CLOCK_TIME, lambda timestamp: None)

    def process(self, record: Record) -> None:
        """Do nothing."""


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
def test_an_operator_in_python_runs_in_real_time_and_keeps_nothing_back() -> None:
    for cache in (True, False):
        (only,) = plans(reduced, cache=cache)
        assert only.runs_in_real_time
        assert not only.options.cache
    (behind,) = plan(_built(reduced), "app", QueryOptions(cache=True))
    assert behind.options.cache


@pytest.mark.usefixtures("spark")
def test_operators_in_python_that_need_several_topics_or_the_wall_clock_run_in_micro_batches() -> None:
    (only,) = plans(looked_up)
    assert only.against_real_time == (
        "KSTREAM-JOIN-0000000004 takes several topics in the order of their time, and they are read side by side there "
        "(max_task_idle_ms=-1 does without the order)"
    )
    (only,) = plan(_built(looked_up), "app", QueryOptions(real_time=True, as_they_come=True))
    assert only.fits_real_time

    def with_global_table(builder: StreamsBuilder) -> None:
        meanings = builder.global_table("meanings")
        builder.stream("words").join(meanings, lambda word, meaning: meaning, key_selector=lambda v: v).to("out")

    (only,) = plan(_built(with_global_table), "app", QueryOptions(real_time=True, as_they_come=True))
    assert only.against_real_time == "KSTREAM-LEFTJOIN-0000000004 needs all of a global table before any other record"
    (only,) = plans(lambda builder: builder.stream("in").process(Ticking))
    assert only.against_real_time == "a processor schedules by the wall clock, which ticks between micro-batches"


@pytest.mark.usefixtures("spark")
def test_a_handler_that_is_a_function_is_refused_in_real_time() -> None:
    handlers = Handlers(processing=lambda context, record, failure: Response(False))
    (only,) = plan(_built(reduced), "app", QueryOptions(real_time=True, handlers=handlers))
    assert only.against_real_time.startswith("an error handler is a function")


@pytest.mark.usefixtures("spark")
def test_partitioners_and_serdes_in_python_cannot_run_in_real_time() -> None:
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
    assert slots_needed([two_topics, *plans(reduced)], {"one": 3, "other": 1, "words": 9}) == 4 + 2 * 9
    assert slots_needed([two_topics, *plans(looked_up)], {"one": 3, "other": 1, "words": 9, "meanings": 9}) == 4 + 1


@pytest.mark.usefixtures("spark")
def test_each_stage_of_operators_needs_slots_of_its_own() -> None:
    windows = TimeWindows.of_size_with_no_grace("10 seconds")

    def closed(builder: StreamsBuilder) -> None:
        sums = builder.stream("words").group_by_key().windowed_by(windows).reduce(lambda one, other: one + other)
        sums.suppress(Suppressed.until_window_closes()).to_stream().to("out")

    assert slots_needed(plans(closed), {"words": 3}) == 3 + 3 + 3


@pytest.mark.usefixtures("spark")
def test_a_program_of_which_nothing_can_run_in_real_time_is_refused_with_the_reasons() -> None:
    check_some_fit("app", plans(behind_a_repartition))
    with pytest.raises(StreamsError, match=r"nothing to run in 'app': in sub-topology 0 KSTREAM-JOIN-0000000004"):
        check_some_fit("app", plans(looked_up))


@pytest.mark.usefixtures("spark")
def test_explain_says_in_which_mode_a_query_runs_and_why() -> None:
    assert "\n  Runs in real-time mode\n" in in_words(plans(behind_a_repartition)[1])
    said = in_words(plans(looked_up)[0])
    assert "\n  Runs in micro-batches, because KSTREAM-JOIN-0000000004 takes several topics" in said


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


@pytest.mark.usefixtures("spark")
def test_state_that_python_kept_in_one_mode_is_refused_in_the_other(tmp_path: Path) -> None:
    (only,) = plans(reduced)
    with pytest.raises(StreamsError, match=r"'app' has run in micro-batches.* that sub-topology 0 has kept then"):
        check_state(only, begun(tmp_path / "batches", "v1"), in_real_time=True, exactly_once=False)
    of_real_time = begun(tmp_path / "real time", "v2")
    with pytest.raises(StreamsError, match=r"'app' has run in real-time mode.* Set real_time again\."):
        check_state(only, of_real_time, in_real_time=False, exactly_once=False)
    check_state(only, of_real_time, in_real_time=True, exactly_once=False)
