"""Stream partitioners in a TopologyTestDriver, whose topics have one partition: what is dropped, and what fails."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    DeadLetter,
    ErrorHandlerContext,
    LogAndContinue,
    Processor,
    Record,
    Response,
    Serdes,
    StreamsBuilder,
    StreamsError,
    Topology,
    TopologyTestDriver,
)

pytestmark = pytest.mark.spark

Write = Callable[[StreamsBuilder], None]
HEADERS = (("from", b"a test"),)


def as_told(topic: str, key: str, value: str, num_partitions: int) -> int | Iterable[int] | None:
    told: dict[str, Iterable[int] | None] = {"none": [], "as usual": None}
    return told[value] if value in told else int(value)


def topology(write: Write) -> Topology:
    builder = StreamsBuilder()
    write(builder)
    return builder.build()


def run(topology: Topology, *values: str, **settings: Any) -> tuple[list[str], dict[str, int], list[Any]]:
    """Return the values that came out, what was dropped, and the dead letters."""
    with TopologyTestDriver(topology, **settings) as driver:
        for value in values:
            driver.create_input_topic("in").pipe_input("k", value, 7, HEADERS)
        out = driver.create_output_topic("out").read_records_to_list()
        assert {record.headers for record in out} <= {HEADERS}
        letters = driver.dead_letters("letters").read_records_to_list()
        return [record.value for record in out], driver.metrics(), letters


class Passing(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)


def branches(builder: StreamsBuilder) -> None:
    lines = builder.stream("in")
    lines.flat_map_values(lambda v: F.split(v, ",")).to("out", name="sink", partitioner=as_told)
    lines.to("copy")


def processed(builder: StreamsBuilder) -> None:
    builder.stream("in").process(Passing).to("out", name="sink", partitioner=as_told)


def test_a_record_for_no_partition_is_dropped_and_counted_for_each_of_many_made_of_one() -> None:
    assert run(topology(branches), "0,none,as usual,none", "0") == (["0", "as usual", "0"], {"sink": 2}, [])


def test_so_it_is_behind_a_processor_and_wired_by_hand() -> None:
    assert run(topology(processed), "0", "none", "as usual") == (["0", "as usual"], {"sink": 1}, [])
    wired = Topology().add_source("source", "in").add_sink("sink", "out", "source", partitioner=as_told)
    assert run(wired, "none", "0") == (["0"], {"sink": 1}, [])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("5", r"^sink \(written at .*\): the partitioner chose partition 5 of topic 'out', whose only partition is"),
        ("-2", r"^sink \(written at .*\): the partitioner returned -2 for a record of topic 'out'"),
        ("far", r"^sink \(written at .*\) failed on a record, at .*int\(value\)`: ValueError: invalid literal"),
    ],
)
def test_a_partitioner_that_fails_is_told_with_its_sink(value: str, said: str) -> None:
    with pytest.raises(StreamsError, match=said):
        run(topology(branches), value)


def tell(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
    """Keep what a handler is given."""
    kind = type(record).__name__
    assert context.headers == record.headers == HEADERS
    said = f"{kind} {record.key!r}: {record.value!r}, {context.source_raw_value!r} at {context.offset}, {exception}"
    return Response.resume(DeadLetter("letters", None, said.encode()))


@pytest.mark.parametrize("write", [branches, processed])
def test_handlers_decide_about_records_on_which_a_partitioner_fails(write: Write) -> None:
    handlers = {"processing_handler": LogAndContinue("letters"), "production_handler": tell}
    values, dropped, letters = run(topology(write), "0", "far", "5", "as usual", **handlers)
    assert (values, dropped) == (["0", "as usual"], {"sink": 2})
    assert [(letter.key, letter.value) for letter in letters] == [
        (b"k", b"far"),
        (
            None,
            b"ProducerRecord b'k': b'5', b'5' at 2, UnknownTopicOrPartitionException: the partitioner chose partition "
            b"5 of topic 'out', whose only partition is number 0.",
        ),
    ]
    said = dict(letters[0].headers)
    assert said["__streams.errors.exception"] == b"ValueError"
    assert (said["__streams.errors.topic"], said["__streams.errors.offset"]) == (b"in", b"1")


def test_a_partitioner_is_given_what_the_serdes_of_its_sink_read() -> None:
    def by_symbol(topic: str, key: int, value: dict[str, Any], num_partitions: int) -> Iterable[int]:
        return [0] if (topic, key, value["symbol"], num_partitions) == ("out", 3, "KO", 1) else []

    builder = StreamsBuilder()
    trades = builder.stream("in", key=Serdes.long(), value=Serdes.json("symbol string"))
    trades.map_values(lambda v: F.struct(F.upper(v.symbol).alias("symbol"))).to("out", partitioner=by_symbol)
    with TopologyTestDriver(builder.build()) as driver:
        for symbol in ("ko", "pep"):
            driver.create_input_topic("in").pipe_input(3, {"symbol": symbol}, 0)
        assert driver.create_output_topic("out").read_record().value["symbol"] == "KO"
        assert driver.dropped() == 1
