"""The folder where an instance keeps its stores on the disk, so that a restart reads only what it missed."""

import json
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from filelock import FileLock, Timeout

from streamskit.common.durable_files import write_file
from streamskit.common.errors import StreamsError
from streamskit.common.ownership import make_private
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.state.rocksdb import RocksStorage

TOMBSTONES_STAY = 20 * 60 * 60
"""For how many seconds a copy may be unused: after a day a compacted topic forgets deletions, which it would miss."""

NOTE = "checkpoint.json"
"""The file in a store's folder that says which changelog it is a copy of."""

CLOSE_AFTER = 5.0
"""For how many seconds a storage that was released stays open."""

Place = tuple[str, int]
"""A store, and one of its partitions."""


class StateFolder:
    """One folder for each store, and in it one for each partition.

    Args:
        folder: the parent folder; only one instance at a time may use it.

    Mirrors Kafka Streams' `StateDirectory`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(str(folder) + ".lock", thread_local=False)
        self._topic_ids: Mapping[str, str] = {}
        self._open: dict[Place, RocksStorage] = {}
        self._released: dict[Place, threading.Timer] = {}
        self._seen: dict[Place, float] = {}
        """When each copy was up to date last, in seconds since 1970; one that is begun lacks nothing."""
        self._changing = threading.Lock()

    def open(self, topic_ids: Mapping[str, str]) -> None:
        """Lock the folder, and delete the copies whose changelogs are gone or that were unused for too long.

        Args:
            topic_ids: the id of each changelog, by the name of the store it fills.

        Raises:
            StreamsError: another instance uses it, or it holds something else.
            SetupError: it belongs to another user.
        """
        make_private(self._folder)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StreamsError(
                f"Another instance keeps its stores in {self._folder}: stop it, or give this one a folder of its own."
            ) from None
        entries = [each for each in sorted(self._folder.iterdir()) if not each.name.startswith(".")]
        if foreign := [each.name for each in entries if not is_copy(each)]:
            self._lock.release()
            raise StreamsError(
                f"{self._folder} is to keep an instance's stores, and holds something else, such as '{foreign[0]}': "
                "give the instance a folder of its own."
            )
        self._topic_ids = topic_ids
        for store in entries:
            seen = self._noted(store)
            self._seen |= seen
            unused = [each for each in store.iterdir() if each.is_dir() and (store.name, int(each.name)) not in seen]
            for each in unused if seen else [store]:
                shutil.rmtree(each)
        self.note()

    def storage(self, store: str, partition: int) -> RocksStorage:
        """Return the storage of a partition, opened if it is not open yet, and empty if it was unused for too long."""
        place, folder = (store, partition), self._folder / store / str(partition)
        with self._changing:
            if (timer := self._released.pop(place, None)) is not None:
                timer.cancel()
            if place not in self._open:
                if not _is_recent(self._seen.get(place, 0.0)):
                    shutil.rmtree(folder, ignore_errors=True)
                    self._seen[place] = time.time()
                self._open[place] = RocksStorage(folder)
            return self._open[place]

    def release(self, store: str, partition: int) -> None:
        """Close the storage of a partition in a few seconds, unless it is requested again: it may still be in use."""
        timer = threading.Timer(CLOSE_AFTER, self._close, [(store, partition)])
        timer.daemon = True
        with self._changing:
            self._released[store, partition] = timer
        timer.start()

    def positions(self, changelogs: Mapping[str, str]) -> dict[TopicPartition, int]:
        """Return how far the copies in this folder are filled, for stores with the given changelogs."""
        found = {}
        for store, partition in self._partitions():
            if store in changelogs:
                found[TopicPartition(changelogs[store], partition)] = self.storage(store, partition).mark().position
                self._close((store, partition))
        return found

    def note(self, current: Iterable[Place] = ()) -> None:
        """Record which changelogs these copies belong to, and when each was up to date last.

        Args:
            current: those that are up to date now.
        """
        self._seen |= dict.fromkeys(current, time.time())
        for store, topic_id in self._topic_ids.items():
            (self._folder / store).mkdir(exist_ok=True)
            seen = {str(partition): when for (name, partition), when in self._seen.items() if name == store}
            write_file(self._folder / store / NOTE, json.dumps({"topic_id": topic_id, "seen": seen}))

    def begin_anew(self, topic_ids: Mapping[str, str]) -> None:
        """Delete the copies of changelogs that were made anew; those that are in use have been emptied.

        Args:
            topic_ids: the id of each such changelog, by the name of the store it fills.
        """
        for place in [each for each in self._released if each[0] in topic_ids]:
            self._released[place].cancel()
            self._close(place)
        for place in [each for each in self._partitions() if each[0] in topic_ids and each not in self._open]:
            shutil.rmtree(self._folder / place[0] / str(place[1]))
        # A copy that was emptied may be full again after a crash, so none counts as up to date for now.
        self._seen = {place: when for place, when in self._seen.items() if place[0] not in topic_ids}
        self._topic_ids = {**self._topic_ids, **topic_ids}
        self.note()

    def close(self, current: Iterable[Place] = ()) -> None:
        """Close all storages and release the folder, even if the disk is full.

        Args:
            current: the copies that are up to date now.
        """
        with ExitStack() as left:
            left.callback(self._lock.release)
            left.callback(self.note, current)
            for place in list(self._open):
                left.callback(self._close, place)
            for timer in list(self._released.values()):
                timer.cancel()

    def _close(self, place: Place) -> None:
        with self._changing:
            self._released.pop(place, None)
            if (storage := self._open.pop(place, None)) is not None:
                storage.close()

    def _partitions(self) -> Iterator[Place]:
        for folder in sorted(self._folder.glob("*/*")):
            if folder.is_dir() and folder.name.isdecimal():
                yield folder.parent.name, int(folder.name)

    def _noted(self, store: Path) -> dict[Place, float]:
        """Return the copies of a store that are of use, each with when it was up to date last."""
        try:
            said = json.loads((store / NOTE).read_text())
            if said["topic_id"] != self._topic_ids.get(store.name):
                return {}
            seen = {(store.name, int(number)): float(when) for number, when in said["seen"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # of an earlier version, or damaged
            return {}
        return {place: when for place, when in seen.items() if _is_recent(when)}


def _is_recent(seen: float) -> bool:
    return time.time() - seen < TOMBSTONES_STAY


def is_copy(folder: Path) -> bool:
    """Whether this is a folder with copies of a store's partitions, and with nothing else."""
    notes = (NOTE, f".{NOTE}.new")
    return folder.is_dir() and all(each.name in notes or each.name.isdecimal() for each in folder.iterdir())
