"""Wrong answers that are typical for queries: each is told what is misunderstood."""

from typing import Any

import pytest

from streamskit import InvalidStateStoreError, QueryClient, StreamsError
from tests.labs.wrong_answers import misconception

pytestmark = pytest.mark.spark

PATH = "/state/keyvalues/trades-by-symbol"
TEN_SECONDS = 10_000


def test_a_missing_key_that_is_handed_on() -> None:
    def answer(store: Any, symbol: str) -> Any:
        return store.get(symbol)

    assert misconception("trades_of", answer) == "a missing key handed on as None"


def test_a_prefix_where_a_key_is_meant() -> None:
    def answer(store: Any, symbol: str) -> int:
        total = 0
        for _, count in store.prefix_scan(symbol):
            total += count
        return total

    assert misconception("trades_of", answer) == "keys that begin alike taken for the key"


def test_a_store_that_is_read_whole_for_one_key() -> None:
    def answer(store: Any, symbol: str) -> int:
        return next((count for key, count in store.all() if key == symbol), 0)

    assert misconception("trades_of", answer) == "whole store read for one key"


def test_a_function_without_return() -> None:
    def answer(store: Any, symbol: str) -> None:
        store.get(symbol) or 0

    assert misconception("trades_of", answer) == "nothing is returned"


def test_numbers_that_are_not_padded() -> None:
    def answer(store: Any, first: int, last: int) -> list[str]:
        return [item for _, item in store.reverse_range(f"{first}", f"{last - 1}")]

    assert misconception("orders_between", answer) == "numbers in the order of text"


def test_the_end_of_a_range_that_is_in_it() -> None:
    def answer(store: Any, first: int, last: int) -> list[str]:
        rows = store.range(f"{first:08}", f"{last:08}")
        return [item for _, item in reversed(rows)]

    assert misconception("orders_between", answer) == "range end taken for exclusive"


def test_the_earliest_order_first() -> None:
    def answer(store: Any, first: int, last: int) -> list[str]:
        return [item for _, item in store.range(f"{first:08}", f"{last - 1:08}")]

    assert misconception("orders_between", answer) == "first one first"


def test_a_backward_range_from_its_end() -> None:
    def answer(store: Any, first: int, last: int) -> list[str]:
        return [item for _, item in store.reverse_range(f"{last - 1:08}", f"{first:08}")]

    assert misconception("orders_between", answer) == "bounds the wrong way round"


def test_rows_that_are_returned_as_they_are() -> None:
    def answer(store: Any, first: int, last: int) -> Any:
        return store.reverse_range(f"{first:08}", f"{last - 1:08}")

    assert misconception("orders_between", answer) == "rows in place of values"


def test_a_window_that_begins_at_the_end_of_the_span() -> None:
    def answer(store: Any, symbol: str, time_from: int, time_to: int) -> int:
        return sum(count for _, count in store.fetch(symbol, time_from, time_to))

    assert misconception("trades_between", answer) == "range end taken for exclusive"


def test_windows_that_are_looked_for_by_their_ends() -> None:
    def answer(store: Any, symbol: str, time_from: int, time_to: int) -> int:
        windows = store.fetch(symbol, time_from - TEN_SECONDS, time_to)
        return sum(count for start, count in windows if time_from <= start + TEN_SECONDS < time_to)

    assert misconception("trades_between", answer) == "a window's end taken for its start"


def test_one_window_where_a_span_is_asked_for() -> None:
    def answer(store: Any, symbol: str, time_from: int, time_to: int) -> int:
        return store.fetch(symbol, time_from) or 0

    assert misconception("trades_between", answer) == "one window for the whole span"


def test_all_windows_that_are_read_and_sorted_out() -> None:
    def answer(store: Any, symbol: str, time_from: int, time_to: int) -> int:
        rows = [(key, count) for key, count in store.all() if key.key == symbol]
        return sum(count for key, count in rows if time_from <= key.start < time_to)

    assert misconception("trades_between", answer) == "whole store read for a few windows"


def test_the_price_of_now_for_then() -> None:
    def answer(store: Any, symbol: str, time: int) -> float | None:
        version = store.get(symbol)
        return version.value if version else None

    assert misconception("price_at", answer) == "the latest price for any time"


def test_an_unknown_price_of_nothing() -> None:
    def answer(store: Any, symbol: str, time: int) -> float:
        version = store.get(symbol, time)
        return 0.0 if version is None else version.value

    assert misconception("price_at", answer) == "null taken for 0"


def test_the_value_of_no_version() -> None:
    def answer(store: Any, symbol: str, time: int) -> float:
        return store.get(symbol, time).value

    assert misconception("price_at", answer) == "no version taken for a version"


def test_the_share_of_one_instance() -> None:
    def answer(here: Any, client: QueryClient, symbol: str) -> int:
        try:
            return here.get(symbol) or 0
        except InvalidStateStoreError:
            return 0

    assert misconception("count_anywhere", answer) == "one instance's share taken for the whole store"


def test_an_instance_that_is_asked_for_the_key_of_another_one() -> None:
    def answer(here: Any, client: QueryClient, symbol: str) -> int:
        found = here.get(symbol)
        return found if found is not None else 0

    assert misconception("count_anywhere", answer) == "one instance's share taken for the whole store"


def test_a_refusal_that_is_taken_for_no_such_key() -> None:
    def answer(here: Any, client: QueryClient, symbol: str) -> int:
        try:
            return client.store("trades-by-symbol").get(symbol) or 0
        except StreamsError:
            return 0

    assert misconception("count_anywhere", answer) == "503 taken for a missing key"


def test_a_refusal_that_nobody_catches() -> None:
    def answer(here: Any, client: QueryClient, symbol: str) -> int:
        return client.store("trades-by-symbol").get(symbol) or 0

    assert misconception("count_anywhere", answer) == "a refusal that stops the program"


def board_of(said: Any, rows: Any, **other: Any) -> dict[str, Any]:
    """Return a board as a learner would make it of the first answer."""
    shown = {"symbols": len(rows), "trades": sum(row["value"] for row in rows), "whole": said["missing"] == []}
    return {**shown, "lag": max(each["lag"] for each in said["partitions"]), **other}


def all_rows(ask: Any) -> tuple[Any, list[Any]]:
    """Return the first answer, and the rows of all pages."""
    first = said = ask(f"{PATH}/all?partial=true&limit=5000")
    rows = list(said["rows"])
    while said["next"]:
        said = ask(f"{PATH}/all?partial=true&limit=5000&after={said['next']}")
        rows += said["rows"]
    return first, rows


def test_a_partial_list_that_looks_whole() -> None:
    assert misconception("trades_board", lambda ask: board_of(*all_rows(ask), whole=True)) == (
        "a partial list taken for the whole one"
    )


def test_the_first_page_alone() -> None:
    def answer(ask: Any) -> dict[str, Any]:
        said = ask(f"{PATH}/all?partial=true")
        return board_of(said, said["rows"])

    assert misconception("trades_board", answer) == "first page taken for the whole list"


def test_an_estimate_of_the_number_of_rows() -> None:
    def answer(ask: Any) -> dict[str, Any]:
        return board_of(*all_rows(ask), symbols=ask(f"{PATH}/count?partial=true")["count"])

    assert misconception("trades_board", answer) == "an estimate taken for the number"


def test_a_board_that_is_dark_while_an_instance_is_dead() -> None:
    def answer(ask: Any) -> dict[str, Any]:
        said = ask(f"{PATH}/all")
        rows = list(said["rows"])
        while said["next"]:
            said = ask(f"{PATH}/all?after={said['next']}")
            rows += said["rows"]
        return board_of(said, rows)

    assert misconception("trades_board", answer) == "no board where a part is missing"


def test_a_stale_answer_that_is_shown_as_fresh() -> None:
    assert misconception("trades_board", lambda ask: board_of(*all_rows(ask), lag=0)) == (
        "a stale answer taken for a fresh one"
    )
