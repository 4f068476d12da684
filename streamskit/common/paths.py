"""Where streamskit keeps its files: a cache for each user, a state folder for each project."""

import logging
import os
from functools import cache
from pathlib import Path

import platformdirs

from streamskit.common.errors import SetupError
from streamskit.common.names import check_application_id
from streamskit.common.ownership import PRIVATE, PROJECT_VARIABLE, is_named, is_own, make_private

logger = logging.getLogger("streamskit")

STATE = ".streamskit"
PROJECT_MARKERS = (STATE, "pyproject.toml", ".git")


def cache_dir() -> Path:
    """The folder for what is fetched or built once for each user: jars, the Java shim.

    The environment variable STREAMSKIT_CACHE names another one.

    >>> cache_dir() / "jars"  # doctest: +SKIP
    """
    named = os.environ.get("STREAMSKIT_CACHE")
    return Path(named).expanduser().absolute() if named else Path(platformdirs.user_cache_dir("streamskit"))


def project_dir() -> Path:
    """The project's root: STREAMSKIT_PROJECT, else the nearest folder upwards that looks like a project.

    A folder looks like one when it holds `.streamskit`, `pyproject.toml` or `.git`; where none does, it is
    the working directory. A `.streamskit` of another user is passed over: what is in it would be trusted.

    Raises:
        SetupError: the working directory was deleted.

    >>> project_dir() / "notebooks"  # doctest: +SKIP
    """
    if named := os.environ.get(PROJECT_VARIABLE):
        return Path(named).expanduser().absolute()
    here = working_directory()
    for folder in (here, *here.parents):
        if any(_marks(folder / marker) for marker in PROJECT_MARKERS):
            return folder
    return here


def working_directory() -> Path:
    """Return the folder in which this process works.

    Raises:
        SetupError: it was deleted, as by another terminal.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise SetupError(
            "The folder in which this runs is not there any more: it was deleted, or moved. Go to one that is there, "
            "such as `cd ~`, and start again."
        ) from None


def state_dir() -> Path:
    """The project's `.streamskit` folder (broker data, checkpoints, stores), made on demand; git ignores it.

    Only its user can look into it, unless STREAMSKIT_PROJECT names the project.

    Raises:
        SetupError: it is another user's, and STREAMSKIT_PROJECT does not name the project.

    Mirrors Kafka Streams' `state.dir`.

    >>> state_dir() / "checkpoints"  # doctest: +SKIP
    """
    folder = project_dir() / STATE
    make_private(folder)
    if not is_named(folder) and folder.stat().st_mode & 0o077:  # of an earlier version
        folder.chmod(PRIVATE)
    return folder


def application_folder(application_id: str, parent: str | Path | None = None) -> Path:
    """Return where an application keeps its checkpoints and stores.

    Args:
        application_id: its id, after which the folder is named.
        parent: its `state_dir`; None takes the project's.

    Raises:
        StreamsError: no folder can be named after the application.
    """
    folder = Path(parent or state_dir() / "applications").expanduser().absolute()
    return folder / check_application_id(application_id)


def _marks(marker: Path) -> bool:
    if marker.name == STATE and not is_own(marker):
        _warn_of(marker)
        return False
    return marker.exists()


@cache
def _warn_of(folder: Path) -> None:
    logger.warning("%s is passed over: it belongs to another user. %s names a project to trust.", folder,
                   PROJECT_VARIABLE)  # fmt: skip
