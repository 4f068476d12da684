"""Brings records to a user's `peek`, `foreach` and `print` functions, in the process that started the application.

Spark's operators run elsewhere, where a notebook's variables are copies and nobody sees what is printed. So the records
of such a step travel on a topic, and a thread here calls the function for each. Its progress is kept in a file, so that
the function is called at least once for each record, whenever the application stops: after a crash, it is called again
for the records of the last moments.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.durable_files import write_file
from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Offsets, TopicReader, TopicRecord, topic_record
from streamskit.topology.nodes import SideEffect

FILE = "calls.json"
"""In the application's folder: by topic and partition, the offset of the first record still to be passed on."""

NOTE_SECONDS = 0.5
"""How often that file is written."""


class SideEffects:
    """Calls functions for the records of their topics, in a thread of its own.

    Args:
        bootstrap_servers: the broker's address.
        nodes: for each topic the step whose function to call.
        folder: the application's folder, where it is noted how far the calls have come.
        failed: called with the step and its exception; returns whether to call the function again for that record.
        lost: called with the reason when the topics can no longer be read.
    """

    def __init__(
        self,
        bootstrap_servers: BootstrapServers,
        nodes: Mapping[str, SideEffect],
        folder: Path,
        failed: Callable[[SideEffect, Exception], bool],
        lost: Callable[[StreamsError], None],
    ) -> None:
        self._nodes, self._file, self._failed = nodes, folder / FILE, failed
        self._done: Offsets = {}
        self._noted_offsets: dict[str, dict[int, int]] = {}
        self._noted, self._written, self._noting = 0.0, "", threading.Lock()
        self._started, self._stopping = False, threading.Event()
        self._reader = TopicReader(bootstrap_servers, self._take, "The calls of functions", topic_record, failed=lost)

    def start(self) -> None:
        """Continue with the first record for which the function was not called.

        Raises:
            StreamsError: the broker does not say where the topics end, or the note of the last calls is damaged.
        """
        if self._nodes:
            self._done = self._read_note()
            self._reader.start(self._nodes, self._done)
            self._started = True

    def stop(self, seconds: float = 10.0) -> None:
        """Stop calling, and wait at most this many seconds for a call that is under way; the next start goes on."""
        self._stopping.set()
        self._reader.stop(seconds)
        if self._started:
            self._note()

    def drain(self, ends: Callable[[], Offsets], deadline: float) -> bool:
        """Call the functions for all that is in their topics; return whether that was done in time.

        Args:
            ends: returns where the topics end.
            deadline: when to give up, as `time.monotonic()` counts.
        """
        if not self._started or self._stopping.is_set() or self._reader.is_this_thread:
            return True
        try:
            self._reader.wait_for(ends(), deadline)
        except StreamsError:
            return False
        return True

    @property
    def lives(self) -> bool:
        """Whether functions are called; also before the start and after the end."""
        return self._reader.lives

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the functions were called for all records before the given offsets.

        Raises:
            StreamsError: they were not by the deadline, reading has failed, or it is one of the functions that waits.
        """
        if self._started and self._reader.is_this_thread:
            raise StreamsError(
                "A function of foreach, peek or print waits for itself: await_processed() returns when these functions "
                "were called for all records. Call it in the program that started the application."
            )
        self._reader.wait_for(offsets, deadline, check)

    def _take(self, where: TopicPartition, records: list[TopicRecord], offsets: list[int], position: int) -> None:
        for record in records:
            while not self._stopping.is_set():
                if self._call(self._nodes[where.topic], record):
                    break
            else:
                return
            self._done[where] = record.offset + 1
            if self._stopping.is_set() and not self._is_noted_last():
                return  # the call outlasted the stop, and the next start went on from its note
            if self._stopping.is_set() or time.monotonic() - self._noted > NOTE_SECONDS:
                self._note()
        self._done[where] = position

    def _call(self, node: SideEffect, record: TopicRecord) -> bool:
        """Call the function for a record, and return whether it succeeded."""
        try:
            node.action(node.key.deserialize(record.key), node.value.deserialize(record.value))
        except Exception as failure:
            if not self._failed(node, failure):
                self._stopping.set()
            return False
        return True

    @property
    def done(self) -> dict[str, dict[int, int]]:
        """Up to which offset the functions were called, by topic and partition, as of the last note."""
        return {topic: dict(partitions) for topic, partitions in self._noted_offsets.items()}

    def _note(self) -> None:
        with self._noting:
            said: dict[str, dict[int, int]] = {}
            for (topic, partition), offset in self._done.items():
                said.setdefault(topic, {})[partition] = offset
            if not self._file.parent.is_dir():
                return  # the application was deleted while it runs
            self._written = json.dumps(said)
            write_file(self._file, self._written)
            self._noted_offsets, self._noted = said, time.monotonic()

    def _is_noted_last(self) -> bool:
        """Return whether nobody has written the note since this did."""
        with self._noting, suppress(OSError):
            return self._file.read_text() == self._written
        return False

    def _read_note(self) -> Offsets:
        if not self._file.exists():
            return {}
        try:
            said = json.loads(self._file.read_text())
            return {TopicPartition(topic, int(number)): int(offset)
                    for topic, partitions in said.items() for number, offset in partitions.items()
                    if topic in self._nodes}  # fmt: skip
        except (ValueError, AttributeError) as failure:
            raise StreamsError(
                f"'{FILE}' in {self._file.parent.name}, which says for which records foreach, peek and print were "
                f"called, is damaged: {failure}. Delete it to have them called for all records of "
                f"{', '.join(self._nodes)} again."
            ) from failure
