"""Who owns a file: what another user of this machine may have planted is not trusted."""

import os
from pathlib import Path

from streamskit.common.errors import SetupError

PROJECT_VARIABLE = "STREAMSKIT_PROJECT"
"""The environment variable that names the project, and thereby declares everything in it trusted."""

PRIVATE = 0o700

ELSEWHERE = f"work in a folder that you may write to; {PROJECT_VARIABLE} can name one."


def is_own(path: Path) -> bool:
    """Whether a file or folder belongs to this user, or does not exist; a link and its target both have to.

    On Windows nothing is checked: folders that others may write to are not the rule there.
    """
    if not hasattr(os, "geteuid"):
        return True
    try:
        if path.lstat().st_uid != os.geteuid():
            return False
        return path.stat().st_uid == os.geteuid()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # one that we may not even look at
        return False


def is_named(path: Path) -> bool:
    """Whether a file or folder is in the project that `STREAMSKIT_PROJECT` names."""
    named = os.environ.get(PROJECT_VARIABLE)
    return bool(named) and path.absolute().is_relative_to(Path(named or "").expanduser().absolute())


def check_own(*paths: Path) -> None:
    """Make sure that files or folders that are about to be trusted belong to this user.

    Raises:
        SetupError: one of them is another user's, and `STREAMSKIT_PROJECT` does not name it; or it is to be in a file.
    """
    for path in paths:
        if (file := _file_above(path)) is not None:
            raise SetupError(
                f"{path} cannot be there: {file} is a file, where a folder should be. Move it away, or {ELSEWHERE}"
            )
        if not is_own(path) and not is_named(path):
            raise SetupError(
                f"{path} belongs to {_owner(path)}, not to you, and its author could run code in your name. "
                f"Delete it or work in a folder of your own; if you trust it, name its project in {PROJECT_VARIABLE}."
            )


def make_private(folder: Path) -> None:
    """Make a folder that only this user can look into, unless it is there.

    Raises:
        SetupError: it is there, and is another user's; or it cannot be made.
    """
    check_own(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
    except FileExistsError:
        raise SetupError(f"{folder} is a file, where a folder should be. Move it away, or {ELSEWHERE}") from None
    except OSError as error:
        raise SetupError(f"The folder {folder} cannot be made ({error.strerror}): {ELSEWHERE}") from error
    check_own(folder)


def check_writable(folder: Path) -> None:
    """Make sure that this user may write to a folder that is there.

    Raises:
        SetupError: it is read-only, or another user's.
    """
    if not os.access(folder, os.W_OK):
        raise SetupError(f"Nothing can be written to {folder}: {ELSEWHERE}")


def _file_above(path: Path) -> Path | None:
    """Return the file that stands where a path needs a folder, if there is one."""
    try:
        path.lstat()
    except NotADirectoryError:
        return next((parent for parent in path.parents if parent.is_file()), path.parent)
    except OSError:
        pass
    return None


def _owner(path: Path) -> str:
    try:
        return f"the user '{path.owner()}'"
    except (KeyError, OSError, NotImplementedError):
        return "another user"
