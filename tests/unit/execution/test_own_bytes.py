"""Operators of one query have serdes of their own, also such as run in Python: none reads the bytes of another."""

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit import Serde, StreamsBuilder, TopologyTestDriver
from streamskit.serdes import SerdeError

pytestmark = pytest.mark.spark


class Marked(Serde):
    """Text behind a letter, without which it reads nothing."""

    data_type = T.StringType()

    def __init__(self, letter: str) -> None:
        self.letter = letter.encode()

    def serialize(self, value: str | None) -> bytes | None:
        return None if value is None else self.letter + value.encode()

    def deserialize(self, data: bytes | None) -> str | None:
        if data is not None and data[:1] != self.letter:
            raise SerdeError(f"{data!r} does not begin with {self.letter!r}")
        return None if data is None else data[1:].decode()


def test_two_aggregates_of_one_stream_read_their_own_results() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()

    def longest(key: str, value: str, kept: str) -> str:
        return max(value, kept, key=len)

    def last(key: str, value: str, kept: str) -> str:
        return value

    for aggregator, letter in ((longest, "a"), (last, "b")):
        table = grouped.aggregate(lambda: "", aggregator, aggregator.__name__, value=Marked(letter))
        table.to_stream().map_values(lambda v: F.upper(v)).to(f"{aggregator.__name__}-out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records([("k", "x"), ("k", "yyy"), ("k", "zz")])
        for topic, values in (("longest-out", ["X", "YYY", "YYY"]), ("last-out", ["X", "YYY", "ZZ"])):
            assert [each.value for each in driver.create_output_topic(topic).read_records_to_list()] == values
