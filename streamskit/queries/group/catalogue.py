"""What an instance has to know of an application: its stores, and the changelogs that fill them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark import cloudpickle

from streamskit.common.errors import StreamsError
from streamskit.state.stores import Store


@dataclass(frozen=True)
class CatalogueEntry:
    """A store, the topic that fills it, and the sub-topology it belongs to.

    `routed` says whether the partition of a row follows from its key; `everywhere` marks a global table's store, which
    every instance has whole.
    """

    store: Store
    changelog: str
    group: int
    routed: bool = True
    everywhere: bool = False


@dataclass(frozen=True)
class Catalogue:
    """The stores of an application that can be queried."""

    application_id: str
    entries: tuple[CatalogueEntry, ...]

    def __iter__(self) -> Iterator[CatalogueEntry]:
        return iter(self.entries)

    @property
    def shared(self) -> list[CatalogueEntry]:
        """Those whose partitions the instances share."""
        return [entry for entry in self.entries if not entry.everywhere]

    def changelogs(self, group: int) -> list[str]:
        """Return the changelogs of a sub-topology."""
        return list(dict.fromkeys(entry.changelog for entry in self.shared if entry.group == group))

    def save(self, folder: Path) -> None:
        """Write it into an application's folder, where `python -m streamskit serve` finds it."""
        folder.mkdir(parents=True, exist_ok=True)
        # Serdes may be classes that were written in a notebook: only cloudpickle takes those along.
        new = folder / "stores.pickle.new"
        new.write_bytes(cloudpickle.dumps(self))  # type: ignore[no-untyped-call]
        new.replace(folder / "stores.pickle")

    @staticmethod
    def load(folder: Path) -> "Catalogue":
        """Read what `save` wrote.

        Raises:
            StreamsError: there is nothing, or it cannot be read.
        """
        try:
            loaded = cloudpickle.loads((folder / "stores.pickle").read_bytes())
        except FileNotFoundError:
            raise StreamsError(
                f"Nothing is known here of an application '{folder.name}': {folder.parent} has no folder of that name "
                "with a stores.pickle. Start the application once (KafkaStreams(...).start() writes it), name its "
                "--state-dir, or name its program with --topology module:function."
            ) from None
        except Exception as failure:
            raise StreamsError(
                f"{folder / 'stores.pickle'} cannot be read: {failure}. Start the application again; it writes it anew."
            ) from failure
        if not isinstance(loaded, Catalogue):
            raise StreamsError(f"{folder / 'stores.pickle'} holds no list of stores: start the application again.")
        return loaded
