"""The recorded queries, asked of a running application: its own store, and over REST."""

import json
from typing import Any

import pytest

from streamskit import KafkaStreams
from streamskit.broker import Broker
from streamskit.queries.client import QueryClient
from tests.conformance.programs import PROGRAMS
from tests.conformance.queries import answers, ask
from tests.conformance.test_vectors import VECTORS

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.mark.parametrize(
    "name", ["queries-key-value", pytest.param("queries-versioned", marks=pytest.mark.soak), "queries-window"]
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
