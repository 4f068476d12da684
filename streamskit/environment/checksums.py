"""Checks that the jars are the ones that this version was tried with, by their SHA-256 in `jars.sha256`.

All bytes are read once for each cache. Then a stamp beside the jars records what was checked, and later checks compare
only names, sizes and times with it. When a version in `ivy.xml` changes, write the list again in the folder of jars:
`sha256sum spark/*.jar broker/*.jar`. Compare what you get with what Maven Central publishes.
"""

import contextlib
import hashlib
import json
from pathlib import Path

from streamskit.common.errors import SetupError

STAMP = "verified.json"


def listed(checksums: Path) -> dict[str, str]:
    """Return the SHA-256 of each jar by its path, such as "broker/kafka_2.13-4.3.1.jar"."""
    lines = (line.split(maxsplit=1) for line in checksums.read_text().splitlines() if line)
    return {name: digest for digest, name in lines}


def verify(folder: Path, checksums: Path) -> None:
    """Make sure that a folder holds the jars that are listed, byte for byte, and no others.

    Args:
        folder: where they are.
        checksums: the list, as `sha256sum` writes it.

    Raises:
        SetupError: a jar is missing, differs, or was added.
    """
    expected = listed(checksums)
    found = {str(jar.relative_to(folder).as_posix()): jar for jar in sorted(folder.glob("**/*.jar"))}
    seen = {name: [jar.stat().st_size, jar.stat().st_mtime_ns] for name, jar in found.items()}
    said = {"list": _digest(checksums), "jars": seen}
    if _stamped(folder) == said:
        return
    if unknown := sorted(found.keys() ^ expected.keys()):
        what = "is missing" if unknown[0] in expected else "does not belong there"
        raise SetupError(f"The jar {folder / unknown[0]} {what}. {_what_to_do(folder)}")
    for name, jar in found.items():
        if (digest := _digest(jar)) != expected[name]:
            raise SetupError(
                f"The jar {jar} is not the one that this version of streamskit was tried with: its SHA-256 is "
                f"{digest[:16]}…, and should be {expected[name][:16]}…. {_what_to_do(folder)}"
            )
    with contextlib.suppress(OSError):  # a cache that cannot be written to is read again each time
        new = folder / f"{STAMP}.new"
        new.write_text(json.dumps(said))
        new.replace(folder / STAMP)


def _stamped(folder: Path) -> object:
    try:
        return json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _what_to_do(folder: Path) -> str:
    return f"Delete {folder}, and the jars are fetched anew. If that ends here again, use another Maven repository."
