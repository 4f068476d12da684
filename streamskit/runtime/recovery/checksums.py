"""The checksums that Hadoop's local file system keeps beside each file: `.7.crc` for the file `7`."""

import struct
import zlib
from pathlib import Path

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
    """Return whether a file holds what was written to it; one without checksums is believed, as Spark does.

    Args:
        file: the file.
        data: what is in it, if that was read already.
    """
    beside = checksum_file(file)
    return not beside.exists() or beside.read_bytes() == checksums(file.read_bytes() if data is None else data)
