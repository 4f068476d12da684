"""The jars that are there, and those that should be there."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from streamskit.common.errors import SetupError
from streamskit.environment import checksums, jars


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two jars, and `../list` with their checksums."""
    for name in ("spark/connector-1.0.jar", "broker/kafka-2.0.jar"):
        jar = tmp_path / "jars" / name
        jar.parent.mkdir(parents=True)
        jar.write_bytes(name.encode())
    lines = [
        f"{sha256(name.encode()).hexdigest()}  {name}\n" for name in ("spark/connector-1.0.jar", "broker/kafka-2.0.jar")
    ]
    (tmp_path / "list").write_text("".join(lines))
    return tmp_path / "jars"


def verify(folder: Path) -> None:
    checksums.verify(folder, folder.parent / "list")


def test_all_bytes_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    digest = checksums._digest

    def reading(file: Path) -> str:
        read.append(file.suffix)
        return digest(file)

    monkeypatch.setattr(checksums, "_digest", reading)
    verify(folder)
    verify(folder)
    assert read.count(".jar") == 2
    (folder / "broker" / "kafka-2.0.jar").touch()
    verify(folder)
    assert read.count(".jar") == 4
    (folder.parent / "list").write_text((folder.parent / "list").read_text() + "\n")  # a newer version's
    verify(folder)
    assert read.count(".jar") == 6


@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda folder: (folder / "broker/kafka-2.0.jar").write_bytes(b"EVIL"),
            "kafka-2.0.jar is not the one that this",
        ),
        (lambda folder: (folder / "broker/kafka-2.0.jar").unlink(), "kafka-2.0.jar is missing"),
        (lambda folder: (folder / "spark/added.jar").write_bytes(b"EVIL"), "added.jar does not belong there"),
    ],
)
def test_another_jar_is_refused_with_what_to_do(folder: Path, stamped: bool, spoil: object, said: str) -> None:
    if stamped:
        verify(folder)
    spoil(folder)  # type: ignore[operator]
    for _ in range(2):
        with pytest.raises(SetupError, match=re.escape(said) + r".* Delete .*jars, and the jars are fetched anew"):
            verify(folder)


def test_a_cache_that_cannot_be_written_is_read_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "write_text", refuse)
    verify(folder)
    assert not (folder / checksums.STAMP).exists()


def test_every_jar_that_is_fetched_has_a_checksum() -> None:
    pinned = re.findall(r'conf="(\w+)->default".* name="([^"]+)" rev="([^"]+)"', jars.IVY_FILE.read_text())
    known = checksums.listed(jars.CHECKSUMS)
    assert known.keys() == {f"{section}/{name}-{version}.jar" for section, name, version in pinned}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known.values())
