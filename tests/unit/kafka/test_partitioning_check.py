"""Who has written a topic, by the partitions of its keys."""

import zlib

import pytest

from streamskit.kafka.partitioning_check import judge
from streamskit.kafka.topic_partition import partition_for

KEYS = [f"key-{number}".encode() for number in range(60)]


def by_crc32(count: int, keys: list[bytes] = KEYS) -> list[tuple[bytes, int]]:
    return [(key, zlib.crc32(key) % count) for key in keys]


@pytest.mark.parametrize("partitions", [2, 3, 4, 12])
def test_librdkafkas_partitioner_is_known_and_kafkas_own_is_no_fault(partitions: int) -> None:
    assert judge("orders", partitions, by_crc32(partitions)).is_librdkafkas
    own = [(key, partition_for(key, partitions)) for key in KEYS]
    assert not judge("orders", partitions, own).is_librdkafkas


def test_nothing_is_said_of_what_may_be_chance() -> None:
    assert not judge("orders", 1, by_crc32(1)).is_librdkafkas
    assert not judge("orders", 4, by_crc32(4, KEYS[:19])).is_librdkafkas
    assert judge("orders", 4, by_crc32(4, KEYS[:20])).is_librdkafkas
    assert not judge("orders", 4, by_crc32(4, KEYS[:19]) * 10).is_librdkafkas  # the same keys once more
    assert not judge("orders", 4, []).is_librdkafkas
    astray = [(key, (zlib.crc32(key) + 1) % 4) for key in KEYS[:4]]
    assert not judge("orders", 4, by_crc32(4)[4:] + astray).is_librdkafkas


def test_keys_on_which_both_agree_say_nothing() -> None:
    both = [key for number in range(2000) if zlib.crc32(key := str(number).encode()) % 4 == partition_for(key, 4)]
    assert len(both) > 100
    assert not judge("orders", 4, by_crc32(4, both)).is_librdkafkas
