"""Where an application begins in topics that it has not read before."""

import time

import pytest
from kafka import KafkaAdminClient

from streamskit import AutoOffsetReset, Serdes, StreamsBuilder, StreamsError, Topology
from streamskit.broker import Broker
from tests.integration.conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def copying(name: str, **options: object) -> Topology:
    """A program that counts what it reads, by key."""
    builder = StreamsBuilder()
    builder.stream(f"{name}-in", value=Serdes.long(), **options).group_by_key().count("counts")  # type: ignore[arg-type]
    return builder.build()


def counts(run: Run, topology: Topology, **options: object) -> dict[str, int]:
    """Return what a program has counted when it has read all that there is."""
    streams = run(topology, **options)
    streams.await_processed("120 seconds")
    found = {row.key: row.value for row in streams.store("counts").all()}
    streams.close()
    return found


def test_latest_begins_behind_what_is_there_and_goes_on_where_it_was(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", partitions=2)
    broker.produce(f"{name}-in", [(f"old{number}", 1) for number in range(5)])
    topology = copying(name, auto_offset_reset="latest")
    assert counts(run, topology) == {}
    broker.produce(f"{name}-in", [("while closed", 1)])  # it has begun: this is not skipped
    assert counts(run, topology) == {"while closed": 1}


def test_the_config_says_so_for_all_sources_that_say_nothing_else(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", f"{name}-people")
    broker.produce(f"{name}-in", [("a", 1)])
    broker.produce(f"{name}-people", [("a", "Ada"), ("b", "Bob")])
    builder = StreamsBuilder()
    people = builder.table(f"{name}-people", auto_offset_reset=AutoOffsetReset.earliest())
    orders = builder.stream(f"{name}-in", value=Serdes.long())
    orders.join(people, lambda order, person: person).to_table("found")
    streams = run(builder.build(), auto_offset_reset="latest")
    broker.produce(f"{name}-in", [("b", 2)])
    streams.await_processed("120 seconds")
    assert {row.key: row.value for row in streams.store("found").all()} == {"b": "Bob"}


def test_by_duration_begins_with_the_first_record_that_is_young_enough(broker: Broker, name: str, run: Run) -> None:
    now = int(time.time() * 1000)
    broker.create_topics(f"{name}-in", partitions=3)
    records = [{"key": f"k{hours}", "value": hours, "timestamp": now - hours * 3_600_000} for hours in (9, 5, 2, 1)]
    broker.produce(f"{name}-in", records)
    found = counts(run, copying(name, auto_offset_reset=AutoOffsetReset.by_duration("3 hours")))
    assert found == {"k2": 1, "k1": 1}


def test_none_refuses_to_begin_and_lets_one_go_on_that_has_begun(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in")
    broker.produce(f"{name}-in", [("a", 1)])
    with pytest.raises(StreamsError, match=rf"auto_offset_reset='none', .* no position in {name}-in yet"):
        run(copying(name), auto_offset_reset="none")
    assert counts(run, copying(name)) == {"a": 1}
    assert counts(run, copying(name), auto_offset_reset="none") == {"a": 1}


def test_repartition_topics_and_global_tables_are_read_whole_in_any_case(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", f"{name}-names")
    broker.produce(f"{name}-names", [("1", "one"), ("2", "two")])
    builder = StreamsBuilder()
    names = builder.global_table(f"{name}-names", materialized="names")
    numbers = builder.stream(f"{name}-in", value=Serdes.long())
    named = numbers.join(names, lambda number, name: name, key_selector=lambda v: v.cast("string"))
    named.group_by(lambda k, v: v, name="by-name").count("counts")
    streams = run(builder.build(), auto_offset_reset="latest")
    broker.produce(f"{name}-in", [("a", 1), ("b", 2), ("c", 2)])
    streams.await_processed("120 seconds")
    assert {row.key: row.value for row in streams.store("counts").all()} == {"one": 1, "two": 2}


def test_partitions_that_are_added_to_a_topic_of_a_program_without_state_are_read_while_it_runs(
    broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").map_values(lambda v: v).to(f"{name}-out")
    streams = run(builder.build())
    broker.produce(f"{name}-in", [("a", "1")])
    streams.await_processed("120 seconds")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_partitions({f"{name}-in": 4})
    admin.close()
    broker.produce(f"{name}-in", [{"key": str(number), "value": "x", "partition": number} for number in range(4)])
    streams.await_processed("120 seconds")
    assert sorted(broker.consume(f"{name}-out")["key"]) == ["0", "1", "2", "3", "a"]
    assert int(streams.metrics()["restarts"].max()) == 0
