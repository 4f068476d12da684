"""Applications that run on Spark over a real broker."""

from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import functions as F

from streamskit import KafkaStreams, Materialized, Serdes, State, StreamsBuilder, TimeWindows, Topology
from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.common.errors import InvalidStateStoreError, StreamsError
from streamskit.datasets import trades
from streamskit.environment.processes import wait_until
from streamskit.kafka.topics import extents
from streamskit.runtime import purging
from tests.integration.conftest import Run
from tests.integration.trade_statistics import WINDOW, expected_statistics, trade_statistics

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def count_by_key(source: str, sink: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source).group_by_key().count("counts").to_stream().to(sink)
    return builder.build()


@pytest.mark.soak
def test_the_trade_statistics_of_100_000_trades_equal_those_of_pandas(broker: Broker, run: Run, name: str) -> None:
    records = list(trades(100_000))
    broker.create_topics(f"{name}-trades", f"{name}-out", partitions=4)
    broker.produce(f"{name}-trades", records)
    streams = run(trade_statistics(f"{name}-trades", f"{name}-out"))
    streams.await_processed("120 seconds")

    expected = expected_statistics(records)
    store = streams.store("trade-aggregates").to_pandas().set_index(["key", "start"]).sort_index()
    pd.testing.assert_frame_equal(
        store[["count", "min_price", "sum_price"]], expected[["count", "min_price", "sum_price"]], check_dtype=False
    )

    out = broker.consume(f"{name}-out", key=Serdes.time_windowed(Serdes.string(), WINDOW), value=Serdes.double())
    latest = {(key.key, key.start): value for key, value in zip(out["key"], out["value"], strict=True)}
    average = expected["sum_price"] / expected["count"]
    assert latest == pytest.approx(dict(average.items()))


BATCH_ATTRIBUTES, LZ4 = 22, 3
"""Where a batch of records in a log has its attributes, and what their last three bits say of its compression."""


def test_the_bytes_written_are_those_of_kafka_streams(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    broker.produce(f"{name}-in", [("a", "x", 1_000), ("a", "y", 2_000)])
    run(
        count_by_key(f"{name}-in", f"{name}-out"), client_settings={"producer.compression.type": "lz4"}
    ).await_processed()

    assert isinstance(broker, EmbeddedBroker)
    written = [log for log in broker.data_dir.rglob("*.log") if log.parent.name.startswith(f"{name}-out-")]
    compressions = {log.read_bytes()[BATCH_ATTRIBUTES] & 7 for log in written if log.stat().st_size}
    assert compressions == {LZ4}
    out = broker.consume(f"{name}-out", value=Serdes.byte_array())
    assert (out["key"].iloc[-1], out["value"].iloc[-1]) == ("a", (2).to_bytes(8, "big"))
    assert out["timestamp"].iloc[-1] == 2_000
    changelog = broker.consume(f"{name}-counts-changelog", value=Serdes.byte_array())
    assert changelog["value"].iloc[-1] == (2).to_bytes(8, "big")
    assert broker.describe_topic(f"{name}-counts-changelog").config["cleanup.policy"] == "compact"


def test_all_windows_of_a_key_meet_in_the_partition_of_the_key(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-trades", f"{name}-out", partitions=4)
    broker.produce(f"{name}-trades", list(trades(2_000)))
    run(trade_statistics(f"{name}-trades", f"{name}-out")).await_processed()

    home = broker.consume(f"{name}-trades").groupby("key")["partition"].first().to_dict()
    for topic, suffix in ((f"{name}-out", 8), (f"{name}-trade-aggregates-changelog", 12)):
        rows = broker.consume(topic, key=Serdes.byte_array(), value=Serdes.byte_array())
        found = {
            (key[:-suffix].decode(), partition) for key, partition in zip(rows["key"], rows["partition"], strict=True)
        }
        assert found == set(home.items())


def test_what_no_query_reads_again_is_deleted_from_internal_topics(
    broker: Broker, run: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "EVERY_SECONDS", 0.2)
    broker.create_topics(f"{name}-in")
    builder = StreamsBuilder()
    by_value = builder.stream(f"{name}-in").group_by(lambda k, v: v)
    by_value.count("totals")
    windows = TimeWindows.of_size_with_no_grace("1 second")
    by_value.windowed_by(windows).count(Materialized("windows", retention="2 seconds"))
    streams = run(builder.build())
    past = 1_000_000_000_000  # what is in a changelog must not go because it is of another year
    rows = [{"key": "k", "value": "x", "timestamp": past + 1000 * number} for number in range(3000)]
    broker.produce(f"{name}-in", rows)
    streams.await_processed()
    between = next(topic for topic in broker.topics() if topic.startswith(name) and topic.endswith("-repartition"))
    totals, windowed = f"{name}-totals-changelog", f"{name}-windows-changelog"

    def first() -> dict[str, int]:
        found = extents(broker.bootstrap_servers, (totals, between, windowed))
        return {topic: extent.first[0] for topic, extent in found.items()}

    # Of what nobody needs a few records may stay.
    needed = {between: 3000 - purging.MOST_LEFT, windowed: 2997 - purging.MOST_LEFT}
    wait_until(lambda: all(first()[topic] > least for topic, least in needed.items()), "the end of what was read", 60)
    assert first()[totals] == 0
    streams.close()
    broker.produce(f"{name}-in", [{"key": "k", "value": "x", "timestamp": past + 3_000_000}])
    streams = run(builder.build())
    streams.await_processed()
    assert streams.store("totals").get("x") == 3001
    assert streams.store("windows").fetch("x", past + 2_999_000) == 1


def test_an_application_goes_on_where_it_stopped(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    broker.produce(f"{name}-in", [("a", "x"), ("b", "x")])
    first = run(count_by_key(f"{name}-in", f"{name}-out"))
    first.await_processed()
    first.close()
    broker.produce(f"{name}-in", [("a", "x")])
    second = run(count_by_key(f"{name}-in", f"{name}-out"))
    second.await_processed()
    assert dict(second.store("counts").all()) == {"a": 2, "b": 1}
    second.close()
    third = run(count_by_key(f"{name}-in", f"{name}-out"))
    third.await_processed("60 seconds")  # nothing new has come, and that is known at once
    assert dict(third.store("counts").all()) == {"a": 2, "b": 1}


def test_clean_up_makes_an_application_start_over(broker: Broker, run: Run, name: str, state_dir: Path) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    broker.produce(f"{name}-in", [("a", "x")])
    topology = count_by_key(f"{name}-in", f"{name}-out")
    first = run(topology)
    first.await_processed()
    with pytest.raises(StreamsError, match="close\\(\\) it before"):
        first.clean_up()
    first.close()
    first.clean_up()
    assert f"{name}-counts-changelog" not in broker.topics()
    second = run(topology)
    second.await_processed()
    assert dict(second.store("counts").all()) == {"a": 1}


def test_a_topic_made_anew_with_fewer_partitions_is_written_to_at_once(
    broker: Broker, run: Run, name: str, state_dir: Path
) -> None:
    # As one runs a notebook again with another number; Spark keeps its producers, and what they know of a topic.
    broker.create_topics(f"{name}-in", partitions=2)
    broker.produce(f"{name}-in", [(f"k{number}", str(number)) for number in range(40)])
    for partitions in (4, 2):
        broker.create_topics(f"{name}-out", partitions=partitions)
        builder = StreamsBuilder()
        builder.stream(f"{name}-in").to(f"{name}-out")
        streams = run(builder.build())
        streams.await_processed()
        assert len(broker.consume(f"{name}-out")) == 40
        streams.close()
        streams.clean_up()
        broker.delete_topics(f"{name}-out")


def test_the_states_of_an_application_reach_its_listener(broker: Broker, name: str, state_dir: Path) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    streams = KafkaStreams(
        count_by_key(f"{name}-in", f"{name}-out"), name, broker.bootstrap_servers, state_dir=state_dir
    )
    seen: list[tuple[State, State]] = []
    streams.set_state_listener(lambda new, old: seen.append((old, new)))
    before = streams.state
    with streams:
        assert (before, streams.state) == (State.CREATED, State.RUNNING)
    assert [new.name for _, new in seen] == ["REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING"]
    with pytest.raises(StreamsError, match="make a new KafkaStreams"):
        streams.start()


def test_headers_and_timestamps_pass_through_a_stateless_application(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    broker.produce(f"{name}-in", [{"key": "k", "value": "v", "timestamp": 42, "headers": [("trace", b"1")]}])
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").map_values(F.upper).to(f"{name}-out")
    run(builder.build()).await_processed()
    (record,) = broker.consume(f"{name}-out").to_dict("records")
    assert (record["value"], record["timestamp"], record["headers"]) == ("V", 42, [("trace", b"1")])


def test_a_missing_topic_is_named_before_anything_starts(broker: Broker, run: Run, name: str) -> None:
    with pytest.raises(StreamsError, match=rf"'{name}-in', '{name}-out'\. Create them"):
        run(count_by_key(f"{name}-in", f"{name}-out"))


def test_a_second_application_with_the_same_id_is_refused(broker: Broker, run: Run, name: str, state_dir: Path) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    first = run(count_by_key(f"{name}-in", f"{name}-out"))
    with pytest.raises(StreamsError, match=rf"is running already, in this process: KafkaStreams.running\['{name}'\]"):
        run(count_by_key(f"{name}-in", f"{name}-out"))
    other = KafkaStreams(first.topology, name, broker.bootstrap_servers, state_dir=state_dir)
    with pytest.raises(StreamsError, match="is running already"):
        other.clean_up()
    with pytest.raises(StreamsError, match=rf"CREATED\. An object made earlier runs .*running\['{name}'\]: use that"):
        other.await_processed()
    assert KafkaStreams.running[name] is first
    KafkaStreams.running[name].close()
    run(count_by_key(f"{name}-in", f"{name}-out"))


def test_an_unreadable_record_stops_the_application_and_names_the_source(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-trades", f"{name}-out")
    streams = run(trade_statistics(f"{name}-trades", f"{name}-out"))
    broker.produce(f"{name}-trades", [("KO", '{"price": "much"}')])
    with pytest.raises(StreamsError, match=rf"KSTREAM-SOURCE-0000000000 .*'{name}-trades'"):
        streams.await_processed()
    assert streams.state is State.ERROR
    assert f"'{name}-trades'" in streams.store("trade-aggregates").stopped


def test_a_failing_function_is_named_with_its_node_and_line(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    builder = StreamsBuilder()
    numbers = builder.stream(f"{name}-in", value=Serdes.long())
    more = numbers.map_values(lambda v: v + 1)
    more.map_values(lambda v: 100 / v).to(f"{name}-out")
    streams = run(builder.build())
    broker.produce(f"{name}-in", [("k", -1)])
    with pytest.raises(StreamsError, match=r"KSTREAM-MAPVALUES-0000000002 .*test_streams\.py line \d+.*DIVIDE_BY_ZERO"):
        streams.await_processed()


def test_a_store_that_does_not_exist_is_refused_by_name(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    streams = run(count_by_key(f"{name}-in", f"{name}-out"))
    with pytest.raises(InvalidStateStoreError, match=r"no store 'count' to query.*its stores are: counts"):
        streams.store("count")


def test_a_failing_function_is_named_in_a_notebook_too(broker: Broker, name: str, state_dir: Path) -> None:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    broker.create_topics(f"{name}-in", f"{name}-out")
    broker.produce(f"{name}-in", [("k", 0)])
    cells = [
        "from streamskit import KafkaStreams, Serdes, StreamsBuilder",
        f"""builder = StreamsBuilder()
numbers = builder.stream("{name}-in", value=Serdes.long())
numbers.filter(lambda v: v < 9).map_values(
    lambda v: 100 / v
).to("{name}-out")""",
        f"""streams = KafkaStreams(builder.build(), "{name}", "{broker.bootstrap_servers}", state_dir="{state_dir}")
streams.start()
streams.await_processed()""",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with pytest.raises(
        CellExecutionError, match=r"KSTREAM-MAPVALUES-0000000002 .*at In\[2\] line 4: \[DIVIDE_BY_ZERO\]"
    ):
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
