"""Wrong answers that are typical for tables: each is told what is misunderstood."""

from collections.abc import Callable

import pytest
from pyspark.sql import functions as F

from streamskit import BufferConfig, KTable, Serdes, StreamsBuilder, Suppressed
from tests.labs.wrong_answers import misconception, one_more

pytestmark = pytest.mark.spark

Fold = Callable[[int, int], int]
MEMBER = Serdes.json("city string, fee long")


def add(total: int, fee: int) -> int:
    return total + fee


def take_out(total: int, fee: int) -> int:
    return total - fee


def accounts(builder: StreamsBuilder, store: str | None = None) -> KTable:
    return builder.table("balances", value=Serdes.long(), materialized=store)


# ---- the newest address ----------------------------------------------------------------------------------------------


def test_a_topic_read_as_a_stream_where_a_table_is_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        builder.stream("addresses").to("address-changes")

    assert misconception("newest_address", answer) == "a table read as a stream"


@one_more
def test_a_reducer_of_the_stream_that_keeps_the_last_value() -> None:
    def answer(builder: StreamsBuilder) -> None:
        newest = builder.stream("addresses").group_by_key().reduce(lambda old, new: new, "addresses-now")
        newest.to_stream().to("address-changes")

    assert misconception("newest_address", answer) == "tombstone missed"


def test_nulls_filtered_out_of_the_updates() -> None:
    def answer(builder: StreamsBuilder) -> None:
        updates = builder.table("addresses", materialized="addresses-now").to_stream()
        updates.filter(lambda v: v.isNotNull()).to("address-changes")

    assert misconception("newest_address", answer) == "tombstone missed"


def test_a_table_without_the_store_that_was_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        builder.table("addresses").to_stream().to("address-changes")

    assert misconception("newest_address", answer) == "the store has another name"


def test_a_table_that_goes_nowhere() -> None:
    def answer(builder: StreamsBuilder) -> None:
        builder.table("addresses", materialized="addresses-now")

    assert misconception("newest_address", answer) == "nothing comes out"


# ---- large balances --------------------------------------------------------------------------------------------------


def test_a_filter_on_a_stream() -> None:
    def answer(builder: StreamsBuilder) -> None:
        large = builder.stream("balances", value=Serdes.long()).filter(lambda v: v > 1000)
        large.to_table("large-balances").to_stream().to("large-balances")

    assert misconception("large_balances", answer) == "a filter that deletes nothing"


def test_a_filter_after_the_table_has_become_a_stream() -> None:
    def answer(builder: StreamsBuilder) -> None:
        accounts(builder, "large-balances").to_stream().filter(lambda v: v > 1000).to("large-balances")

    assert misconception("large_balances", answer) == "a filter that deletes nothing"


@one_more
def test_the_store_at_the_source_in_place_of_the_result() -> None:
    def answer(builder: StreamsBuilder) -> None:
        accounts(builder, "large-balances").filter(lambda v: v > 1000).to_stream().to("large-balances")

    assert misconception("large_balances", answer) == "the store of another table"


def test_the_limit_let_through() -> None:
    def answer(builder: StreamsBuilder) -> None:
        accounts(builder).filter(lambda v: v >= 1000, "large-balances").to_stream().to("large-balances")

    assert misconception("large_balances", answer) == "the limit itself"


# ---- how many updates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        ({"no store": 3, "a store": 4, "one batch": 1}, "a filter that deletes nothing"),
        ({"no store": 4, "a store": 4, "one batch": 1}, "needless tombstones"),
        ({"no store": 7, "a store": 7, "one batch": 1}, "needless tombstones"),
        ({"no store": 7, "a store": 3, "one batch": 1}, "a filter that deletes nothing"),
        ({"no store": 7, "a store": 4, "one batch": 4}, "the cache folds nothing"),
        ({"no store": 7, "a store": 4, "one batch": 3}, "needless tombstones"),
    ],
)
def test_a_wrong_number_of_updates(answer: dict[str, int], mistake: str) -> None:
    assert misconception("updates_sent", answer) == mistake


# ---- fees of cities --------------------------------------------------------------------------------------------------


def sums(builder: StreamsBuilder, adder: Fold, subtractor: Fold) -> None:
    by_city = builder.table("members", value=MEMBER).group_by(lambda k, v: (v.city, v.fee))
    by_city.reduce(adder, subtractor, "fees-of-cities").to_stream().to("fees-of-cities")


@one_more
def test_a_subtractor_that_takes_nothing_out() -> None:
    found = misconception("fees_of_cities", lambda b: sums(b, add, lambda total, fee: total))
    assert found == "old value not taken out"


@one_more
def test_a_subtractor_the_wrong_way_round() -> None:
    found = misconception("fees_of_cities", lambda b: sums(b, add, lambda fee, total: total - fee))
    assert found == "subtractor the wrong way round"


@one_more
def test_adder_and_subtractor_exchanged() -> None:
    assert misconception("fees_of_cities", lambda b: sums(b, take_out, add)) == "adder and subtractor exchanged"


@one_more
def test_an_adder_that_keeps_the_last_fee() -> None:
    found = misconception("fees_of_cities", lambda b: sums(b, lambda total, fee: fee, take_out))
    assert found == "last instead of sum"


@one_more
def test_fees_grouped_by_member() -> None:
    def answer(builder: StreamsBuilder) -> None:
        by_member = builder.table("members", value=MEMBER).group_by(lambda k, v: (k, v.fee))
        by_member.reduce(add, take_out, "fees-of-cities").to_stream().to("fees-of-cities")

    assert misconception("fees_of_cities", answer) == "grouped by the row's own key"


@one_more
def test_fees_summed_over_the_stream_of_updates() -> None:
    def answer(builder: StreamsBuilder) -> None:
        fees = builder.table("members", value=MEMBER).to_stream().map(lambda k, v: (v.city, v.fee))
        fees.group_by_key().reduce(add, "fees-of-cities").to_stream().to("fees-of-cities")

    assert misconception("fees_of_cities", answer) == "updates counted as new rows"


# ---- not at every turn -----------------------------------------------------------------------------------------------


def held_back(builder: StreamsBuilder, suppressed: Suppressed) -> None:
    builder.table("addresses").suppress(suppressed).to_stream().to("seldom-changes")


def test_a_store_taken_for_something_that_holds_updates_back() -> None:
    def answer(builder: StreamsBuilder) -> None:
        builder.table("addresses", materialized="addresses-now").to_stream().to("seldom-changes")

    assert misconception("labels_to_print", answer) == "every update goes out"


def test_a_minute_of_sixty_milliseconds() -> None:
    found = misconception("labels_to_print", lambda b: held_back(b, Suppressed.until_time_limit(60)))
    assert found == "held back too short"


def test_a_buffer_that_does_not_wait() -> None:
    suppressed = Suppressed.until_time_limit("1 minute", BufferConfig.max_records(1).emit_early_when_full())
    assert misconception("labels_to_print", lambda b: held_back(b, suppressed)) == "held back too short"


@one_more
def test_an_hour_of_waiting() -> None:
    found = misconception("labels_to_print", lambda b: held_back(b, Suppressed.until_time_limit("1 hour")))
    assert found == "held back too long"


# ---- how many are large ----------------------------------------------------------------------------------------------


def test_updates_counted_after_a_regrouping() -> None:
    def answer(builder: StreamsBuilder) -> None:
        updates = accounts(builder).filter(lambda v: v > 1000).to_stream()
        updates.group_by(lambda v: F.lit("large")).count("how-many").to_stream().to("how-many")

    assert misconception("how_many_are_large", answer) == "updates counted as new rows"


@one_more
def test_rows_that_a_filtered_stream_never_deletes() -> None:
    def answer(builder: StreamsBuilder) -> None:
        large = builder.stream("balances", value=Serdes.long()).filter(lambda v: v > 1000).to_table()
        large.group_by(lambda k, v: (F.lit("large"), v)).count("how-many").to_stream().to("how-many")

    assert misconception("how_many_are_large", answer) == "rows that never leave"


@one_more
def test_a_count_of_all_accounts() -> None:
    def answer(builder: StreamsBuilder) -> None:
        grouped = accounts(builder).group_by(lambda k, v: (F.lit("large"), v))
        grouped.count("how-many").to_stream().to("how-many")

    assert misconception("how_many_are_large", answer) == "the filter is missing"


@one_more
def test_a_count_for_each_account() -> None:
    def answer(builder: StreamsBuilder) -> None:
        large = accounts(builder).filter(lambda v: v > 1000).group_by(lambda k, v: (k, v))
        large.count("how-many").to_stream().to("how-many")

    assert misconception("how_many_are_large", answer) == "grouped by the row's own key"
