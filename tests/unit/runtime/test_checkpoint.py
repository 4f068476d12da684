"""Spark's checkpoint as files: where a query stands, and what becomes of records that are gone."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamskit import StreamsBuilder, StreamsError
from streamskit.kafka.topics import TopicExtent
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.runtime.recovery import checkpoint as checkpoint_module
from streamskit.runtime.recovery import data_loss
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.checkpoint_errors import checksums
from streamskit.runtime.recovery.data_loss import DataLoss

SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"2"}}'


def write(file: Path, *lines: str) -> None:
    """Write a file as Spark does, with its checksum."""
    file.parent.mkdir(parents=True, exist_ok=True)
    data = "\n".join(lines).encode()
    file.write_bytes(data)
    file.with_name(f".{file.name}.crc").write_bytes(checksums(data))


def offsets(*partitions: int, topic: str = "in") -> str:
    return json.dumps({topic: {str(number): offset for number, offset in enumerate(partitions)}})


@pytest.fixture
def stopped(tmp_path: Path) -> Callable[..., Checkpoint]:
    """Writes the checkpoint of an application 'app' whose query began at 0 and planned batches with these ends."""

    def make(*ends: tuple[int, ...], done: int) -> Checkpoint:
        folder = tmp_path / "app" / "0"
        write(folder / "metadata", '{"id":"6f1c"}')
        write(folder / "sources/0/0", "\0v1", offsets(0, 0))
        for number, end in enumerate(ends):
            write(folder / f"offsets/{number}", "v1", SETTINGS, offsets(*end), "17")
        for number in range(done):
            write(folder / f"commits/{number}", "v1", '{"nextBatchWatermarkMs":0}')
        return Checkpoint(folder)

    return make


Stopped = Callable[..., Checkpoint]


def test_hadoop_s_checksum_of_a_file_is_what_is_written() -> None:
    # What Spark has put beside a commit with these bytes.
    assert checksums(b'v1\n{"nextBatchWatermarkMs":1767225641403}').hex() == "63726300000002008a218e94"


def test_a_batch_that_was_written_is_noted_as_done_as_spark_notes_it(stopped: Stopped) -> None:
    checkpoint = stopped((5, 7), (9, 9), done=1)
    checkpoint.finish()
    noted = checkpoint.folder / "commits/1"
    assert noted.read_text() == 'v1\n{"nextBatchWatermarkMs":0}'
    assert noted.with_name(".1.crc").read_bytes() == checksums(noted.read_bytes())
    assert (checkpoint.last_finished, checkpoint.position()) == (1, {"in": {0: 9, 1: 9}})


def test_a_batch_that_runs_again_belongs_to_the_run_that_began_it(stopped: Stopped, tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "new" / "0").begin_run() == [0]
    checkpoint = stopped((5, 7), (9, 9), done=1)  # batch 1 was begun by the first run
    assert checkpoint.begin_run() == [0, 2]
    assert checkpoint.begin_run() == [0, 2]  # it stopped again before it was through with batch 1
    checkpoint = stopped((5, 7), (9, 9), (10, 10), (11, 11), done=3)
    assert checkpoint.begin_run() == [2, 4]


def test_a_query_that_was_paused_is_still_in_the_run_that_began_before(stopped: Stopped, tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "new" / "0").begin_run(goes_on=True) == [0]
    checkpoint = stopped((5, 7), done=1)
    runs = checkpoint.begin_run()
    checkpoint = stopped((5, 7), (9, 9), (10, 10), done=3)
    assert checkpoint.begin_run(goes_on=True) == runs
    assert checkpoint.begin_run() == [runs[-1], 3]


def test_a_damaged_note_of_the_runs_is_told(stopped: Stopped) -> None:
    checkpoint = stopped((5, 7), done=1)
    checkpoint.begin_run()
    (checkpoint.folder / "runs").write_text("[")
    with pytest.raises(StreamsError, match=r"'runs' in the checkpoint of sub-topology 0.* is damaged"):
        checkpoint.begin_run()


def test_a_batch_that_was_planned_too_large_is_made_smaller(stopped: Stopped) -> None:
    checkpoint = stopped((100, 0), (1100, 3000), done=1)
    checkpoint.shorten(4000)
    assert planned(checkpoint) == {"0": 1100, "1": 3000}
    checkpoint.shorten(400)
    assert planned(checkpoint) == {"0": 200, "1": 300}
    assert checkpoint.position() == {"in": {0: 100, 1: 0}}


def test_of_a_batch_that_took_too_long_half_is_remembered_and_it_stays_as_planned(stopped: Stopped) -> None:
    checkpoint = stopped((100, 0), (1100, 3000), done=1)
    assert not (checkpoint.folder / "most-records").exists()
    checkpoint.note_too_long()
    assert checkpoint.most_records == 2000
    assert planned(checkpoint) == {"0": 1100, "1": 3000}  # it may have been written after all
    checkpoint.shorten(2000)
    checkpoint.note_too_long()
    assert checkpoint.most_records == 1000
    for _ in range(20):
        checkpoint.shorten(checkpoint.most_records)
        checkpoint.note_too_long()
    assert checkpoint.most_records == 1


def test_a_batch_that_is_done_has_not_taken_too_long(stopped: Stopped) -> None:
    checkpoint = stopped((100, 0), (1100, 3000), done=2)
    checkpoint.note_too_long()
    assert checkpoint.most_records is None


def test_every_partition_with_records_goes_on_in_a_batch_that_was_made_smaller(stopped: Stopped) -> None:
    checkpoint = stopped((5, 1_000_000), done=0)
    checkpoint.shorten(10)
    assert planned(checkpoint) == {"0": 1, "1": 10}


def test_a_batch_in_the_order_of_time_is_not_cut_by_number_and_its_records_are_planned_again(stopped: Stopped) -> None:
    checkpoint = stopped((100, 0), (400, 2000), done=1)
    checkpoint.shorten(2300, in_order=True)
    assert planned(checkpoint) == {"0": 400, "1": 2000}  # it fits
    checkpoint.shorten(460, in_order=True)
    assert planned(checkpoint) == {"0": 100, "1": 0}
    assert (checkpoint.last_begun, checkpoint.position()) == (1, {"in": {0: 100, 1: 0}})


@pytest.mark.parametrize("done", [1, 2])
def test_a_new_topic_begins_where_it_is_said_and_a_planned_batch_reads_nothing_of_it(
    stopped: Stopped, done: int
) -> None:
    checkpoint = stopped((5, 7), (9, 9), done=done)
    checkpoint.add({"new": {0: 40, 1: 50}, "in": {2: 3}})
    begins = {0: 5, 1: 7, 2: 3} if done == 1 else {0: 9, 1: 9, 2: 3}
    assert checkpoint.position() == {"in": begins, "new": {0: 40, 1: 50}}
    assert planned(checkpoint) == {"0": 9, "1": 9, "2": 3}
    assert checkpoint.known() == {"in": {0: begins[0], 1: begins[1], 2: 3}, "new": {0: 40, 1: 50}}
    checkpoint.verify()


def planned(checkpoint: Checkpoint) -> Any:
    """Return where the last batch ends that was planned."""
    lines = (checkpoint.folder / "offsets" / str(checkpoint.last_begun)).read_text().split("\n")
    return json.loads(lines[2])["in"]


def test_a_query_stands_where_its_last_finished_batch_ended(stopped: Stopped) -> None:
    assert stopped((5, 7), (9, 9), done=2).position() == {"in": {0: 9, 1: 9}}
    assert stopped((5, 7), (9, 9), done=2).has_begun


def test_a_batch_that_was_not_finished_is_read_again_from_its_start(stopped: Stopped) -> None:
    assert stopped((5, 7), (9, 9), done=1).position() == {"in": {0: 5, 1: 7}}


def test_a_first_batch_that_was_not_finished_begins_where_the_source_did(stopped: Stopped) -> None:
    assert stopped((5, 7), done=0).position() == {"in": {0: 0, 1: 0}}


def test_an_empty_folder_has_not_begun(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "none")
    assert not checkpoint.has_begun
    assert not checkpoint.is_partly_gone


def test_commits_without_offsets_are_the_rest_of_a_checkpoint(stopped: Stopped) -> None:
    checkpoint = stopped((5, 7), done=1)
    for file in (checkpoint.folder / "offsets").iterdir():
        file.unlink()
    assert checkpoint.is_partly_gone


def test_a_query_that_ended_in_its_first_real_time_batch_has_lost_nothing_and_begins_with_empty_state(
    tmp_path: Path,
) -> None:
    checkpoint = Checkpoint(tmp_path / "0")
    checkpoint.begin_run(in_real_time=True)
    (checkpoint.folder / "state" / "0").mkdir(parents=True)
    assert (checkpoint.is_in_first_real_time_batch, checkpoint.is_partly_gone) == (True, False)
    checkpoint.begin_run(in_real_time=True)
    assert not (checkpoint.folder / "state").exists()
    (checkpoint.folder / "state").mkdir()
    (checkpoint.folder / "first-batch").unlink()
    assert (checkpoint.is_in_first_real_time_batch, checkpoint.is_partly_gone) == (False, True)


def test_a_query_with_batches_behind_it_is_in_no_first_one(stopped: Stopped) -> None:
    checkpoint = stopped((5, 7), done=1)
    checkpoint.begin_run(in_real_time=True)
    assert not checkpoint.is_in_first_real_time_batch


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: data.replace(b"7", b"8")], ids=["cut", "flip"])
def test_a_damaged_file_is_named_and_not_believed(stopped: Stopped, damage: Callable[[bytes], bytes]) -> None:
    checkpoint = stopped((5, 7), done=1)
    file = checkpoint.folder / "offsets" / "0"
    file.write_bytes(damage(file.read_bytes()))
    for look in (checkpoint.position, checkpoint.verify):
        with pytest.raises(StreamsError, match=r"^'app' cannot go on: 'offsets.0' in .* is damaged: \.0\.crc does"):
            look()


# Records that are gone.


def a_plan() -> Plan:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return plan(builder.build(), "app")[0]


def heed(checkpoint: Checkpoint, policy: str, first: Any, end: Any, **options: Any) -> DataLoss:
    losses = DataLoss("app", checkpoint.folder.parent, policy)
    losses.heed(a_plan(), {"in": TopicExtent("id", dict(enumerate(first)), dict(enumerate(end)))}, **options)
    return losses


def test_nothing_is_lost_as_long_as_the_next_record_is_there(stopped: Stopped) -> None:
    assert not heed(stopped((5, 7), done=1), "stop", first=(5, 0), end=(5, 9)).lost


def test_lost_records_are_named_by_topic_partition_and_number(stopped: Stopped) -> None:
    with pytest.raises(StreamsError) as refused:
        heed(stopped((5, 7), done=1), "stop", first=(8, 0), end=(20, 20))
    assert str(refused.value).startswith(
        "3 records were deleted before sub-topology 0 of 'app' has read them: topic 'in', partition 0, offsets 5 to 7 "
        "(3 records). To go on without them"
    )


def test_a_query_that_goes_on_stands_behind_the_gap_and_each_record_of_it_counts(
    stopped: Stopped, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = stopped((5, 7), done=1)
    with caplog.at_level(logging.WARNING, "streamskit"):
        losses = heed(checkpoint, "continue", first=(8, 0), end=(20, 20))
    assert losses.lost == {"0": 3}
    assert checkpoint.position() == {"in": {0: 8, 1: 7}}
    assert "records of topic 'in' that were deleted before it has read them: partition 0, offsets 5 to 7" in caplog.text
    lines = (checkpoint.folder / "offsets/0").read_text().split("\n")
    assert (lines[0], lines[1], lines[3]) == ("v1", SETTINGS, "17")
    # The same gap counts once.
    assert not heed(checkpoint, "continue", first=(8, 0), end=(20, 20)).lost


@pytest.mark.parametrize(("first", "planned"), [(8, 9), (12, 12)], ids=["within the batch", "behind it"])
def test_a_planned_batch_ends_where_it_was_to_end_if_something_is_left_of_it(
    first: int, planned: int, stopped: Stopped
) -> None:
    checkpoint = stopped((5, 7), (9, 9), done=1)
    assert heed(checkpoint, "continue", first=(first, 0), end=(20, 20)).lost == {"0": first - 5}
    assert checkpoint.position() == {"in": {0: first, 1: 7}}
    (checkpoint.folder / "commits/1").touch()
    assert checkpoint.position() == {"in": {0: planned, 1: 9}}


def test_a_first_batch_that_lost_records_before_it_was_done_begins_behind_them(stopped: Stopped) -> None:
    checkpoint = stopped((5, 7), done=0)
    assert heed(checkpoint, "continue", first=(2, 0), end=(20, 20)).lost == {"0": 2}
    assert checkpoint.position() == {"in": {0: 2, 1: 0}}


def test_a_topic_that_ends_before_what_was_read_is_another_one(stopped: Stopped) -> None:
    with pytest.raises(StreamsError, match=r"'in' is not the one that 'app' has read: it was deleted and made anew"):
        heed(stopped((5, 7), done=1), "stop", first=(0, 0), end=(3, 7))


def test_a_topic_with_another_id_is_another_one_however_long_it_is(stopped: Stopped) -> None:
    with pytest.raises(StreamsError, match=r"stands at offset 5 of partition 0, which holds 0 to 99 now"):
        heed(stopped((5, 7), done=1), "stop", first=(0, 0), end=(100, 100), remade={"in"})


def test_another_topic_that_is_empty_is_told_as_empty(stopped: Stopped) -> None:
    with pytest.raises(StreamsError, match=r"stands at offset 5 of partition 0, which is empty now"):
        heed(stopped((5, 7), done=1), "stop", first=(0, 0), end=(0, 0), remade={"in"})


def test_to_go_on_with_another_topic_begins_with_its_first_record(stopped: Stopped) -> None:
    checkpoint = stopped((5, 7), (9, 9), done=1)
    heed(checkpoint, "continue", first=(0, 0), end=(3, 100), remade={"in"})
    assert checkpoint.position() == {"in": {0: 0, 1: 0}}
    (checkpoint.folder / "commits/1").touch()
    assert checkpoint.position() == {"in": {0: 3, 1: 9}}


def test_a_topic_with_fewer_partitions_is_refused_under_any_policy(stopped: Stopped) -> None:
    said = r"'in' was deleted .* with fewer partitions: 'app' has read partition 1, and there are only 1 now"
    with pytest.raises(StreamsError, match=said):
        heed(stopped((5, 7), done=1), "continue", first=(0,), end=(9,))


def test_a_topic_of_a_pattern_that_is_gone_stops_the_application_or_is_forgotten(
    stopped: Stopped, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("in.*")).to("out")
    (waiting,) = plan(builder.build(), "app")
    running, left = waiting.with_topics(["in", "in-2"]), {"in": TopicExtent("id", {0: 0, 1: 0}, {0: 9, 1: 9})}
    checkpoint = stopped((5, 7), (9, 9), done=1)
    for batch, ends in enumerate([(5, 7), (9, 9)]):
        both = json.loads(offsets(*ends)) | json.loads(offsets(3, topic="in-2"))
        write(checkpoint.folder / f"offsets/{batch}", "v1", SETTINGS, json.dumps(both), "17")

    def heed_gone(policy: str, plan: Plan) -> bool:
        return DataLoss("app", checkpoint.folder.parent, policy).heed(plan, left)

    now = waiting.with_topics(["in"])
    with pytest.raises(StreamsError, match=r"has read, 'in-2', is not there any more: .*on_data_loss='continue'"):
        heed_gone("stop", now)
    with pytest.raises(StreamsError, match="Start the application again: it goes on with the other topics of the patt"):
        heed_gone("continue", running)
    with caplog.at_level(logging.WARNING, "streamskit"):
        assert heed_gone("continue", now)
    assert "'in-2', is not there any more: deleted, perhaps with records that it has not read" in caplog.text
    assert checkpoint.position() == {"in": {0: 5, 1: 7}}
    (checkpoint.folder / "commits/1").touch()
    assert checkpoint.position() == {"in": {0: 9, 1: 9}}
    checkpoint.verify()
    assert not heed_gone("continue", now)


@pytest.mark.parametrize("said", ["OffsetOutOfRangeException: Fetch position", "[KAFKA_DATA_LOSS.COULD_NOT_READ] ..."])
def test_a_gap_is_found_in_either_mode_in_a_first_batch_too(
    said: str, stopped: Stopped, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, plan = stopped(done=0), a_plan()
    monkeypatch.setattr(data_loss, "extents", lambda *_: {"in": TopicExtent("1", {0: 3, 1: 0}, {0: 9, 1: 9})})
    losses = DataLoss("app", checkpoint.folder.parent, "continue")
    losses.know([plan], {"in": "1"}, {"in": 2}, lambda ids: None)
    assert losses.is_behind(RuntimeError(f"Task 0 in stage 2.0 failed: org.apache.kafka.{said}"), plan)
    assert losses.lost == {"0": 3}
    assert checkpoint.position() == {"in": {0: 3, 1: 0}}


def test_another_failure_is_none_of_its_business() -> None:
    assert not DataLoss("app", Path("folder"), "stop").is_behind(RuntimeError("something else"), a_plan())


def test_a_crash_while_it_goes_on_behind_a_gap_leaves_the_gap_to_be_found_again(
    stopped: Stopped, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, written = stopped((5, 7), (30, 30), done=1), checkpoint_module._write

    def write_once_and_die(file: Path, lines: list[str]) -> None:
        written(file, lines)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_module, "_write", write_once_and_die)
        with pytest.raises(KeyboardInterrupt):
            heed(checkpoint, "continue", first=(40, 0), end=(50, 50))
    assert heed(checkpoint, "continue", first=(40, 0), end=(50, 50)).lost == {"0": 35}
    assert checkpoint.position()["in"][0] == 40 <= planned(checkpoint)["0"]


def test_a_repartition_topic_that_is_deleted_is_not_to_be_made_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_loss, "extents", lambda servers, topics: {})
    monkeypatch.setattr(data_loss, "unseen", lambda servers: "")
    builder = StreamsBuilder()
    builder.stream("in").repartition("again").to("out")
    after = next(each for each in plan(builder.build(), "app") if "app-again-repartition" in each.topics)
    losses = DataLoss("app", Path("nowhere"), "stop")
    losses.know([after], {"app-again-repartition": "1"}, {"app-again-repartition": 1}, lambda ids: None)
    said = "'app-again-repartition', which 'app' made for itself, .* was deleted .* Call clean_up"
    with pytest.raises(StreamsError, match=said):
        losses.is_behind(RuntimeError(data_loss.UNKNOWN_TOPIC), after)
