import runpy
import time
from itertools import pairwise
from pathlib import Path

from streamskit.datasets import NEW_YEAR, at, replay, trades, widgets

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
