"""Faults on a live broker: it dies, it stands still, a query fails and runs again; nothing is lost."""

import contextlib
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from streamskit import KafkaStreams, Serdes, State, StreamsBuilder, Topology
from streamskit.broker import Broker, EmbeddedBroker
from streamskit.common.errors import BrokerError, StreamsError
from streamskit.environment.processes import wait_until
from streamskit.queries.client import QueryClient
from streamskit.queries.instances import Instances
from streamskit.runtime import MaxFailures, UncaughtExceptionResponse
from tests.integration.conftest import Run, members
from tests.integration.kafka_defaults import KAFKA_DEFAULTS

pytestmark = [pytest.mark.spark, pytest.mark.broker]

KEYS, OUTAGE_SECONDS = 50, 20.0
LONG = Serdes.long()


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker of the test's own, to be killed."""
    with EmbeddedBroker(data_dir=tmp_path / "broker", settings=KAFKA_DEFAULTS) as broker:
        yield broker
        if broker.is_running:
            broker.resume()


def count_and_total() -> Topology:
    """A count, which Spark does itself, and a sum in Python, each with a table and a topic."""
    builder = StreamsBuilder()
    numbers = builder.stream("numbers", value=LONG)
    numbers.group_by_key().count("counts").to_stream().to("counted", value=LONG)
    numbers.group_by_key().reduce(lambda total, value: total + value, "totals").to_stream().to("added", value=LONG)
    return builder.build()


class Load:
    """Writes the numbers 0, 1, 2 … with their keys, from a thread, while the broker lets it."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._stopping = broker, threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def write(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        self.sent = numbers.stop
        self._broker.produce("numbers", [(f"k{n % KEYS}", n) for n in numbers])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(BrokerError):  # what has not arrived is no part of the input
                self.write(500)
            time.sleep(0.1)


def check_nothing_is_lost(broker: Broker, streams: KafkaStreams) -> None:
    """Compare tables and topics with what is in the input now: each record counts exactly once."""
    records = broker.consume("numbers", value=LONG)
    assert records["value"].is_unique
    counts = records.groupby("key")["value"].count().to_dict()
    totals = records.groupby("key")["value"].sum().to_dict()
    assert dict(streams.store("counts").all()) == counts
    assert dict(streams.store("totals").all()) == totals
    for topic, expected in (("counted", counts), ("added", totals)):
        written = broker.consume(topic, value=LONG)
        assert dict(zip(written["key"], written["value"], strict=True)) == expected  # the last one of each key
        assert all(column.is_monotonic_increasing for column in without_repeats(written))


def without_repeats(written: pd.DataFrame) -> list["pd.Series[Any]"]:
    """Return each key's results; a micro-batch that ran twice has written the same ones again."""
    return [rows["value"].drop_duplicates() for _, rows in written.groupby("key")]


@dataclass
class Outage:
    """A broker under load, with an application on it, and what takes it away and brings it back."""

    broker: EmbeddedBroker
    begin: Callable[[], None]
    end: Callable[[], None]
    load: Load
    streams: KafkaStreams
    states: list[str]

    @staticmethod
    def of(broker: EmbeddedBroker, run_on: Run, fault: str) -> "Outage":
        broker.create_topics("numbers", "counted", "added", partitions=2)
        load, states = Load(broker), list[str]()
        load.write(1_000)
        streams = run_on(broker, count_and_total(), application_id=fault)
        streams.set_state_listener(lambda new, old: states.append(new.name))
        streams.await_processed()
        load.start()
        begin, end = {"killed": (broker.kill, broker.start), "paused": (broker.pause, broker.resume)}[fault]
        return Outage(broker, begin, end, load, streams, states)


@pytest.mark.slow
@pytest.mark.soak
def test_nothing_is_lost_when_a_broker_is_away_for_20_seconds_under_load(
    tmp_path: Path, run_on: Run, caplog: pytest.LogCaptureFixture
) -> None:
    # One is killed and one stands still, both at once: it is the time that makes the test long.
    with (
        EmbeddedBroker(data_dir=tmp_path / "killed", settings=KAFKA_DEFAULTS) as one,
        EmbeddedBroker(data_dir=tmp_path / "paused", settings=KAFKA_DEFAULTS) as other,
    ):
        outages = [Outage.of(one, run_on, "killed"), Outage.of(other, run_on, "paused")]
        time.sleep(1)
        for outage in outages:
            outage.begin()
        time.sleep(OUTAGE_SECONDS)
        for outage in outages:
            assert outage.streams.state is State.REBALANCING
            with pytest.raises(
                StreamsError, match=r"has not answered for \d+ s, so that not all could be processed in"
            ):
                outage.streams.await_processed("1 second")
        for outage in reversed(outages):  # to start a broker takes longer than to let one go on
            outage.end()
        time.sleep(1)
        for outage in outages:
            outage.load.stop()
            outage.streams.await_processed("120 seconds")
            check_nothing_is_lost(outage.broker, outage.streams)
            assert outage.states == ["REBALANCING", "RUNNING"]
            assert outage.streams.metrics()["restarts"].tolist() == [0, 0]
            outage.streams.close()
    said = [record.getMessage() for record in caplog.records if record.name == "streamskit"]
    for name in ("killed", "paused"):
        assert any(re.search(rf"'{name}': .* does not answer. Its queries wait for it", each) for each in said)
        assert any(re.search(rf"'{name}': .* answers again, after", each) for each in said)


@pytest.mark.slow
@pytest.mark.soak
def test_a_query_that_spark_gives_up_runs_again_when_the_broker_is_back(
    frail: EmbeddedBroker, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's source gives up after a minute; here after some seconds.
    quick = {"kafka.request.timeout.ms": "2000", "kafka.default.api.timeout.ms": "2000", "fetchOffset.numRetries": "1"}
    monkeypatch.setattr("streamskit.runtime.spark_io.CONSUMER", quick)
    frail.create_topics("numbers", "counted", "added", partitions=2)
    load = Load(frail)
    load.write(2_000)
    streams = run_on(frail, count_and_total())
    streams.await_processed()
    frail.pause()
    wait_until(lambda: not any(query.isActive for query in streams.queries()), "the end of the queries")
    wait_until(lambda: streams.state is State.REBALANCING, "the state REBALANCING", 60)
    frail.resume()
    load.write(5_000)
    streams.await_processed("120 seconds")
    check_nothing_is_lost(frail, streams)
    assert streams.metrics()["restarts"].tolist() == [1, 1]


@pytest.mark.slow
def test_a_broker_that_stays_away_for_longer_than_task_timeout_is_told_of_in_a_sentence(
    frail: EmbeddedBroker, run_on: Run
) -> None:
    frail.create_topics("numbers", "counted", "added")
    streams = run_on(frail, count_and_total(), task_timeout="3 seconds")
    frail.kill()
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
    with pytest.raises(StreamsError, match=r"has not answered for \d+ s, longer than task_timeout allows \(3 s\)"):
        streams.await_processed()
    assert "has not answered" in streams.store("counts").stopped
    began = time.monotonic()
    streams.close("5 seconds")  # a query that looks for the broker keeps nobody waiting for longer
    assert time.monotonic() - began < 25
    assert streams.state is State.NOT_RUNNING


# A query that fails.


def failing_until(file: Path, source: str, sink: str) -> Topology:
    """A sum in Python that fails on every record until a file exists; and a copy of the records beside it."""

    def add(total: int, value: int) -> int:
        if value == 13 and not file.exists():
            raise ValueError("13 is unlucky")
        return total + value

    builder = StreamsBuilder()
    numbers = builder.stream(source, value=LONG)
    numbers.group_by_key().reduce(add, "totals")
    builder.stream(f"{source}-too", value=LONG).map_values(lambda v: v + 1).to(sink, value=LONG)
    return builder.build()


@pytest.fixture
def poisoned(broker: Broker, name: str, tmp_path: Path) -> tuple[Topology, Path]:
    """A topology that fails on a record that is there, and the file that mends it."""
    broker.create_topics(f"{name}-in", f"{name}-in-too", f"{name}-out")
    broker.produce(f"{name}-in", [("a", 1), ("a", 13), ("a", 5)])
    file = tmp_path / "mended"
    return failing_until(file, f"{name}-in", f"{name}-out"), file


def test_a_replaced_query_goes_on_when_what_failed_is_mended_and_the_others_never_stop(
    poisoned: tuple[Topology, Path], broker: Broker, name: str, run_on: Run, caplog: pytest.LogCaptureFixture
) -> None:
    topology, mended = poisoned
    failures: list[str] = []

    def replace(failure: StreamsError) -> UncaughtExceptionResponse:
        failures.append(str(failure))
        return UncaughtExceptionResponse.REPLACE_THREAD

    streams = run_on(broker, topology, uncaught_exception_handler=replace)
    states: list[str] = []
    streams.set_state_listener(lambda new, old: states.append(new.name))
    wait_until(lambda: len(failures) >= 2, "the second failure")
    broker.produce(f"{name}-in-too", [("b", 41)])  # the other query works on
    wait_until(lambda: broker.end_offsets(f"{name}-out") == {0: 1}, "the record in the output topic", 60)
    mended.touch()
    streams.await_processed("60 seconds")
    assert dict(streams.store("totals").all()) == {"a": 19}
    assert Counter(streams.metrics()["restarts"])[0] == 1  # of the two queries one
    assert streams.metrics()["restarts"].sum() >= 2
    assert streams.state is State.RUNNING
    assert states[-2:] == ["REBALANCING", "RUNNING"]
    assert all("KSTREAM-REDUCE" in failure and "ValueError: 13 is unlucky" in failure for failure in failures)
    assert any("runs again from its last whole micro-batch in 0.5 s. It failed" in one.getMessage()
               for one in caplog.records)  # fmt: skip


def test_max_failures_shuts_the_client_down_after_so_many(
    poisoned: tuple[Topology, Path], broker: Broker, run_on: Run
) -> None:
    topology, _ = poisoned
    streams = run_on(broker, topology, uncaught_exception_handler=MaxFailures(1, "1 minute"))
    with pytest.raises(StreamsError, match="13 is unlucky"):
        streams.await_processed("60 seconds")
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
    assert streams.metrics()["restarts"].max() == 1
    assert not any(query.isActive for query in streams.queries())


def test_without_a_handler_the_client_shuts_down_and_says_why(
    poisoned: tuple[Topology, Path], broker: Broker, run_on: Run, caplog: pytest.LogCaptureFixture
) -> None:
    topology, _ = poisoned
    streams = run_on(broker, topology)
    with pytest.raises(StreamsError, match="13 is unlucky"):
        streams.await_processed("60 seconds")
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
    assert streams.metrics()["restarts"].max() == 0
    assert [one.levelno for one in caplog.records if "13 is unlucky" in one.getMessage()] == [logging.ERROR]


@pytest.mark.parametrize("answer", [UncaughtExceptionResponse.SHUTDOWN_CLIENT,
                                    UncaughtExceptionResponse.SHUTDOWN_APPLICATION])  # fmt: skip
def test_to_shut_the_application_down_stops_the_instances_that_answer_for_its_stores_and_to_shut_the_client_does_not(
    answer: UncaughtExceptionResponse, poisoned: tuple[Topology, Path], broker: Broker, name: str, state_dir: Path,
    run_on: Run,
) -> None:  # fmt: skip
    topology, _ = poisoned
    are_up = threading.Event()

    def decide(failure: StreamsError) -> UncaughtExceptionResponse:
        assert are_up.wait(120)
        return answer

    streams = run_on(broker, topology, uncaught_exception_handler=decide)
    with Instances(name, broker.bootstrap_servers, applications=state_dir) as instances:
        server = instances.start()
        wait_until(lambda: members(broker, name), "the instance in its group")  # only members are told to stop
        are_up.set()
        wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
        if answer is UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
            wait_until(lambda: not list(instances), "the end of the instance", 60)
            assert f"The instance at {server} has stopped: The application was shut down: " in instances.log(server)
            assert "13 is unlucky" in instances.log(server)
        else:
            with QueryClient(server.url) as client:
                assert dict(client.store("totals").all()) == {}
            assert list(instances) == [server]


@pytest.mark.parametrize(
    ("answer", "said"), [(None, "returned None, which is no"), (1 / 3, "returned 0.33")], ids=["nothing", "a number"]
)
def test_a_handler_without_an_answer_shuts_the_client_down(
    answer: Any, said: str, poisoned: tuple[Topology, Path], broker: Broker, run_on: Run
) -> None:
    topology, _ = poisoned
    streams = run_on(broker, topology, uncaught_exception_handler=lambda failure: answer)
    with pytest.raises(StreamsError, match=f"13 is unlucky.*{said}"):
        streams.await_processed("60 seconds")


def test_a_function_of_a_peek_that_failed_is_called_again_for_the_same_record(
    broker: Broker, name: str, run_on: Run
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    seen: list[str] = []

    def look(key: str, value: str) -> None:
        seen.append(value)
        if seen == ["x", "y"]:
            raise ValueError("not yet")

    builder = StreamsBuilder()
    builder.stream(f"{name}-in").peek(look).to(f"{name}-out")
    replace = UncaughtExceptionResponse.REPLACE_THREAD
    streams = run_on(broker, builder.build(), uncaught_exception_handler=lambda failure: replace)
    broker.produce(f"{name}-in", [("k", "x"), ("k", "y"), ("k", "z")])
    streams.await_processed()
    assert seen == ["x", "y", "y", "z"]


def test_a_function_is_called_for_every_record_whether_the_application_closes_in_time_or_dies(
    broker: Broker, name: str, run_on: Run, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in")
    seen: list[int] = []
    hurry = threading.Event()

    def note(key: str, value: str) -> None:
        hurry.wait(0.02 if int(value) < 60 else 0.2)
        seen.append(int(value))

    builder = StreamsBuilder()
    builder.stream(f"{name}-in").foreach(note)

    def processed(*numbers: int) -> KafkaStreams:
        # A record in real time would be with the function before anybody could ask for the end.
        streams = run_on(broker, builder.build(), real_time="off")
        broker.produce(f"{name}-in", [("k", str(number)) for number in numbers])
        streams.queries()[0].processAllAvailable()
        return streams

    assert processed(*range(60)).close()
    assert seen == list(range(60))

    before = (state_dir / name / "calls.json").read_text()
    assert not processed(*range(60, 160)).close("100 milliseconds")
    assert 60 <= len(seen) < 160
    hurry.set()
    assert processed().close()
    assert seen == list(range(160))

    # What a killed application has not noted is called for again.
    (state_dir / name / "calls.json").write_text(before)
    assert processed(160).close()
    assert seen == [*range(160), *range(60, 161)]
