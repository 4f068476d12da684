"""Wrong answers that are typical for joins: each is told what is misunderstood."""

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import JoinWindows, KStream, Serdes, StreamsBuilder
from tests.labs.wrong_answers import misconception, one_more

pytestmark = pytest.mark.spark

HALF_HOUR = JoinWindows.of_time_difference_with_no_grace("30 minutes")
ORDER = Serdes.json("order string, user string")
PARCEL = Serdes.json("id long, city string")
OPEN_ORDER = Serdes.json("user string, weight long")


def pair(left: Column, right: Column) -> Column:
    return F.concat_ws("+", F.coalesce(left, F.lit("nothing")), F.coalesce(right, F.lit("nothing")))


def departments(builder: StreamsBuilder) -> tuple[KStream, KStream]:
    return builder.stream("appliance-orders"), builder.stream("electronic-orders")


# ---- two streams: a window with two bounds ---------------------------------------------------------------------------


def bundles(windows: JoinWindows) -> str:
    """Examine the first exercise with these windows."""

    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        appliances.join(electronics, pair, windows).to("bundles")

    return misconception("bundle_deals", answer)


def test_before_and_after_swapped() -> None:
    assert bundles(HALF_HOUR.after("6 minutes")) == "before and after swapped"


def test_the_shorter_bound_forgotten() -> None:
    assert bundles(HALF_HOUR) == "window too wide"


@one_more
def test_the_longer_bound_forgotten() -> None:
    assert bundles(JoinWindows.of_time_difference_with_no_grace("6 minutes")) == "window too narrow"


def test_a_window_a_millisecond_too_narrow() -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(30 * 60_000 - 1).before("6 minutes")
    assert bundles(windows) == "window too narrow"


def test_the_streams_in_the_other_order() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        electronics.join(appliances, pair, HALF_HOUR.before("6 minutes")).to("bundles")

    assert misconception("bundle_deals", answer) == "sides swapped"


def test_two_streams_without_a_window() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        appliances.join(electronics, pair).to("bundles")

    assert misconception("bundle_deals", answer) == "no window"


@one_more
def test_an_outer_join_where_pairs_are_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        appliances.outer_join(electronics, pair, HALF_HOUR.before("6 minutes")).to("bundles")

    assert misconception("bundle_deals", answer) == "left or outer instead of inner"


# ---- two streams: what becomes of the unmatched ----------------------------------------------------------------------


@one_more
def test_an_inner_join_where_a_left_one_is_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        appliances.join(electronics, pair, HALF_HOUR).to("advice-calls")

    assert misconception("advice_calls", answer) == "inner instead of left or outer"


@one_more
def test_an_outer_join_where_a_left_one_is_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        appliances.outer_join(electronics, pair, HALF_HOUR).to("advice-calls")

    assert misconception("advice_calls", answer) == "outer instead of left"


def test_a_table_where_two_streams_are_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = builder.stream("appliance-orders"), builder.table("electronic-orders")
        appliances.left_join(electronics, pair).to("advice-calls")

    assert misconception("advice_calls", answer) == "a table where a stream is asked for"


@one_more
def test_an_hour_where_half_an_hour_is_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        windows = JoinWindows.of_time_difference_with_no_grace("1 hour")
        appliances.left_join(electronics, pair, windows).to("advice-calls")

    assert misconception("advice_calls", answer) == "window too wide"


@one_more
def test_a_grace_that_was_not_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        appliances, electronics = departments(builder)
        windows = JoinWindows.of_time_difference_and_grace("30 minutes", "1 day")
        appliances.left_join(electronics, pair, windows).to("advice-calls")

    assert misconception("advice_calls", answer) == "a grace that was not asked for"


@one_more
def test_no_grace_where_late_records_are_waited_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        checkouts, payments = builder.stream("checkouts"), builder.stream("payments")
        checkouts.outer_join(payments, pair, HALF_HOUR).to("accounts")

    assert misconception("settled_accounts", answer) == "grace forgotten"


@one_more
def test_a_left_join_where_an_outer_one_is_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        checkouts, payments = builder.stream("checkouts"), builder.stream("payments")
        windows = JoinWindows.of_time_difference_and_grace("30 minutes", "45 minutes")
        checkouts.left_join(payments, pair, windows).to("accounts")

    assert misconception("settled_accounts", answer) == "left instead of outer"


# ---- a stream and a table --------------------------------------------------------------------------------------------


def with_name(order: Column, name: Column) -> Column:
    return F.concat(order.order, F.lit(":"), name)


def test_a_join_by_the_key_that_the_stream_happens_to_have() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.stream("orders", value=ORDER), builder.table("users")
        orders.join(users, with_name).to("named-orders")

    assert misconception("named_orders", answer) == "wrong key before the join"


def test_a_key_that_is_changed_after_the_join() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.stream("orders", value=ORDER), builder.table("users")
        named = orders.join(users, lambda order, name: F.struct(order.order, order.user, name.alias("name")))
        by_user = named.select_key(lambda v: v.user)
        by_user.map_values(lambda v: F.concat(v.order, F.lit(":"), v["name"])).to("named-orders")

    assert misconception("named_orders", answer) == "wrong key before the join"


@one_more
def test_a_left_join_with_a_table_where_an_inner_one_is_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.stream("orders", value=ORDER), builder.table("users")
        orders.select_key(lambda v: v.user).left_join(users, with_name).to("named-orders")

    assert misconception("named_orders", answer) == "left instead of inner"


@one_more
def test_a_foreign_key_join_where_the_orders_are_a_stream() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.table("orders", value=ORDER), builder.table("users")
        named = orders.join(users, with_name, foreign_key=lambda v: v.user)
        named.to_stream().to("named-orders")

    assert misconception("named_orders", answer) == "a table where a stream is asked for"


def test_a_global_table_that_leaves_the_key_as_it_is() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.stream("orders", value=ORDER), builder.global_table("users")
        orders.join(users, with_name, key_selector=lambda v: v.user).to("named-orders")

    assert misconception("named_orders", answer) == "GlobalKTable instead of a re-keyed stream"


def test_the_table_joined_with_the_stream() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.stream("orders", value=ORDER), builder.table("users")
        users.join(orders, lambda name, order: with_name(order, name)).to_stream().to("named-orders")

    assert misconception("named_orders", answer) == "sides swapped"


# ---- a stream and a global table -------------------------------------------------------------------------------------


def by_way(parcel: Column, way: Column) -> Column:
    return F.concat(parcel.id.cast("string"), F.lit(" by "), way)


def test_a_global_table_without_a_key_selector() -> None:
    def answer(builder: StreamsBuilder) -> None:
        parcels, routes = builder.stream("parcels", value=PARCEL), builder.global_table("routes")
        parcels.join(routes, by_way).to("dispatches")

    assert misconception("parcel_routes", answer) == "key selector forgotten"


@one_more
def test_a_key_selector_that_takes_the_streams_key() -> None:
    def answer(builder: StreamsBuilder) -> None:
        parcels, routes = builder.stream("parcels", value=PARCEL), builder.global_table("routes")
        parcels.join(routes, by_way, key_selector=lambda k, v: k).to("dispatches")

    assert misconception("parcel_routes", answer) == "looked up by the record's own key"


@one_more
def test_a_stream_that_is_re_keyed_for_a_global_table() -> None:
    def answer(builder: StreamsBuilder) -> None:
        parcels, routes = builder.stream("parcels", value=PARCEL), builder.global_table("routes")
        by_city = parcels.select_key(lambda v: v.city)
        by_city.join(routes, by_way, key_selector=lambda k, v: k).to("dispatches")

    assert misconception("parcel_routes", answer) == "re-keyed for a global table"


# ---- two tables ------------------------------------------------------------------------------------------------------


def delivery(order: Column, city: Column) -> Column:
    return F.concat(order.weight.cast("string"), F.lit(" kg to "), city)


def test_two_tables_joined_by_their_own_keys() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.table("open-orders", value=OPEN_ORDER), builder.table("users")
        orders.join(users, delivery).to_stream().to("deliveries")

    assert misconception("open_deliveries", answer) == "joined by the orders' own keys"


def test_a_stream_of_orders_that_does_not_follow_its_users() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.stream("open-orders", value=OPEN_ORDER), builder.global_table("users")
        found = orders.join(users, delivery, key_selector=lambda v: v.user)
        found.to("deliveries")

    assert misconception("open_deliveries", answer) == "a stream where a table is asked for"


@one_more
def test_a_left_join_by_a_foreign_key_where_an_inner_one_is_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        orders, users = builder.table("open-orders", value=OPEN_ORDER), builder.table("users")
        found = orders.left_join(users, delivery, foreign_key=lambda v: v.user)
        found.to_stream().to("deliveries")

    assert misconception("open_deliveries", answer) == "left instead of inner"
