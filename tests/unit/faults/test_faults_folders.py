"""Checkpoints that are damaged and folders that are gone: only of what stands still, and put back as they were."""

from pathlib import Path

import pytest

from streamskit import faults
from streamskit.common.errors import StreamsError
from streamskit.runtime.sole_runner import ApplicationLock


@pytest.fixture
def applications(tmp_path: Path) -> Path:
    """A folder with one application, whose checkpoint has the files that Spark writes: two batches, both done."""
    files = {
        "metadata": '{"id":"4711"}',
        "offsets/0": "v1\nfirst",
        "offsets/9": "v1\nninth",
        "offsets/10": "v1\ntenth",
        "commits/9": "v1\n{}",
        "commits/10": "v1\n{} ",
        "state/0/1/10.changelog": "older",
        "state/0/1/11.changelog": "what the next batch needs",
        "state/0/1/12.changelog": "of a batch that was not done",
    }
    for name, text in files.items():
        path = tmp_path / "app" / "0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "app" / "stores" / "counts").mkdir(parents=True)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


@pytest.mark.parametrize(
    ("file", "damaged"),
    [
        ("offsets", "app/0/offsets/10"),
        ("commits", "app/0/commits/10"),
        ("metadata", "app/0/metadata"),
        ("state", "app/0/state/0/1/11.changelog"),
    ],
)
@pytest.mark.parametrize("how", ["flip", "truncate"])
def test_the_newest_file_of_a_kind_is_damaged_and_put_back(
    file: str, damaged: str, how: str, applications: Path
) -> None:
    before = content(applications)
    fault = faults.corrupt_checkpoint("app", file, how, state_dir=applications)
    after = content(applications)
    assert [name for name in before if before[name] != after[name]] == [damaged]
    assert (len(after[damaged]) < len(before[damaged])) == (how == "truncate")
    assert damaged in fault.description
    fault.undo()
    assert content(applications) == before


def test_a_file_that_was_written_since_is_not_replaced_by_the_old_one(applications: Path) -> None:
    fault = faults.corrupt_checkpoint("app", "offsets", state_dir=applications)
    (applications / "app/0/offsets/10").write_text("newer")
    with pytest.raises(StreamsError, match="'app' has written to app/0/offsets/10 since"):
        fault.undo()
    assert (applications / "app/0/offsets/10").read_text() == "newer"


@pytest.mark.parametrize(("part", "gone"), [("state", "app/0/state"), ("stores", "app/stores"), ("application", "app")])
def test_a_part_is_moved_aside_and_put_back(part: str, gone: str, applications: Path) -> None:
    before = content(applications)
    with faults.delete_state("app", part, state_dir=applications) as fault:
        assert not (applications / gone).exists()
        assert gone in fault.description
    assert content(applications) == before
    assert not list(applications.glob(".aside*"))


def test_a_part_that_was_made_anew_is_not_replaced_by_the_old_one(applications: Path) -> None:
    fault = faults.delete_state("app", "application", state_dir=applications)
    (applications / "app").mkdir()
    with pytest.raises(StreamsError, match=r"'app' has run since and made app anew.*It is kept in .*\.aside-app-"):
        fault.undo()
    assert list((applications / "app").iterdir()) == []
    (kept,) = applications.glob(".aside-app-*")
    assert (kept / "app/0/metadata").is_file()


def test_a_running_application_is_left_alone(applications: Path) -> None:
    before, lock = content(applications), ApplicationLock("app", applications / "app")
    lock.take(())
    for break_it in (faults.corrupt_checkpoint, faults.delete_state):
        with pytest.raises(StreamsError, match="'app' is running, and would write over what is broken here: close"):
            break_it("app", state_dir=applications)
    assert content(applications) == before
    lock.release()


@pytest.mark.parametrize("application", ["../app", "/etc", "..", "", 7])
def test_only_an_application_can_be_broken(application: object, applications: Path) -> None:
    with pytest.raises(StreamsError, match="is neither a KafkaStreams nor an application's id"):
        faults.delete_state(application, "application", state_dir=applications / "app")  # type: ignore[arg-type]
    assert (applications / "app/0/metadata").is_file()


def test_what_is_not_there_or_unknown_is_a_sentence(applications: Path) -> None:
    with pytest.raises(StreamsError, match="There is no application 'other' in "):
        faults.corrupt_checkpoint("other", state_dir=applications)
    with pytest.raises(StreamsError, match="file='offset' is not possible here: choose one of 'offsets', 'commits'"):
        faults.corrupt_checkpoint("app", "offset", state_dir=applications)
    with pytest.raises(StreamsError, match="part='all' is not possible here"):
        faults.delete_state("app", "all", state_dir=applications)
    (applications / "app/0/metadata").unlink()
    with pytest.raises(StreamsError, match="'app' has no file of the kind 'offsets'"):
        faults.corrupt_checkpoint("app", state_dir=applications)
