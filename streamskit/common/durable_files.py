"""Files that are on the disk before they count: a power failure must leave the old one or the new one, whole."""

import os
from pathlib import Path


def write_file(file: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Write a file so that from now on, whatever happens to the machine, it is there and whole.

    Args:
        file: where; what was there before stays until the new one is whole on the disk.
        content: text in UTF-8, or bytes.
        mode: who may use a file that is new, as `os.open` takes it.

    >>> write_file(folder / "calls.json", "{}")  # doctest: +SKIP
    """
    written_beside(file, content, mode).replace(file)
    sync_folder(file.parent)


def written_beside(file: Path, content: str | bytes, mode: int = 0o666) -> Path:
    """Write a file's new content beside it, and return the path of that once it is on the disk.

    The caller moves it into place and then calls `sync_folder`.
    """
    beside = file.with_name(f".{file.name}.new")
    with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as new:
        new.write(content.encode() if isinstance(content, str) else content)
        new.flush()
        os.fsync(new.fileno())
    return beside


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    if os.name == "nt":  # which opens no folders
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
