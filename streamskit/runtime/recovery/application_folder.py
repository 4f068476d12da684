"""The folder of an application: recognised as its own before anything in it is deleted."""

import contextlib
import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from streamskit.common.durable_files import write_file
from streamskit.common.errors import StreamsError
from streamskit.common.ownership import check_own, is_own, make_private
from streamskit.runtime.recovery.rebuilding import STAGING
from streamskit.state.state_folder import is_copy

logger = logging.getLogger("streamskit")

MARK = "application.json"
"""The file that says whose folder it is; it is written first and deleted last."""

FILES = frozenset({MARK, "topology.json", "stores.json", "stores.pickle", "stores.lock", "calls.json"})
CHECKPOINT = frozenset(
    {"first-batch", "metadata", "runs", "most-records", "offsets", "commits", "sources", "state", "stream-time"}
)
"""What the folder of a query contains, apart from checksums and drafts."""


class ApplicationFolder:
    """Makes, recognises and deletes the folder where an application keeps its checkpoints and stores.

    Args:
        application_id: the application.
        path: the folder, named after it.
    """

    def __init__(self, application_id: str, path: Path) -> None:
        self._application_id, self._path = application_id, path

    def check(self) -> None:
        """Make sure that the folder is the application's or does not exist yet, without changing anything.

        Raises:
            StreamsError: it holds something else, or it is another application's.
            SetupError: another user made it, or something in it.
        """
        # A checkpoint holds pickles: whoever wrote it can run code.
        check_own(self._path, *(self._path.iterdir() if is_own(self._path) and self._path.is_dir() else ()))
        owner = self._marked_owner()
        if owner == self._application_id:
            return
        if owner is not None:
            raise StreamsError(
                f"The folder {self._path} belongs to the application '{owner}', and '{self._application_id}' would "
                "write into it, too: give one of them another state_dir."
            )
        if foreign := self._foreign():
            raise StreamsError(
                f"The folder of '{self._application_id}' would be {self._path}, and that holds something else, such as "
                f"'{foreign[0]}': clean_up() would delete it one day. Choose another application_id, or another "
                "state_dir."
            )

    def claim(self) -> None:
        """Make the folder, for this user only, and mark it as the application's."""
        make_private(self._path)
        write_file(self._path / MARK, json.dumps({"application_id": self._application_id}) + "\n")

    def delete(self) -> None:
        """Delete what the application has made, and the folder with it where nothing else is in there.

        What somebody else has put there stays, and a warning names it; the folder stays the application's then.

        Raises:
            StreamsError: it is not the application's; then nothing is deleted.
        """
        self.check()
        mark = self._path / MARK
        left = [each for entry in _entries(self._path) if entry != mark for each in _deleted(entry)]
        if left:
            logger.warning(
                "'%s' has not made %s: it stays in %s, of which all else is deleted. Move it elsewhere.",
                self._application_id, _named(left, self._path), self._path,
            )  # fmt: skip
            return
        mark.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it does not exist, or Java still writes into a query's folder
            self._path.rmdir()

    def _marked_owner(self) -> str | None:
        """Return the application that the folder is marked with; None where there is no mark that can be read."""
        try:
            return str(json.loads((self._path / MARK).read_text())["application_id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _foreign(self) -> list[str]:
        """Return the entries that no application makes, in a folder without a mark, as earlier versions left it."""
        return [entry.name for entry in _entries(self._path) if not _is_made(entry)]


def _is_made(entry: Path) -> bool:
    """Whether an entry of an application's folder looks like one that an application makes, with all that is in it."""
    if entry.is_symlink() or not entry.is_dir():
        return _of(entry.name) in FILES
    inside = _inside(entry)
    return inside is not None and all(map(inside, _entries(entry)))


def _inside(folder: Path) -> Callable[[Path], bool] | None:
    """Return a test for entries of a folder that an application makes; None if it makes no such folder."""
    if folder.name == STAGING:
        return lambda entry: True
    if folder.name == "stores":
        return lambda entry: is_copy(entry) or entry.name.startswith(".")
    if re.fullmatch(r"\d+(\.\d+)?", folder.name) is not None:
        return lambda entry: _of(entry.name) in CHECKPOINT
    return None


def _deleted(entry: Path) -> list[Path]:
    """Delete whatever an application makes in an entry, and return the rest."""
    if entry.is_symlink() or not entry.is_dir():
        if not _is_made(entry):
            return [entry]
        entry.unlink(missing_ok=True)
        return []
    inside = _inside(entry)
    if inside is None:
        return [entry]
    left = []
    for each in _entries(entry):
        if not inside(each):
            left.append(each)
        elif each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # something is left, or Java still writes there
        entry.rmdir()
    return left


def _of(name: str) -> str:
    """Return the name of a file itself, or of the file that it is a draft or the checksums of."""
    return re.sub(r"^\.*(.+?)(\.[0-9a-f-]{36}\.tmp)?(\.crc)?(\.new)?$", r"\1", name)


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _named(paths: list[Path], folder: Path) -> str:
    shown = ", ".join(f"'{path.relative_to(folder)}'" for path in paths[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
