"""The folder of an application: recognised as its own before anything in it is deleted."""

import contextlib
import json
import re
import shutil
from pathlib import Path

from streamskit.common.errors import StreamsError
from streamskit.common.ownership import check_own, is_own, make_private
from streamskit.state.state_folder import is_copy

MARK = "application.json"
"""The file that says whose folder it is; it is written first and deleted last."""

FILES = frozenset({MARK, "topology.json", "stores.json", "stores.pickle"})
CHECKPOINT = frozenset(
    {"first-batch", "metadata", ".metadata.crc", "offsets", "commits", "sources", "state", "stream-time"}
)
"""What lies in the folder of a query."""


class ApplicationFolder:
    """Makes, recognises and deletes the folder where an application keeps its checkpoints and stores.

    Args:
        application_id: the application.
        path: the folder, named after it.
    """

    def __init__(self, application_id: str, path: Path) -> None:
        self._application_id, self._path = application_id, path

    def check(self) -> None:
        """Make sure that the folder is the application's, or is not there yet; nothing is changed.

        Raises:
            StreamsError: it holds something else, or it is another application's.
            SetupError: another user made it, or something in it.
        """
        # A checkpoint holds pickles: who wrote it can run code.
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
        new = self._path / f"{MARK}.new"
        new.write_text(json.dumps({"application_id": self._application_id}) + "\n")
        new.replace(self._path / MARK)

    def delete(self) -> None:
        """Delete the folder with all that is in it, if it is there.

        Raises:
            StreamsError: it is not the application's; then nothing is deleted.
        """
        self.check()
        for entry in list(self._path.iterdir()) if self._path.is_dir() else ():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != MARK:
                entry.unlink(missing_ok=True)
        (self._path / MARK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not there, or Java still writes into a query's folder
            self._path.rmdir()

    def _marked_owner(self) -> str | None:
        """Return the application that the folder is marked with; None where there is no mark that can be read."""
        try:
            return str(json.loads((self._path / MARK).read_text())["application_id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _foreign(self) -> list[str]:
        """Return what an application does not make, in a folder without a mark, as earlier versions left it."""
        entries = sorted(self._path.iterdir()) if self._path.is_dir() else []
        return [entry.name for entry in entries if not _is_made(entry)]


def _is_made(entry: Path) -> bool:
    """Whether an entry of an application's folder looks like one that an application makes."""
    if entry.name.removesuffix(".new") in FILES or entry.name == "stores.lock":
        return True
    if not entry.is_dir():
        return False
    if entry.name == "stores":
        return all(map(is_copy, entry.iterdir()))
    return re.fullmatch(r"\d+(\.\d+)?", entry.name) is not None and CHECKPOINT.issuperset(
        each.name for each in entry.iterdir()
    )
