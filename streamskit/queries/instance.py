"""An instance of an application that answers queries: it hosts its share of the stores, and knows who has the rest."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import (
    BrokerError,
    StateStoreMigratedError,
    StateStoreNotAvailableError,
    StreamsError,
    StreamsRebalancingError,
    UnknownStateStoreError,
)
from streamskit.kafka.access import Right, no_right, not_let_in
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.kafka.topic_partition import TopicPartition, partition_for
from streamskit.kafka.topic_reader import Offsets
from streamskit.kafka.topics import TopicIdentity, identity
from streamskit.queries.changelog_ids import ChangelogIds, misfit
from streamskit.queries.group.assignment import Assignment, SubscriptionInfo
from streamskit.queries.group.assignor import ClientState
from streamskit.queries.group.catalogue import Catalogue, QueryableStore
from streamskit.queries.group.discovery import placement_of
from streamskit.queries.group.membership import Membership
from streamskit.queries.hosted_stores import HostedStores
from streamskit.queries.measures import Measure
from streamskit.queries.metadata import HostInfo, Hosts, Placement
from streamskit.queries.queryable_instance import ANSWERING, InstanceHealth, PartitionState, StoreUpdate
from streamskit.state.local import LocalStore

logger = logging.getLogger("streamskit")


class Instance:
    """One of the instances that share the stores of an application.

    It joins the consumer group of the application, restores its share of the stores from their changelogs, keeps them
    up to date, and hands over when another instance comes or goes. It needs the broker only, neither Spark nor the
    other instances.

    Args:
        catalogue: the application's stores.
        bootstrap_servers: the Kafka brokers, as "host:port".
        here: where this instance answers.
        state_dir: the folder for stores on the disk; all are in memory when not given.
        num_standby_replicas: how many further instances are to keep a copy of each partition.
        session_timeout: after how long without a sign of life an instance counts as dead, a duration.
        keeps: says, for a topic and the key and value of a record, whether it is to be taken.

    Mirrors an instance of `KafkaStreams` as interactive queries see it.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        bootstrap_servers: BootstrapServers,
        here: HostInfo,
        *,
        state_dir: Path | None = None,
        num_standby_replicas: int = 0,
        session_timeout: Duration = "6 seconds",
        keeps: Callable[[str, bytes | None, bytes | None], bool] = lambda topic, key, value: True,
    ) -> None:
        self.application_id, self.here = catalogue.application_id, here
        self._bootstrap_servers = bootstrap_servers
        self._id, self._since, self._standbys = str(uuid.uuid4()), time.time(), num_standby_replicas
        self._catalogue, self.stores = catalogue, {entry.name: entry for entry in catalogue}
        self._roles: Mapping[str, str] = {}
        self._placement = Placement()
        self._agreed = self._taken_up = 0
        self._replaced = ""
        self._announced: set[str] = set()
        self._closed = ""
        self.application: Callable[[], InstanceHealth] = InstanceHealth
        """Returns the health of this instance's application; an instance in a process of its own has none."""
        self.measure: Callable[[], Iterable[Measure]] = tuple
        """Returns what that application measures."""
        self._ended = ""
        self._changelogs = ChangelogIds()
        self._refusal: BrokerError | None = None
        self._hosted = HostedStores(catalogue, bootstrap_servers, state_dir, keeps, self._announce)
        self.restorations = self._hosted.restorations
        self._membership = Membership(
            bootstrap_servers,
            catalogue,
            self._report,
            self._learn,
            to_milliseconds(session_timeout, "session_timeout"),
            self._refuse,
        )

    def __repr__(self) -> str:
        active = sorted(task for task, role in self._roles.items() if role == "active")
        return f"<Instance of '{self.application_id}' at {self.here}: active for {', '.join(active) or 'nothing'}>"

    @property
    def stopped(self) -> str:
        """Why it does not answer any more, as a sentence; "" while it does."""
        return self._closed or self._hosted.failure

    def start(self) -> None:
        """Join the others.

        Raises:
            StreamsError: no broker answers, a changelog does not exist, or the folder is another instance's.
        """
        self._hosted.start(self._describe())
        everywhere = _everywhere(self._catalogue)
        self._hosted.do(lambda: self._hosted.host(everywhere)).result()
        self._membership.start(self._catalogue)

    def stop(self, leave_group: bool = True) -> None:
        """Leave, so that the others take over at once; the stores on the disk stay for the next time.

        Args:
            leave_group: whether to say so in the group. Otherwise the others take over when its session is over, or
                leave its share to an instance that starts at its address before then.
        """
        in_touch, self._closed = self._membership.in_touch, self.stopped or "The instance is closed."
        try:
            self._membership.stop(leave_group=leave_group)
        finally:
            self._hosted.stop(in_touch)

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the share that is here is complete and holds all updates before the given offsets.

        Raises:
            StreamsError: it does not by the deadline, or reading has failed.
        """
        while not self._has_share():
            check()
            if self._refusal is not None:
                raise self._refusal
            if self._hosted.failure:
                raise StreamsError(self._hosted.failure)
            if time.monotonic() > deadline:
                raise StreamsError(f"The instance at {self.here} has no share of the stores yet: wait longer.")
            time.sleep(0.02)
        hosted = {where: end for where, end in offsets.items() if where in self._hosted.roles}
        self._hosted.wait_for(hosted, deadline, check)

    def widen(self, counts: Mapping[str, int]) -> None:
        """Host partitions that were added to the topics of global tables.

        Args:
            counts: how many partitions topics have now.
        """
        known = {entry.changelog: entry.partitions for entry in self._catalogue}
        grown = {entry.changelog: max(entry.partitions, counts.get(entry.changelog, 0))
                 for entry in self._catalogue if entry.is_global}  # fmt: skip
        wider = self._catalogue.with_partitions(known | grown)
        if wider == self._catalogue:
            return

        def adopt() -> None:
            self._hosted.host({**self._hosted.roles, **_everywhere(wider)})
            self._catalogue, self.stores = wider, {entry.name: entry for entry in wider}

        self._try(adopt)

    def look_at_topics(self, found: Mapping[str, TopicIdentity]) -> None:
        """Begin anew with changelogs that were made anew, as after `clean_up()`; refuse queries of those that are gone.

        Args:
            found: the topics that are there.
        """
        deleted, remade = self._changelogs.look(found)
        if deleted:
            self._try(lambda: self._hosted.lose(deleted))
        if not remade:
            return
        if why := misfit(self._catalogue, remade):
            self._closed = self.stopped or why
            return
        ids = {topic: now.id for topic, now in remade.items()}
        self._changelogs.note(ids)
        topics = ", ".join(f"'{topic}'" for topic in sorted(ids))
        logger.warning("'%s' at %s reads topics again that were made anew: %s", self.application_id, self.here, topics)
        self._try(lambda: self._hosted.begin_anew(ids))

    def say_stopped(self, why: str) -> None:
        """Have the stores say why no more updates come, unless they already do."""
        self._ended = self._ended or why
        self._hosted.say_stopped(why)

    @property
    def lives(self) -> bool:
        """Whether the changelogs are read; also before the start and after the end."""
        return self._hosted.lives

    def health(self) -> InstanceHealth:
        """Return the health of this instance and of the application that it is part of."""
        of_application = self.application()
        parts = {**of_application.parts, "the reader of the changelogs": self._hosted.lives}
        dead = [name for name, lives in parts.items() if not lives]
        failure = of_application.failure or self._ended or self.stopped
        if dead and not failure:
            failure = f"{dead[0][0].upper()}{dead[0][1:]} has ended."
        return replace(
            of_application, failure=failure, waits_for=of_application.waits_for or self._waits(), parts=parts
        )

    def measures(self) -> Iterator[Measure]:
        """Yield what is measured here now: of its stores, and of the application that it is a part of."""
        yield from self.measure()
        for name in sorted(self.stores):
            yield Measure("stream_state_metrics_estimate_num_keys", len(self._hosted.store(name)), {"store": name})
            for state in self.states(name):
                where = {"store": name, "partition": str(state.partition), "role": state.role}
                yield Measure("stream_task_metrics_restore_remaining_records_total", state.lag, where)

    def _waits(self) -> str:
        """Say why this instance cannot answer yet for all that it hosts; nothing where it can."""
        if self._refusal is not None:
            return str(self._refusal)
        if not self._membership.in_touch:
            return f"The instance at {self.here} is not in touch with its group."
        if self._replaced:
            return self._replaced
        if self._changelogs.gone:
            return self._is_gone(min(self._changelogs.gone))
        if not self._has_share():
            return f"The instance at {self.here} has got no share of the stores yet."
        hosted = [where for where, role in self._hosted.roles.items() if role in ANSWERING]
        restored = next((where for where in hosted if not self._hosted.is_ready(where)), None)
        return "" if restored is None else f"Partition {restored.partition} of {restored.topic} is being restored."

    # ---- what the REST layer asks ------------------------------------------------------------------------------------

    def placement(self) -> Placement:
        """Return who hosts what, as the group last agreed."""
        return self._placement

    def hosts(self, store: str, partition: int) -> Hosts:
        """Return who has a partition of a store."""
        entry = self._entry(store)
        return Hosts(self.here) if entry.is_global else self._placement.of(entry.changelog, partition)

    def partition_of(self, store: str, key: bytes) -> int | None:
        """Return the partition where the row of a key is; None where that does not follow from the key."""
        entry = self._entry(store)
        # Others write the topic of a global table, with keys and partitioners of their own.
        return partition_for(key, entry.partitions) if entry.routed and not entry.is_global else None

    def states(self, store: str) -> list[PartitionState]:
        """Return the partitions of a store that this instance has, with how far they are."""
        return self._hosted.states(self._entry(store).changelog)

    def local(self, store: str, partitions: Collection[int], *, for_all: bool = True) -> LocalStore:
        """Return some partitions of a store, as they are here.

        Args:
            store: its name.
            partitions: their numbers.
            for_all: whether to speak for all instances: then this one has to be in touch with them, as another one may
                have taken a partition over.

        Raises:
            InvalidStateStoreError: one of them is not here, or not ready, or this instance answers no more; the kind of
                error says which.
        """
        entry = self._entry(store)
        # Taken before it is checked: a partition that is given up in between is still whole in it.
        view = self._hosted.store(store).only(partitions)
        self._check_answers()  # also where none is asked for: what has ended has no partitions
        for partition in partitions:
            self._check(entry, partition, for_all)
        # A partition that arrived in between is in the next view.
        return view if view.partitions == set(partitions) else self.local(store, partitions, for_all=for_all)

    def subscribe(self, store: str, listener: Callable[[StoreUpdate], None]) -> Callable[[], None]:
        """Call `listener`, in a thread of the instance, with each update of the partitions active here.

        Returns a function that ends it. The listener has to be quick and must not raise.
        """
        self._entry(store)
        return self._hosted.subscribe(store, listener)

    def _check_answers(self) -> None:
        if self._ended:
            raise StateStoreNotAvailableError(
                f"The stores of '{self.application_id}' at {self.here} are not brought up to date any more, as the "
                f"application has stopped: {self._ended}"
            )
        if self.stopped:
            raise StreamsRebalancingError(f"The instance at {self.here} does not answer any more: {self.stopped}")

    def _check(self, entry: QueryableStore, partition: int, for_all: bool) -> None:
        where = TopicPartition(entry.changelog, partition)
        name = f"partition {partition} of store '{entry.name}'"
        if for_all and not self._membership.in_touch:
            raise StreamsRebalancingError(
                f"The instance at {self.here} has lost touch with its group, and another one may answer for {name} "
                "by now. Ask again in a moment."
            )
        if self._replaced:
            raise StreamsRebalancingError(self._replaced)
        if entry.changelog in self._changelogs.gone:
            raise StreamsRebalancingError(self._is_gone(entry.changelog))
        if where not in self._hosted.roles:
            owner = self._placement.of(*where).active
            if owner == self.here:
                raise StreamsRebalancingError(
                    f"{name[0].upper()}{name[1:]} has just been given to {self.here}, which takes it up. Ask again in "
                    "a moment."
                )
            place = f"is at {owner}: ask there" if owner else "is on its way: ask again in a moment"
            raise StateStoreMigratedError(f"{name[0].upper()}{name[1:]} is not at {self.here}; it {place}.")
        if not self._hosted.is_ready(where):
            there, all_ = self._hosted.progress(where)
            raise StreamsRebalancingError(
                f"{name[0].upper()}{name[1:]} is being restored at {self.here}: it has read up to offset {there:,} of "
                f"{all_:,} of its changelog. Ask again in a moment."
            )

    def _is_gone(self, topic: str) -> str:
        return (
            f"Topic '{topic}', which fills stores of '{self.application_id}', was deleted; clean_up() does that. The "
            f"instance at {self.here} begins anew when the topic is there again. If the program has other stores by "
            "now, start the instance again."
        )

    def _entry(self, store: str) -> QueryableStore:
        if store not in self.stores:
            known = ", ".join(sorted(self.stores)) or "none"
            raise UnknownStateStoreError(
                f"'{self.application_id}' has no store '{store}' to query; its stores are: {known}."
            )
        return self.stores[store]

    # ---- its place among the others ----------------------------------------------------------------------------------

    def _report(self) -> SubscriptionInfo:
        ready = frozenset(task for task in self._roles if self._is_ready(task))
        active = frozenset(task for task in ready if self._roles[task] == "active")
        positions = {task: self._position(task) for task in self._catalogue.tasks()}
        known = {task: position for task, position in positions.items() if position}
        return SubscriptionInfo(
            ClientState(self._id, str(self.here), ready, active, known, self._standbys), self._since
        )

    def _learn(self, assignment: Assignment) -> None:
        """Take up the share that was agreed; called in the membership's thread."""
        if assignment.shutdown:
            self._shut_down(assignment.shutdown)
            return
        self._placement, self._refusal = placement_of(assignment, self._catalogue), None
        self._note_if_replaced(assignment)
        self._agreed += 1
        number = self._agreed
        roles = assignment.shares.roles(self._id)
        places = {where: role for task, role in roles.items() for where in self._catalogue.changelog_partitions(task)}

        def adopt() -> None:
            if number != self._agreed:
                return  # this had to wait for the broker; only the latest agreement counts
            self._hosted.host(places | _everywhere(self._catalogue))
            self._roles, self._taken_up = roles, number
            self._announced &= {task for task, role in roles.items() if role == "warmup"}
            self._announce()

        self._try(adopt)

    def _shut_down(self, why: str) -> None:
        """Stop answering queries: the whole application is to stop."""
        if not self.stopped:
            logger.error("'%s' at %s stops, as all of the application is to: %s", self.application_id, self.here, why)
        self.say_stopped(why)
        self._closed = self.stopped or f"The application was shut down: {why}"

    def _note_if_replaced(self, assignment: Assignment) -> None:
        before, self._replaced = self._replaced, ""
        if self._id not in assignment.servers and str(self.here) in assignment.servers.values():
            self._replaced = (
                f"Another instance of '{self.application_id}' says that it answers at {self.here} as well, and has got "
                "the stores. Each needs an application_server of its own, at which the others reach it; where that is "
                "not an address of its machine, listen= says which one is."
            )
            if not before:
                logger.error(self._replaced)

    def _try(self, job: Callable[[], None]) -> None:
        """Run a job in the reader's thread, and again while the broker does not answer; another failure is final."""

        def attempt() -> None:
            try:
                job()
            except KafkaException as failure:
                logger.debug("The share could not be taken up yet: %s", failure)
                threading.Timer(1.0, lambda: self._try(job)).start()
            except Exception as failure:  # of a restore listener, of the disk: anything
                why = str(failure) if isinstance(failure, StreamsError) else f"{type(failure).__name__}: {failure}"
                said = StreamsError(
                    f"The instance at {self.here} could not take up its share of the stores: {why.rstrip('.')}. "
                    "Put that right, then start it again."
                )
                logger.error("%s", said, exc_info=failure)
                self._hosted.give_up(said)

        self._hosted.do(attempt)

    def _has_share(self) -> bool:
        """Whether what was agreed last has been taken up."""
        return not self._catalogue.shared or (bool(self._placement.members) and self._taken_up == self._agreed)

    def _is_ready(self, task: str) -> bool:
        return all(self._hosted.is_ready(where) for where in self._catalogue.changelog_partitions(task))

    def _position(self, task: str) -> int:
        return sum(self._hosted.position(where) for where in self._catalogue.changelog_partitions(task))

    def _announce(self) -> None:
        """Tell the group when this instance has caught up with a task that it is to take over."""
        for task, role in self._roles.items():
            if role == "warmup" and task not in self._announced and self._is_ready(task):
                self._announced.add(task)
                self._membership.rejoin()

    def _refuse(self, why: BrokerError) -> None:
        """Log that it gets no share, as it may not join the others, and keep the reason."""
        logger.error("The instance of '%s' at %s gets no share of the stores: %s", self.application_id, self.here, why)
        self._refusal = why

    # ---- how it begins -----------------------------------------------------------------------------------------------

    def _describe(self) -> dict[str, str]:
        """Learn how many partitions each changelog has, and return its id."""
        admin = AdminClient(for_librdkafka(self._bootstrap_servers, "admin"), logger=client_log)
        topics = self._hosted.changelogs
        counts, ids = dict[str, int](), dict[str, str]()
        futures = admin.describe_topics(TopicCollection(topics), request_timeout=10) if topics else {}
        for topic, future in futures.items():
            try:
                described = future.result()
            except KafkaException as failure:
                if failure.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise no_right(self._bootstrap_servers, Right("Read", "topic", topic)) from failure
                has_answered = failure.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                raise (None if has_answered else not_let_in(self._bootstrap_servers)) or StreamsError(
                    f"The instance at {self.here} could not look at the changelog '{topic}': {failure.args[0].str()}. "
                    f"Is the broker at {self._bootstrap_servers} running, and was '{self.application_id}' started?"
                ) from failure
            ids[topic], counts[topic] = identity(described)
        self._catalogue = self._catalogue.with_partitions(counts)
        self.stores = {entry.name: entry for entry in self._catalogue}
        self._changelogs.note(ids)
        return ids


def _everywhere(catalogue: Catalogue) -> dict[TopicPartition, str]:
    """Return the partitions that every instance hosts: those of global tables."""
    return {
        TopicPartition(entry.changelog, number): "global"
        for entry in catalogue
        for number in range(entry.partitions if entry.is_global else 0)
    }
