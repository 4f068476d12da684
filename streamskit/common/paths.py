"""Where streamskit keeps its files: a cache for each user, a state folder for each project."""

import os
from pathlib import Path

import platformdirs

PROJECT_MARKERS = (".streamskit", "pyproject.toml", ".git")


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
    the working directory.

    >>> project_dir() / "notebooks"  # doctest: +SKIP
    """
    named = os.environ.get("STREAMSKIT_PROJECT")
    if named:
        return Path(named).expanduser().absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / marker).exists() for marker in PROJECT_MARKERS):
            return folder
    return here


def state_dir() -> Path:
    """The project's `.streamskit` folder (broker data, checkpoints, stores), made on demand; git ignores it.

    Mirrors Kafka Streams' `state.dir`.

    >>> state_dir() / "checkpoints"  # doctest: +SKIP
    """
    folder = project_dir() / ".streamskit"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
