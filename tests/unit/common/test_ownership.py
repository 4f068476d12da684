"""What another user of this machine has planted is not believed."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from streamskit import KafkaStreams, StreamsBuilder
from streamskit.broker import EmbeddedBroker
from streamskit.broker.java_process import BrokerLock, read_lock
from streamskit.cli.commands import main
from streamskit.common import ownership, paths
from streamskit.common.errors import SetupError, StreamsError
from streamskit.common.paths import project_dir, state_dir
from streamskit.queries import Catalogue
from streamskit.runtime.recovery.application_folder import ApplicationFolder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners to compare here")


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, with a `.streamskit` in a folder above."""
    monkeypatch.delenv("STREAMSKIT_PROJECT", raising=False)
    monkeypatch.setattr(paths, "PROJECT_MARKERS", (".streamskit",))  # this checkout is a project, too
    (tmp_path / ".streamskit" / "applications" / "trades-app").mkdir(parents=True)
    here = tmp_path / "me" / "work"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    return here


def plant(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file or folder, and all below it, look like another user's."""
    lstat, stat = Path.lstat, Path.stat

    def foreign(look: object) -> object:
        def looked(self: Path, **how: bool) -> os.stat_result:
            found: os.stat_result = look(self, **how)  # type: ignore[operator]
            return os.stat_result((*found[:4], found.st_uid + self.is_relative_to(path), *found[5:]))

        return looked

    monkeypatch.setattr(Path, "lstat", foreign(lstat))
    monkeypatch.setattr(Path, "stat", foreign(stat))


def test_a_project_above_is_found_where_it_is_ones_own(below: Path) -> None:
    assert project_dir() == below.parents[1]
    assert state_dir().stat().st_mode & 0o777 == 0o700  # of an earlier version, it was open to all


def test_a_planted_project_is_passed_over(
    below: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(below.parents[1] / ".streamskit", monkeypatch)
    assert project_dir() == below
    assert "is passed over: it belongs to another user" in caplog.text
    assert main(["serve", "trades-app", "--bootstrap-servers=127.0.0.1:1"]) == 1
    assert "There is no application 'trades-app'" in capsys.readouterr().err


def test_a_planted_folder_in_a_project_is_refused(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PROJECT_MARKERS", (".git", ".streamskit"))
    (below.parents[1] / ".git").mkdir()
    plant(below.parents[1] / ".streamskit", monkeypatch)
    with pytest.raises(SetupError, match=r"\.streamskit belongs to .* name its project in STREAMSKIT_PROJECT"):
        state_dir()


def test_a_project_that_is_named_is_believed(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(below.parents[1] / ".streamskit", monkeypatch)
    monkeypatch.setenv("STREAMSKIT_PROJECT", str(below.parents[1]))
    assert state_dir() == below.parents[1] / ".streamskit"
    ApplicationFolder("trades-app", state_dir() / "applications" / "trades-app").check()


def test_a_link_has_to_be_ones_own_and_what_it_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    assert ownership.is_own(tmp_path / "link")
    assert ownership.is_own(tmp_path / "nothing")
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not ownership.is_own(tmp_path / "link")
        assert not ownership.is_own(tmp_path / "mine")
    (tmp_path / "mine").chmod(0o000)
    assert ownership.is_own(tmp_path / "link")


def test_nothing_of_another_users_application_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    folder = tmp_path / "trades-app"
    Catalogue("trades-app", ()).save(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "stores.json").stat().st_mode & 0o777 == 0o600
    plant(folder / "stores.json", monkeypatch)
    streams = KafkaStreams(builder.build(), "trades-app", "127.0.0.1:1", state_dir=tmp_path)
    for act in (streams.start, lambda: Catalogue.load(folder)):
        with pytest.raises((SetupError, StreamsError), match=r"stores\.json belongs to "):
            act()


def test_no_broker_is_believed_that_another_user_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "broker.json"
    BrokerLock(1, "", "127.0.0.1:9", "embedded", "/data").write(lock)
    plant(lock, monkeypatch)
    with pytest.raises(SetupError, match=r"broker\.json belongs to "):
        read_lock(lock)
    assert json.loads(lock.read_text())["pid"] == 1


def test_a_file_where_a_folder_should_be_is_named_and_belongs_to_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("Not a folder.")
    makes: list[Callable[[], object]] = [
        lambda: ownership.make_private(tmp_path / "file"),
        EmbeddedBroker(tmp_path / "file").start,
    ]
    for make in makes:
        with pytest.raises(SetupError, match=r"/file is a file, where a folder should be\. Move it away"):
            make()
    below = tmp_path / "file" / "a" / "b"
    for look in (ownership.check_own, ownership.make_private):
        with pytest.raises(SetupError, match=r"/file/a/b cannot be there: .*/file is a file, where a folder should be"):
            look(below)


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(
    below: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(self: Path, *arguments: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(paths, "PROJECT_MARKERS", ())
    monkeypatch.setattr(Path, "mkdir", refuse)
    for command in (["broker", "status"], ["new", "page-visits"]):
        assert main(command) == 1
        said = capsys.readouterr().err
        assert f"{below}/" in said
        assert "(Permission denied)" in said
