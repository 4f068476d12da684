"""Exactly-once output on a live broker: whatever dies and whenever, no record is lost and none is there twice."""

import contextlib
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import (
    KafkaStreams,
    LogAndContinue,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    State,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from streamskit.broker import Broker
from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_reader import TopicReader, changelog_record, topic_record
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.exactly_once import Transactions
from tests.integration.conftest import Run
from tests.integration.counting_program import (
    check_exactly_once,
    counting,
    create_topics,
    expected_counts,
    once,
    produce,
    written,
)

pytestmark = [pytest.mark.spark, pytest.mark.broker]

BYTES = Serdes.byte_array()


@pytest.fixture
def run(run_on: Run, broker: Broker) -> Run:
    """Starts a topology, exactly once unless told otherwise."""
    return lambda topology, **options: run_on(broker, topology, **{"processing_guarantee": "exactly_once"} | options)


# What is written.


class Noting(Processor):
    """Keeps each record in a store and passes it on with a header; fails on one."""

    def process(self, record: Record) -> None:
        if record.value == "v7":
            raise ValueError("not this one")
        self.context.state_store("notes").put(record.key, record.value)
        self.context.forward(record.with_headers((*record.headers, ("noted", b"\x00\xff"))))


def everything(name: str) -> Topology:
    """Records with headers, tombstones, windowed keys, stores by key and by task, topics by record, dead letters."""
    builder = StreamsBuilder()
    lines = builder.stream(f"{name}-in")
    lines.to(lambda k, v: F.concat(F.lit(f"{name}-"), F.when(v.isNull(), "gone").otherwise("out")))
    windows = TimeWindows.of_size_with_no_grace("1 second")
    lines.group_by_key().windowed_by(windows).count("windows").to_stream().to(f"{name}-windowed")
    notes = Stores.persistent_key_value_store("notes", Serdes.string(), Serdes.string())
    lines.filter(lambda v: v.isNotNull()).process(Noting, stores=[notes]).to(f"{name}-noted")
    return builder.build()


@pytest.mark.soak
def test_what_is_written_is_to_the_byte_what_at_least_once_writes(broker: Broker, name: str, run: Run) -> None:
    suffixes = "in", "out", "gone", "windowed", "noted", "dead"
    found = []
    for guarantee in ("at_least_once", "exactly_once"):
        here = f"{name}-{guarantee}"
        broker.create_topics(*(f"{here}-{suffix}" for suffix in suffixes), partitions=3)
        lines = [{"key": f"k{number % 11}", "value": None if number % 13 == 0 else f"v{number}",
                  "timestamp": number * 100, "headers": [("trace", bytes([number])), ("empty", b"")]}
                 for number in range(200)]  # fmt: skip
        broker.produce(f"{here}-in", lines)
        streams = run(everything(here), application_id=here, processing_guarantee=guarantee,
                      processing_handler=LogAndContinue(f"{here}-dead"))  # fmt: skip
        streams.await_processed("120 seconds")
        dropped = streams.metrics().query("dropped > 0")[["node", "dropped"]]
        streams.close()
        topics = [*(f"{here}-{suffix}" for suffix in suffixes[1:]),
                  *(f"{here}-{store}-changelog" for store in ("windows", "notes"))]  # fmt: skip
        records = {topic.removeprefix(here): sorted(map(repr, records_of(broker, topic))) for topic in topics}
        found.append((repr(records).replace(here, name), dropped.values.tolist()))
        assert all(records.values())
    assert found[1] == found[0]


def records_of(broker: Broker, topic: str) -> list[tuple[Any, ...]]:
    """Return partition, timestamp, key, value and headers of all records."""
    rows = broker.consume(topic, key=BYTES, value=BYTES, isolation="read_committed")
    return list(rows[["partition", "timestamp", "key", "value", "headers"]].itertuples(index=False, name=None))


def test_a_batch_is_visible_whole_or_not_at_all(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", config={"max.message.bytes": str(4 * 1024 * 1024)})
    broker.create_topics(f"{name}-out", partitions=2)
    broker.produce(f"{name}-in", [("small", "a"), ("large", "b" * (2 * 1024 * 1024)), ("small", "c")])
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").to(f"{name}-out")
    streams = run(builder.build())
    with pytest.raises(StreamsError, match=rf"KSTREAM-SINK-0000000001 \(written at test_exactly_once.py line \d+\): a "
                       rf"record could not be written to topic '{name}-out': RecordTooLargeException"):  # fmt: skip
        streams.await_processed()
    assert broker.consume(f"{name}-out", isolation="read_committed").empty


# A batch that runs again.


@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.soak), "exactly_once"])
def test_a_batch_that_was_written_and_not_noted_as_done_is_written_twice_only_at_least_once(
    guarantee: str, broker: Broker, name: str, run: Run, state_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ids = range(300)
    create_topics(broker, name)
    for part in (ids[:100], ids[100:200]):
        produce(broker, name, part)
        streams = run(counting(name), processing_guarantee=guarantee)
        streams.await_processed()
        streams.close()
    for query in ("0", "1"):
        forget_last_commit(state_dir / name / query)
    produce(broker, name, ids[200:])
    streams = run(counting(name), processing_guarantee=guarantee)
    streams.await_processed()
    if guarantee == "exactly_once":
        check_exactly_once(broker, name, streams, ids)
    else:
        again = ids[100:200]
        assert written(broker, name) == once(ids) + once(again)
        # Between the two queries, too: what comes twice from a topic is counted twice.
        assert Counter(dict(streams.store("counts").all())) == expected_counts(ids) + expected_counts(again)
    streams.close()
    told = [record.getMessage() for record in caplog.records if "does not run it again" in record.getMessage()]
    assert len(told) == (2 if guarantee == "exactly_once" else 0)


def forget_last_commit(checkpoint: Path) -> None:
    """Take back Spark's note that the last micro-batch is done, as if the driver had died just before."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


class Totals(Processor):
    """Counts by key under a running number; every 10 s of stream time the totals go out, and the store is emptied."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.number = 0
        context.schedule("10 seconds", PunctuationType.STREAM_TIME, self.emit)

    def process(self, record: Record) -> None:
        self.number += 1
        self.context.state_store("totals").put(f"{record.key}-{self.number}", 1)

    def emit(self, now: int) -> None:
        store = self.context.state_store("totals")
        for key, value in list(store.all()):
            self.context.forward(Record(key, value, now))
            store.delete(key)
        self.context.forward(Record("random", random.getrandbits(62), now))


@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.soak), "exactly_once"])
def test_a_processor_s_fields_and_punctuations_are_those_of_the_batch_when_it_ran_first(
    guarantee: str, broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    store = Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long())
    builder = StreamsBuilder()
    rows = builder.stream(f"{name}-in").process(Totals, stores=[store], key=Serdes.string(), value=Serdes.long())
    rows.to(f"{name}-out")
    topology = builder.build()

    def feed(streams: KafkaStreams, *times: int) -> None:
        broker.produce(f"{name}-in", [{"key": "a", "value": "x", "timestamp": time} for time in times])
        streams.await_processed()

    streams = run(topology, processing_guarantee=guarantee)
    feed(streams, 1000)
    feed(streams, 2000, 3000, 3500)
    feed(streams, 4000)
    streams.close()
    forget_last_commit(state_dir / name / "0")
    streams = run(topology, processing_guarantee=guarantee)
    feed(streams, 5000)  # a new run: `init` has been called, so that the numbers and the schedule begin again
    queried = dict(streams.store("totals").all())
    feed(streams, 25_000)
    streams.close()
    out = broker.consume(f"{name}-out", value=Serdes.long(), isolation="read_committed")
    counted = out[out["key"] != "random"]
    left = {f"a-{number}" for number in range(2, 6)}
    # As in Kafka Streams: a schedule of stream time is due at the first record after `init`.
    assert list(counted["key"]) == ["a-1", *sorted(left), "a-1", "a-2"]
    assert queried == {"a-1": 1}


@pytest.mark.soak
def test_after_clean_up_all_is_written_again_and_after_the_checkpoint_was_deleted_it_is_refused(
    broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    ids = range(20)
    create_topics(broker, name)
    produce(broker, name, ids)
    streams = run(counting(name))
    streams.await_processed()
    streams.close()
    streams.clean_up()
    assert f"{name}-0-transactions" not in broker.topics()
    streams = run(counting(name))
    streams.await_processed()
    streams.close()
    shutil.rmtree(state_dir / name)
    with pytest.raises(StreamsError, match=f"would write all its results to '{name}-out'.* a second time"):
        run(counting(name))
    assert written(broker, name) == once(ids) + once(ids)


@pytest.mark.soak
def test_it_can_be_switched_on_and_off_between_two_runs(broker: Broker, name: str, run: Run, state_dir: Path) -> None:
    ids = range(50)
    create_topics(broker, name)
    guarantees = "at_least_once", "exactly_once", "at_least_once", "exactly_once_v2", "exactly_once"
    for number, guarantee in enumerate(guarantees):
        produce(broker, name, ids[10 * number : 10 * number + 10])
        with left_open(broker, f"{name}-0", f"{name}-out"):  # as if a run with exactly_once had died
            streams = run(counting(name), processing_guarantee=guarantee)
            streams.await_processed()
            streams.close()
            # Only where there were no transactions yet nobody looks for one that is open.
            assert number == 0 or written(broker, name) == once(ids[: 10 * number + 10])
    broker.delete_topics(f"{name}-0-transactions")
    forget_last_commit(state_dir / name / "0")
    with pytest.raises(StreamsError, match=rf"Nothing says whether micro-batch \d+ of sub-topology 0 of '{name}'"):
        run(counting(name))


# What others leave open.


@contextlib.contextmanager
def left_open(broker: Broker, transactional_id: str, topic: str) -> Iterator[KafkaProducer]:
    """Write a record in a transaction that nobody ends."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=transactional_id) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"never", b"g0-0").get(timeout=60)
        yield producer


def test_who_follows_a_topic_is_given_what_is_committed(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    taken: list[bytes] = []
    reader = TopicReader(
        broker.bootstrap_servers,
        lambda _, records, *more: taken.extend(record.value or b"" for record in records),
        "A test",
        topic_record,
    )
    with left_open(broker, name, name) as producer:
        reader.start([name])
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(name, b"committed")
        producer.commit_transaction()
    reader.wait_for({TopicPartition(name, 0): broker.end_offsets(name)[0]}, time.monotonic() + 60)
    reader.stop()
    assert taken == [b"committed"]


def test_what_another_program_has_not_committed_is_not_read(broker: Broker, name: str, run: Run) -> None:
    create_topics(broker, name)
    streams = run(counting(name))
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=f"{name}-other") as producer:
        producer.init_transactions()
        for ids, end in ((range(5), producer.abort_transaction), (range(5, 9), producer.commit_transaction)):
            producer.begin_transaction()
            for number in ids:
                producer.send(f"{name}-in", b"x", f"g{number}-{number}".encode()).get(timeout=60)
            streams.await_processed("60 seconds")
            before = written(broker, name)
            end()
    streams.await_processed("60 seconds")
    assert before == Counter()
    assert written(broker, name) == once(range(5, 9))


def test_a_run_is_fenced_when_another_one_begins(
    broker: Broker, name: str, run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    ids = range(10)
    create_topics(broker, name)
    produce(broker, name, ids)
    streams = run(counting(name))
    streams.await_processed()
    (first, *_) = streams.plans
    transactions = Transactions(first, {"kafka.bootstrap.servers": broker.bootstrap_servers})
    transactions.begin(Checkpoint(tmp_path / "elsewhere"), "{}")
    produce(broker, name, range(10, 20))
    with pytest.raises(StreamsError, match=rf"Sub-topology 0 of '{name}' was fenced: another run of the application"):
        streams.await_processed()
    assert streams.state is State.ERROR
    assert written(broker, name) == once(ids)


def test_a_store_is_restored_when_it_has_what_is_committed(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    broker.produce(name, [("k", "v")])
    where, taken = TopicPartition(name, 0), list[Any]()
    reader = TopicReader(
        broker.bootstrap_servers, lambda _, records, *more: taken.extend(records), "A test", changelog_record
    )
    reader.start()
    with left_open(broker, name, name):
        reader.do(lambda: reader.follow({where: 0})).result(10)
        deadline = time.monotonic() + 10
        while not reader.is_ready(where):
            assert time.monotonic() < deadline, "it waits for a transaction that nobody ends"
            time.sleep(0.01)
    reader.stop()
    assert [key for key, *_ in taken] == [b"k"]


def test_a_run_that_is_over_cannot_begin_again_nor_stop_the_one_that_came_after_it(
    broker: Broker, name: str, spark: SparkSession
) -> None:
    broker.create_topics(name, f"{name}-out")
    package: Any = spark._jvm.org.apache.spark.sql.streamskit  # type: ignore[union-attr]
    settings = {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.transactional.id": name}
    now = package.Transactions(settings, name)
    now.begin()
    now.commit(package.Mark("query", "now", 5))
    now.begin()
    with pytest.raises(Py4JJavaError, match="ProducerFencedException: Another run of the application has begun"):
        package.Transactions.before(package.Mark("query", "then", 6), settings, name)
    now.commit(package.Mark("query", "now", 6))
    now.close()
    assert broker.consume(name, isolation="read_committed")["value"].tolist() == ["5", "6"]


def test_a_transaction_that_was_open_for_too_long_is_told_from_one_that_another_run_has_ended(
    broker: Broker, name: str, spark: SparkSession
) -> None:
    broker.create_topics(name)
    package: Any = spark._jvm.org.apache.spark.sql.streamskit  # type: ignore[union-attr]
    timeout = {"kafka.transaction.timeout.ms": "500"}
    settings = {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.transactional.id": name} | timeout
    with closing(package.Transactions(settings, name)) as transactions:
        transactions.begin()
        record = spark._jvm.org.apache.kafka.clients.producer.ProducerRecord  # type: ignore[union-attr]
        transactions.send(record(name, b"never", b"g0-0"))
        time.sleep(4)  # the broker looks for such transactions once a second
        with pytest.raises(Py4JJavaError, match=r"the transaction was open for \d+ ms, and the broker has aborted it"):
            transactions.commit(package.Mark("query", "now", 5))
