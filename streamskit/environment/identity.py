"""What distinguishes a process from a later one with the same number, and this machine from one with the same name."""

import contextlib
import hashlib
import os
import uuid
from functools import cache
from pathlib import Path

import psutil

from streamskit.common.paths import cache_dir

BOOT, MACHINE = Path("/proc/sys/kernel/random/boot_id"), Path("/etc/machine-id")
PROCESSES = Path("/proc/self/ns/pid")
START_FIELD = 22
"""Which field of /proc/<pid>/stat says when the process began, in clock ticks since boot."""


def process_start(pid: int) -> str | None:
    """Return when a process began, as text that stays the same when the clock is set.

    None means that there is no such process, and "" that there is one about which nothing can be learned.

    >>> process_start(os.getpid()) == process_start(os.getpid())
    True
    """
    if BOOT.exists():
        # psutil adds the time of the machine's start to it, and that moves when the clock is set.
        try:
            said = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return "" if _is_hidden(pid) else None
        fields = said.rpartition(")")[2].split()  # the second field is the program's name, and may hold anything
        return f"{fields[START_FIELD - 3]} of {BOOT.read_text().strip()}"
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return ""


def _is_hidden(pid: int) -> bool:
    """Whether there is a process that /proc does not show to this user."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


@cache
def machine_id() -> str:
    """Return text that two machines, or two containers, never have in common, whatever they are called.

    On Linux it changes when the machine restarts.
    """
    if BOOT.exists():
        # A copied disk has the same machine id, containers of one machine have the same boot id.
        known = [each.read_text().strip() for each in (MACHINE, BOOT) if each.is_file()]
        space = str(PROCESSES.readlink()) if PROCESSES.is_symlink() else ""
    else:
        # A home folder may be shared by machines: their network cards tell them apart.
        known, space = [_kept_id(), f"{uuid.getnode():x}"], ""
    return hashlib.sha256("\n".join(["streamskit", *known, space]).encode()).hexdigest()[:20]


def _kept_id() -> str:
    """Return a random id that is kept in the user's cache; one for this process alone where it cannot be kept."""
    file, made = cache_dir() / "machine-id", uuid.uuid4().hex
    new = file.with_name(f"machine-id.{made}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_text(made)
            os.link(new, file)  # as a whole, and only if nobody else has
        finally:
            new.unlink(missing_ok=True)
    try:
        return file.read_text().strip() or made
    except OSError:
        return made
