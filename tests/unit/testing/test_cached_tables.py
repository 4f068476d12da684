"""Tables with the record cache on: who looks a row up reads through the cache, and all others get merged updates."""

from collections.abc import Iterator

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import Processor, Record, StreamsBuilder, TopologyTestDriver
from tests.unit.testing.test_topology_test_driver import driver_of

pytestmark = pytest.mark.spark


def text(value: Column, row: Column) -> Column:
    return F.concat(F.coalesce(value.cast("string"), F.lit("null")), F.lit("+"),
                    F.coalesce(row.cast("string"), F.lit("null")))  # fmt: skip


class CountOf(Processor):
    """Forwards what the table "counts" says of a record's key."""

    def process(self, record: Record) -> None:
        found = self.context.state_store("counts").get(record.key)
        self.context.forward(record.with_value(f"{record.value}: {found and found.value}"))


def looking_up_what_is_cached(builder: StreamsBuilder) -> None:
    """Every record is counted twice and is a row of a table, and is then joined with these tables."""
    records, names = builder.stream("in"), builder.table("names")
    counts = records.flat_map_values(lambda v: F.array(v, v)).group_by_key().count("counts")
    rows = records.to_table()
    rows.group_by(lambda k, v: (F.lit("all"), v)).count().to_stream().to("groups")
    records.left_join(counts, text).to("with-count")
    records.left_join(counts.map_values(lambda n: n * 10), text).to("with-ten-times-the-count")
    records.left_join(rows, text).to("with-itself")
    records.left_join(counts.left_join(names, text), text).to("with-count-and-name")
    counts.to_stream().to("merged")
    counts.to_stream().map_values(lambda n: n.cast("string")).process(CountOf, ["counts"]).to("read-back")


@pytest.fixture(scope="module")
def driver() -> Iterator[TopologyTestDriver]:
    with driver_of(looking_up_what_is_cached, cache=True) as driver:
        driver.create_input_topic("names").pipe_input("k", "Kim", 0)
        driver.create_input_topic("in").pipe_records([("k", "x", 1), ("k", "y", 2)])
        yield driver


@pytest.mark.parametrize(
    ("topic", "values"),
    [
        ("with-count", ["x+2", "y+4"]),
        ("with-ten-times-the-count", ["x+20", "y+40"]),
        ("with-itself", ["x+x", "y+y"]),
        ("with-count-and-name", ["x+2+Kim", "y+4+Kim"]),
        ("merged", [4]),
        ("read-back", ["4: 4"]),
        ("groups", [1]),
    ],
)
def test_who_looks_into_a_table_finds_each_update_and_all_others_get_them_merged(
    driver: TopologyTestDriver, topic: str, values: list[object]
) -> None:
    assert [record.value for record in driver.create_output_topic(topic).read_records_to_list()] == values
