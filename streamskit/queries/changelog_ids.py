"""Notices that topics which fill an instance's stores were deleted or made anew, as `clean_up()` and a new start do."""

from collections.abc import Mapping

from streamskit.kafka.topics import TopicIdentity
from streamskit.queries.group.catalogue import Catalogue


class ChangelogIds:
    """The ids of changelogs, as they were when an instance began to read them.

    A topic counts as deleted when two looks in a row do not find it: not all brokers hear of a new one at once.
    """

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._missing = frozenset[str]()
        self.gone = frozenset[str]()
        """The topics that were deleted, as of the last look."""

    def note(self, ids: Mapping[str, str]) -> None:
        """Remember the ids of topics that are read from now on."""
        self._ids |= ids

    def look(self, found: Mapping[str, TopicIdentity]) -> tuple[frozenset[str], dict[str, TopicIdentity]]:
        """Return the topics that were deleted since the last look, and those that were made anew, with what they are.

        Args:
            found: the topics that are there.
        """
        missing = frozenset(self._ids.keys() - found.keys())
        before, self.gone, self._missing = self.gone, missing & self._missing, missing
        remade = {topic: found[topic] for topic, id_ in self._ids.items() if topic in found and found[topic].id != id_}
        return self.gone - before, remade


def misfit(catalogue: Catalogue, remade: Mapping[str, TopicIdentity]) -> str:
    """Say which topic was made anew with other partitions; nothing if none was, as those of global tables may grow."""
    for entry in catalogue:
        now = remade[entry.changelog].partitions if entry.changelog in remade else entry.partitions
        if now < entry.partitions or (now > entry.partitions and not entry.is_global):
            return (
                f"Topic '{entry.changelog}', which fills store '{entry.name}', was made anew and has {now} partitions "
                f"now, not {entry.partitions}. Start the instance again."
            )
    return ""
