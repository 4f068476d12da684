"""What an application has processed, as Kafka's own tools and Prometheus see it."""

import httpx
import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.structs import OffsetAndMetadata
from prometheus_client.parser import text_string_to_metric_families

from streamskit import KafkaStreams, Serdes, StreamsBuilder
from streamskit.broker import Broker
from streamskit.queries.measures import MEASURES, PREFIX
from streamskit.testing import wait_until
from streamskit.topology import Topology
from streamskit.widgets import TopologyView
from tests.integration.conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.broker]

Sample = tuple[str, dict[str, str], float]


def by_category(name: str) -> Topology:
    """A program of two sub-topologies: prices by category, through a repartition topic."""
    builder = StreamsBuilder()
    sales = builder.stream(f"{name}-sales", value=Serdes.long())
    sales.group_by(lambda key, value: value.cast("string"), name="by-price").count("prices")
    return builder.build()


def committed(broker: Broker, group: str) -> dict[str, int]:
    """Return what `kafka-consumer-groups --describe` has as CURRENT-OFFSET, by topic."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        found = admin.list_group_offsets([group])[group]
    finally:
        admin.close()
    sums: dict[str, int] = {}
    for where, offset in found.items():
        sums[where.topic] = sums.get(where.topic, 0) + offset.offset
    return sums


def wait_for_commit(broker: Broker, group: str, topic: str, offset: int) -> None:
    """Wait until a group has committed so many records of a topic."""
    wait_until(
        lambda: committed(broker, group).get(topic) == offset,
        f"offset {offset} of topic '{topic}' in group '{group}'",
        20,
    )


def test_a_group_shows_what_was_processed_of_sources_and_repartition_topics(
    broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-sales", partitions=2)
    streams = run(by_category(name))
    broker.produce(f"{name}-sales", [(f"k{number}", number % 3) for number in range(12)])
    streams.await_processed("120 seconds")
    wait_for_commit(broker, name, f"{name}-sales", 12)
    wait_for_commit(broker, name, f"{name}-by-price-repartition", 12)
    assert streams.metrics()["lag"].to_list() == [0, 0]

    streams.close()
    broker.produce(f"{name}-sales", [("late", 1), ("later", 2)])
    assert committed(broker, name)[f"{name}-sales"] == 12  # two of 14 are not processed yet


def test_the_group_the_metrics_and_the_view_tell_one_lag(broker: Broker, name: str, run: Run) -> None:
    topic = f"{name}-sales"
    broker.create_topics(topic, partitions=2)
    streams = run(by_category(name))
    broker.produce(topic, [(f"k{number}", 1) for number in range(5)])
    streams.await_processed("120 seconds")
    streams.pause()
    broker.produce(topic, [(f"k{number}", 1) for number in range(3)])
    wait_for_commit(broker, name, topic, 5)
    seen = TopologyView(streams).take(None)
    by_group = sum(broker.end_offsets(topic).values()) - committed(broker, name)[topic]
    by_view = sum(task.lag or 0 for task in seen.tasks)
    assert (by_group, int(streams.metrics()["lag"].sum()), by_view) == (3, 3, 3)


def test_after_a_start_a_sub_topology_stands_where_it_left_off(broker: Broker, name: str, run: Run) -> None:
    topic = f"{name}-sales"
    broker.create_topics(topic, partitions=2)
    broker.produce(topic, [(f"k{number}", 1) for number in range(5)])
    streams = run(by_category(name))
    streams.await_processed("120 seconds")
    streams.close()
    again = run(by_category(name))  # Spark reports on a micro-batch, and there was none in this run
    assert sum(again.committed_offsets()["0"][topic].values()) == 5
    assert [task.lag for task in TopologyView(again).take(None).tasks if task.topic == topic] == [0, 0]


def test_a_group_shows_what_batches_in_real_time_have_processed(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").filter(lambda v: v != "hush").to(f"{name}-out")
    streams = run(builder.build(), real_time="5 seconds")
    broker.produce(f"{name}-in", [(f"k{number}", "hello") for number in range(6)])
    streams.await_processed("120 seconds")
    wait_for_commit(broker, name, f"{name}-in", 6)
    assert streams.metrics()["lag"].to_list() == [0]


def test_a_group_with_instances_as_members_shows_it_too(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-sales", partitions=2)
    streams = run(by_category(name), application_server="127.0.0.1:0")
    assert streams.metadata_for_all_streams_clients()
    broker.produce(f"{name}-sales", [(f"k{number}", number % 3) for number in range(7)])
    streams.await_processed("120 seconds")
    wait_for_commit(broker, name, f"{name}-sales", 7)


def test_what_a_group_says_is_never_where_an_application_goes_on(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-sales")
    broker.produce(f"{name}-sales", [("a", 1), ("b", 1)])
    first = run(by_category(name))
    first.await_processed("120 seconds")
    first.close()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.alter_group_offsets(name, {TopicPartition(f"{name}-sales", 0): OffsetAndMetadata(0, "", -1)})
    admin.close()
    assert committed(broker, name)[f"{name}-sales"] == 0

    second = run(by_category(name))
    broker.produce(f"{name}-sales", [("c", 1)])
    second.await_processed("120 seconds")
    assert second.store("prices").get("1") == 3
    wait_for_commit(broker, name, f"{name}-sales", 3)


def test_clean_up_takes_what_the_group_says_with_it(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-sales")
    broker.produce(f"{name}-sales", [("a", 1)])
    streams = run(by_category(name))
    streams.await_processed("120 seconds")
    streams.close()
    assert committed(broker, name)
    streams.clean_up()
    assert not committed(broker, name)


def test_the_lag_is_unknown_while_no_broker_answers(name: str, run: Run, broker: Broker) -> None:
    broker.create_topics(f"{name}-sales")
    broker.produce(f"{name}-sales", [("a", 1)])
    streams = run(by_category(name))
    streams.await_processed("120 seconds")
    broker.pause()
    try:
        assert streams.metrics()["lag"].isna().all()
    finally:
        broker.resume()
    wait_until(lambda: list(streams.metrics()["lag"].fillna(-1)) == [0, 0], "the lag, told again", 120)


def test_the_lag_is_told_again_after_partitions_got_a_new_leader(name: str, run: Run, broker: Broker) -> None:
    broker.create_topics(f"{name}-sales")
    broker.produce(f"{name}-sales", [("a", 1)])
    streams = run(by_category(name))
    streams.await_processed("120 seconds")
    assert streams.metrics()["lag"].to_list() == [0, 0]
    broker.kill()  # the broker leads its partitions in a new epoch after that
    broker.start()
    wait_until(lambda: list(streams.metrics()["lag"].fillna(-1)) == [0, 0], "the lag, told again", 120)


def scraped(streams: KafkaStreams) -> list[Sample]:
    """Return what Prometheus reads from an application."""
    answer = httpx.get(f"http://{streams.application_server}/metrics", timeout=20, trust_env=False)
    answer.raise_for_status()
    assert answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.text)
    return [
        (sample.name.removeprefix(PREFIX), sample.labels, sample.value) for each in families for sample in each.samples
    ]


def test_prometheus_reads_what_an_application_does(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-sales")
    builder = StreamsBuilder()
    builder.stream(f"{name}-sales", value=Serdes.long()).group_by_key().count("sales")
    streams = run(builder.build(), application_server="127.0.0.1:0")
    broker.produce(f"{name}-sales", [("a", 1), ("b", 2), (None, 3)])
    streams.await_processed("120 seconds")
    samples = scraped(streams)
    found = {sample: value for sample, labels, value in samples if labels.get("state") in (None, "RUNNING")}
    assert {sample for sample, _, _ in samples} == set(MEASURES)
    assert found["stream_metrics_state"] == 1
    assert found["stream_metrics_alive_stream_threads"] == 1
    assert found["stream_thread_metrics_process_total"] == 3
    assert found["stream_thread_metrics_commit_total"] >= 1
    assert found["stream_thread_metrics_commit_latency_max"] >= found["stream_thread_metrics_commit_latency_avg"] > 0
    assert found["stream_thread_metrics_process_rate"] > 0
    assert found["stream_task_metrics_records_lag"] == 0
    assert found["stream_task_metrics_dropped_records_total"] == 1
    assert found["stream_state_metrics_estimate_num_keys"] == 2
    assert found["stream_task_metrics_restore_remaining_records_total"] == 0
    assert all(labels["application_id"] == name for _, labels, _ in samples)
