"""Producing to a real broker."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from streamskit import Serdes
from streamskit.broker.base import Broker
from streamskit.common.errors import BrokerError

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(broker: Broker, name: str) -> str:
    broker.create_topics(name, partitions=4)
    return name


def test_every_part_of_a_record_arrives(broker: Broker, topic: str) -> None:
    record = {"key": "KO", "value": {"price": 1.5}, "timestamp": 5, "headers": [("a", b"1")], "partition": 3}
    assert broker.produce(topic, [record]) == 1
    row = broker.consume(topic).iloc[0]
    assert row.to_dict() == {
        "partition": 3,
        "offset": 0,
        "timestamp": 5,
        "key": "KO",
        "value": '{"price":1.5}',
        "headers": [("a", b"1")],
    }


def test_a_record_without_a_timestamp_gets_the_present(broker: Broker, topic: str) -> None:
    before = int(time.time() * 1000)
    broker.produce(topic, [("k", "v")])
    assert before <= broker.consume(topic)["timestamp"][0] <= int(time.time() * 1000)


def test_a_record_may_come_from_next_year(broker: Broker, topic: str) -> None:
    in_a_year = int(time.time() * 1000) + 365 * 86_400_000
    broker.produce(topic, [("k", "v", in_a_year)])
    assert broker.consume(topic)["timestamp"].to_list() == [in_a_year]


def test_keys_go_to_the_partitions_that_kafkas_murmur2_gives_them(broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=3)
    # from org.apache.kafka.common.utils.Utils.murmur2, as its own test has them
    hashes = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    broker.produce(name, [(key, "v") for key in hashes])
    found = broker.consume(name).set_index("key")["partition"].to_dict()
    assert found == {key: (number & 0x7FFFFFFF) % 3 for key, number in hashes.items()}


def test_serdes_write_keys_and_values(broker: Broker, topic: str) -> None:
    broker.produce(topic, [(7, 1.5)], key=Serdes.long(), value=Serdes.double())
    row = broker.consume(topic, key=Serdes.long(), value=Serdes.double()).iloc[0]
    assert (row["key"], row["value"]) == (7, 1.5)


def test_a_none_value_is_a_tombstone_even_without_a_key(broker: Broker, topic: str) -> None:
    broker.produce(topic, [("k", None), (None, None)], value=Serdes.double())
    frame = broker.consume(topic)
    assert frame["value"].tolist() == [None, None]
    assert set(frame["key"]) == {"k", None}


def test_a_dataframe_is_produced_row_by_row(broker: Broker, topic: str) -> None:
    moments = [pd.Timestamp("2024-01-01"), pd.NaT, pd.Timestamp("2024-01-02")]
    frame = pd.DataFrame({"key": ["a", "b", None], "value": [1.5, 2.5, 3.5], "timestamp": moments})
    assert broker.produce(topic, frame) == 3
    found = broker.consume(topic, value=Serdes.double()).set_index("value")
    assert found["key"].to_dict() == {1.5: "a", 2.5: "b", 3.5: None}
    assert found["timestamp"][1.5] == datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000


def test_what_was_consumed_can_be_produced_again(broker: Broker, topic: str, name: str) -> None:
    broker.create_topics(f"{name}-copy", partitions=4)
    broker.produce(topic, [(f"k{i}", f"v{i}", i) for i in range(20)] + [("gone", None, 20)])
    original = broker.consume(topic)
    broker.produce(f"{name}-copy", original)
    pd.testing.assert_frame_equal(broker.consume(f"{name}-copy"), original)


def test_many_records_are_delivered_once_and_in_order(broker: Broker, topic: str) -> None:
    assert broker.produce(topic, ((f"k{i % 100}", i) for i in range(60_000))) == 60_000
    frame = broker.consume(topic, value=Serdes.long())
    assert sorted(frame["value"]) == list(range(60_000))
    assert all(group["value"].is_monotonic_increasing for _, group in frame.groupby("key"))


def test_an_unknown_topic_is_refused_at_once(broker: Broker, name: str) -> None:
    begun = time.monotonic()
    with pytest.raises(BrokerError, match=rf"no topic '{name}'.*broker.create_topics\('{name}'\)"):
        broker.produce(name, [("k", "v")])
    assert time.monotonic() - begun < 5


def test_a_wrong_record_is_named_and_those_before_it_are_delivered(broker: Broker, topic: str) -> None:
    with pytest.raises(BrokerError, match=r"Record 2.*its value cannot be serialized.*2 record\(s\) before it are in"):
        broker.produce(topic, [("a", 1), ("b", 2), ("c", object()), ("d", 4)])
    assert sorted(broker.consume(topic)["key"]) == ["a", "b"]


def test_a_serde_that_fails_is_named_with_its_record(broker: Broker, topic: str) -> None:
    with pytest.raises(BrokerError, match=r"Record 1 .*its key cannot be serialized"):
        broker.produce(topic, [(1, "x"), ("one", "x")], key=Serdes.long())


def test_a_serde_that_returns_text_is_refused(broker: Broker, topic: str) -> None:
    class Careless:
        def serialize(self, value: Any) -> Any:
            return str(value)

        def deserialize(self, data: bytes) -> Any:
            return data

    with pytest.raises(BrokerError, match="returned str, not bytes"):
        broker.produce(topic, [("k", 1)], value=Careless())


def test_a_partition_that_does_not_exist_is_refused(broker: Broker, topic: str) -> None:
    with pytest.raises(BrokerError, match=r"Record 0 .*there is no partition 4; .* has 0 to 3"):
        broker.produce(topic, [{"value": "x", "partition": 4}])


def test_a_record_that_is_too_large_is_named_with_kafkas_reason(broker: Broker, name: str) -> None:
    broker.create_topics(name, config={"max.message.bytes": 1000})
    with pytest.raises(
        BrokerError, match=r"Record 1 of topic .* was not delivered: .*Message ?Size ?Too ?Large"
    ) as refused:
        broker.produce(name, [("k", "small"), ("k", "x" * 2000), ("k", "small")])
    assert refused.value.__cause__ is not None


def test_an_error_of_the_generator_itself_is_its_own(broker: Broker, topic: str) -> None:
    def failing() -> Iterator[tuple[str, str]]:
        yield "k", "v"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broker.produce(topic, failing())
    assert len(broker.consume(topic)) == 1


def test_no_records_are_fine(broker: Broker, topic: str) -> None:
    assert broker.produce(topic, []) == 0
