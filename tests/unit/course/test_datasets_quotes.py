"""What holds of quotes and of the deals made on them, whatever the seed."""

import runpy
from collections import Counter
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit import Serdes
from streamskit.course.datasets.event_time import DAY, HOUR
from streamskit.course.datasets.quotes import ASSETS, DEAL_SCHEMA, DESKS, QUOTE_SCHEMA, deals, quotes
from streamskit.datasets import NEW_YEAR

DATA = Path(__file__).parents[3] / "data"

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10_000)


def test_the_same_seed_gives_the_same_quotes_and_deals_and_another_gives_others() -> None:
    assert list(quotes(200)) == list(quotes(200))
    assert list(quotes(200)) != list(quotes(200, seed=8))
    assert list(deals(quotes(200))) == list(deals(quotes(200)))
    assert list(deals(quotes(200))) != list(deals(quotes(200), seed=8))


def test_fewer_quotes_and_deals_are_the_first_ones_of_more() -> None:
    assert list(quotes(1_500)) == list(quotes(2_500))[:1_500]
    first = list(deals(quotes(500)))
    assert first == list(deals(quotes(1_500)))[: len(first)]


@few
@given(seeds)
def test_the_ask_is_above_the_bid_and_prices_stay_near_where_they_began(seed: int) -> None:
    began = {asset.name: asset.cents / 100 for asset in ASSETS}
    for record in quotes(2_000, seed):
        bid, ask = record["value"]["bid"], record["value"]["ask"]
        assert 0 < bid < ask < bid * 1.02
        assert 0.5 < bid / began[record["key"]] < 2


@few
@given(seeds)
def test_quotes_come_in_the_order_of_their_time_while_the_market_is_open(seed: int) -> None:
    records = list(quotes(2_500, seed))
    assert all(one["timestamp"] <= next_["timestamp"] for one, next_ in pairwise(records))
    assert all(8 <= record["timestamp"] % DAY // HOUR < 18 for record in records)
    assert Counter((record["timestamp"] - NEW_YEAR) // DAY for record in records) == {0: 1_000, 1: 1_000, 2: 500}


@few
@given(seeds)
def test_a_deal_buys_at_the_ask_or_sells_at_the_bid_of_the_quote_a_second_before(seed: int) -> None:
    market = list(quotes(800, seed))
    prices = {(quote["key"], quote["timestamp"]): quote["value"] for quote in market}
    made = list(deals(market, seed))
    for deal in made:
        quote = prices[deal["key"], deal["timestamp"] - 1_000]
        assert deal["value"]["price"] == quote["ask" if deal["value"]["side"] == "BUY" else "bid"]
        assert deal["value"]["side"] in ("BUY", "SELL")
        assert deal["value"]["quantity"] > 0
        assert deal["value"]["desk"] in DESKS
    assert [deal["value"]["deal"] for deal in made] == [f"D{number:05}" for number in range(1, len(made) + 1)]


def test_the_share_says_how_many_quotes_lead_to_a_deal() -> None:
    market = list(quotes(1_000))
    assert not list(deals(market, share=0))
    assert len(list(deals(market, share=1))) == 1_000
    assert 200 < len(list(deals(market))) < 300


def test_what_is_leaned_on_grows_into_a_position() -> None:
    positions: Counter[str] = Counter()
    for deal in deals(quotes(5_000)):
        sign = 1 if deal["value"]["side"] == "BUY" else -1
        positions[deal["key"]] += sign * deal["value"]["quantity"]
    assert positions["BRENT"] > 0 > positions["WHEAT"]


def test_the_recorded_quotes_and_deals_are_what_the_generators_make(tmp_path: Path) -> None:
    runpy.run_path(str(DATA / "make.py"))["write_quotes"](tmp_path)
    for name in ("quotes.csv", "deals.csv"):
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()


def test_the_schemas_have_every_field() -> None:
    for schema, records in ((QUOTE_SCHEMA, quotes(50)), (DEAL_SCHEMA, deals(quotes(50)))):
        serde = Serdes.json(schema)
        for record in records:
            assert [*record["value"]] == [part.split()[0] for part in schema.split(", ")]
            assert serde.deserialize(serde.serialize(record["value"])) == record["value"]
