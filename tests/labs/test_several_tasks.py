"""Answers that are right as long as a topic has one partition, and those that are right with any number of them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import JoinWindows, KStream, Processor, Record, Serdes, Stores, StreamsBuilder, ValueAndTimestamp
from streamskit.course.labs import catalogue, several_tasks
from streamskit.course.labs.exercises.elasticity import READING
from streamskit.course.labs.exercises.flights import TALLY, add, nobody
from streamskit.course.labs.exercises.pos_invoices import INVOICE
from streamskit.course.labs.several_tasks import SPLIT
from streamskit.datasets import (
    FLIGHT_SCHEMA,
    MOVIE_SCHEMA,
    PLANE_SCHEMA,
    PLAY_SCHEMA,
    RATING_SCHEMA,
    SONG_SCHEMA,
    WEATHER_SCHEMA,
)

pytestmark = pytest.mark.spark

STRING, LONG, DOUBLE = Serdes.string(), Serdes.long(), Serdes.double()
ACCOUNT, RATINGS = Serdes.json("branch string, balance long"), Serdes.json(RATING_SCHEMA)

Before = Callable[[KStream, str], KStream]
"""What is between the records and the processor that adds them up, given the field to add up by."""


def nothing(records: KStream, field: str) -> KStream:
    return records


def a_repartition(records: KStream, field: str) -> KStream:
    return records.select_key(lambda v: v[field]).repartition()


def the_key_as_it_was(records: KStream, field: str) -> KStream:
    return records.repartition()


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
        """Keeps the ratings of each movie as text in its store."""

        def process(self, record: Record) -> None:
            movie, rating = record.value["movie_id"], record.value["rating"]
            rows = self.context.state_store("given")
            given = [*json.loads(rows.get(movie) or "[]"), rating]
            rows.put(movie, json.dumps(given))
            mean = sum(given) / len(given)
            spread = (sum((rating - mean) ** 2 for rating in given) / len(given)) ** 0.5
            self.context.forward(Record(movie, spread, record.timestamp))

    def answer(builder: StreamsBuilder) -> None:
        given = before(builder.stream("rated-ratings", value=RATINGS), "movie_id")
        store = Stores.persistent_key_value_store("given", STRING, STRING)
        given.process(Spread, stores=[store], key=STRING, value=DOUBLE).to("rating-spread")

    return answer


def favourite_products(before: Before) -> Callable[[StreamsBuilder], None]:
    class Favourites(Processor):
        def process(self, record: Record) -> None:
            rows, product = self.context.state_store("favourites"), record.value["product"]
            old = rows.get(product) or ValueAndTimestamp(0, 0)
            new = ValueAndTimestamp(old.value + 1, max(old.timestamp, record.timestamp))
            rows.put(product, new)
            self.context.forward(Record(product, *new))

    def answer(builder: StreamsBuilder) -> None:
        votes = builder.stream("votes").filter(lambda v: v != "").map_values(lambda v: F.struct(v.alias("product")))
        store = Stores.persistent_timestamped_key_value_store("favourites", STRING, LONG)
        before(votes, "product").process(Favourites, stores=[store], key=STRING, value=LONG).to("favourites")

    return answer


def how_many_are_large(builder: StreamsBuilder) -> None:
    class Large(Processor):
        def process(self, record: Record) -> None:
            rows, counts = self.context.state_store("rows"), self.context.state_store("how-many")
            for balance, sign in ((rows.get(record.key), -1), (record.value, 1)):
                if balance is not None and balance > 1000:
                    counts.put("large", (counts.get("large") or 0) + sign)
                    self.context.forward(Record("large", counts.get("large"), record.timestamp))
            rows.put(record.key, record.value)

    stores = [Stores.persistent_key_value_store(name, STRING, LONG) for name in ("rows", "how-many")]
    balances = builder.stream("balances", value=LONG)
    balances.process(Large, stores=stores, key=STRING, value=LONG).to("how-many")


class Named(Processor):
    def process(self, record: Record) -> None:
        user = record.value["user"]
        found = self.context.state_store("known").get(user) if user else None
        if found is not None:
            text = f"{record.value['order']}:{found.value}"
            self.context.forward(Record(user, text, record.timestamp))


def named_orders(builder: StreamsBuilder) -> None:
    builder.table("users", materialized="known")
    orders = builder.stream("orders", value=Serdes.json("order string, user string"))
    orders.process(Named, ["known"], key=STRING, value=STRING).to("named-orders")


def room_to_grow(rekeyed: bool) -> Callable[[StreamsBuilder], None]:
    class Counts(Processor):
        def process(self, record: Record) -> None:
            rows, station = self.context.state_store("readings-by-station"), record.value["station"]
            rows.put(station, (rows.get(station) or 0) + 1)

    def answer(builder: StreamsBuilder) -> None:
        readings = builder.stream("readings", value=READING)
        readings = readings.select_key(lambda v: v.station) if rekeyed else readings
        store = Stores.persistent_key_value_store("readings-by-station", STRING, LONG)
        readings.repartition(partitions=8).process(Counts, stores=[store])

    return answer


def tallies(store: str, field: str) -> tuple[type[Processor], list[Any]]:
    """Return a processor that keeps a tally of the flights by a field of theirs, and its store."""

    class Tallies(Processor):
        def process(self, record: Record) -> None:
            rows, name = self.context.state_store(store), record.value[field]
            rows.put(name, add(None, record.value, rows.get(name) or nobody()))

    return Tallies, [Stores.persistent_key_value_store(store, STRING, TALLY)]


def delays_by_maker(builder: StreamsBuilder) -> None:
    flights = builder.stream("flights", value=Serdes.json(FLIGHT_SCHEMA)).select_key(lambda v: v.tailnum)
    joined = flights.left_join(
        builder.table("planes", value=Serdes.json(PLANE_SCHEMA)),
        lambda flight, plane: F.struct(
            F.coalesce(plane.manufacturer, F.lit("unknown")).alias("maker"), flight.arr_delay
        ),
    )
    joined.process(*tallies("delays-by-maker", "maker"))


def delays_in_rain(before: Before) -> Callable[[StreamsBuilder], None]:
    def in_weather(flight: Any, weather: Any) -> Any:
        return F.struct(F.when(weather.precip > 0, "rain").otherwise("dry").alias("sky"), flight.arr_delay)

    def answer(builder: StreamsBuilder) -> None:
        windows = JoinWindows.of_time_difference_and_grace(0, "2 days").before("59 minutes")
        weather = builder.stream("weather", value=Serdes.json(WEATHER_SCHEMA))
        joined = builder.stream("flights", value=Serdes.json(FLIGHT_SCHEMA)).join(weather, in_weather, windows)
        before(joined, "sky").process(*tallies("delays-in-rain", "sky"))

    return answer


ANSWERS = (
    sales_by_item, listeners_by_song, running_average, changed_minds, rating_spread, favourite_products, delays_in_rain
)  # fmt: skip
OTHERS = (after_compaction, how_many_are_large, named_orders, delays_by_maker)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [*((each.__name__, each(nothing)) for each in ANSWERS), *((each.__name__, each) for each in OTHERS)],
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


@pytest.mark.parametrize("make", [sales_by_item, rating_spread, delays_in_rain], ids=lambda make: make.__name__)
def test_a_repartition_after_which_the_key_is_as_before_brings_nothing_together(
    make: Callable[[Before], Callable[[StreamsBuilder], None]],
) -> None:
    found = catalogue.exercise(make.__name__).examine_answer(make(the_key_as_it_was))
    assert found.misconception
    assert found.misconception.name == SPLIT


def test_eight_shares_of_a_count_are_worth_nothing_if_each_has_a_part_of_a_station() -> None:
    found = catalogue.exercise("room_to_grow").examine_answer(room_to_grow(rekeyed=False))
    assert found.misconception
    assert found.misconception.name == SPLIT
    found = catalogue.exercise("room_to_grow").examine_answer(room_to_grow(rekeyed=True))
    assert found.passed, found.says


def test_points_of_a_card_are_split_behind_a_repartition_by_shop() -> None:
    class Points(Processor):
        def process(self, record: Record) -> None:
            store, change = self.context.state_store("points"), record.value["Points"]
            card = record.value["CustomerCardNo"]
            left = (store.get(card) or 0.0) + change
            if left >= 0:
                store.put(card, left)
                if change < 0:
                    self.context.forward(record.with_key(card).with_value({"Points": -change, "Left": left}))

    def answer(builder: StreamsBuilder) -> None:
        bought = builder.stream("pos-invoices", value=INVOICE).filter(lambda v: F.upper(v.CustomerType) == "PRIME")
        earned = bought.map_values(lambda v: F.struct(v.CustomerCardNo, (v.TotalAmount * 0.02).alias("Points")))
        spent = builder.stream("pos-redemptions", value=Serdes.json("CustomerCardNo string, Points double"))
        taken = spent.map_values(lambda v: v.withField("Points", -v.Points))
        store, voucher = Stores.persistent_key_value_store("points", STRING, DOUBLE), "Points double, Left double"
        vouchers = earned.merge(taken).repartition().process(Points, stores=[store], value=Serdes.json(voucher))
        vouchers.to("pos-vouchers")

    found = catalogue.exercise("points_to_spend").examine_answer(answer)
    assert found.misconception
    assert found.misconception.name == SPLIT


def test_who_brings_keys_together_in_a_topic_of_their_own_is_right() -> None:
    def answer(builder: StreamsBuilder) -> None:
        def through_a_topic(records: KStream, field: str) -> KStream:
            records.select_key(lambda v: v[field]).to("ratings-by-movie")
            return builder.stream("ratings-by-movie", value=RATINGS)

        rating_spread(through_a_topic)(builder)

    found = catalogue.exercise("rating_spread").examine_answer(answer)
    assert found.passed, found.says


def test_a_store_that_is_split_is_told_with_what_a_task_has_of_a_key_and_what_all_tasks_have() -> None:
    says = catalogue.exercise("after_compaction").examine_answer(after_compaction).says
    assert "the store branch-totals of one task has 0 for Oslo in place of 15" in says
    assert "a processor needs select_key(...) and repartition(...) before it" in says


def test_a_store_that_is_split_behind_a_repartition_is_told_with_the_key_that_has_several_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(several_tasks, "_found_behind_topics", lambda *_: "")
    says = catalogue.exercise("delays_by_maker").examine_answer(delays_by_maker).says
    assert "the store delays-by-maker has 2 rows for " in says or "the store delays-by-maker has 3 rows for " in says


def test_one_task_is_enough_to_tell_of_totals_that_no_repartition_brings_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(several_tasks, "_found_in_all_tasks")
    for make in (listeners_by_song, running_average):
        found = catalogue.exercise(make.__name__).examine_answer(make(nothing))
        assert found.misconception
        assert found.misconception.name == SPLIT


def test_one_task_is_enough_to_tell_of_a_row_that_is_in_another_and_of_totals_behind_a_repartition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(several_tasks, "_found_in_all_tasks")
    says = catalogue.exercise("named_orders").examine_answer(named_orders).says
    assert "with 3 partitions, the result 'o1:Ann' of ann is missing from named-orders" in says
    says = catalogue.exercise("delays_by_maker").examine_answer(delays_by_maker).says
    assert "with 3 partitions, the store delays-by-maker of one task has " in says


def test_a_processor_that_reads_a_table_is_right_where_orders_go_to_the_rows_of_their_users() -> None:
    def answer(builder: StreamsBuilder) -> None:
        builder.table("users", materialized="known")
        orders = builder.stream("orders", value=Serdes.json("order string, user string"))
        orders.select_key(lambda v: v.user).repartition().process(Named, ["known"], key=STRING, value=STRING).to(
            "named-orders"
        )

    found = catalogue.exercise("named_orders").examine_answer(answer)
    assert found.passed, found.says


def test_a_processor_before_a_grouping_of_the_dsl_is_right() -> None:
    class Voted(Processor):
        def process(self, record: Record) -> None:
            if record.value:
                self.context.forward(record)

    def answer(builder: StreamsBuilder) -> None:
        votes = builder.stream("votes").process(Voted, key=STRING, value=STRING)
        votes.group_by(lambda v: v).count("favourites").to_stream().to("favourites")

    found = catalogue.exercise("favourite_products").examine_answer(answer)
    assert found.passed, found.says
