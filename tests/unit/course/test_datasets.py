import runpy
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streamskit import StreamsError
from streamskit.datasets import (
    NEW_YEAR,
    Feed,
    at,
    deals,
    flights,
    flights_table,
    invoices,
    plays,
    quotes,
    replay,
    trades,
    weather,
    widgets,
)
from streamskit.faults import poison

DATA = Path(__file__).parents[3] / "data"


def test_the_same_seed_gives_the_same_trades_and_another_gives_others() -> None:
    assert list(trades(100)) == list(trades(100))
    assert list(trades(100)) != list(trades(100, seed=8))
    assert list(widgets(100)) == list(widgets(100))


def test_trades_are_in_the_order_of_their_time_and_cost_something() -> None:
    records = list(trades(2_000))
    assert all(one["timestamp"] <= next_["timestamp"] for one, next_ in pairwise(records))
    assert all(record["value"]["price"] > 0 and record["key"] == record["value"]["symbol"] for record in records)


def test_the_recorded_trades_are_what_the_generator_makes(tmp_path: Path) -> None:
    write_trades = runpy.run_path(str(DATA / "make.py"))["write_trades"]
    write_trades(tmp_path / "trades.csv")
    assert (tmp_path / "trades.csv").read_bytes() == (DATA / "trades.csv").read_bytes()


def test_a_replay_keeps_the_pace_of_the_records() -> None:
    began = time.monotonic()
    assert len(list(replay(widgets(5), speed=20))) == 5
    assert 0.2 <= time.monotonic() - began < 2


def test_a_time_of_day_is_one_of_the_first_day() -> None:
    assert at("00:00") == NEW_YEAR
    assert at("09:05:30") - at("09:00") == 330_000


class Nowhere:
    """A broker that keeps nothing."""

    def produce(self, topic: str, records: Any) -> int:
        return len(list(records))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: replay([], speed=0), r"replay\(speed=0\): speed has to be a number above 0"),
        (lambda: plays(per_minute=0), r"plays\(per_minute=0\): per_minute has to be a number above 0"),
        (lambda: trades(-1), r"trades\(count=-1\): count has to be a whole number from 0 on"),
        (lambda: trades("10"), r"trades\(count='10'\)"),  # type: ignore[arg-type]
        (lambda: trades(10, symbols="KO"), r"symbols='KO'.*one or more texts"),  # type: ignore[arg-type]
        (lambda: widgets(None), r"widgets\(count=None\)"),  # type: ignore[arg-type]
        (lambda: invoices(per_day=0.5), r"per_day=0.5.*a whole number from 1 on"),  # type: ignore[arg-type]
        (lambda: trades(1, start="2026-01-01"), r"start='2026-01-01'.*milliseconds since 1970"),  # type: ignore[arg-type]
        (lambda: trades(1, seed=None), r"seed=None.*a whole number"),  # type: ignore[arg-type]
        (lambda: deals(quotes(1), share=25), r"share=25.*from 0 to 1"),
        (lambda: flights("2013-13-45"), r"flights\(first='2013-13-45'\): first has to be a day such as"),
        (lambda: weather(last="8 March"), r"weather\(last='8 March'\)"),
        (lambda: flights_table("flight"), r"no such table. Choose one of flights, weather"),
        (lambda: at("9"), r"at\('9'\) is no time of day.*'09:05'"),
        (lambda: at("25:00"), r"at\('25:00'\) is no time of day.*'09:05'"),
        (lambda: at("09:75"), r"at\('09:75'\) is no time of day"),
        (lambda: Feed(Nowhere(), "t", [], per_second="20"), r"per_second='20' cannot be sent"),  # type: ignore[arg-type]
        (lambda: Feed(Nowhere(), "t", [], broken=()), r"a list of one or more values in bytes"),
        (lambda: Feed(Nowhere(), "t", [], stop_at="all"), r"stop_at='all'"),  # type: ignore[arg-type]
        (lambda: Feed(Nowhere(), "t", []).burst("200"), r"burst\(count='200'\)"),  # type: ignore[arg-type]
        (lambda: poison("t", value=None), r"poison\(value=None\): the unreadable value has to be bytes"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_told_at_the_call_with_what_it_may_be(call: Callable[[], object], said: str) -> None:
    with pytest.raises(StreamsError, match=said):
        call()


def test_arguments_of_numpy_and_none_where_it_is_the_default_are_taken() -> None:
    import numpy as np

    assert len(list(trades(np.int64(3), per_second=np.float32(2)))) == 3  # type: ignore[arg-type]
    assert next(trades(None))["key"] == "AAPL"
