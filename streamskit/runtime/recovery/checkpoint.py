"""Spark's checkpoint of a query, as files: which micro-batches were planned and done, and up to which offsets.

    offsets/7    what micro-batch 7 reads: the end of each partition
    commits/7    written when it was done
    runs         with which micro-batches the last two runs of the query began; this file is ours
    most-records how many records a micro-batch takes at most, since one took too long; also ours
    first-batch  exists from the start of a first batch in real-time mode, which is planned when it is over; also ours
    sources/0/0  where micro-batch 0 began
    state/       what the query remembers

Each file `7` has a checksum beside it, `.7.crc`.
"""

import json
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from streamskit.common.durable_files import sync_folder, write_file, written_beside
from streamskit.runtime.recovery import checkpoint_errors
from streamskit.runtime.recovery.checkpoint_errors import checksum_file, checksums, fits

Positions = dict[str, dict[int, int]]
"""Offsets by topic and partition."""

SCHEMA = re.compile(r'"file:[^"]*?/(state/\d+/_stateSchema/[^"]+)"')
"""How Spark's notes name a file with the schema of a state: by its absolute path."""

FORMER_OPERATOR, OPERATOR = "transformWithStateInPandasExec", "transformWithStateExec"
"""The operator that owned the state of tasks in Python, and the one that owns it now; its rows are the same."""

FIRST_BATCH, MOST_RECORDS = "first-batch", "most-records"


class Checkpoint:
    """Reads the position of a query, and can change it.

    Args:
        folder: the checkpoint's folder.

    Mirrors what `kafka-consumer-groups` shows, and resets, for the group of a Kafka Streams application.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def query_id(self) -> str:
        """The id that Spark has given to the query; "" before its first start."""
        metadata = self.folder / "metadata"
        return str(json.loads(metadata.read_text())["id"]) if metadata.exists() else ""

    @property
    def last_begun(self) -> int:
        """The number of the last micro-batch that was planned; -1 before the first."""
        return max(_numbers(self.folder / "offsets"), default=-1)

    @property
    def last_finished(self) -> int:
        """The number of the last micro-batch that was done; -1 before the first."""
        return max(_numbers(self.folder / "commits"), default=-1)

    @property
    def has_state_ids(self) -> bool:
        """Whether files of state have ids in their names, as the query has run in Spark's real-time mode.

        Raises:
            StreamsError: the note that says so cannot be read.
        """
        last = self.last_finished
        return last >= 0 and self._lines(self.folder / "commits" / str(last))[0] != "v1"

    @property
    def has_begun(self) -> bool:
        """Whether a micro-batch was planned."""
        return self.last_begun >= 0

    @property
    def is_partly_gone(self) -> bool:
        """Whether it has state or commits, but not the offsets that belong to them."""
        if self.is_in_first_real_time_batch:
            return False
        return not self.has_begun and (self.last_finished >= 0 or (self.folder / "state").exists())

    @property
    def is_in_first_real_time_batch(self) -> bool:
        """Whether it only notes that its first batch has begun, in Spark's real-time mode.

        Spark plans such a batch when it is over.
        """
        return (self.folder / FIRST_BATCH).exists() and not self.has_begun and self.last_finished < 0

    def verify(self) -> None:
        """Compare the files that Spark is about to read with their checksums, which it does not look at.

        The files with the rows of the state are not among them: they are many, and have checksums inside.

        Raises:
            StreamsError: one of them is damaged, or the note of which query this is, `metadata`, is missing.
        """
        last = (self.folder / log / str(number) for log in ("offsets", "commits")
                for number in _numbers(self.folder / log)[-2:])  # fmt: skip
        schemas = (file for file in self.folder.glob("state/**/_*/**/*") if file.is_file())
        identity = self.folder / "metadata"
        if self.has_begun and not identity.exists():
            raise checkpoint_errors.of_file(identity, self.folder, "is missing")
        for file in (identity, *self.folder.glob("sources/*/0"), *last, *schemas):
            if file.exists() and not file.name.startswith("."):
                self._checked(file)

    def finish(self) -> None:
        """Note that the micro-batch that was begun last is done: its outputs and its state are all there.

        Spark saves the state of a micro-batch before it hands on the last of its rows to be written. So a batch that
        was written in one transaction has its state. Running it again would yield a different state if a processor
        depends on its fields, the clock or random numbers.

        Raises:
            StreamsError: what was planned cannot be read.
        """
        number = self.last_begun
        planned = json.loads(self._lines(self.folder / "offsets" / str(number))[1])
        said = json.dumps({"nextBatchWatermarkMs": planned["batchWatermarkMs"]}, separators=(",", ":"))
        (self.folder / "commits").mkdir(exist_ok=True)
        _write(self.folder / "commits" / str(number), ["v1", said])

    def settle(self) -> None:
        """Update Spark's notes: the paths of files in this folder, and the operator that owns a state.

        The folder may have been moved, and tasks in Python had another operator before.

        Raises:
            StreamsError: a note is damaged.
        """
        here = self.folder.absolute()
        for note in self.folder.glob("state/*/_metadata/v2/*"):
            if note.name.isdigit():
                said = self._lines(note)
                settled = [
                    SCHEMA.sub(lambda found: json.dumps(f"file:{here}/{found[1]}"), line).replace(
                        f'"{FORMER_OPERATOR}"', f'"{OPERATOR}"'
                    )
                    for line in said
                ]
                if settled != said:
                    _write(note, settled)

    def begin_run(self, in_real_time: bool = False, goes_on: bool = False) -> list[int]:
        """Note that the query starts, and return the numbers of the micro-batches with which its runs began.

        A micro-batch that was begun but not done belongs to the run that began it; this run begins with the next one.

        Args:
            in_real_time: whether it runs in Spark's real-time mode.
            goes_on: whether the last run goes on, as after a pause, rather than that a new one begins.

        Raises:
            StreamsError: the file that says so is damaged.
        """
        if self.is_in_first_real_time_batch:  # the state of that batch belongs to no records that were noted as read
            shutil.rmtree(self.folder / "state", ignore_errors=True)
        (self.folder / FIRST_BATCH).unlink(missing_ok=True)
        if in_real_time and not self.has_begun and not self.is_partly_gone:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(self.folder / FIRST_BATCH, "")
        file, first = self.folder / "runs", self.last_begun + 1
        known: list[int] = json.loads(self._lines(file)[0]) if file.exists() else []
        runs = known if goes_on and known else sorted({0, *known, first})[-2:]
        if runs != known:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(file, [json.dumps(runs)])
        return runs

    def position(self) -> Positions:
        """Return the offsets from which the next micro-batch, or the one that was not done, reads.

        Raises:
            StreamsError: they cannot be read.
        """
        positions: Positions = {}
        for file in self._start_files():
            positions |= _positions(self._lines(file))
        return positions

    def move(self, starts: Positions, ends: Positions) -> None:
        """Have the next micro-batch read from other offsets; partitions that are not named stay where they are.

        Args:
            starts: where to begin, for each partition to move.
            ends: where these partitions end. A micro-batch that was planned reads no further than that.

        Raises:
            StreamsError: a file to be changed cannot be read.
        """
        # Write the end first: should this program die in between, the gap can still be found again.
        if (planned := self._planned_file()) is not None:
            self._rewrite(planned, lambda topic, number, offset: _within(offset, topic, number, starts, ends))
        for file in self._start_files():
            self._rewrite(file, lambda topic, number, offset: starts.get(topic, {}).get(number, offset))

    def shorten(self, most: int, in_order: bool = False) -> None:
        """Limit the micro-batch that was planned and is not done to about this many records.

        Args:
            most: how many.
            in_order: whether its source takes records in the order of their time, topic by topic. Only the source knows
                where that order may be cut, so the micro-batch becomes one without records, and the next is planned.

        Raises:
            StreamsError: what was planned cannot be read.
        """
        planned = self._planned_file()
        if planned is None:
            return
        starts, total = self.position(), self._planned_records(planned)
        if total <= most:
            return

        def earlier(topic: str, number: int, end: int) -> int:
            begins = starts.get(topic, {}).get(number, 0)
            taken = 0 if in_order else -((begins - end) * most // total)  # rounded up: every partition goes on
            return begins + taken

        self._rewrite(planned, earlier)

    @property
    def most_records(self) -> int | None:
        """How many records a micro-batch may take after one took too long; None if none did.

        Raises:
            StreamsError: the note that says so is damaged.
        """
        file = self.folder / MOST_RECORDS
        return int(self._lines(file)[0]) if file.exists() else None

    def note_too_long(self) -> None:
        """Note that the planned micro-batch took too long: from now on, each takes half as many records.

        That micro-batch stays as planned until the next start, which first checks whether it was written.

        Raises:
            StreamsError: what was planned cannot be read.
        """
        if (planned := self._planned_file()) is not None:
            _write(self.folder / MOST_RECORDS, [str(max(1, self._planned_records(planned) // 2))])

    def known(self) -> Positions:
        """Return the partitions of which it knows where to begin, or which the micro-batch that was not done reads.

        Raises:
            StreamsError: the files that say so cannot be read.
        """
        planned = self._planned_file()
        known = {} if planned is None else _positions(self._lines(planned))
        for topic, each in self.position().items():
            known[topic] = known.get(topic, {}) | each
        return known

    def add(self, starts: Positions) -> None:
        """Have the next micro-batch read partitions for the first time; one that was planned reads nothing of them.

        Raises:
            StreamsError: a file to be changed cannot be read.
        """
        planned = self._planned_file()
        added = {topic: {str(number): offset for number, offset in each.items()} for topic, each in starts.items()}
        for file in [*([] if planned is None else [planned]), *self._start_files()]:
            lines = self._lines(file)
            for index, said in enumerate(map(_topics, lines)):
                if said is not None:
                    lines[index] = _spelled(said | {topic: said.get(topic, {}) | each for topic, each in added.items()})
                    break
            _write(file, lines)

    def forget(self, topics: Collection[str]) -> None:
        """Remove topics that are not read any more from the position of the next micro-batch.

        Raises:
            StreamsError: a file to be changed cannot be read.
        """
        planned = self._planned_file()
        for file in [*self._start_files(), *([] if planned is None else [planned])]:
            lines = [(line, _topics(line)) for line in self._lines(file)]
            kept = [
                line
                if said is None or said.keys().isdisjoint(topics)
                else _spelled({topic: each for topic, each in said.items() if topic not in topics})
                for line, said in lines
            ]
            _write(file, kept)

    def _start_files(self) -> list[Path]:
        """Return the files that say where the next micro-batch begins."""
        done = [number for number in _numbers(self.folder / "offsets") if self._is_done(number)]
        return [self.folder / "offsets" / str(done[-1])] if done else sorted(self.folder.glob("sources/*/0"))

    def _planned_file(self) -> Path | None:
        """Return the file of a micro-batch that was planned and not done, if there is one."""
        last = self.last_begun
        return self.folder / "offsets" / str(last) if last >= 0 and not self._is_done(last) else None

    def _planned_records(self, planned: Path) -> int:
        """Return how many records a micro-batch is to read."""
        starts, ends = self.position(), _positions(self._lines(planned))
        return sum(
            end - starts.get(topic, {}).get(number, 0) for topic, each in ends.items() for number, end in each.items()
        )

    def _is_done(self, number: int) -> bool:
        """Return whether a micro-batch was done: the last one that was planned is the only one that may not be."""
        return number < self.last_begun or (self.folder / "commits" / str(number)).exists()

    def _checked(self, file: Path) -> bytes:
        """Return the content of a file after verifying its checksum; one without a checksum is trusted, as in Spark."""
        data = file.read_bytes()
        if not fits(file, data):
            raise checkpoint_errors.of_file(
                file, self.folder, f"is damaged: {checksum_file(file).name} does not match it"
            )
        return data

    def _lines(self, file: Path) -> list[str]:
        try:
            return self._checked(file).decode().split("\n")
        except UnicodeDecodeError as failure:
            raise checkpoint_errors.of_file(file, self.folder, f"is damaged: {failure}") from failure

    def _rewrite(self, file: Path, change: Callable[[str, int, int], int]) -> None:
        """Replace each offset in a file by what `change` returns for its topic, partition and old value."""

        def changed(line: str) -> str:
            topics = _topics(line)
            if topics is None:
                return line
            moved = {
                topic: {number: change(topic, int(number), offset) for number, offset in partitions.items()}
                for topic, partitions in topics.items()
            }
            return _spelled(moved)

        _write(file, [changed(line) for line in self._lines(file)])


def _numbers(folder: Path) -> list[int]:
    names = (file.name for file in folder.iterdir()) if folder.is_dir() else ()
    return sorted(int(name) for name in names if name.isdecimal())


def _write(file: Path, lines: list[str]) -> None:
    data, sums = "\n".join(lines).encode(), checksum_file(file)
    new, new_sums = written_beside(file, data), written_beside(sums, checksums(data))
    sums.unlink(missing_ok=True)  # a file without one is read as it is
    new.replace(file)
    new_sums.replace(sums)
    sync_folder(file.parent)


def _topics(line: str) -> dict[str, dict[str, int]] | None:
    """Return the offsets in a line, if it is that of a Kafka source; other lines hold settings and clocks."""
    try:
        said: Any = json.loads(line)
    except ValueError:
        return None
    is_kafka = isinstance(said, dict) and said and all(_are_offsets(each) for each in said.values())
    return said if is_kafka else None


def _are_offsets(said: Any) -> bool:
    return isinstance(said, dict) and all(number.isdecimal() and type(offset) is int for number, offset in said.items())


def _spelled(offsets: Mapping[str, Mapping[Any, int]]) -> str:
    """Return offsets by topic and partition as a line of a log of offsets."""
    return json.dumps(offsets, separators=(",", ":"))


def positions_of(offsets: str) -> Positions:
    """Return the offsets in a file of a log of offsets."""
    return _positions(offsets.split("\n"))


def _positions(lines: list[str]) -> Positions:
    return {
        topic: {int(number): offset for number, offset in partitions.items()}
        for line in lines
        for topic, partitions in (_topics(line) or {}).items()
    }


def _within(offset: int, topic: str, number: int, starts: Positions, ends: Positions) -> int:
    """Return where a planned micro-batch ends: where it was planned to, limited to between start and end."""
    if number not in starts.get(topic, {}):
        return offset
    return max(starts[topic][number], min(offset, ends[topic][number]))
