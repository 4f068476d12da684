"""Answers that are right as long as a topic has one partition, and those that are right with any number of them."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import KStream, Processor, Record, Serdes, Stores, StreamsBuilder
from streamskit.course.labs import catalogue
from streamskit.course.labs.exercises.pos_invoices import INVOICE
from streamskit.course.labs.several_tasks import SPLIT
from streamskit.datasets import MOVIE_SCHEMA, PLAY_SCHEMA, RATING_SCHEMA, SONG_SCHEMA

pytestmark = pytest.mark.spark

STRING, LONG, DOUBLE = Serdes.string(), Serdes.long(), Serdes.double()
ACCOUNT, RATINGS = Serdes.json("branch string, balance long"), Serdes.json(RATING_SCHEMA)

Before = Callable[[KStream, str], KStream]
"""What is between the records and the processor that adds them up, given the field to add up by."""


def nothing(records: KStream, field: str) -> KStream:
    return records


def a_repartition(records: KStream, field: str) -> KStream:
    return records.select_key(lambda v: v[field]).repartition()


def sales_by_item(before: Before) -> Callable[[StreamsBuilder], None]:
    row = Serdes.json("invoices long, sold long, worth double")

    class Sales(Processor):
        def process(self, record: Record) -> None:
            rows, line = self.context.state_store("sales-by-item"), record.value
            old = rows.get(line["ItemCode"]) or {"invoices": 0, "sold": 0, "worth": 0.0}
            sold, worth = old["sold"] + line["ItemQty"], old["worth"] + line["ItemQty"] * line["ItemPrice"]
            rows.put(line["ItemCode"], {"invoices": old["invoices"] + 1, "sold": sold, "worth": worth})

    def answer(builder: StreamsBuilder) -> None:
        lines = builder.stream("pos-invoices", value=INVOICE).flat_map_values(lambda v: v.InvoiceLineItems)
        store = Stores.persistent_key_value_store("sales-by-item", STRING, row)
        before(lines, "ItemCode").process(Sales, stores=[store])

    return answer


def listeners_by_song(before: Before) -> Callable[[StreamsBuilder], None]:
    class Listeners(Processor):
        def process(self, record: Record) -> None:
            rows, song, seen = (
                self.context.state_store("listeners-by-song"),
                record.value["song"],
                self.context.state_store("seen"),
            )
            pair = f"{song}/{record.value['listener']}"
            if seen.get(pair) is None:
                seen.put(pair, 1)
                rows.put(song, (rows.get(song) or 0) + 1)

    def answer(builder: StreamsBuilder) -> None:
        songs = builder.global_table("music-songs", value=Serdes.json(SONG_SCHEMA))
        plays = builder.stream("music-plays", value=Serdes.json(PLAY_SCHEMA)).filter(lambda v: v.duration >= 30_000)
        heard = plays.map_values(lambda k, v: F.struct(v.song_id, k.alias("listener"))).join(
            songs,
            lambda play, song: F.struct(F.concat(song.genre, F.lit("/"), song.id).alias("song"), play.listener),
            key_selector=lambda k, v: v.song_id,
        )
        stores = [Stores.persistent_key_value_store(name, STRING, LONG) for name in ("listeners-by-song", "seen")]
        before(heard, "song").process(Listeners, stores=stores)

    return answer


def after_compaction(builder: StreamsBuilder) -> None:
    class Totals(Processor):
        def process(self, record: Record) -> None:
            rows, totals = self.context.state_store("rows"), self.context.state_store("branch-totals")
            for row, sign in ((rows.get(record.key), -1), (record.value, 1)):
                if row is not None:
                    totals.put(row["branch"], (totals.get(row["branch"]) or 0) + sign * row["balance"])
            rows.put(record.key, record.value)

    stores = [
        Stores.persistent_key_value_store("rows", STRING, ACCOUNT),
        Stores.persistent_key_value_store("branch-totals", STRING, LONG),
    ]
    builder.stream("accounts", value=ACCOUNT).process(Totals, stores=stores)


def running_average(before: Before) -> Callable[[StreamsBuilder], None]:
    total = Serdes.json("count long, sum long")

    class Average(Processor):
        def process(self, record: Record) -> None:
            rows, title = self.context.state_store("ratings-by-title"), record.value["title"]
            old = rows.get(title) or {"count": 0, "sum": 0}
            new = {"count": old["count"] + 1, "sum": old["sum"] + record.value["rating"]}
            rows.put(title, new)
            self.context.forward(Record(title, new["sum"] / new["count"], record.timestamp))

    def answer(builder: StreamsBuilder) -> None:
        movies = builder.global_table("rated-movies", value=Serdes.json(MOVIE_SCHEMA))

        def titled(rating: Any, movie: Any) -> Any:
            title = F.concat(movie.title, F.lit(" ("), movie.year, F.lit(")"))
            return F.struct(title.alias("title"), rating.rating)

        rated = builder.stream("rated-ratings", value=RATINGS).join(
            movies, titled, key_selector=lambda viewer, rating: rating.movie_id
        )
        store = Stores.persistent_key_value_store("ratings-by-title", STRING, total)
        before(rated, "title").process(Average, stores=[store], key=STRING, value=DOUBLE).to("rated-averages")

    return answer


def changed_minds(before: Before) -> Callable[[StreamsBuilder], None]:
    total = Serdes.json("changes long, moved long")

    class Changes(Processor):
        def process(self, record: Record) -> None:
            last, rows = self.context.state_store("last"), self.context.state_store("changed-minds")
            movie, new = record.value["movie_id"], record.value["rating"]
            both = f"{record.value['viewer']}/{movie}"
            old = last.get(both)
            last.put(both, new)
            if old is not None and old != new:
                was = rows.get(movie) or {"changes": 0, "moved": 0}
                rows.put(movie, {"changes": was["changes"] + 1, "moved": was["moved"] + new - old})
                self.context.forward(Record(movie, rows.get(movie), record.timestamp))

    def answer(builder: StreamsBuilder) -> None:
        stores = [
            Stores.persistent_key_value_store("last", STRING, LONG),
            Stores.persistent_key_value_store("changed-minds", STRING, total),
        ]
        given = before(builder.stream("rated-ratings", value=RATINGS), "movie_id")
        given.process(Changes, stores=stores, key=STRING, value=total).to("changed-minds")

    return answer


def rating_spread(before: Before) -> Callable[[StreamsBuilder], None]:
    class Spread(Processor):
        """Keeps its sums in a field, which is state of a task as well."""

        def __init__(self) -> None:
            self.given: dict[str, list[int]] = {}

        def process(self, record: Record) -> None:
            movie = record.value["movie_id"]
            given = self.given.setdefault(movie, [])
            given.append(record.value["rating"])
            mean = sum(given) / len(given)
            spread = (sum((rating - mean) ** 2 for rating in given) / len(given)) ** 0.5
            self.context.forward(Record(movie, spread, record.timestamp))

    def answer(builder: StreamsBuilder) -> None:
        given = before(builder.stream("rated-ratings", value=RATINGS), "movie_id")
        given.process(Spread, key=STRING, value=DOUBLE).to("rating-spread")

    return answer


ANSWERS = (sales_by_item, listeners_by_song, running_average, changed_minds, rating_spread)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [*((each.__name__, each(nothing)) for each in ANSWERS), ("after_compaction", after_compaction)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_processor_that_adds_up_by_another_key_is_told_of_the_repartition_that_it_lacks(
    exercise: str, answer: Callable[[StreamsBuilder], None]
) -> None:
    found = catalogue.exercise(exercise).examine_answer(answer)
    assert found.misconception
    assert found.misconception.name == SPLIT
    assert "with 3 partitions, the " in found.says


@pytest.mark.parametrize("make", ANSWERS, ids=lambda make: make.__name__)
def test_a_processor_after_a_repartition_is_right(make: Callable[[Before], Callable[[StreamsBuilder], None]]) -> None:
    found = catalogue.exercise(make.__name__).examine_answer(make(a_repartition))
    assert found.passed, found.says


def test_a_store_that_is_split_is_told_with_the_key_that_has_several_rows() -> None:
    says = catalogue.exercise("after_compaction").examine_answer(after_compaction).says
    assert "the store branch-totals has 2 rows for " in says or "the store branch-totals has 3 rows for " in says
    assert "a processor needs select_key(...) and repartition(...) before it" in says
