"""The recorded queries, asked of a running application: its own store, and over REST."""

import json
from typing import Any

import pytest

from streamskit import (
    KafkaStreams,
    LogAndContinue,
    Processor,
    Record,
    Serdes,
    State,
    Stores,
    StreamsBuilder,
    StreamsError,
    UncaughtExceptionResponse,
)
from streamskit.broker import Broker
from streamskit.common.errors import StreamsRebalancingError
from streamskit.kafka.connection import admin_client
from streamskit.queries.client import QueryClient
from streamskit.testing import wait_until
from tests.conformance.programs import PROGRAMS
from tests.conformance.queries import answers, ask
from tests.conformance.test_vectors import VECTORS
from tests.integration.conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.mark.parametrize(
    "name",
    [
        "queries-key-value",
        pytest.param("queries-versioned", marks=pytest.mark.soak),
        pytest.param("queries-versions", marks=pytest.mark.soak),
        "queries-window",
    ],
)
def test_the_recorded_queries_are_answered_alike_by_the_local_store_and_over_rest(
    name: str, broker: Broker, tmp_path: Any
) -> None:
    vector = json.loads((VECTORS / f"{name}.json").read_text())
    topology = PROGRAMS[name]()
    broker.delete_topics(*vector["topics"], missing_ok=True)
    # The retention of windows counts from the newest of their partition, and the recording has one.
    broker.create_topics(*vector["topics"], partitions=1 if name == "queries-window" else 3)
    streams = KafkaStreams(
        topology,
        f"live-{name}",
        broker.bootstrap_servers,
        state_dir=tmp_path,
        application_server="127.0.0.1:0",
        statestore_cache_max_bytes=0,
    )
    expected = {number: (query, answer) for number, query, answer in answers(vector)}
    with streams:
        client = QueryClient(f"http://{streams.application_server}")
        for number, step in enumerate(vector["steps"]):
            if number not in expected:
                record = step["pipe"]
                broker.produce(record["topic"], [{name: part for name, part in record.items() if name != "topic"}])
                continue
            streams.await_processed("120 seconds")
            query, answer = expected[number]
            assert ask(streams.store(query["store"]), query) == answer, (number, query)
            assert ask(client.store(query["store"]), query) == answer, (number, query)
    streams.clean_up()


class UpperCase(Processor):
    """Keeps the values of a topic in capital letters, with the place of each and its header."""

    def process(self, record: Record) -> None:
        where, ((_, by),) = self.context.record_metadata(), record.headers
        said = f"{record.value.upper()} by {by.decode()} at {where.partition}/{where.offset}"
        self.context.state_store("names").put(record.key, said)


class Doubled(Processor):
    """Keeps twice the values of a topic."""

    def process(self, record: Record) -> None:
        self.context.state_store("numbers").put(record.key, 2 * record.value)


@pytest.mark.parametrize("options", [{}, {"application_server": "127.0.0.1:0"}], ids=["alone", "instance"])
def test_partitions_that_are_added_to_the_topics_of_a_global_table_and_a_global_store_are_read_while_it_runs(
    broker: Broker, name: str, run: Run, options: dict[str, Any]
) -> None:
    broker.create_topics(f"{name}-names", f"{name}-numbers", f"{name}-in", f"{name}-out")
    broker.produce(f"{name}-names", [("k0", "zero")])
    builder = StreamsBuilder()
    builder.global_table(f"{name}-names", materialized="names")
    numbers = Stores.persistent_key_value_store("numbers", Serdes.string(), Serdes.long())
    builder.add_global_store(numbers, f"{name}-numbers", Doubled, value=Serdes.long())
    builder.stream(f"{name}-in").to(f"{name}-out")
    streams = run(builder.build(), **options)
    streams.await_processed("120 seconds")
    with admin_client(broker.bootstrap_servers) as admin:
        admin.create_partitions({f"{name}-names": 2, f"{name}-numbers": 2})
    wait_until(lambda: broker.describe_topic(f"{name}-numbers").partitions == 2, "the added partitions", 60)
    broker.produce(f"{name}-names", [{"key": "k1", "value": "one", "partition": 1}])
    broker.produce(f"{name}-numbers", [{"key": "k1", "value": 1, "partition": 1}], value=Serdes.long())

    def rows(store: str) -> dict[str, Any]:
        try:
            return {row.key: row.value for row in streams.store(store).all()}
        except StreamsRebalancingError:  # the added partition is being restored
            return {}

    wait_until(lambda: rows("names") == {"k0": "zero", "k1": "one"}, "the name in the added partition", 60)
    wait_until(lambda: rows("numbers") == {"k1": 2}, "the number in the added partition", 60)
    streams.await_processed("60 seconds")
    if options:
        client = QueryClient(f"http://{streams.application_server}")
        assert {row.key: row.value for row in client.store("names").all()} == {"k0": "zero", "k1": "one"}


def test_a_global_store_goes_on_without_a_record_that_cannot_be_read(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-numbers", f"{name}-in", f"{name}-out")
    broker.produce(f"{name}-numbers", [("bad", b"bad"), ("two", Serdes.long().serialize(2))])
    builder = StreamsBuilder()
    numbers = Stores.persistent_key_value_store("numbers", Serdes.string(), Serdes.long())
    builder.add_global_store(numbers, f"{name}-numbers", Doubled, value=Serdes.long())
    builder.stream(f"{name}-in").to(f"{name}-out")
    streams = run(builder.build(), deserialization_handler=LogAndContinue())
    broker.produce(f"{name}-numbers", [("three", Serdes.long().serialize(3))])
    wait_until(
        lambda: {row.key: row.value for row in streams.store("numbers").all()} == {"two": 4, "three": 6},
        "the numbers before and after the one that cannot be read",
    )
    assert streams.metrics()["dropped"].sum() == 1


def test_a_global_store_that_cannot_read_a_record_stops_its_application(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-numbers", f"{name}-in", f"{name}-out")
    builder = StreamsBuilder()
    numbers = Stores.persistent_key_value_store("numbers", Serdes.string(), Serdes.long())
    builder.add_global_store(numbers, f"{name}-numbers", Doubled, value=Serdes.long())
    builder.stream(f"{name}-in").to(f"{name}-out")
    asked: list[StreamsError] = []

    def replace(failure: StreamsError) -> UncaughtExceptionResponse:
        asked.append(failure)
        return UncaughtExceptionResponse.REPLACE_THREAD

    streams = run(builder.build(), uncaught_exception_handler=replace)
    broker.produce(f"{name}-numbers", [("bad", b"bad")])
    wait_until(lambda: streams.state is State.ERROR, "the end of the application", 60)
    assert asked == [streams.failure]  # it is asked, though nothing fills the store again
    with pytest.raises(StreamsError, match=rf"cannot read a record in partition 0 of topic '{name}-numbers'"):
        streams.await_processed()


class Named(Processor):
    """Passes a record on with what the global store has for its key."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(self.context.state_store("names").get(record.key)))


@pytest.mark.parametrize("server", [pytest.param(None, marks=pytest.mark.soak), "127.0.0.1:0"])
def test_what_a_processor_makes_of_a_global_topic_can_be_queried_with_and_without_an_application_server(
    server: str | None, broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-names", f"{name}-in", f"{name}-out", partitions=2)
    broker.produce(
        f"{name}-names",
        [
            {"key": f"k{number}", "value": f"name {number}", "partition": number % 2, "headers": [("by", b"ann")]}
            for number in range(4)
        ],
    )
    said = {f"k{number}": f"NAME {number} by ann at {number % 2}/{number // 2}" for number in range(4)}
    builder, names = StreamsBuilder(), Stores.persistent_key_value_store("names", Serdes.string(), Serdes.string())
    builder.add_global_store(names, f"{name}-names", UpperCase)
    records = builder.stream(f"{name}-in", value=Serdes.string())
    records.process(Named).to(f"{name}-out")
    records.group_by_key().count("counts")
    streams = run(builder.build(), application_server=server)
    broker.produce(f"{name}-in", [("k1", "x")])
    streams.await_processed("120 seconds")
    assert {row.key: row.value for row in streams.store("names").all()} == said
    assert streams.store("counts").get("k1") == 1
    assert [value.partition(" at ")[0] for value in broker.consume(f"{name}-out")["value"]] == ["NAME 1 by ann"]
