"""Whatever comes in, goes out or is kept aside: in = out + dead letters, and what is dropped is counted."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from streamskit import Processor, Record, Serdes, StreamsBuilder, Topology, TopologyTestDriver
from tests.unit.operators.handlers_harness import BYTES, DEAD_LETTERS, LETTERS

pytestmark = pytest.mark.spark

ORDER = Serdes.json("id int, share int, note string, sink string")

SOUND: dict[str, object] = {"share": 5, "note": "fine", "sink": "out"}
HARMS: dict[str, dict[str, object]] = {
    "none": {},
    "divides by zero": {"share": 0},
    "is too large": {"note": "x" * 1_100_000},
    "goes nowhere": {"sink": None},
}
KINDS = ["cannot be read", *HARMS]


def written(number: int, kind: str) -> bytes:
    """Return an order with that number and that harm."""
    if kind == "cannot be read":
        return b"{oops"
    return json.dumps({"id": number} | SOUND | HARMS[kind]).encode()


class Dividing(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_value({**record.value, "share": 100 // record.value["share"]}))


def by_columns() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("in", value=ORDER)
    shares = orders.map_values(lambda v: v.withField("share", (100 / v.share).cast("int")))
    shares.to(lambda k, v: v.sink, value=ORDER)
    return builder.build()


def by_processor() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", value=ORDER).process(Dividing, value=ORDER).to(lambda k, v: v.sink, value=ORDER)
    return builder.build()


def by_flat_map() -> Topology:
    builder = StreamsBuilder()
    once = builder.stream("in", value=ORDER).flat_map_values(lambda v: F.array(v))
    divided = once.filter(lambda v: 100 / v.share > 0)
    divided.to(lambda k, v: v.sink, value=ORDER)
    return builder.build()


@pytest.fixture(scope="module", params=[by_columns, by_processor, by_flat_map])
def driver(request: pytest.FixtureRequest) -> Iterator[TopologyTestDriver]:
    handlers: dict[str, Any] = {
        f"{kind}_handler": DEAD_LETTERS for kind in ("deserialization", "processing", "production")
    }
    with TopologyTestDriver(request.param(), **handlers) as running:
        yield running


@given(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=12))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_goes_in_comes_out_or_is_kept_aside(driver: TopologyTestDriver, kinds: list[str]) -> None:
    before = driver.dropped()
    source = driver.create_input_topic("in", value=BYTES)
    source.pipe_records([(f"{number}", written(number, kind)) for number, kind in enumerate(kinds)])
    out = [record.key for record in driver.create_output_topic("out").read_records_to_list()]
    letters = driver.dead_letters(LETTERS).read_records_to_list()
    sound = [f"{number}" for number, kind in enumerate(kinds) if kind == "none"]
    harmed = [f"{number}" for number, kind in enumerate(kinds) if kind != "none"]
    assert out == sound
    assert sorted((letter.key or b"").decode() for letter in letters) == sorted(harmed)
    assert driver.dropped() - before == len(harmed)
    for letter in letters:
        number = int(letter.key or b"")
        too_large = kinds[number] == "is too large"
        assert letter.value == (None if too_large else written(number, kinds[number]))
