"""The exercises of lab 16: asking stores by key, range and time, and instances that may have only a part."""

from streamskit.course.labs.asking import Asks, reading_all, reads_all
from streamskit.course.labs.exercises.interactive_queries_judging import (
    SECOND,
    TEN_SECONDS,
    ask_board,
    ask_count_anywhere,
    ask_orders,
    ask_price_at,
    ask_trades_between,
    ask_trades_of,
    board,
    found_items,
    found_value,
    in_windows,
    locally,
    locally_or_none,
    locally_or_nothing,
    padded,
    remotely,
    whole_if_not_behind,
)
from streamskit.course.labs.exercises.interactive_queries_mission import (
    ERRORS,
    judge_through_a_death,
    three_instances,
)
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.missions import Lives

LAB = lab(
    "16-interactive-queries",
    trades_of=Asks(
        ask_trades_of,
        "of symbols that were traded, and of some that were not. The rows are those of Kafka Streams.",
        wrong={
            "a missing key handed on as None": lambda store, symbol: store.get(symbol),
            "keys that begin alike taken for the key": lambda store, symbol: sum(
                count for _, count in store.prefix_scan(symbol)
            ),
            "rows counted in place of trades": [
                lambda store, symbol: int(store.get(symbol) is not None),
                lambda store, symbol: len(store.prefix_scan(symbol)),
                lambda store, symbol: len(store),
            ],
            "whole store read for one key": reading_all(lambda store, symbol: store.get(symbol) or 0),
        },
        habits={"whole store read for one key": reads_all},
    ),
    orders_between=Asks(
        ask_orders,
        "of ranges that cross 10, 100 and 1000, of empty ends, and of one without an order in it.",
        wrong={
            "numbers in the order of text": [
                lambda store, first, last: found_items(store.reverse_range(str(first), str(last - 1))),
                lambda store, first, last: found_items(store.reverse_range(str(first), str(last))),
                lambda store, first, last: found_items(store.range(str(first), str(last - 1))),
                lambda store, first, last: found_items(store.range(str(first), str(last))),
            ],
            "a number where the key is text": lambda store, first, last: store.reverse_range(first, last - 1),
            "range end taken for exclusive": [
                lambda store, first, last: found_items(store.reverse_range(padded(first), padded(last))),
                lambda store, first, last: found_items(store.range(padded(first), padded(last))),
            ],
            "first one first": lambda store, first, last: found_items(store.range(padded(first), padded(last - 1))),
            "bounds the wrong way round": [
                lambda store, first, last: found_items(store.reverse_range(padded(last - 1), padded(first))),
                lambda store, first, last: found_items(store.reverse_range(padded(last), padded(first))),
            ],
            "whole store read for a few rows": reading_all(
                lambda store, first, last: found_items(store.reverse_range(padded(first), padded(last - 1)))
            ),
        },
        habits={"whole store read for a few rows": reads_all},
    ),
    trades_between=Asks(
        ask_trades_between,
        "of spans that begin and end at windows, also after the store has forgotten the first of them.",
        wrong={
            "range end taken for exclusive": in_windows(short=0),
            "a window's end taken for its start": [
                in_windows(back=TEN_SECONDS),
                in_windows(back=TEN_SECONDS, short=0),
                lambda store, symbol, first, last: in_windows()(store, symbol, first + TEN_SECONDS, last),
                lambda store, symbol, first, last: in_windows(short=0)(store, symbol, first + TEN_SECONDS, last),
            ],
            "windows counted in place of trades": [
                lambda store, symbol, first, last: len(store.fetch(symbol, first, last - 1)),
                lambda store, symbol, first, last: len(store.fetch(symbol, first, last)),
            ],
            "one window for the whole span": [
                lambda store, symbol, first, last: store.fetch(symbol, first),
                lambda store, symbol, first, last: store.fetch(symbol, first) or 0,
            ],
            "trades of all symbols": [
                lambda store, symbol, first, last: sum(count for _, count in store.fetch_all(first, last - 1)),
                lambda store, symbol, first, last: sum(count for _, count in store.fetch_all(first, last)),
            ],
            "seconds in place of milliseconds": [in_windows(divisor=SECOND), in_windows(short=0, divisor=SECOND)],
            "whole store read for a few windows": reading_all(in_windows()),
        },
        habits={"whole store read for a few windows": reads_all},
    ),
    price_at=Asks(
        ask_price_at,
        "before the first price, at prices and between them, after a withdrawn one, and further back than the "
        "store remembers. All answers are those of Kafka Streams.",
        wrong={
            "the latest price for any time": [
                lambda store, symbol, time: found_value(store.get(symbol)),
                lambda store, symbol, time: store.get(symbol),
                lambda store, symbol, time: store.get(symbol).value,
            ],
            "null taken for 0": [
                lambda store, symbol, time: found_value(store.get(symbol, time)) or 0.0,
                lambda store, symbol, time: found_value(store.get(symbol, time)) or 0,
            ],
            "no version taken for a version": lambda store, symbol, time: store.get(symbol, time).value,
            "a version in place of its value": lambda store, symbol, time: store.get(symbol, time),
            "a price that is valid only after its time": lambda store, symbol, time: found_value(
                store.get(symbol, time - 1)
            ),
        },
    ),
    count_anywhere=Asks(
        ask_count_anywhere,
        "keys of all three instances and keys that nobody has, with all instances alive and with one dead.",
        wrong={
            "one instance's share taken for the whole store": [
                locally,
                locally_or_nothing,
                locally_or_none,
                lambda here, client, symbol: dict(here.all()).get(symbol),
            ],
            "503 taken for a missing key": remotely(otherwise=0),
            "one answer for a missing key and a silent instance": remotely(otherwise=None, missing=None),
            "a refusal that stops the program": [remotely(otherwise=...), remotely(otherwise=..., missing=None)],
            "whole store read for one key": reading_all(remotely(otherwise=None)),
        },
        habits={"whole store read for one key": reads_all},
    ),
    trades_board=Asks(
        ask_board,
        "of a store that is 3 updates behind, of one whose instance is dead, and of one with 10,400 rows on the disk.",
        wrong={
            "a partial list taken for the whole one": board(whole=True),
            "first page taken for the whole list": [
                board(pages=False),
                board(pages=False, whole=True),
                board(pages=False, partial=False),
            ],
            "an estimate taken for the number": board(estimate=True),
            "no board where a part is missing": board(partial=False),
            "behind taken for incomplete": whole_if_not_behind,
            "a stale answer taken for a fresh one": board(lag=lambda lags: 0),
            "lag of another partition": [board(lag=sum), board(lag=lambda lags: lags[0]), board(lag=min)],
        },
    ),
    through_a_death=Lives("through_a_death", three_instances, judge_through_a_death, errors=ERRORS),
)
