"""A folder is rebuilt whole or not at all, and only of copies without gaps."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from streamskit import StreamsBuilder
from streamskit.jvm import java_class
from streamskit.kafka.topics import TopicExtent
from streamskit.planning.planner import plan
from streamskit.runtime.recovery.fingerprint import Fingerprint, QueryPrint
from streamskit.runtime.recovery.rebuilding import STAGING, WHOLE, Copy, Rebuilding, finish


def the_copy(**position: Any) -> Copy:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    (the_plan,) = plan(builder.build(), "app")
    found = {"batch": 3, "from": 10, "about": {"topic": "id"}} | position
    return Copy(the_plan, TopicExtent("id", {0: 10}, {0: 50}), found)


def test_a_copy_of_which_nothing_is_missing_is_no_trouble() -> None:
    assert the_copy().trouble == ""
    assert the_copy().has_begun
    assert not the_copy(batch=-1).has_begun


def test_a_copy_whose_topic_is_gone_or_another_one_or_cut_is_told_of() -> None:
    copy = the_copy()
    assert replace(copy, extent=None).trouble == (
        "Topic 'app-0-checkpoint', with a copy of the checkpoint of sub-topology 0, is gone, too."
    )
    assert "Topic 'app-0-checkpoint' was deleted and made anew" in the_copy(about={"topic": "another"}).trouble
    assert "10 records were deleted from topic 'app-0-checkpoint'" in the_copy(**{"from": 0}).trouble


@pytest.mark.parametrize(("batch", "told"), [(-1, []), (3, ["It is gone. Its folder is rebuilt from the topics with"])])
def test_nothing_is_told_lost_of_an_application_that_ended_before_its_first_micro_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, batch: int, told: list[str]
) -> None:
    query = asdict(QueryPrint(["in"], 1))
    copy = the_copy(batch=batch, about={"topic": "id", "query": query, "topics": {"in": "its id"}})
    monkeypatch.setattr(Rebuilding, "_copy", lambda self, plan, extent: copy)
    monkeypatch.setattr(Rebuilding, "_make_checkpoint", lambda self, copy, folder: None)
    rebuilding = Rebuilding("app", tmp_path, [copy.plan], "nowhere:1", lambda plan: None)
    assert rebuilding.run({"app-0-checkpoint": TopicExtent("id", {0: 10}, {0: 50})}, "It is gone.") == ""
    assert [record.getMessage()[: len(each)] for record, each in zip(caplog.records, told, strict=True)] == told
    assert Fingerprint.load(tmp_path).topics == {"in": "its id"}


def staged(folder: Path, *files: str) -> None:
    for file in files:
        place = folder / STAGING / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file)


def files_in(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_what_was_not_made_whole_is_forgotten(tmp_path: Path) -> None:
    staged(tmp_path, "0/metadata", "1/metadata")
    finish(tmp_path)
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize("moved_before", [0, 1, 2, 3])
def test_what_was_made_whole_is_put_in_its_place_also_after_a_crash_between_two_moves(
    moved_before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged(tmp_path, "0/metadata", "1/metadata", "topology.json", WHOLE)
    (tmp_path / "0").mkdir()
    rename, moved = Path.rename, list[Path]()

    def dying(self: Path, place: Path) -> Path:
        if len(moved) == moved_before:
            raise KeyboardInterrupt
        moved.append(self)
        return rename(self, place)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        if moved_before < 3:
            with pytest.raises(KeyboardInterrupt):
                finish(tmp_path)
    finish(tmp_path)
    assert files_in(tmp_path) == {"0/metadata", "1/metadata", "topology.json"}


# Rows that are too large for one record; a copy is a compacted topic, which has the last record of each key.

PART = 512 * 1024
ROW = b"r0/0\0a key"


class CopyTopic:
    """The topic with a copy: what is in it, and what compaction leaves of it."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None, int]] = []
        self.parts = java_class("RowParts")(None)

    def write(self, value: bytes | None) -> None:
        """Write the row anew, or that it is gone."""
        written = self.parts.records(ROW, value)
        for number in range(written.size()):
            each = written.apply(number)
            self.records.append((bytes(each.key()), each.value() and bytes(each.value()), each.parts()))

    def compact(self, end: int) -> None:
        """Do what compaction does with the records before an offset; those behind it are in the open segment."""
        last = {key: offset for offset, (key, *_) in enumerate(self.records[:end])}
        self.records[:end] = [
            each for offset, each in enumerate(self.records[:end]) if last[each[0]] == offset and each[1] is not None
        ]

    def rebuilt(self) -> bytes | None:
        """Return the row that a rebuild makes."""
        rows, found = java_class("PartedRows")(), None
        for key, value, parts in self.records:
            if key != ROW:
                rows.take(key, value)
            elif parts == 1:
                found = value
            elif (whole := rows.whole(key, value, parts)).isDefined():
                found = bytes(whole.get())
        return found


@pytest.mark.spark
def test_a_large_row_is_rebuilt_whatever_compaction_has_left_of_its_older_versions(spark: Any) -> None:
    first, second = bytes(2 * PART + 1), b"x" * (PART + 1)
    for end in range(6):
        topic = CopyTopic()
        topic.write(first)
        assert topic.rebuilt() == first
        topic.write(second)
        assert len(topic.records) == 6  # three parts, two, and that the third is gone
        topic.compact(end)  # a segment may end anywhere
        assert topic.rebuilt() == second, end


@pytest.mark.spark
@pytest.mark.parametrize("then", [None, b"small"])
def test_of_a_large_row_that_is_gone_or_small_by_now_nothing_stays_in_the_topic(then: bytes | None, spark: Any) -> None:
    topic = CopyTopic()
    topic.write(bytes(3 * PART))
    topic.parts = java_class("RowParts")(topic.parts.told().toString())  # another run goes on
    topic.write(then)
    topic.compact(len(topic.records))
    assert topic.records == ([] if then is None else [(ROW, then, 1)])
    assert not topic.parts.nonEmpty()
