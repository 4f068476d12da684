"""Records that were deleted before they were read: the application stops, or goes on and counts them."""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from streamskit.common.errors import BrokerError, StreamsError
from streamskit.kafka.topics import TopicExtent, extents, unseen
from streamskit.planning.plan import Plan
from streamskit.runtime.denials import denied
from streamskit.runtime.recovery.checkpoint import Checkpoint, Positions
from streamskit.runtime.recovery.evolution import other_partitions

logger = logging.getLogger("streamskit")

LOST = re.compile("KAFKA_DATA_LOSS|Some data may have been lost|OffsetOutOfRangeException|STREAMSKIT_TOPIC_REMADE")
"""What Spark says when records that it was to read are missing (in tasks without the error's name), what Kafka's
consumer says then in real-time mode, and what our source (in `streamskit/jvm`) says when a topic is not the same as
before."""


UNKNOWN_TOPIC = "UnknownTopicOrPartition"
"""What Kafka says about a topic that was deleted."""

ANEW_SECONDS, LOOK_SECONDS = 20.0, 0.5
"""How long to wait for a deleted topic to be created again, and how long between two looks."""


@dataclass(frozen=True)
class Gap:
    """A partition that does not hold what a query is to read next.

    `position` is the offset to go on from, `first` and `end` say what the partition holds. `is_remade` says that its
    topic was deleted and made anew, so that its offsets have nothing to do with the position.
    """

    topic: str
    partition: int
    position: int
    first: int
    end: int
    is_remade: bool

    @property
    def lost(self) -> int:
        """How many records were deleted before they were read; unknown for a topic that was created again."""
        return 0 if self.is_remade else self.first - self.position

    def __str__(self) -> str:
        return f"partition {self.partition}, offsets {self.position} to {self.first - 1} ({self.lost} records)"


class DataLoss:
    """Compares where queries stand with what their topics still hold, and decides what to do about a gap.

    Spark's own switch, `failOnDataLoss`, either fails with an offset or skips without a word. Here a query always runs
    with the check; to go on, its checkpoint is moved to the first record that exists, and the records in between are
    counted.

    Args:
        application_id: the name to use in messages.
        folder: the application's folder, with the checkpoints.
        policy: "stop" or "continue".

    Mirrors the consumer's `auto.offset.reset` when its offset is out of range: "none", and "earliest" with a count.
    """

    def __init__(self, application_id: str, folder: Path, policy: str) -> None:
        self._application_id, self._folder, self._policy = application_id, folder, policy
        self.lost: Counter[str] = Counter()
        """How many records each query has lost, by its name."""
        self._ids: dict[str, dict[str, str]] = {}
        self._partitions: Mapping[str, int] = {}
        self._on_new_ids: Callable[[Mapping[str, str]], None] = lambda ids: None

    def know(
        self,
        plans: Iterable[Plan],
        ids: Mapping[str, str],
        partitions: Mapping[str, int],
        on_new_ids: Callable[[Mapping[str, str]], None],
    ) -> None:
        """Take note of the topics that queries are about to read.

        Args:
            plans: what the queries run.
            ids: the id of each topic.
            partitions: how many each topic has.
            on_new_ids: called with the ids of topics that were created again once all their queries use them.
        """
        self._ids = {plan.name: {topic: ids[topic] for topic in plan.topics if topic in ids} for plan in plans}
        self._partitions, self._on_new_ids = partitions, on_new_ids

    def add(self, plan: Plan, ids: Mapping[str, str]) -> None:
        """Take note of topics that a query reads from now on, by their ids."""
        self._ids[plan.name] = {**self._ids[plan.name], **ids}

    def ids_of(self, plan: Plan) -> Mapping[str, str]:
        """Return the ids of the topics that a query reads, as they were when it began to read them."""
        return self._ids.get(plan.name, {})

    def remade(self, plan: Plan, ids: Mapping[str, str]) -> set[str]:
        """Return the topics of a query that were deleted and created again since it began, by their current ids."""
        return {topic for topic, id_ in self.ids_of(plan).items() if ids.get(topic, id_) != id_}

    def heed(self, plan: Plan, extents: Mapping[str, TopicExtent], remade: Collection[str] = ()) -> bool:
        """Look for gaps in front of a query and skip them, if that is the policy; return whether there were any.

        Args:
            plan: what the query runs; it does not run now.
            extents: what its topics hold.
            remade: topics known to differ from those it has read, though the name is the same.

        Raises:
            StreamsError: there are gaps, and the policy is to stop.
        """
        checkpoint = Checkpoint(self._folder / plan.name)
        position = checkpoint.position()  # a first batch in real-time mode has one, too, before Spark notes that batch
        gone = sorted(topic for topic in position if topic not in extents and _is_of_pattern(topic, plan))
        if gone:
            self._go_on_without(gone, plan, checkpoint)
        gaps = list(self._gaps(plan, position, extents, remade))
        if not gaps:
            return bool(gone)
        if self._policy == "stop":
            raise StreamsError(self._refusal(plan, gaps))
        starts: Positions = {}
        ends: Positions = {}
        for gap in gaps:
            starts.setdefault(gap.topic, {})[gap.partition] = gap.first
            ends.setdefault(gap.topic, {})[gap.partition] = gap.end
        checkpoint.move(starts, ends)
        for gap in gaps:
            self.lost[plan.name] += gap.lost
            self._tell(plan, gap)
        return True

    def _go_on_without(self, gone: list[str], plan: Plan, checkpoint: Checkpoint) -> None:
        """Forget topics of a pattern that were deleted, if that is the policy.

        Raises:
            StreamsError: it is not, or the query runs and has them in its plan.
        """
        names, are = ", ".join(f"'{topic}'" for topic in gone), "is" if len(gone) == 1 else "are"
        said = (
            f"What sub-topology {plan.name} of '{self._application_id}' has read, {names}, {are} not there any more: "
            "deleted, perhaps with records that it has not read."
        )
        if self._policy == "stop":
            raise StreamsError(
                f"{said} To begin anew with what is left: clean_up(). To go on with the other topics of the pattern: "
                "KafkaStreams(..., on_data_loss='continue')."
            )
        if {*gone} & {*plan.topics}:
            raise StreamsError(f"{said} Start the application again: it goes on with the other topics of the pattern.")
        checkpoint.forget(gone)
        logger.warning("%s It goes on with the other topics of the pattern.", said)

    def check_partitions(self, plan: Plan, now: Mapping[str, int]) -> None:
        """Check that the topics of a query with state have as many partitions as when it began.

        Raises:
            StreamsError: they do not, so that keys would not meet their state.
        """
        if not plan.is_stateful or plan.name not in self._ids:
            return
        before, after = plan.tasks(self._partitions), plan.tasks({**self._partitions, **now})
        if before != after:
            raise other_partitions(self._application_id, plan.name, plan.topics_as_written, before, after)

    def is_behind(self, failure: Exception, plan: Plan, wait: Callable[[float], object] = time.sleep) -> bool:
        """Return whether a query failed because of deleted records and has been moved past them.

        Whatever the failure, its topics are compared with those it began with.

        Args:
            failure: why it failed.
            plan: what it runs; it does not run now.
            wait: waits for the given seconds; returns true if the application is to stop.

        Raises:
            StreamsError: records were lost and the policy is to stop; or partitions were added, or a topic is missing.
        """
        is_loss, may_be_gone = LOST.search(str(failure)) is not None, UNKNOWN_TOPIC in str(failure)
        if not is_loss and plan.name not in self._ids:
            return False
        if denied(str(failure), plan):  # a topic that may not be seen looks like one that is gone
            return False
        try:
            now = self._extents(plan, wait)
        except BrokerError:
            if is_loss:
                raise
            return False
        self.check_partitions(plan, {topic: len(extent.end) for topic, extent in now.items()})
        remade = self.remade(plan, {topic: extent.id for topic, extent in now.items()})
        if not (is_loss or remade or may_be_gone):
            return False
        is_behind = self.heed(plan, now, remade)
        if remade:
            self._learn(plan, {topic: now[topic].id for topic in remade})
        return is_behind or bool(remade)

    def _extents(self, plan: Plan, wait: Callable[[float], object]) -> dict[str, TopicExtent]:
        """Return what the topics of a query hold; if the policy is to go on, wait for one that is being created again.

        Raises:
            StreamsError: a topic that existed when the query began no longer exists.
        """
        now = extents(plan.options.bootstrap_servers, plan.topics)
        gone = _gone(plan, now)
        if gone and self._policy == "continue":
            logger.warning(
                "'%s': topic '%s' is not there any more; sub-topology %s waits for %.0f s for it to be made anew.",
                self._application_id, gone[0], plan.name, ANEW_SECONDS,
            )  # fmt: skip
            deadline = time.monotonic() + ANEW_SECONDS
            while gone and time.monotonic() < deadline and not wait(LOOK_SECONDS):
                now = extents(plan.options.bootstrap_servers, plan.topics)
                gone = _gone(plan, now)
        if not gone:
            return now
        if gone[0].startswith(f"{self._application_id}-") and gone[0].endswith("-repartition"):
            raise StreamsError(
                f"Topic '{gone[0]}', which '{self._application_id}' made for itself, is not there any more: it was "
                "deleted while the application ran. Call clean_up() and start again: the application begins anew, and "
                f"makes the topic.{unseen(plan.options.bootstrap_servers)}"
            )
        raise StreamsError(
            f"Topic '{gone[0]}', which sub-topology {plan.name} of '{self._application_id}' reads, is not there any "
            "more: it was deleted while the application ran. Create it again, then start the application: after "
            "clean_up() it begins anew, and with KafkaStreams(..., on_data_loss='continue') it goes on with the first "
            f"record of the new topic.{unseen(plan.options.bootstrap_servers)}"
        )

    def _learn(self, plan: Plan, ids: Mapping[str, str]) -> None:
        """Note new topics that a query continues with, and call `on_new_ids` once all their queries do."""
        self._ids[plan.name].update(ids)
        everywhere = {
            topic: id_ for topic, id_ in ids.items() if {each.get(topic, id_) for each in self._ids.values()} == {id_}
        }
        if everywhere:
            self._on_new_ids(everywhere)

    def _gaps(
        self, plan: Plan, position: Positions, extents: Mapping[str, TopicExtent], remade: Collection[str]
    ) -> list[Gap]:
        gaps = []
        for topic in plan.topics:
            for partition, offset in position.get(topic, {}).items() if topic in extents else ():
                extent = extents[topic]
                if partition not in extent.end:
                    raise StreamsError(
                        f"Topic '{topic}' was deleted and made anew with fewer partitions: '{self._application_id}' "
                        f"has read partition {partition}, and there are only {len(extent.end)} now. Here "
                        "on_data_loss does not help: call clean_up() to begin anew."
                    )
                first, end = extent.first[partition], extent.end[partition]
                is_remade = topic in remade or offset > end
                if is_remade or offset < first:
                    gaps.append(Gap(topic, partition, offset, first, end, is_remade))
        return gaps

    def _refusal(self, plan: Plan, gaps: list[Gap]) -> str:
        remade = [gap for gap in gaps if gap.is_remade]
        if remade:
            gap = remade[0]
            holds = f"holds {gap.first} to {gap.end - 1} now" if gap.end > gap.first else "is empty now"
            return (
                f"Topic '{gap.topic}' is not the one that '{self._application_id}' has read: it was deleted and made "
                f"anew. Sub-topology {plan.name} stands at offset {gap.position} of partition {gap.partition}, which "
                f"{holds}; to go on there would skip records or wait for them. Call "
                "clean_up() to begin anew, or go on with the first record of the new topic: "
                "KafkaStreams(..., on_data_loss='continue')."
            )
        topics = {gap.topic: [other for other in gaps if other.topic == gap.topic] for gap in gaps}
        where = "; ".join(f"topic '{topic}', {', '.join(map(str, each))}" for topic, each in topics.items())
        return (
            f"{sum(gap.lost for gap in gaps)} records were deleted before sub-topology {plan.name} of "
            f"'{self._application_id}' has read them: {where}. To go on without them and have them counted in "
            "metrics(): KafkaStreams(..., on_data_loss='continue'). To begin anew with what is left: clean_up(). So "
            "that it does not happen again, keep records for longer: the topic's retention.ms and retention.bytes."
        )

    def _tell(self, plan: Plan, gap: Gap) -> None:
        if gap.is_remade:
            logger.warning(
                "'%s': topic '%s' was deleted and made anew; sub-topology %s goes on with offset %d of its partition "
                "%d. Of the old one it has read all records up to offset %d; how many more there were is not known.",
                self._application_id, gap.topic, plan.name, gap.first, gap.partition, gap.position - 1,
            )  # fmt: skip
        else:
            logger.warning(
                "'%s': sub-topology %s goes on without records of topic '%s' that were deleted before it has read "
                "them: %s.", self._application_id, plan.name, gap.topic, gap,
            )  # fmt: skip


def _gone(plan: Plan, now: Container[str]) -> list[str]:
    """Return the topics that a query reads but that do not exist, except those of a pattern, which may come and go."""
    return [topic for topic in plan.topics if topic not in now and not _is_of_pattern(topic, plan)]


def _is_of_pattern(topic: str, plan: Plan) -> bool:
    return any(source.pattern and source.reads_topic(topic) for source in plan.sources)
