"""Checks, before the queries of an application start, whether what it has kept fits the topology and the topics."""

import logging
from collections.abc import Callable, Mapping

from streamskit.api.streams_config import StreamsConfig
from streamskit.broker import ExternalBroker
from streamskit.common.errors import StreamsError
from streamskit.environment.spark_processes import is_on_this_machine
from streamskit.kafka.access import missing_rights, no_right
from streamskit.kafka.topics import TopicExtent, extents
from streamskit.planning.plan import Plan
from streamskit.runtime.recovery.changed_settings import other_settings
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.recovery.evolution import check
from streamskit.runtime.recovery.fingerprint import Fingerprint, QueryPrint
from streamskit.runtime.recovery.rebuilding import about, finish
from streamskit.runtime.spark_io import reset_policies
from streamskit.runtime.topics import ApplicationTopics

logger = logging.getLogger("streamskit")

Rebuild = Callable[[Mapping[str, TopicExtent], str], str]
"""Rebuilds an application's folder from the topics that exist, warning of the loss that it was told; returns why it
cannot, and nothing if it has."""

WAYS_OUT = (
    "Start it with the folder it had (state_dir=...); or begin anew: with auto_offset_reset='earliest' it makes its "
    "results again from the records that are there, and after clean_up() it goes on without the earlier ones."
)
"""What to do where a program that does not read its topics from the beginning has lost its folder."""


class StartupChecks:
    """What happens between `start()` and the first query.

    Args:
        config: how the application is to run.
        topics: the application's topics.
        brokers: where they are.
        losses: decides what to do about lost records.
    """

    def __init__(
        self, config: StreamsConfig, topics: ApplicationTopics, brokers: ExternalBroker, losses: DataLoss
    ) -> None:
        self._config, self._folder = config, config.folder
        self._topics, self._brokers, self._losses = topics, brokers, losses
        self._application_id, self._plans = topics.application_id, topics.plans
        self._last_start, self._ids = Fingerprint(), dict[str, str]()
        self._prints: dict[str, QueryPrint] = {}
        self._partitions: Mapping[str, int] = {}
        self._firsts: Mapping[str, Mapping[int, int]] = {}

    def compare(self, partitions: Mapping[str, int], mode: str = "") -> None:
        """Compare the topology with the one that ran here before, without changing anything.

        Args:
            partitions: how many partitions each topic has or will have.
            mode: the mode that was chosen for this start, and why, in words; "" if it was configured.

        Raises:
            StreamsError: what was kept does not fit, or a part of it is gone.
        """
        self._partitions = partitions
        finish(self._folder)
        self._last_start = Fingerprint.load(self._folder)
        self._prints = {plan.name: QueryPrint.of(plan, plan.tasks(partitions)) for plan in self._plans}
        known = self._last_start.queries
        if (refusal := other_settings(self._plans, self._folder, known, mode)) is not None:
            raise refusal
        self._check_cut()
        begun = [name for name, checkpoint in self._checkpoints.items() if checkpoint.has_begun]
        read = {topic for each in self._prints.values() for topic in each.reads}
        now = {name: self._prints[name] for name in begun}
        check(self._application_id, self._folder, self._last_start.queries, now, read)
        for name, checkpoint in self._checkpoints.items():
            was_there = name in self._last_start.queries and not checkpoint.folder.exists()
            if begun and (was_there or checkpoint.is_partly_gone):
                raise StreamsError(
                    f"The checkpoint of sub-topology {name} of '{self._application_id}' is gone, or a part of it "
                    f"({checkpoint.folder}), and those of the others are still there: it would read its topics once "
                    "more, and the others would count its records twice. Put the folder back; or delete "
                    f"{self._folder}, and the next start rebuilds it from the copies of its checkpoints in Kafka; or "
                    "begin anew: clean_up() forgets the others too, and the next start reads the topics from their "
                    "first records."
                )
            checkpoint.verify()

    def _check_cut(self) -> None:
        """Make sure that sub-topologies still run as the queries that they ran as.

        A query that begins without a checkpoint reads its topics from the beginning, and forgets its state.

        Raises:
            StreamsError: one ran as other queries.
        """
        cut: dict[int, list[str]] = {}
        for plan in self._plans:
            cut.setdefault(plan.number, []).append(plan.name)
        for name in self._last_start.queries:
            now = cut.get(int(name.partition(".")[0]), [])
            if not now or name in now or not Checkpoint(self._folder / name).has_begun:
                continue
            if new := [each for each in now if not self._checkpoints[each].has_begun]:
                raise StreamsError(
                    f"Sub-topology {name.partition('.')[0]} of '{self._application_id}' ran as query {name} when it "
                    f"was started last, and Spark would run it as {' and '.join(now)} now: the program, the cache or "
                    f"the mode has changed. {' and '.join(new)} would forget the state and read the topics from the "
                    "beginning. Start it with the program and the settings it had, and give new steps an application "
                    "of their own; or begin anew: clean_up()."
                )

    def check_rights(self) -> None:
        """Make sure that a cluster with access control allows what the application does with the existing topics.

        Raises:
            NoRightError: rights are missing; the message names all of them.
        """
        connection = self._brokers.connection
        if connection.is_secured and (missing := missing_rights(connection, self._topics.rights)):
            raise no_right(connection, *missing)

    def warn_of_files(self, master: str) -> None:
        """Warn if executors cannot find the file with client settings, which this process has written locally.

        Args:
            master: where Spark runs.
        """
        connection = self._brokers.connection
        if connection.has_secrets and connection.file is None and not is_on_this_machine(master):
            logger.warning(
                "Spark runs elsewhere, on %s, and its executors look for the client settings in %s, a file that only "
                "this machine has. Put them into a properties file, in ASCII, that every machine has under the same "
                "path, and name that: client_settings='/etc/trades/client.properties'.", master, connection.path
            )  # fmt: skip

    def prepare(
        self, make_topics: Callable[[], dict[str, int]], forget: Callable[[], None], rebuild: Rebuild
    ) -> dict[str, int]:
        """Make the topics ready, with nothing in them that the queries would not expect.

        Args:
            make_topics: makes the internal topics, and returns how many partitions each topic has.
            forget: deletes the application's folder and its internal topics.
            rebuild: rebuilds the application's folder from the topics that exist; returns why it cannot.

        Returns:
            How many partitions each topic has.

        Raises:
            StreamsError: the topics are not those that the queries have read, and the application cannot go on.
        """
        if not self._has_begun:
            self._begin_anew(forget, rebuild)
        partitions, has_begun = make_topics(), self._has_begun
        self.check_rights()
        now = self._extents()
        self._ids = {topic: extent.id for topic, extent in now.items()}
        self._firsts = (
            self._last_start.firsts if has_begun else {topic: now[topic].first for topic in self._read if topic in now}
        )
        if has_begun:
            remade = {topic for topic, id_ in self._ids.items() if self._last_start.topics.get(topic, id_) != id_}
            self._check_changelogs(remade)
            for plan in self._plans:
                self._losses.heed(plan, now, remade)
        self._losses.know(self._plans, self._ids, partitions, self.note_topics)
        return partitions

    def note(self) -> None:
        """Note what runs now, for the next start.

        Every query has a folder from then on: one that is missing was deleted.
        """
        for checkpoint in self._checkpoints.values():
            checkpoint.folder.mkdir(parents=True, exist_ok=True)
        Fingerprint({**self._last_start.queries, **self._prints}, self._ids, self._firsts).save(self._folder)

    def note_topics(self, ids: Mapping[str, str]) -> None:
        """Note topics that running queries have switched to: created again, or newly matched by a pattern."""
        self._ids |= ids
        self.note()

    def about(self, plan: Plan) -> str:
        """Return what is stored with each position in the copy of a query's checkpoint."""
        return about(self._prints[plan.name], plan.checkpoint_topic, self._ids)

    def _begin_anew(self, forget: Callable[[], None], rebuild: Rebuild) -> None:
        """Rebuild the folder of an earlier run if it is gone; otherwise, clear away what that run has left behind.

        Clearing requires that everything the run has read still exists. Without it, the records left in repartition
        topics and stores would be counted a second time.
        """
        now = self._extents()
        left = [topic for topic in self._topics.internal if topic in now and topic not in self._topics.side_effects]
        left = [topic for topic in left if any(now[topic].end.values())]
        is_partly_gone = any(checkpoint.is_partly_gone for checkpoint in self._checkpoints.values())
        in_first_batch = any(checkpoint.is_in_first_real_time_batch for checkpoint in self._checkpoints.values())
        if not left and not is_partly_gone and not in_first_batch:
            return
        message = (
            f"'{self._application_id}' ended before its first batch in real-time mode was over and noted."
            if in_first_batch
            else f"'{self._application_id}' has run before, as {_shown(left) or self._folder} shows, and its "
            f"checkpoints are not in {self._folder}: they were deleted, or it ran with another folder."
        )
        if not is_partly_gone and not in_first_batch and any(plan.checkpoint_topic in left for plan in self._plans):
            if not (trouble := rebuild(now, message)):
                self.compare(self._partitions)
                return
            message += f" {trouble}"
        later = self._begun_later
        if later and not in_first_batch:  # such a batch is like none: its position was noted nowhere
            raise StreamsError(f"{message} Its state cannot be made again: {later[0]} {WAYS_OUT}")
        self._check_can_begin_anew(message, left, now)
        where = "where auto_offset_reset says" if later else "their first records"
        logger.warning(
            "%s It begins anew: its internal topics are emptied, and all its topics are read from %s. "
            "Its earlier results in other topics stay there, and are written once more.", message, where
        )  # fmt: skip
        forget()

    def _check_can_begin_anew(self, message: str, left: list[str], now: Mapping[str, TopicExtent]) -> None:
        """Make sure that everything that was read still exists, and that results may be written again."""
        way_out = (
            "Start it with the folder it had (state_dir=...); or begin anew with the records that are left: clean_up()."
        )
        for topic in self._read:
            known = self._last_start.firsts.get(topic, {})
            for partition, first in now[topic].first.items() if topic not in self._topics.internal else ():
                if (gone := first - known.get(partition, 0)) > 0:
                    raise StreamsError(
                        f"{message} Its state cannot be made again: {gone} records of topic '{topic}', partition "
                        f"{partition}, have been deleted since. {way_out}"
                    )
        for topic in self._topics.streams:
            if "compact" in self._brokers.describe_topic(topic).config.get("cleanup.policy", ""):
                raise StreamsError(
                    f"{message} Its state cannot be made again: topic '{topic}' is compacted, so that records which "
                    f"it has read as a stream may have been deleted since. {way_out}"
                )
        if self._topics.exactly_once and left and (written := self._topics.written):
            raise StreamsError(
                f"{message} To begin anew would write all its results to {_shown(written)} a second time, and its "
                "guarantee is 'exactly_once'. Start it with the folder it had (state_dir=...); or call clean_up() if "
                "they may be written again."
            )

    def _check_changelogs(self, remade: set[str]) -> None:
        for plan in self._plans:
            for store in plan.stores:
                if (topic := plan.changelog(store)) in remade:
                    raise StreamsError(
                        f"The changelog of store '{store.name}', topic '{topic}', was deleted since "
                        f"'{self._application_id}' ran last: the store would have only what changes from now on. Call "
                        "clean_up() to begin anew; the next start reads the topics from their first records."
                    )

    @property
    def _begun_later(self) -> list[str]:
        """For each source that does not begin with its topics' first records, a part of a sentence that says so."""
        found = (each for plan in self._plans for each in reset_policies(self._config, plan))
        return [
            f"{source.name} ({source.call_site}) has auto_offset_reset='{reset}', and would leave out records of "
            f"{', '.join(topics)} that it has read before."
            for source, topics, reset in found if reset.kind != "earliest"
        ]  # fmt: skip

    @property
    def _has_begun(self) -> bool:
        return any(checkpoint.has_begun for checkpoint in self._checkpoints.values())

    @property
    def _checkpoints(self) -> dict[str, Checkpoint]:
        return {plan.name: Checkpoint(self._folder / plan.name) for plan in self._plans}

    @property
    def _read(self) -> list[str]:
        return list(dict.fromkeys(topic for plan in self._plans for topic in plan.topics))

    def _extents(self) -> dict[str, TopicExtent]:
        return extents(self._brokers.connection, [*self._read, *self._topics.internal])


def _shown(topics: list[str]) -> str:
    return ", ".join(f"'{topic}'" for topic in topics[:3]) + (", …" if len(topics) > 3 else "")
