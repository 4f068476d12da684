"""Two learners with the same program on one broker: a prefix keeps their topics, applications and results apart."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    DeadLetter,
    Instances,
    KafkaStreams,
    QueryClient,
    Response,
    Serdes,
    StreamsBuilder,
    Topology,
)
from streamskit.broker.base import Broker
from streamskit.kafka.topics import list_topics

pytestmark = [pytest.mark.broker, pytest.mark.spark]

BILL = Serdes.json("guests string")


def keep(context: Any, record: Any, exception: Exception) -> Response:
    return Response.resume(DeadLetter("dead-bills", context.source_raw_key, context.source_raw_value))


def program() -> Topology:
    builder = StreamsBuilder()
    guests = builder.stream("bills", value=BILL).map_values(lambda v: v.guests.cast("int"), name="guests")
    guests.select_key(lambda v: v.cast("string")).group_by_key().count("by-guests").to_stream().to("counts")
    guests.map_values(lambda v: v.cast("string")).to(lambda v: F.concat(F.lit("of-"), v))
    return builder.build()


def told_by_an_instance(broker: Broker, folder: Path) -> dict[str, int]:
    with Instances("app", broker.bootstrap_servers, applications=folder) as instances:
        return dict(QueryClient(instances.start().url, retry="60 seconds").store("by-guests").all())


def test_two_learners_run_one_program_on_one_broker_and_see_only_what_is_theirs(
    broker: Broker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for learner, bills in (("ann", ["2", "many", "2"]), ("ben", ["3"])):
        monkeypatch.setenv("STREAMSKIT_PREFIX", f"{name}-{learner}")
        broker.create_topics("bills", "counts", "of-2", "of-3", "dead-bills")
        broker.produce("bills", [(f"b{number}", {"guests": each}) for number, each in enumerate(bills)], value=BILL)
        streams = KafkaStreams(
            program(), "app", broker.bootstrap_servers, state_dir=tmp_path / learner, processing_handler=keep
        )
        with streams:
            streams.await_processed("120 seconds")
            counts = dict(streams.store("by-guests").all())
        assert told_by_an_instance(broker, tmp_path / learner) == counts
        assert streams.application_id == f"{name}-{learner}-app"
        rows = [list(broker.consume(topic)["key"]) for topic in ("of-2", "of-3", "dead-bills")]
        found[learner] = (counts, rows, sorted(each for each in broker.topics() if "app" not in each))
    named = ["bills", "counts", "dead-bills", "of-2", "of-3"]
    assert found["ann"] == ({"2": 2}, [["b0", "b2"], [], ["b1"]], named)
    assert found["ben"] == ({"3": 1}, [[], ["b0"], []], named)
    full = [topic for topic in list_topics(broker.connection, False) if name in topic]
    assert all(topic.startswith((f"{name}-ann-", f"{name}-ben-")) for topic in full)
