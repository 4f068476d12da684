"""Rebuilds the lost folder of an application from the copies that its queries keep of their checkpoints.

Each query keeps a copy of its checkpoint on a compacted topic, `<application id>-<sub-topology>-checkpoint`
(`streamskit/jvm/CheckpointCopy.scala`): the rows of its state, and a position, which says how far the query had read
when it had this state. Both change in one transaction. So a checkpoint made from a copy is one that the query once had,
whatever its operators keep, and the query continues as after any other stop.

The folder is built beside its place and moved there when it is complete: a program that dies meanwhile starts over.
"""

import json
import logging
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.durable_files import sync_folder, write_file
from streamskit.common.errors import StreamsError
from streamskit.jvm import java_class
from streamskit.kafka.client_libraries import java_text
from streamskit.kafka.topics import TopicExtent
from streamskit.planning.plan import Plan
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.fingerprint import Fingerprint, QueryPrint

logger = logging.getLogger("streamskit")

STAGING, WHOLE = "rebuilding", "whole"
"""The folder in which a rebuild prepares what it makes, and the file in there that says that it is complete."""


def about(print_: QueryPrint, topic: str, ids: Mapping[str, str]) -> str:
    """Return what is stored with each position of a copy, as JSON.

    Args:
        print_: what the query reads and remembers.
        topic: the topic with the copy.
        ids: the ids of the topics that the application reads and fills.
    """
    return json.dumps({"topic": ids.get(topic, ""), "query": asdict(print_), "topics": dict(ids)})


@dataclass(frozen=True)
class Copy:
    """The copy of a query's checkpoint, as it was found.

    Args:
        plan: the query.
        extent: what its topic holds; None if there is no such topic.
        position: the last position in it; None if there is none.
    """

    plan: Plan
    extent: TopicExtent | None
    position: Mapping[str, Any] | None

    @property
    def known_topics(self) -> Collection[str]:
        """The topics that the application read and filled at this position."""
        return [] if self.position is None else self.position["about"]["topics"]

    @property
    def has_begun(self) -> bool:
        """Whether the query had done a micro-batch."""
        return self.position is not None and self.position["batch"] >= 0

    @property
    def trouble(self) -> str:
        """Why the checkpoint cannot be rebuilt from it; "" if it can."""
        topic = self.plan.checkpoint_topic
        if self.extent is None:
            return f"Topic '{topic}', with a copy of the checkpoint of sub-topology {self.plan.name}, is gone, too."
        if self.position is None:
            return ""
        if self.position["about"]["topic"] != self.extent.id:
            return f"Topic '{topic}' was deleted and made anew while it ran, so that its copy of the state has gaps."
        if (first := self.extent.first[0]) > self.position["from"]:
            return f"{first} records were deleted from topic '{topic}', so that its copy of the state has gaps."
        return ""


class Rebuilding:
    """Rebuilds the folder of an application.

    Args:
        application_id: the application.
        folder: its folder, in which no query has a checkpoint.
        plans: its queries.
        bootstrap_servers: the broker's address.
        fence: aborts a transaction that an earlier run left open, so that all it has committed can be read.
    """

    def __init__(
        self,
        application_id: str,
        folder: Path,
        plans: Sequence[Plan],
        bootstrap_servers: BootstrapServers,
        fence: Callable[[Plan], None],
    ) -> None:
        self._application_id, self._folder, self._plans = application_id, folder, plans
        self._reader, self._fence = java_text(bootstrap_servers, "consumer"), fence

    def run(self, extents: Mapping[str, TopicExtent], why: str) -> str:
        """Rebuild the folder if that is possible; return why not, or "" when it is done.

        Args:
            extents: what the existing topics hold.
            why: a sentence that says what is lost, for a warning; there is none if no query had done a micro-batch.

        Raises:
            StreamsError: a copy cannot be read, or the folder cannot be written. Nothing but drafts has changed then.
        """
        try:
            found = [self._copy(plan, extents.get(plan.checkpoint_topic)) for plan in self._plans]
            known = {topic for copy in found for topic in copy.known_topics}
            # A sub-topology that has come to the program since then has nothing to be rebuilt.
            copies = [copy for copy in found if copy.extent is not None or copy.plan.checkpoint_topic in known]
            if trouble := next(filter(None, (copy.trouble for copy in copies)), ""):
                return trouble
            if not any(copy.position for copy in copies):
                return "No copy of its checkpoints was kept yet."
            if any(copy.has_begun for copy in copies):  # otherwise its last start ended before there was anything
                logger.warning("%s Its folder is rebuilt from the topics with copies of its checkpoints.", why)
            self._make(copies)
        except Py4JJavaError as failure:
            raise StreamsError(
                f"The folder of '{self._application_id}' is gone, and could not be rebuilt from the topics with "
                f"copies of its checkpoints: {failure.java_exception.toString()} Start it again to try once more, or "
                "call clean_up() to begin anew with the records that are left."
            ) from failure
        return ""

    def _copy(self, plan: Plan, extent: TopicExtent | None) -> Copy:
        if extent is None:
            return Copy(plan, None, None)
        self._fence(plan)
        found = java_class("CheckpointCopy").lastPosition(self._reader, plan.checkpoint_topic)
        return Copy(plan, extent, None if found is None else json.loads(found))

    def _make(self, copies: Sequence[Copy]) -> None:
        staging = self._folder / STAGING
        staging.mkdir(parents=True)
        prints: dict[str, QueryPrint] = {}
        ids: dict[str, str] = {}
        for copy in copies:
            folder = staging / copy.plan.name
            folder.mkdir()
            if copy.position is not None:
                said = copy.position["about"]
                prints[copy.plan.name] = QueryPrint.from_json(said["query"])
                ids |= said["topics"]
            if copy.has_begun:
                self._make_checkpoint(copy, folder)
        Fingerprint(prints, ids).save(staging)
        write_file(staging / WHOLE, "")
        finish(self._folder)

    def _make_checkpoint(self, copy: Copy, folder: Path) -> None:
        topic, name = copy.plan.checkpoint_topic, copy.plan.name
        logger.warning(
            "'%s': the checkpoint of sub-topology %s is rebuilt from topic '%s'.", self._application_id, name, topic
        )
        rows = java_class("CheckpointRebuild")(self._reader, topic, str(folder)).run()
        position = Checkpoint(folder).position()
        logger.warning(
            "'%s': sub-topology %s has %s rows of state again, and goes on at %s.",
            self._application_id, name, f"{rows:,}", _shown(position),
        )  # fmt: skip


def finish(folder: Path) -> None:
    """Move the result of a rebuild into place if it is complete; otherwise, discard it.

    Args:
        folder: the application's folder.
    """
    staging = folder / STAGING
    if (staging / WHOLE).exists():
        for made in staging.iterdir():
            if made.name != WHOLE:
                _replace(made, folder / made.name)
        sync_folder(folder)  # before the file that marks it as complete is deleted
    shutil.rmtree(staging, ignore_errors=True)


def _replace(made: Path, place: Path) -> None:
    if place.is_dir():  # without a checkpoint: nothing would be rebuilt otherwise
        shutil.rmtree(place)
    made.rename(place)


def _shown(position: Mapping[str, Mapping[int, int]]) -> str:
    """Return the offsets of the first few partitions, in words."""
    places = [f"{topic}-{number}@{offset}" for topic, each in position.items() for number, offset in each.items()]
    return ", ".join(places[:4]) + (f" and {len(places) - 4} more partitions" if len(places) > 4 else "")
