"""A folder is rebuilt whole or not at all, and only of copies without gaps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamskit import StreamsBuilder
from streamskit.kafka.topics import TopicExtent
from streamskit.planning.planner import plan
from streamskit.runtime.recovery.rebuilding import STAGING, WHOLE, Copy, finish


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
