"""The stores that an instance hosts: its share of their partitions, each filled from its changelog."""

import time
from collections.abc import Callable, Collection, Mapping
from itertools import groupby
from pathlib import Path

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_partition import ChangelogRecord, TopicPartition
from streamskit.kafka.topic_reader import TopicReader, changelog_records
from streamskit.queries.group.catalogue import Catalogue, QueryableStore
from streamskit.queries.queryable_instance import ANSWERING, PartitionState, StoreUpdate
from streamskit.queries.restore_listener import Restorations
from streamskit.state.local import LocalStore
from streamskit.state.state_folder import StateFolder
from streamskit.state.storage import Storage
from streamskit.state.timed import local_store

FLUSH_SECONDS = 15.0
"""How often a store on the disk writes out what it holds in memory, in seconds."""


class HostedStores:
    """Copies of partitions of stores, which a thread keeps up to date from the changelogs.

    The instance decides which partitions, and in which roles (`host`), and has that done in the thread (`do`).

    Args:
        catalogue: the application's stores.
        bootstrap_servers: the Kafka brokers.
        state_dir: the folder for stores on the disk; all are in memory when not given.
        keeps: says, for a topic and the key and value of a record, whether it is to be taken.
        moved: called, in the thread, when partitions have been read further.

    Mirrors the store change log reader and the state directory of Kafka Streams.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        bootstrap_servers: BootstrapServers,
        state_dir: Path | None,
        keeps: Callable[[str, bytes | None, bytes | None], bool],
        moved: Callable[[], None],
    ) -> None:
        self._folder = StateFolder(state_dir) if state_dir else None
        self._entries = {entry.name: entry for entry in catalogue}
        self._filled = {
            topic: [entry.name for entry in catalogue if entry.changelog == topic]
            for topic in dict.fromkeys(entry.changelog for entry in catalogue)
        }
        self._stores = {
            entry.name: local_store(entry.store, self._maker(entry), is_global=entry.is_global) for entry in catalogue
        }
        self._on_disk: dict[TopicPartition, int] = {}
        self.roles: Mapping[TopicPartition, str] = {}
        """The partitions that are here, each with its role."""
        self._by_topic: Mapping[str, list[tuple[TopicPartition, str]]] = {}
        self._listeners: dict[str, list[Callable[[StoreUpdate], None]]] = {}
        self._last: dict[TopicPartition, int] = {}
        """The offset of the last update of each partition that was read here."""
        self._flushed = time.monotonic()
        self.failure = ""
        """Why no more updates can be read, as a sentence; "" while they can."""
        self.restorations = Restorations(lambda where: self._filled[where.topic])
        self._reader = TopicReader(
            bootstrap_servers,
            self._take,
            "The stores",
            changelog_records(keeps),
            restart=self._restart,
            # Not in `_take`: the end of a partition may come in one portion with its last records, and then no more.
            moved=moved,
            failed=self._fail,
        )
        self.do = self._reader.do
        self.wait_for = self._reader.wait_for

    @property
    def changelogs(self) -> list[str]:
        """The topics that fill the stores."""
        return list(self._filled)

    @property
    def lives(self) -> bool:
        """Whether the changelogs are read; also before the start and after the end."""
        return self._reader.lives and not self.failure

    def start(self, ids: Mapping[str, str]) -> None:
        """Open the folder, if there is one, and begin to read.

        Args:
            ids: the id of each changelog; what the folder holds of another topic of the same name is ignored.

        Raises:
            StreamsError: the folder is another instance's.
        """
        if self._folder is not None:
            self._folder.open({name: ids[entry.changelog] for name, entry in self._entries.items()})
            persistent = {name: entry.changelog for name, entry in self._entries.items() if entry.store.persistent}
            self._on_disk = self._folder.positions(persistent)
        self._reader.start()

    def stop(self, in_touch: bool = True) -> None:
        """Stop reading and let go of all partitions; the stores on the disk stay for the next time.

        Args:
            in_touch: whether the broker has answered up to now, so that nothing is missing that it had to say.
        """
        try:
            self._reader.stop()
        finally:
            if self._folder is not None:
                self._folder.close(self._current() if in_touch and not self.failure else ())
        self.roles, self._by_topic = {}, {}

    def say_stopped(self, why: str) -> None:
        """Have the stores say why no more updates come, unless they already do."""
        for store in self._stores.values():
            store.stopped = store.stopped or why

    # ---- what is here ------------------------------------------------------------------------------------------------

    def store(self, name: str) -> LocalStore:
        """Return the part of a store that is here."""
        return self._stores[name]

    def states(self, topic: str) -> list[PartitionState]:
        """Return the partitions of a changelog that are here, with how far they are."""
        found = []
        for where, role in self._by_topic.get(topic, ()):
            # In this order: a partition that is given up in between has no end any more, and is left out.
            ready, position = self.is_ready(where), self._reader.positions.get(where, 0)
            if (end := self._reader.ends.get(where)) is not None:
                found.append(PartitionState(where.partition, role, position, end, ready))
        return found

    def is_ready(self, where: TopicPartition) -> bool:
        """Return whether a partition is here and has been restored."""
        return self._reader.is_ready(where)

    def progress(self, where: TopicPartition) -> tuple[int, int]:
        """Return the offset up to which a partition has been read, and the end of its changelog."""
        return self._reader.positions.get(where, 0), self._reader.ends.get(where, 0)

    def position(self, where: TopicPartition) -> int:
        """Return the offset up to which a partition has been read, by this instance or by the folder's previous one."""
        return self._reader.positions.get(where) or self._on_disk.get(where, 0)

    def subscribe(self, store: str, listener: Callable[[StoreUpdate], None]) -> Callable[[], None]:
        """Call `listener`, in the reader's thread, with each update of the active partitions; see `Instance`."""
        self._listeners[store] = [*self._listeners.get(store, ()), listener]

        def end() -> None:
            self._listeners[store] = [each for each in self._listeners[store] if each is not listener]

        return end

    # ---- all of this runs in the reader's thread ---------------------------------------------------------------------

    def host(self, places: Mapping[TopicPartition, str]) -> None:
        """Hold these partitions, each in a role, and no others."""
        gone = [where for where in self.roles if where not in places]
        new = [where for where in places if where not in self.roles]
        if gone and self._folder is not None:
            self._folder.note(self._current())
        if new:
            self._reader.follow({where: self._open(where) for where in new})
        # The listener is not notified of a standby or warm-up replica, only of what it still lacks once it is active.
        answered = [where for where, role in places.items() if role in ANSWERING]
        for where in [each for each in answered if self.roles.get(each) not in ANSWERING]:
            self.restorations.begin(where, *self._reader.restored_from(where))
        self.roles = dict(places)
        by_topic = groupby(sorted(places.items()), lambda place: place[0].topic)
        self._by_topic = {topic: list(found) for topic, found in by_topic}
        if gone:
            self._reader.unfollow(gone)
            for where in gone:
                self.restorations.suspend(where)
                self._give_up(where)

    def lose(self, topics: Collection[str]) -> None:
        """Read changelogs no more that were deleted."""
        self._reader.unfollow([where for where in self.roles if where.topic in topics])

    def begin_anew(self, ids: Mapping[str, str]) -> None:
        """Drop the copies of changelogs that were made anew, and read these from their first records.

        Args:
            ids: the ids that these changelogs have now.
        """
        self._reader.begin_anew([where for where in self.roles if where.topic in ids])
        self._on_disk = {where: position for where, position in self._on_disk.items() if where.topic not in ids}
        if self._folder is not None:
            entries = [entry for entry in self._entries.values() if entry.changelog in ids]
            self._folder.begin_anew({entry.name: ids[entry.changelog] for entry in entries})

    def give_up(self, failure: StreamsError) -> None:
        """Read no more, because of a failure, and have the stores say so."""
        self._fail(failure)
        self._reader.stop()

    def _open(self, where: TopicPartition) -> int:
        return min(self._stores[name].open(where.partition).position for name in self._filled[where.topic])

    def _give_up(self, where: TopicPartition) -> None:
        self._last.pop(where, None)
        for name in self._filled[where.topic]:
            storage = self._stores[name].drop(where.partition)
            if storage is not None and self._folder is not None and self._entries[name].store.persistent:
                self._on_disk[where] = storage.mark().position
                self._folder.release(name, where.partition)

    def _take(self, where: TopicPartition, records: list[ChangelogRecord], offsets: list[int], position: int) -> None:
        for name in self._filled[where.topic]:
            self._stores[name].take(where.partition, records, position)
            if self._listeners.get(name) and self.roles.get(where) in ANSWERING:
                self._tell(name, where, records, offsets)
        if offsets:
            self._last[where] = offsets[-1]
        self.restorations.take(where, offsets, position)
        if self._folder is not None and time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush()

    def _tell(self, name: str, where: TopicPartition, records: list[ChangelogRecord], offsets: list[int]) -> None:
        if not self.is_ready(where):
            return  # what is restored is no news
        store, previous = self._stores[name], self._last.get(where)
        for offset, (key, value, timestamp) in zip(offsets, records, strict=True):
            try:
                update = StoreUpdate(*store.decode(key, value), timestamp, where.partition, offset, "", previous)
            except Exception as failure:  # a serde may be a user's own; one bad record must not end the reader
                update = StoreUpdate(None, None, timestamp, where.partition, offset, str(failure), previous)
            previous = offset
            for listener in self._listeners[name]:
                listener(update)

    def _restart(self, where: TopicPartition) -> None:
        self._last.pop(where, None)
        for name in self._filled[where.topic]:
            self._stores[name].clear(where.partition)

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        for store in self._stores.values():
            store.flush()
        if self._folder is not None:
            self._folder.note(self._current())

    def _current(self) -> list[tuple[str, int]]:
        """Return the stores on the disk, with their partitions, that have been read to their ends."""
        ready = [where for where in self.roles if self.is_ready(where)]
        places = [(name, where.partition) for where in ready for name in self._filled[where.topic]]
        return [place for place in places if self._entries[place[0]].store.persistent]

    def _fail(self, failure: StreamsError) -> None:
        if self.failure:
            return  # the first is the reason of the others
        self.failure = str(failure)
        for store in self._stores.values():
            store.stopped = f"No more updates come: {failure}"

    def _maker(self, entry: QueryableStore) -> Callable[[int], Storage] | None:
        folder, name = self._folder, entry.name
        return (lambda number: folder.storage(name, number)) if folder is not None and entry.store.persistent else None
