"""Operators of one query have serdes of their own, also such as run in Python: none reads the bytes of another."""

from typing import Any

from streamskit import Processor, SchemaRegistry, Serde, Serdes, Stores, StreamsBuilder, TopologyTestDriver


def avro(name: str, **fields: str) -> Serde:
    schema = {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}
    return Serdes.avro(schema, SchemaRegistry("mock://several-operators"), subject=name)


MOVIE, COUNT, RATED = (
    avro("Movie", title="string"),
    avro("Count", count="long"),
    avro("Rated", title="string", n="long"),
)


def test_an_aggregate_and_a_table_in_avro_are_joined_in_one_query() -> None:
    builder = StreamsBuilder()
    movies = builder.table("movies", value=MOVIE)
    counts = (
        builder.stream("ratings")
        .group_by_key()
        .aggregate(lambda: {"count": 0}, lambda _, __, kept: {"count": kept["count"] + 1}, "counts", value=COUNT)
    )
    counts.join(movies, lambda count, movie: rated(count, movie)).to_stream().to("rated", value=RATED)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("movies", value=MOVIE).pipe_input("m1", {"title": "Metropolis"})
        driver.create_input_topic("ratings").pipe_records([("m1", "8"), ("m2", "7"), ("m1", "9")])
        told = driver.create_output_topic("rated").read_records_to_list()
    assert [(each.key, each.value) for each in told] == [
        ("m1", {"title": "Metropolis", "n": 1}),
        ("m1", {"title": "Metropolis", "n": 2}),
    ]


def rated(count: Any, movie: Any) -> Any:
    from pyspark.sql import functions as F

    return F.struct(movie.title, count["count"].alias("n"))


class Counting(Processor):
    """Counts the records of each key in a store of a serde that is not the one of what it forwards."""

    def process(self, record: Any) -> None:
        counts = self.context.state_store("seen")
        row = counts.get(record.key) or {"count": 0}
        counts.put(record.key, {"count": row["count"] + 1})
        self.context.forward(record.with_value({"title": f"{record.key} {row['count'] + 1}"}))


def test_a_processor_forwards_in_avro_beside_a_store_in_avro() -> None:
    builder = StreamsBuilder()
    store = Stores.persistent_key_value_store("seen", Serdes.string(), COUNT)
    builder.stream("ratings").process(Counting, stores=[store], value=MOVIE).to("told")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("ratings").pipe_records([("m1", "8"), ("m1", "9")])
        told = driver.create_output_topic("told", value=MOVIE).read_records_to_list()
    assert [each.value for each in told] == [{"title": "m1 1"}, {"title": "m1 2"}]
