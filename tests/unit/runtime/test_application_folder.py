"""Whose folder it is: an application deletes its own, and never one that somebody else has made."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamskit import KafkaStreams, StreamsBuilder
from streamskit.common.errors import StreamsError
from streamskit.runtime.recovery.application_folder import ApplicationFolder
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.topology import Topology


def topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return builder.build()


def checkpoint(query: Path) -> None:
    (query / "offsets").mkdir(parents=True)
    (query / "offsets" / "0").write_text("v1")
    (query / "state" / "0").mkdir(parents=True)


def documents(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.docx").write_text("years of work")


def numbered(folder: Path) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "chapter.docx").write_text("years of work")


def shops(folder: Path) -> None:
    (folder / "stores" / "berlin").mkdir(parents=True)
    (folder / "stores" / "berlin" / "till.csv").write_text("1,2")


def content(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("fill", [documents, numbered, shops])
def test_what_somebody_else_has_made_is_not_deleted(fill: Callable[[Path], None], tmp_path: Path) -> None:
    fill(tmp_path / "work")
    before = content(tmp_path)
    streams = KafkaStreams(topology(), "work", "127.0.0.1:1", state_dir=tmp_path)
    for act in (streams.clean_up, ApplicationFolder("work", tmp_path / "work").delete, streams.start):
        with pytest.raises(StreamsError, match=r"folder of 'work' would be .* and that holds something else, such as"):
            act()
    (tmp_path / "work.lock").unlink(missing_ok=True)  # beside the folder, as ever
    assert content(tmp_path) == before


def everything(folder: Path) -> None:
    """Make all that an application leaves in its folder, drafts of a process that was killed included."""
    for name in ("topology.json", "stores.json", "stores.lock", "calls.json", ".calls.json.new", "stores.json.new"):
        (folder / name).write_text("")
    checkpoint(folder / "0.1")
    (folder / "0.1" / "metadata").write_text("")
    for name in (".metadata.crc", ".metadata.0f0e9d6a-2f3c-4a7b-8a55-6a1f2f3c4d5e.tmp", "first-batch"):
        (folder / "0.1" / name).write_text("")
    Checkpoint(folder / "0.1").begin_run()
    for name in ("..runs.crc.new", ".runs.new", "most-records", ".most-records.crc"):
        (folder / "0.1" / name).write_text("")
    for name in ("commits", "sources", "stream-time"):
        (folder / "0.1" / name).mkdir()
    (folder / "stores" / "counts" / "3").mkdir(parents=True)
    (folder / "stores" / "counts" / "checkpoint.json").write_text("")
    (folder / "rebuilding" / "0.1" / "offsets").mkdir(parents=True)


def test_a_folder_is_private_and_its_own_and_goes_as_a_whole(tmp_path: Path) -> None:
    folder = ApplicationFolder("orders", tmp_path / "orders")
    folder.check()
    folder.claim()
    assert (tmp_path / "orders").stat().st_mode & 0o777 == 0o700
    everything(tmp_path / "orders")
    folder.delete()
    assert list(tmp_path.iterdir()) == []
    folder.delete()


def test_what_others_have_put_into_the_folder_stays_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = ApplicationFolder("orders", tmp_path / "orders")
    folder.claim()
    everything(tmp_path / "orders")
    foreign = {
        "orders/0.1/thesis.docx",
        "orders/stores/berlin/till.csv",
        "orders/notes/plan.txt",
        "orders/a later one",
    }
    for name in foreign:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("years of work")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "photo.jpg").write_text("")
    (tmp_path / "orders" / "link").symlink_to(tmp_path / "elsewhere")
    folder.delete()
    assert content(tmp_path).keys() == {*foreign, "orders/application.json", "elsewhere/photo.jpg"}
    assert (tmp_path / "orders" / "link").is_symlink()
    assert "'orders' has not made '0.1/thesis.docx', 'a later one', 'link' and 2 more: it stays in " in caplog.text
    folder.check()  # it can begin anew there


def test_a_folder_of_an_earlier_version_is_recognised_by_what_is_in_it(tmp_path: Path) -> None:
    checkpoint(tmp_path / "orders" / "0")
    for name in ("topology.json", "stores.pickle", "stores.lock"):
        (tmp_path / "orders" / name).write_text("")
    (tmp_path / "orders" / "stores" / "counts" / "3").mkdir(parents=True)
    ApplicationFolder("orders", tmp_path / "orders").delete()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_another_application_is_left_alone(tmp_path: Path) -> None:
    ApplicationFolder("Orders", tmp_path / "orders").claim()  # as on a disk that does not tell letters apart
    with pytest.raises(StreamsError, match="belongs to the application 'Orders'"):
        ApplicationFolder("orders", tmp_path / "orders").delete()
    assert json.loads((tmp_path / "orders" / "application.json").read_text()) == {"application_id": "Orders"}
