"""Faults: damaged files and missing folders of an application."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from streamskit.common.errors import StreamsError
from streamskit.common.names import is_topic_name
from streamskit.common.paths import application_folder
from streamskit.faults.fault import Fault
from streamskit.runtime import KafkaStreams
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.sole_runner import ApplicationLock

FILES = ("offsets", "commits", "state", "metadata")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flip": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 0xFF]) + content[len(content) // 2 + 1 :]
    ),
    "truncate": lambda content: content[: len(content) // 2],
}
NEXT_START = {
    "state": "the next start stops with an error: the checkpoint says what was done, but the resulting state is gone",
    "stores": "the next start fills the stores from their changelogs again, which takes a while and is exact",
    "application": "the next start rebuilds the folder from the copies of its checkpoints in Kafka; without them it "
    "reads its topics from the beginning: tables end the same, outputs are written again",
}
"""The parts of an application's folder, and what happens when one is gone."""


def corrupt_checkpoint(
    application: KafkaStreams | str, file: str = "offsets", how: str = "flip", state_dir: str | Path | None = None
) -> Fault:
    """Damage a file of a stopped application's checkpoint, as a failing disk would; a copy is kept.

    Args:
        application: the application, closed, or its id.
        file: which kind: "offsets" (what each micro-batch was to read), "commits" (which were done), "state" (what its
            operators remember) or "metadata" (whose checkpoint it is). The newest of several is taken.
        how: "flip" inverts a byte in its middle, "truncate" cuts off its second half.
        state_dir: the `state_dir` of the application, where only its id is given and it is not the project's own.

    Raises:
        StreamsError: the application runs, or has no such file.

    >>> fault = corrupt_checkpoint(streams, "state")  # doctest: +SKIP
    >>> fault.undo()  # doctest: +SKIP
    """
    _check(file, "file", FILES)
    _check(how, "how", tuple(DAMAGES))
    folder = _stopped(application, state_dir)
    path = _newest(folder, file)
    sound = path.read_bytes()
    damaged = DAMAGES[how](sound)
    path.write_bytes(damaged)

    def put_back() -> None:
        _stopped(folder.name, folder.parent)
        if not path.is_file() or path.read_bytes() != damaged:
            raise StreamsError(
                f"'{folder.name}' has written to {_below(path, folder)} since: the old file no longer fits."
            )
        path.write_bytes(sound)

    done = "had one byte inverted" if how == "flip" else "lost its second half"
    return Fault(
        f"{_below(path, folder)} ({len(sound):,} bytes), of the checkpoint of '{folder.name}', {done}.",
        "the next start stops with a sentence that names the file, and gives no wrong answer; clean_up() is the way "
        "back that needs no copy: all is computed anew from the topics",
        "undo() puts the sound file back",
        put_back,
    )


def delete_state(application: KafkaStreams | str, part: str = "state", state_dir: str | Path | None = None) -> Fault:
    """Take folders away from a stopped application, as a lost disk would; they are only moved aside.

    Args:
        application: the application, closed, or its id.
        part: "state" (what the operators of its queries remember), "stores" (the copies that an instance with an
            `application_server` answers from) or "application" (all there is).
        state_dir: the `state_dir` of the application, where only its id is given and it is not the project's own.

    Raises:
        StreamsError: the application runs, or has no such folder.

    >>> with delete_state(streams, "application"):  # doctest: +SKIP
    ...     ...
    """
    _check(part, "part", tuple(NEXT_START))
    folder = _stopped(application, state_dir)
    found = {"application": [folder], "stores": [folder / "stores"], "state": sorted(folder.glob("*/state"))}[part]
    found = [each for each in found if each.is_dir()]
    if not found:
        raise StreamsError(f"'{folder.name}' has no folder of the part {part!r} in {folder}: has it ever run?")
    aside = folder.parent / f".aside-{folder.name}-{time.time_ns()}"
    moved = {each: aside / each.relative_to(folder.parent) for each in found}
    for here, there in moved.items():
        there.parent.mkdir(parents=True, exist_ok=True)
        here.rename(there)

    def put_back() -> None:
        _stopped(folder.name, folder.parent, must_exist=False)
        if anew := [here for here in moved if here.exists()]:
            raise StreamsError(
                f"'{folder.name}' has run since and made {_below(anew[0], folder)} anew: the old one would not fit any "
                f"more. It is kept in {aside}; remove it when you do not need it."
            )
        for here, there in moved.items():
            here.parent.mkdir(parents=True, exist_ok=True)
            there.rename(here)
        shutil.rmtree(aside)

    names = ", ".join(_below(each, folder) for each in found)
    return Fault(
        f"Of '{folder.name}' these folders are gone: {names}.",
        NEXT_START[part],
        "undo() puts them back",
        put_back,
    )


def _stopped(application: KafkaStreams | str, state_dir: str | Path | None, must_exist: bool = True) -> Path:
    """Return the folder of an application that does not run."""
    if isinstance(application, KafkaStreams):
        folder = application.folder
    elif isinstance(application, str) and is_topic_name(application):
        folder = application_folder(application, state_dir)
    else:
        raise StreamsError(f"{application!r} is neither a KafkaStreams nor an application's id.")
    if must_exist and not folder.is_dir():
        raise StreamsError(f"There is no application '{folder.name}' in {folder.parent}: has it ever run?")
    lock = ApplicationLock(folder.name, folder)
    try:
        lock.take(KafkaStreams.running)
    except StreamsError:
        raise StreamsError(
            f"'{folder.name}' is running, and would write over what is broken here: close() it first."
        ) from None
    lock.release()
    return folder


def _newest(folder: Path, kind: str) -> Path:
    """Return the newest file of a kind among the checkpoints of an application's queries."""
    for query in sorted(metadata.parent for metadata in folder.glob("*/metadata")):
        checkpoint = Checkpoint(query)
        # The next batch begins with what the last finished one has left.
        version = checkpoint.last_finished + 1
        candidates = {
            "metadata": [query / "metadata"],
            "commits": [query / "commits" / str(checkpoint.last_finished)],
            "offsets": [query / "offsets" / str(checkpoint.last_begun)],
            # If there is a snapshot, the changelog is not read.
            "state": [
                *sorted(query.glob(f"state/**/{version}.zip")),
                *sorted(query.glob(f"state/**/{version}.changelog")),
            ],
        }[kind]
        if found := [file for file in candidates if file.is_file() and file.stat().st_size > 1]:
            return found[0]
    raise StreamsError(f"'{folder.name}' has no file of the kind {kind!r} in {folder}: has it ever run?")


def _below(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder.parent))


def _check(value: str, name: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise StreamsError(f"{name}={value!r} is not possible here: choose one of {', '.join(map(repr, allowed))}.")
