"""Sends records to a topic and waits until the broker has acknowledged every one."""

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.serializer import Serializer

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError
from streamskit.environment.processes import eventually
from streamskit.kafka.access import NoRightError, Right, is_denied, no_right
from streamskit.kafka.client_libraries import for_kafka_python
from streamskit.kafka.connection import CONNECT_SECONDS, reachable, reason, without_new_topics
from streamskit.kafka.encoding import SerdeLike, encoder
from streamskit.kafka.records import OutgoingRecord, Records, read_records
from streamskit.kafka.topic_partition import partition_for
from streamskit.kafka.topics import describe_topic

DELIVERY_SECONDS = (
    60  # a cluster that has lost a broker takes seconds to choose new leaders, and longer on a busy machine
)
REQUEST_SECONDS = 10
ID_SECONDS = 15.0
# What may be under way at once: the client itself buffers without a limit.
MOST_RECORDS_UNDER_WAY = 25_000
MOST_BYTES_UNDER_WAY = 16 * 1024 * 1024
LARGEST_REQUEST = 64 * 1024 * 1024  # the topic says what is too large, not the client
NULL = object()


class NullSerializer(Serializer):
    """Passes bytes on. kafka-python refuses a record whose key and value are both None; Kafka does not."""

    def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
        """Return the bytes as they are, and None for NULL."""
        return None if data is NULL else data


def produce(
    bootstrap_servers: BootstrapServers, topic: str, records: Records, key: SerdeLike | None, value: SerdeLike | None
) -> int:
    """Send all records and return their number once all are acknowledged; see `KafkaClient`.

    Raises:
        BrokerError: a record is not taken; it says how many before it are in the topic.
    """
    partitions = describe_topic(bootstrap_servers, topic).partitions
    denied = no_right(bootstrap_servers, Right("Write", "topic", topic))
    with _producer(bootstrap_servers) as producer:
        delivery = Delivery(producer, topic, partitions, encoder(key), encoder(value), denied)
        try:
            without_serde = [name for name, serde in (("key", key), ("value", value)) if serde is None]
            for record in read_records(records, without_serde):
                delivery.send(record)
        except (NotDeliveredError, NoRightError):
            raise
        except Exception as error:
            delivery.wait()  # the records before the wrong one are delivered
            if isinstance(error, BrokerError):
                raise BrokerError(f"{error} The {delivery.sent} record(s) before it are in topic {topic!r}.") from error
            raise  # from the user's own generator
        delivery.wait()
        return delivery.sent


class NotDeliveredError(BrokerError):
    """The broker did not take a record."""


class Delivery:
    """Records on their way to one topic: serialized, sent, and checked for their acknowledgement."""

    def __init__(
        self,
        producer: KafkaProducer,
        topic: str,
        partitions: int,
        encode_key: Callable[[Any], bytes | None],
        encode_value: Callable[[Any], bytes | None],
        denied: NoRightError,
    ) -> None:
        self.sent = 0
        self._denied = denied
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._encode_key = encode_key
        self._encode_value = encode_value
        self._under_way: list[Any] = []
        self._bytes_under_way = 0
        self._partition_of = lru_cache(maxsize=100_000)(lambda key: partition_for(key, partitions))

    def send(self, record: OutgoingRecord) -> None:
        """Serialize one record and hand it to the client; waits when much is under way.

        Raises:
            BrokerError: it cannot be serialized, or the topic has no such partition.
            NoRightError: the user may not write to the topic.
        """
        key = self._encoded("key", self._encode_key, record.key)
        value = self._encoded("value", self._encode_value, record.value)
        partition = record.partition
        if partition is None:
            partition = None if key is None else self._partition_of(key)
        elif not 0 <= partition < self._partitions:
            raise self._error(
                f"there is no partition {partition}; topic {self._topic!r} has 0 to {self._partitions - 1}."
            )
        try:
            future = self._producer.send(
                self._topic,
                NULL if value is None else value,
                key,
                record.headers,
                partition,
                record.timestamp,
            )
        except (KafkaError, AssertionError, TypeError, ValueError) as error:
            if is_denied(error):
                raise self._denied from error
            raise self._error(f"{reason(error)}.") from error
        self._under_way.append(future)
        self._bytes_under_way += len(value or b"") + len(key or b"")
        self.sent += 1
        if len(self._under_way) >= MOST_RECORDS_UNDER_WAY or self._bytes_under_way >= MOST_BYTES_UNDER_WAY:
            self.wait()

    def wait(self) -> None:
        """Wait for all acknowledgements. Raises BrokerError for the first record that failed."""
        first = self.sent - len(self._under_way)
        deadline = time.monotonic() + DELIVERY_SECONDS + 5
        for index, future in enumerate(self._under_way, first):
            try:
                future.get(timeout=max(0.0, deadline - time.monotonic()))
            except KafkaError as error:
                if is_denied(error):
                    raise self._denied from error
                raise NotDeliveredError(
                    f"Record {index} of topic {self._topic!r} was not delivered: {_why(error)}. Records "
                    "before it are in the topic; some after it may be."
                ) from error
        self._under_way.clear()
        self._bytes_under_way = 0

    def _encoded(self, part: str, encode: Callable[[Any], bytes | None], value: Any) -> bytes | None:
        try:
            data = encode(value)
        except Exception as error:  # a serde is the user's own code
            raise self._error(f"its {part} cannot be serialized: {error}") from error
        if data is None or isinstance(data, bytes):
            return data
        raise self._error(f"the serde of its {part} returned {type(data).__name__}, not bytes or None.")

    def _error(self, words: str) -> BrokerError:
        return BrokerError(f"Record {self.sent} of topic {self._topic!r}: {words}")


def _why(error: KafkaError) -> str:
    if isinstance(error, KafkaTimeoutError):
        return (
            f"no broker has confirmed it within {DELIVERY_SECONDS} s. If one is down, its partition may have no "
            "leader, or too few replicas in sync (`min.insync.replicas`)"
        )
    return reason(error).rstrip(".")


@contextlib.contextmanager
def _producer(bootstrap_servers: BootstrapServers) -> Iterator[KafkaProducer]:
    producer = _with_id(bootstrap_servers)
    try:
        yield producer
    except BaseException:
        _give_up(producer)
        raise
    finally:
        with contextlib.suppress(KafkaError):
            producer.close(timeout=1)


def _with_id(bootstrap_servers: BootstrapServers) -> KafkaProducer:
    """Return a producer that has an id, by which brokers recognize what it sends twice.

    None is given while a dead broker is replaced. Without one nothing is sent, so that another client may be tried.

    Raises:
        BrokerError: there is none in time.
    """
    deadline = time.monotonic() + DELIVERY_SECONDS
    while time.monotonic() < deadline:
        producer = _connected(bootstrap_servers)
        is_ready = False
        try:
            is_ready = eventually(partial(_is_ready, producer), min(ID_SECONDS, deadline - time.monotonic()))
        finally:
            if not is_ready:  # also when the user interrupts
                _give_up(producer)
        if is_ready:
            return producer
    raise BrokerError(
        f"A broker at {bootstrap_servers} answers, but has given this producer no id for {DELIVERY_SECONDS} s, and "
        "without one nothing is sent. In a cluster more than half of the controllers have to be alive: start the "
        "brokers that are down."
    )


def _is_ready(producer: KafkaProducer) -> bool:
    state = producer._transaction_manager
    return bool(state.has_producer_id() or state.has_fatal_error())  # the first record tells what is wrong


def _give_up(producer: KafkaProducer) -> None:
    # its close() would wait for what cannot be sent any more, and fail once more when it is collected
    producer._sender.force_close()
    producer._sender.join(REQUEST_SECONDS + 1)


def _connected(bootstrap_servers: BootstrapServers) -> KafkaProducer:
    with reachable(bootstrap_servers):
        producer = KafkaProducer(
            **for_kafka_python(bootstrap_servers, "producer"),
            value_serializer=NullSerializer(),
            bootstrap_timeout_ms=int(CONNECT_SECONDS * 1000),
            acks="all",
            enable_idempotence=True,
            linger_ms=20,
            batch_size=128 * 1024,
            max_request_size=LARGEST_REQUEST,
            request_timeout_ms=REQUEST_SECONDS * 1000,
            delivery_timeout_ms=DELIVERY_SECONDS * 1000,
            reconnect_backoff_max_ms=1000,
            max_block_ms=DELIVERY_SECONDS * 1000,
            retry_backoff_ms=20,  # also the wait before the first look-up of a topic
            metrics_enabled=False,
        )
    without_new_topics(producer._metadata)
    return producer
