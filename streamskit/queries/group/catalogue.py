"""What an instance has to know of an application: its stores, and the changelogs that fill them."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from streamskit.api.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from streamskit.common.durable_files import write_file
from streamskit.common.errors import StreamsError
from streamskit.common.ownership import check_own, make_private
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.serdes import Serde, SerdeError
from streamskit.serdes.description import describe, described
from streamskit.state.stores import Store

FILE, OLD_FILE = "stores.json", "stores.pickle"
VERSION = 1
EARLIER_NAMES = {"everywhere": "is_global"}
KINDS = (TimeWindows, SlidingWindows, SessionWindows, UnlimitedWindows, JoinWindows)
WINDOWS = {each.__name__: each for each in KINDS}


@dataclass(frozen=True)
class QueryableStore:
    """A store that can be queried, as every instance of the application knows it.

    `changelog` is the topic that fills it, `group` the sub-topology it belongs to, and `partitions` how many partitions
    the changelog has. `routed` says whether the partition of a row follows from its key, as it does for the stores of
    the DSL; a processor may put any key into the store of its task, and a user's partitioner sends rows where it likes.
    An `is_global` store (that of a global table) is whole on each instance.
    """

    store: Store
    changelog: str
    group: int = -1
    routed: bool = True
    is_global: bool = False
    partitions: int = 1

    @property
    def name(self) -> str:
        """The name of the store."""
        return self.store.name


@dataclass(frozen=True)
class Catalogue:
    """The stores of an application that can be queried.

    Its tasks are named as in Kafka Streams: "0_2" is partition 2 of sub-topology 0.
    """

    application_id: str
    entries: tuple[QueryableStore, ...]

    def __iter__(self) -> Iterator[QueryableStore]:
        return iter(self.entries)

    @property
    def shared(self) -> list[QueryableStore]:
        """The stores whose partitions the instances share."""
        return [entry for entry in self.entries if not entry.is_global]

    def with_partitions(self, counts: Mapping[str, int]) -> "Catalogue":
        """Return the same catalogue, given how many partitions each changelog has."""
        entries = tuple(replace(entry, partitions=counts[entry.changelog]) for entry in self.entries)
        return Catalogue(self.application_id, entries)

    def tasks(self) -> list[str]:
        """Return the tasks that the instances share."""
        widths: dict[int, int] = {}
        for entry in self.shared:
            widths[entry.group] = max(widths.get(entry.group, 0), entry.partitions)
        return [f"{group}_{partition}" for group in sorted(widths) for partition in range(widths[group])]

    def changelogs(self, group: int) -> list[str]:
        """Return the changelogs of a sub-topology."""
        return list(dict.fromkeys(entry.changelog for entry in self.shared if entry.group == group))

    def changelog_partitions(self, task: str) -> list[TopicPartition]:
        """Return the partitions of changelogs that fill the stores of a task."""
        group, partition = split(task)
        topics = {entry.changelog: entry.partitions for entry in self.shared if entry.group == group}
        return [TopicPartition(topic, partition) for topic, count in topics.items() if partition < count]

    def save(self, folder: Path) -> None:
        """Write it into an application's folder, where `python -m streamskit serve` finds it."""
        make_private(folder)
        stores = [{**_places(entry), "store": describe_store(entry.store)} for entry in self]
        said = json.dumps({"version": VERSION, "application_id": self.application_id, "stores": stores})
        write_file(folder / FILE, said, mode=0o600)
        (folder / OLD_FILE).unlink(missing_ok=True)

    @staticmethod
    def load(folder: Path, own: Collection[Serde] = ()) -> "Catalogue":
        """Read what `save` wrote. This runs no code, whoever wrote the file.

        Args:
            folder: the application's.
            own: the program's custom serdes, which its stores may use.

        Raises:
            StreamsError: there is no such file, it cannot be read, or it names a custom serde that is not in `own`.
            SetupError: the folder or the file is another user's.
        """
        check_own(folder, folder / FILE)
        try:
            said = json.loads((folder / FILE).read_text())
            return Catalogue(str(said["application_id"]), tuple(_entry(each, own) for each in said["stores"]))
        except FileNotFoundError:
            raise StreamsError(
                f"There is no application '{folder.name}': {folder.parent} has no folder of that name "
                f"with a {FILE}. Start the application once (KafkaStreams(...).start() writes it), name its "
                "state_dir with --applications, or its program with --topology module:function."
            ) from None
        except StreamsError as custom:
            raise StreamsError(
                f"{custom} {folder / FILE} brings no code along: put the serde into a module, and name its class: "
                f"`serve {folder.name} --serde module:class`, or Instances(..., serdes=['module:class'])."
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as failure:
            raise StreamsError(
                f"{folder / FILE} cannot be read: {failure!r}. Start the application again; it writes it anew."
            ) from failure


def _places(entry: QueryableStore) -> dict[str, Any]:
    return {each.name: getattr(entry, each.name) for each in fields(entry) if each.name != "store"}


def _entry(said: Mapping[str, Any], own: Collection[Serde]) -> QueryableStore:
    named = {EARLIER_NAMES.get(name, name): each for name, each in said.items()}
    return QueryableStore(**{**named, "store": described_store(said["store"], own)})


def split(task: str) -> tuple[int, int]:
    """Return the sub-topology and the partition of a task."""
    group, _, partition = task.partition("_")
    return int(group), int(partition)


def describe_store(store: Store) -> dict[str, Any]:
    """Return a store as JSON.

    >>> describe_store(Store("counts", "key-value", Serdes.string(), Serdes.long()))["value"]
    {'serde': 'long'}
    """
    said = {each.name: getattr(store, each.name) for each in fields(Store)}
    windows = None if store.windows is None else {"kind": type(store.windows).__name__, **asdict(store.windows)}
    return {**said, "key": describe(store.key), "value": describe(store.value), "windows": windows}


def described_store(said: Mapping[str, Any], own: Collection[Serde] = ()) -> Store:
    """Return the store that `describe_store` wrote down.

    Args:
        said: what it wrote.
        own: the program's custom serdes.

    Raises:
        StreamsError: one of its serdes is a custom class that is not in `own`.
        ValueError: the JSON describes no store.
    """
    try:
        key, value = described(said["key"], own), described(said["value"], own)
    except SerdeError as custom:
        raise StreamsError(f"Store '{said['name']}' cannot be read here: {custom}") from None
    windows = said["windows"]
    if windows is not None:
        windows = WINDOWS[windows["kind"]](**{name: int(each) for name, each in windows.items() if name != "kind"})
    changelog = tuple((name, value) for name, value in said.get("changelog", ()))
    return Store(**{**said, "key": key, "value": value, "windows": windows, "changelog": changelog})
