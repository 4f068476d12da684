"""Errors for a damaged checkpoint and a full disk: in a user's words, with what to do.

Hadoop's local file system keeps checksums beside each file, `.7.crc` for the file `7`.
"""

import errno
import re
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamskit.common.errors import StreamsError

FULL = re.compile("No space left on device|Disk quota exceeded|There is not enough space on the disk")

DAMAGED = re.compile(
    r"CANNOT_LOAD_STATE_STORE|CANNOT_READ_|MALFORMED_LOG_FILE|INVALID_LOG_VERSION|Incomplete log file|log file"
    r"|MISSING_METADATA_FILE|MISSING_STATE_DIRECTORY|STDS_FAILED|Checksum|CHECKSUM|EOFException|FileNotFoundException"
    r"|does not exist|Corruption|corrupt|ZipException|Unexpected end|FAILED_TO_READ_STATE|CONCURRENT_STREAM_LOG_UPDATE"
    r"|Multiple streaming queries are concurrently using"
)
"""The many ways in which Spark reports a file that does not hold what it should."""

OTHER_ROWS = re.compile(r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE")
"""What Spark says when its own operators would keep other columns than those that they have kept."""

WHAT = {
    "metadata": "the query's identity",
    "offsets": "what a micro-batch reads",
    "commits": "the note that a micro-batch is done",
    "sources": "where the query began to read",
    "state": "what the query remembers",
}
"""What the parts of a checkpoint are, by the first folder or file below it."""

HEADER = struct.Struct(">4si")
CHUNK = 512


def checksum_file(file: Path) -> Path:
    """Return the file beside another that holds its checksums."""
    return file.with_name(f".{file.name}.crc")


def checksums(data: bytes) -> bytes:
    """Return what is kept beside a file with these bytes: a header, and a CRC of each 512 bytes."""
    sums = (struct.pack(">I", zlib.crc32(data[start : start + CHUNK])) for start in range(0, len(data), CHUNK))
    return HEADER.pack(b"crc\0", CHUNK) + b"".join(sums)


def fits(file: Path, data: bytes | None = None) -> bool:
    """Return whether a file holds what was written to it; one without checksums is trusted, as in Spark.

    Args:
        file: the file.
        data: what is in it, if that was read already.
    """
    beside = checksum_file(file)
    return not beside.exists() or beside.read_bytes() == checksums(file.read_bytes() if data is None else data)


def of_file(file: Path, checkpoint: Path, why: str) -> StreamsError:
    """Return the error for a file of a checkpoint that cannot be used.

    Args:
        file: the file.
        checkpoint: the folder of the query's checkpoint, in that of its application.
        why: what is wrong with it, as the end of a sentence.
    """
    inside = file.relative_to(checkpoint)
    what = WHAT.get(inside.parts[0], "a part of its checkpoint")
    replayed = (
        f"Delete it and .{file.name}.crc beside it: the micro-batch then runs once more, and nothing is lost. "
        if inside.parts[0] == "commits" and file.is_file()
        else ""
    )
    return StreamsError(
        f"'{checkpoint.parent.name}' cannot go on: '{inside}' in the checkpoint of sub-topology {checkpoint.name}, "
        f"{what}, {why}. {replayed}{_way_back(checkpoint)}"
    )


def explain(text: str, checkpoint: Path) -> StreamsError | None:
    """Return the error for a query that failed because of its checkpoint or its disk; None if it failed otherwise.

    Args:
        text: what Spark said.
        checkpoint: the folder of the query's checkpoint.
    """
    if FULL.search(text):
        return of_full_disk(checkpoint.parent)
    if OTHER_ROWS.search(text):
        return _of_other_rows(checkpoint)
    if not DAMAGED.search(text):
        return None
    damaged = next((file for file in sorted(checkpoint.glob("**/[!.]*")) if file.is_file() and not fits(file)), None)
    if damaged is not None:
        return of_file(damaged, checkpoint, "is damaged")
    named = re.search(rf"{re.escape(str(checkpoint))}/([\w./-]*\w)", text)
    if named is not None:
        return of_file(checkpoint / named[1], checkpoint, "is missing, or not of the last run")
    if "CONCURRENT_STREAM_LOG_UPDATE" in text or "Multiple streaming queries" in text:
        why = "is not that of the last run: a file was removed, or another program runs this query"
        return of_file(checkpoint / "offsets", checkpoint, why)
    if "CANNOT_LOAD_STATE_STORE" in text or "MISSING_STATE_DIRECTORY" in text:
        return of_file(checkpoint / "state", checkpoint, "cannot be loaded: files are missing")
    return None


def _of_other_rows(checkpoint: Path) -> StreamsError:
    """Return the error for an aggregate of Columns that remembers something else than at the last start."""
    return StreamsError(
        f"'{checkpoint.parent.name}' cannot go on with what is kept in {checkpoint}: an aggregate of Columns in "
        f"sub-topology {checkpoint.name} has changed, and what it remembers of each key is not what it remembered "
        "before (an average needs a sum and a count, a maximum one value). Write the aggregate as it was; or begin "
        "anew with this one: clean_up() forgets what was kept, and the next start reads the topics from their first "
        "records; another application_id leaves the old one as it is."
    )


def of_full_disk(folder: Path) -> StreamsError:
    """Return the error for an application that cannot write into its folder any more."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free
    return StreamsError(
        f"The disk is full that has the folder of '{folder.name}', {folder}, or Spark's temporary files "
        f"({free // 1024:,} KB are free in the first). Free some space and start the application again: it goes on "
        "after its last whole micro-batch, and nothing is lost."
    )


@contextmanager
def telling_of_a_full_disk(folder: Path) -> Iterator[None]:
    """Turn "no space left" of this process, inside the block, into a sentence.

    Raises:
        StreamsError: there is no space left on the disk.
    """
    try:
        yield
    except OSError as failure:
        if failure.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise of_full_disk(folder) from failure


def _way_back(checkpoint: Path) -> str:
    return (
        "To begin anew, call clean_up(): the next start reads the topics from their first records and makes all "
        f"results again. A copy of {checkpoint.parent} serves as well, if it was made after the application was closed."
    )
