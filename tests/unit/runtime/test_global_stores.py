"""Copies of global stores, as their processors fill them in the application's process."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamskit import Processor, Record, Serdes, Stores, StreamsBuilder
from streamskit.api.error_handlers import Handlers
from streamskit.kafka.topic_reader import TopicRecord, topic_records
from streamskit.planning.plan import is_whole
from streamskit.queries import LocalStore, local_store
from streamskit.runtime.global_records import GlobalRecords
from streamskit.runtime.global_stores import FilledStore, filled_by_processors
from streamskit.topology.nodes import GlobalProcess


class Counts(Processor):
    """Counts the records of the topic, under one key; a record without a value begins anew."""

    def process(self, record: Record) -> None:
        store = self.context.state_store("counts")
        store.put("all", None if record.value is None else (store.get("all") or 0) + 1)


def record(partition: int, value: bytes | None) -> TopicRecord:
    return TopicRecord("in", partition, 0, 0, b"k", value, [])


@pytest.fixture
def filled() -> tuple[FilledStore, LocalStore]:
    """What fills a copy, and the copy."""
    builder = StreamsBuilder()
    store = Stores.persistent_key_value_store("counts", Serdes.string(), Serdes.long())
    topology = builder.add_global_store(store, "in", Counts).build()
    node: GlobalProcess
    ((node,),) = filled_by_processors(topology).values()
    assert node.store is not None
    copy = local_store(node.store, is_global=is_whole(topology, node.store))
    return FilledStore(node, "app", copy), copy


def test_a_key_that_records_of_several_partitions_change_is_one_row(filled: tuple[FilledStore, LocalStore]) -> None:
    filler, copy = filled
    for partition in (0, 1, 0, 2):
        filler.take(partition, [record(partition, b"x")])
    assert copy.all() == [("all", 4)]
    filler.take(1, [record(1, None)])
    assert copy.all() == []


def message(**parts: Any) -> Any:
    """Return a record as Kafka's client hands it over."""
    every = {
        "topic": "in",
        "partition": 0,
        "offset": 0,
        "timestamp": (1, 7),
        "key": None,
        "value": None,
        "headers": None,
    }
    return SimpleNamespace(**{name: lambda part=part: part for name, part in (every | parts).items()})


def test_a_copy_holds_what_its_processor_makes_of_records_without_a_key() -> None:
    builder = StreamsBuilder()
    counts = Stores.persistent_key_value_store("counts", Serdes.string(), Serdes.long())
    builder.add_global_store(counts, "in", Counts).global_table("rows", materialized="rows")
    topology = builder.build()
    dropped = GlobalRecords(topology, [], Handlers())
    read = topic_records(dropped.keep)
    ((node,),) = filled_by_processors(topology).values()
    copy = local_store(counts, is_global=True)
    taken = [read(message(value=b"x")), read(message(topic="rows", value=b"x"))]
    FilledStore(node, "app", copy).take(0, [record for record in taken if record is not None])
    assert copy.all() == [("all", 1)]
    assert sum(dropped.dropped.values()) == 1
