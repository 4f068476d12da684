"""A file counts when it is on the disk, and not before."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamskit.common.durable_files import write_file
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.checkpoint_errors import fits
from streamskit.runtime.recovery.fingerprint import Fingerprint
from streamskit.runtime.side_effects import SideEffects
from streamskit.state.state_folder import StateFolder


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return what is done to the files below a folder, in its order: ("sync" or "move", the path)."""
    done: list[tuple[str, str]] = []
    sync, replace = os.fsync, Path.replace

    def name(path: Path) -> str:
        return str(path.relative_to(tmp_path))

    def noted_sync(handle: int) -> None:
        done.append(("sync", name(Path(f"/proc/self/fd/{handle}").readlink())))
        sync(handle)

    def noted_move(self: Path, place: Path) -> Path:
        done.append(("move", name(place)))
        return replace(self, place)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_move)
    return done


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Only Linux tells the path of an open file.")


@needs_proc
def test_a_file_is_synced_before_it_is_moved_and_its_folder_afterwards(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    write_file(tmp_path / "note.json", "{}")
    assert calls == [("sync", ".note.json.new"), ("move", "note.json"), ("sync", ".")]
    assert (tmp_path / "note.json").read_text() == "{}"


def commit(folder: Path) -> None:
    (folder / "0" / "offsets").mkdir(parents=True)
    (folder / "0" / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"in":{"0":5}}')
    Checkpoint(folder / "0").finish()


def runs(folder: Path) -> None:
    (folder / "0").mkdir()
    Checkpoint(folder / "0").begin_run()


def fingerprint(folder: Path) -> None:
    Fingerprint().save(folder)


def stores(folder: Path) -> None:
    opened = StateFolder(folder / "stores")
    opened.open({"counts": "an id"})
    opened.close()


def function_calls(folder: Path) -> None:
    anything: Any = None
    SideEffects("nowhere:1", {}, folder, anything, anything)._note()


@needs_proc
@pytest.mark.parametrize("write", [commit, runs, fingerprint, function_calls, stores])
def test_what_a_start_relies_on_is_synced_before_it_counts(
    write: Callable[[Path], None], tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    write(tmp_path)
    moved = [path for what, path in calls if what == "move"]
    assert moved
    for place in moved:
        at = calls.index(("move", place))
        folder, name = Path(place).parent, Path(place).name
        assert ("sync", str(folder / f".{name}.new")) in calls[:at]
        assert ("sync", str(folder)) in calls[at:]


def test_a_note_of_a_checkpoint_has_the_checksums_of_what_is_in_it(tmp_path: Path) -> None:
    runs(tmp_path)
    assert {each.name for each in (tmp_path / "0").iterdir()} == {"runs", ".runs.crc"}
    assert fits(tmp_path / "0" / "runs")
