"""The folder where an instance keeps its stores on the disk, so that a restart reads only what it missed."""

import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
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
        self._open: dict[tuple[str, int], RocksStorage] = {}
        self._released: dict[tuple[str, int], threading.Timer] = {}
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
            if not self._is_of_use(store):
                shutil.rmtree(store)
        self.note()

    def storage(self, store: str, partition: int) -> RocksStorage:
        """Return the storage of a partition, opened if it is not open yet."""
        place = (store, partition)
        with self._changing:
            if (timer := self._released.pop(place, None)) is not None:
                timer.cancel()
            if place not in self._open:
                self._open[place] = RocksStorage(self._folder / store / str(partition))
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

    def note(self) -> None:
        """Record which changelogs these copies belong to, and that they are up to date now."""
        for store, topic_id in self._topic_ids.items():
            (self._folder / store).mkdir(exist_ok=True)
            said = {"topic_id": topic_id, "seen": time.time()}
            write_file(self._folder / store / NOTE, json.dumps(said))

    def close(self) -> None:
        """Close all storages and release the folder, even if the disk is full."""
        with ExitStack() as left:
            left.callback(self._lock.release)
            left.callback(self.note)
            for place in list(self._open):
                left.callback(self._close, place)
            for timer in list(self._released.values()):
                timer.cancel()

    def _close(self, place: tuple[str, int]) -> None:
        with self._changing:
            self._released.pop(place, None)
            if (storage := self._open.pop(place, None)) is not None:
                storage.close()

    def _partitions(self) -> Iterator[tuple[str, int]]:
        for folder in sorted(self._folder.glob("*/*")):
            if folder.is_dir() and folder.name.isdecimal():
                yield folder.parent.name, int(folder.name)

    def _is_of_use(self, store: Path) -> bool:
        try:
            said = json.loads((store / NOTE).read_text())
            fresh = time.time() - said["seen"] < TOMBSTONES_STAY
            return bool(fresh and said["topic_id"] == self._topic_ids.get(store.name))
        except (OSError, ValueError, KeyError, TypeError):
            return False


def is_copy(folder: Path) -> bool:
    """Whether this is a folder with copies of a store's partitions, and with nothing else."""
    notes = (NOTE, f".{NOTE}.new")
    return folder.is_dir() and all(each.name in notes or each.name.isdecimal() for each in folder.iterdir())
