"""Topics of a Kafka broker: create, delete, list, describe, and where each partition begins and ends."""

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import (
    KafkaTimeoutError,
    NotLeaderForPartitionError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.consumer import IsolationLevel

from streamskit.api.client_settings import BootstrapServers, ClientSettings
from streamskit.common.errors import BrokerError
from streamskit.common.names import unknown_name
from streamskit.environment.processes import eventually
from streamskit.kafka.access import Right, needing, principal
from streamskit.kafka.connection import AGAIN_SECONDS, Admin, admin_client

SETTLE_SECONDS = 20.0

SHUT_OUT = "brokers are currently fenced"
"""What Kafka says of a new topic while its brokers are shut out, as when their machine stood still for a moment; the
error's number is also that of a replication factor that is too large."""

COMMIT_SECONDS = 2.0
MODIFIED_SOURCE = "DYNAMIC_TOPIC_CONFIG"


@dataclass(frozen=True)
class Topic:
    """What a broker says of one topic: `config` holds only what was set for this topic, as Kafka's text."""

    name: str
    partitions: int
    config: dict[str, str]


class TopicIdentity(NamedTuple):
    """A topic's id, which distinguishes it from another of the same name, and its number of partitions."""

    id: str
    partitions: int


@dataclass(frozen=True)
class TopicExtent:
    """What a topic holds now: for each partition the first offset and the one after the last record.

    Its `id` changes when the topic is deleted and created again.
    """

    id: str
    first: dict[int, int]
    end: dict[int, int]


def create_topics(
    bootstrap_servers: BootstrapServers,
    names: tuple[str, ...],
    partitions: int | None,
    config: Mapping[str, Any] | None,
    replication_factor: int = -1,
) -> None:
    """Create those of the topics that do not exist yet and wait until they can be used; see `KafkaClient`.

    Raises:
        BrokerError: a name or number is not valid, or a topic exists with other partitions or settings.
        NoRightError: the user may not create topics.
    """
    _check_names(names)
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise BrokerError(f"partitions must be 1 or more, not {partitions!r}.")
    settings = {name: _text(value) for name, value in (config or {}).items()}
    with admin_client(bootstrap_servers) as admin:
        existing = _partition_counts(admin)
        for name in names:
            if name in existing:
                _check_same(admin, name, existing[name], partitions, settings)
        missing = [name for name in dict.fromkeys(names) if name not in existing]
        _check_apart(missing, existing)
        if missing:
            with needing(bootstrap_servers, *(Right("Create", "topic", name) for name in missing)):
                _create(admin, missing, partitions, settings, replication_factor)


def delete_topics(bootstrap_servers: BootstrapServers, names: tuple[str, ...], missing_ok: bool) -> None:
    """Delete the topics and wait until they are gone; see `KafkaClient`.

    Raises:
        BrokerError: a topic does not exist and may not be missing, or is not gone in time.
        NoRightError: the user may not delete it.
    """
    _check_names(names)
    with admin_client(bootstrap_servers) as admin:
        existing = _partition_counts(admin)
        if not missing_ok:
            for name in names:
                if name not in existing:
                    raise unknown_topic(name, existing, bootstrap_servers)
        doomed = [name for name in dict.fromkeys(names) if name in existing]
        if not doomed:
            return
        with needing(bootstrap_servers, *(Right("Delete", "topic", name) for name in doomed)):
            answer = admin.delete_topics(doomed, raise_errors=False)
            _raise_refusal("delete", answer["topics"], fine=UnknownTopicOrPartitionError.errno)
        if not eventually(lambda: all(known.isdisjoint(doomed) for known in _known(admin)), SETTLE_SECONDS):
            raise BrokerError(f"Topics {doomed} are still listed {SETTLE_SECONDS:.0f} s after the broker deleted them.")


def list_topics(bootstrap_servers: BootstrapServers, internal: bool) -> dict[str, int]:
    """The number of partitions of each topic, by name."""
    with admin_client(bootstrap_servers) as admin:
        return dict(sorted(_partition_counts(admin, internal=internal).items()))


def describe_topic(bootstrap_servers: BootstrapServers, name: str) -> Topic:
    """One topic's partitions and its own settings.

    Raises:
        BrokerError: it does not exist.
    """
    with admin_client(bootstrap_servers) as admin:
        existing = _partition_counts(admin, internal=True)
        if name not in existing:
            raise unknown_topic(name, existing, bootstrap_servers)
        config = _config(admin, name)
    own = {key: entry["value"] for key, entry in config.items() if entry["config_source"] == MODIFIED_SOURCE}
    return Topic(name, existing[name], own)


def configs(bootstrap_servers: BootstrapServers, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return all settings of topics, as Kafka's text, those of the broker included; topics not there are left out."""
    with admin_client(bootstrap_servers) as admin:
        there = _partition_counts(admin, internal=True)
        found = {name: _config(admin, name) for name in names if name in there}
    return {name: {key: str(entry["value"]) for key, entry in config.items()} for name, config in found.items()}


def offsets(bootstrap_servers: BootstrapServers, topic: str, isolation: str) -> tuple[dict[int, int], dict[int, int]]:
    """The first offset and the end offset (one after the last record) of each partition.

    With "read_committed" the end is before the first record of a transaction that is open.

    Raises:
        BrokerError: the topic does not exist.
    """
    with admin_client(bootstrap_servers) as admin:
        extent = _extents(admin, {topic}).get(topic)
        if extent is None:
            raise unknown_topic(topic, _partition_counts(admin), bootstrap_servers)
        if isolation == "read_committed":
            return extent.first, _committed(admin, topic, extent.end)
    return extent.first, extent.end


def extents(bootstrap_servers: BootstrapServers, names: Iterable[str]) -> dict[str, TopicExtent]:
    """What each of these topics holds, by name; those that do not exist are left out."""
    with admin_client(bootstrap_servers) as admin:
        return _extents(admin, set(names))


def first_from(bootstrap_servers: BootstrapServers, times: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """Return for each partition the offset of the first record from a time on; where it ends if there is none.

    Args:
        bootstrap_servers: the broker's address.
        times: for each topic the time, in milliseconds since 1970; those that do not exist are left out.
    """
    with admin_client(bootstrap_servers) as admin:
        ends = {name: extent.end for name, extent in _extents(admin, set(times)).items()}
        asked = {TopicPartition(name, number): times[name] for name, end in ends.items() for number in end}
        found = admin.list_partition_offsets(asked) if asked else {}
    for where, first in found.items():
        if first.offset >= 0:  # there is such a record
            ends[where.topic][where.partition] = first.offset
    return ends


def identities(admin: AdminClient, names: Iterable[str], timeout: float) -> dict[str, TopicIdentity]:
    """Return the identities of topics; those that do not exist are left out.

    Args:
        admin: a long-lived client, which answers within a millisecond.
        names: of the topics.
        timeout: how long the broker may take, in seconds.

    Raises:
        KafkaException: the broker does not answer.
    """
    found = {}
    for name, future in admin.describe_topics(TopicCollection(list(names)), request_timeout=timeout).items():
        try:
            described = future.result()
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            continue
        found[name] = identity(described)
    return found


def identity(described: Any) -> TopicIdentity:
    """Return the identity of a topic that a broker has described."""
    high, low = described.topic_id.get_most_significant_bits(), described.topic_id.get_least_significant_bits()
    number = (high % 2**64) << 64 | low % 2**64
    return TopicIdentity(str(UUID(int=number)), len(described.partitions))


def _extents(admin: Admin, names: Collection[str]) -> dict[str, TopicExtent]:
    """Look again where one broker names a topic that another does not know yet, or no longer knows."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            return _extents_now(admin, names)
        except UnknownTopicOrPartitionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(AGAIN_SECONDS)


def _extents_now(admin: Admin, names: Collection[str]) -> dict[str, TopicExtent]:
    described = [topic for topic in admin.describe_topics() if topic["name"] in names]
    if any(not topic["partitions"] for topic in described):  # it is being made, or deleted
        raise UnknownTopicOrPartitionError
    partitions = [
        TopicPartition(topic["name"], each["partition_index"]) for topic in described for each in topic["partitions"]
    ]
    first, end = (
        admin.list_partition_offsets(dict.fromkeys(partitions, spec)) if partitions else {}
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    )
    found = {topic["name"]: TopicExtent(str(topic["topic_id"]), {}, {}) for topic in described}
    for where in sorted(partitions):
        found[where.topic].first[where.partition] = first[where].offset
        found[where.topic].end[where.partition] = end[where].offset
    return found


def record_sizes(bootstrap_servers: BootstrapServers, names: Collection[str]) -> dict[str, float]:
    """How many bytes a record of each topic has on average, as it is stored; topics without records are left out."""
    with admin_client(bootstrap_servers) as admin:
        counts = {
            name: sum(extent.end[number] - first for number, first in extent.first.items())
            for name, extent in _extents(admin, names).items()
        }
        said = admin.describe_log_dirs(list(counts)) if counts else []
    largest: dict[tuple[str, int], int] = {}  # each broker reports its own replicas
    for topic in (topic for broker in said for folder in broker["log_dirs"] for topic in folder["topics"]):
        for each in topic["partitions"]:
            where = topic["name"], each["partition_index"]
            largest[where] = max(largest.get(where, 0), each["partition_size"])
    sizes = Counter[str]()
    for (name, _), size in largest.items():
        sizes[name] += size
    return {name: sizes[name] / count for name, count in counts.items() if count}


def _committed(admin: Admin, topic: str, end: dict[int, int]) -> dict[int, int]:
    """The end of the committed records of each partition.

    A broker confirms a commit before every partition has learned of it, so transactions get a moment to become visible.
    """
    asked = {TopicPartition(topic, number): OffsetSpec.LATEST for number in end}
    deadline = time.monotonic() + COMMIT_SECONDS
    while True:
        answers = admin.list_partition_offsets(asked, IsolationLevel.READ_COMMITTED)
        committed = {where.partition: answers[where].offset for where in asked}
        if all(committed[number] >= offset for number, offset in end.items()) or time.monotonic() > deadline:
            return committed
        time.sleep(0.02)


def unknown_topic(name: str, existing: Iterable[str], bootstrap_servers: BootstrapServers) -> BrokerError:
    """The error for a topic that the broker does not have."""
    visible = sorted(topic for topic in existing if not topic.startswith("__"))
    known = f"It has {', '.join(visible[:20])}{', …' if len(visible) > 20 else ''}" if visible else "It has no topics"
    return BrokerError(
        f"The broker at {bootstrap_servers} has no topic {name!r}. {known}. Create it first: "
        f"broker.create_topics({name!r}).{unseen(bootstrap_servers)}"
    )


def unseen(bootstrap_servers: BootstrapServers) -> str:
    """Return a hint that a cluster with access control may hide topics; "" for other clusters."""
    settings = ClientSettings.of(bootstrap_servers)
    if not settings.is_secured:
        return ""
    who = principal(settings) or "this client"
    return f" Or it is there, and {who} has no right to see it: Describe, or Read or Write, on that topic."


def _check_apart(names: Iterable[str], existing: Iterable[str]) -> None:
    """Refuse a new name that differs from another by periods and underscores alone, as a broker does."""
    taken = {name.replace(".", "_"): name for name in existing}
    for name in names:
        if (other := taken.setdefault(name.replace(".", "_"), name)) != name:
            raise BrokerError(
                f"Topic '{name}' cannot be created beside '{other}': Kafka's metrics write '.' and '_' alike, so names "
                "may not differ by them alone. Take another name; an application's own topics are named after its "
                "application_id and its steps and stores."
            )


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise BrokerError('Name at least one topic, for example broker.create_topics("trades").')
    for name in names:
        if not isinstance(name, str):
            raise BrokerError(
                f"{name!r} is not a topic name; give each name by itself: broker.create_topics('a', 'b')."
            )


def _partition_counts(admin: Admin, internal: bool = True) -> dict[str, int]:
    listed = admin.describe_topics()
    return {topic["name"]: len(topic["partitions"]) for topic in listed if internal or not topic["is_internal"]}


def _create(
    admin: Admin, names: list[str], partitions: int | None, config: dict[str, str], replication_factor: int
) -> None:
    order = {
        "num_partitions": -1 if partitions is None else partitions,
        "replication_factor": replication_factor,
        "configs": config,
    }
    answers: list[dict[str, Any]] = []

    def is_answered() -> bool:
        answers[:] = admin.create_topics(dict.fromkeys(names, order), raise_errors=False)["topics"]
        return not any(SHUT_OUT in (answer.get("error_message") or "") for answer in answers)

    eventually(is_answered, SETTLE_SECONDS)
    # Someone else may create the same topic at this moment: waiting for it is then right as well.
    _raise_refusal("create", answers, fine=TopicAlreadyExistsError.errno)
    try:
        admin.wait_for_topics(names, timeout_ms=SETTLE_SECONDS * 1000)
    except KafkaTimeoutError as error:
        raise BrokerError(f"Topics {names} were created, but no leader took them in {SETTLE_SECONDS:.0f} s.") from error
    if not eventually(lambda: all(known.issuperset(names) for known in _known(admin)), SETTLE_SECONDS):
        raise BrokerError(
            f"Topics {names} were created, but {SETTLE_SECONDS:.0f} s later a broker of the cluster does not know them "
            "yet. Look at that broker's log, or try again."
        )
    # A broker announces a partition a moment before it can take records: a record sent in between may have to be sent
    # again after a later one, which a producer that keeps their order cannot do, and it gives up in the end.
    with contextlib.suppress(TopicAuthorizationFailedError):  # who may create a topic may not always look into it
        try:
            _extents(admin, names)
        except (NotLeaderForPartitionError, UnknownTopicOrPartitionError) as error:
            raise BrokerError(
                f"Topics {names} were created, but a broker of the cluster has not made all of their partitions yet. "
                "Look at that broker's log, or try again."
            ) from error


def _known(admin: Admin) -> list[set[str]]:
    """Which topics each broker that answers knows."""
    return list(admin.topics_by_broker().values())


def _raise_refusal(verb: str, answers: list[dict[str, Any]], fine: int) -> None:
    for answer in answers:
        if answer["error_code"] == TopicAuthorizationFailedError.errno:
            raise TopicAuthorizationFailedError(answer["name"])
        if answer["error_code"] not in (0, fine):
            words = answer.get("error_message") or f"error {answer['error_code']}"
            raise BrokerError(f"Kafka did not {verb} topic {answer['name']!r}: {words}")


def _check_same(admin: Admin, name: str, has: int, partitions: int | None, config: dict[str, str]) -> None:
    """Make sure that an existing topic has the partitions and settings that were asked for."""
    if partitions is not None and partitions != has:
        raise BrokerError(
            f"Topic {name!r} exists with {has} partition(s), and {partitions} were asked for. Use it as it "
            f"is, or delete it first: broker.delete_topics({name!r})."
        )
    current = _config(admin, name) if config else {}
    for key, value in config.items():
        if key not in current:
            raise BrokerError(f"Topic {name!r} exists. {unknown_name('setting of a topic', key, current)}")
        if _items(current[key]["value"]) != _items(value):
            raise BrokerError(
                f"Topic {name!r} exists with {key}={current[key]['value']}, and {value} was asked for. Use "
                f"it as it is, or delete it first: broker.delete_topics({name!r})."
            )


def _config(admin: Admin, name: str) -> dict[str, dict[str, Any]]:
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    return dict(admin.describe_configs([resource], config_filter="all")["topic"][name])


def _items(text: str | None) -> list[str]:
    """Return the items of a setting that is a list, whose order says nothing, such as "compact,delete"."""
    return sorted(each.strip() for each in (text or "").split(","))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
