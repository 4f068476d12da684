"""Files that only this user can read and that are removed with this process: secrets, which Java reads by path."""

import atexit
import glob
import os
import platform
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from streamskit.common.ownership import PRIVATE, is_own

PREFIX = "streamskit-secrets-"
RUNTIME_VARIABLE = "XDG_RUNTIME_DIR"
"""The environment variable that names this user's private folder in memory, on systems that have one."""


def write_private(name: str, content: str | bytes) -> Path:
    """Write a file that only this user can read, in a folder of this process's own, and return its path.

    The folder is removed when the process ends; that of a killed process, when the next process writes a file.

    Args:
        name: the end of its name, such as "client.properties".
        content: text in UTF-8, or bytes.

    >>> path = write_private("client.properties", "sasl.mechanism=PLAIN")
    >>> f"{path.stat().st_mode & 0o777:o}", path.read_text()
    ('600', 'sasl.mechanism=PLAIN')
    """
    handle, path = tempfile.mkstemp(suffix=f"-{name}", dir=_folder(os.getpid()))  # 0600
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


@cache
def _folder(pid: int) -> Path:
    """Make the folder of this process, and remove those of processes that were killed."""
    import psutil  # Spark's Python workers import this module, and write nothing

    base, mine = _base(), f"{PREFIX}{platform.node()}-"  # containers that share a folder have names of their own
    for left in base.glob(f"{glob.escape(mine)}*"):
        owner = re.match(r"(\d+)-", left.name.removeprefix(mine))
        if owner is not None and is_own(left) and not psutil.pid_exists(int(owner[1])):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{mine}{pid}-", dir=base))
    folder.chmod(PRIVATE)
    atexit.register(_remove, folder, pid)
    return folder


def can_be_referred_to(path: Path) -> bool:
    """Say whether Kafka's `${file:path:name}` can hold a path: it ends at the first colon.

    >>> can_be_referred_to(Path("/home/me/client.properties")), can_be_referred_to(Path("/mnt/a:b/client.properties"))
    (True, False)
    """
    return not {":", "}"} & set(str(path))


def _base() -> Path:
    named = os.environ.get(RUNTIME_VARIABLE)
    if named and is_own(Path(named)) and os.access(named, os.W_OK) and can_be_referred_to(Path(named)):
        return Path(named)
    usual = Path(tempfile.gettempdir())
    return usual if can_be_referred_to(usual) else Path("/tmp")


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child may end first
        shutil.rmtree(folder, ignore_errors=True)
