"""The exercises of lab 16: asking stores by key, range and time, and instances that may have only a part."""

from streamskit.course.labs.asking import Asks, gives, reads_all
from streamskit.course.labs.exercise import Exercise, Lab
from streamskit.course.labs.exercises.interactive_queries_judging import (
    MISSING_IS_NONE,
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
from streamskit.course.labs.misconceptions import Misconception

LAB = Lab(
    "16-interactive-queries",
    "Interactive queries",
    (
        Exercise(
            "trades_of",
            "Say how often a symbol was traded; a symbol that nobody has traded has 0 trades.",
            Asks(
                ask_trades_of,
                "of symbols that were traded, and of some that were not. The rows are those of Kafka Streams.",
                (
                    MISSING_IS_NONE,
                    Misconception(
                        "keys that begin alike taken for the key",
                        "The trades of other symbols are in it: BRK.A and BRKR begin like BRK, and are other keys. "
                        "get(...) asks for one key; prefix_scan(...) for all that begin so.",
                        gives(lambda store, symbol: sum(count for _, count in store.prefix_scan(symbol))),
                    ),
                    Misconception(
                        "rows counted in place of trades",
                        "The store has one row for each symbol, and its value is the number of trades. How many rows "
                        "there are says nothing about that.",
                        gives(
                            lambda store, symbol: int(store.get(symbol) is not None),
                            lambda store, symbol: len(store.prefix_scan(symbol)),
                            lambda store, symbol: len(store),
                        ),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for one key",
                        "The answers are right, and for each of them the whole store was read. It finds one key at "
                        "once, however many there are: get(...).",
                        reads_all,
                    ),
                ),
            ),
            (
                "A store is asked for one key with one call. What does it return for a key that it does not have?",
                "get(symbol) returns the number, or None. The task wants 0 for None.",
                "return store.get(symbol) or 0",
            ),
        ),
        Exercise(
            "orders_between",
            "List what was ordered from one order number up to, and without, another one, the latest first.",
            Asks(
                ask_orders,
                "of ranges that cross 10, 100 and 1000, of empty ends, and of one without an order in it.",
                (
                    Misconception(
                        "numbers in the order of text",
                        "Keys are sorted by their bytes, and as text 10 comes before 9. These keys have eight digits, "
                        "with zeros in front, so that both orders agree: what you ask for has to be written so, too.",
                        gives(
                            lambda store, first, last: found_items(store.reverse_range(str(first), str(last - 1))),
                            lambda store, first, last: found_items(store.reverse_range(str(first), str(last))),
                            lambda store, first, last: found_items(store.range(str(first), str(last - 1))),
                            lambda store, first, last: found_items(store.range(str(first), str(last))),
                        ),
                    ),
                    Misconception(
                        "a number where the key is text",
                        "The keys of this store are texts of eight digits, and it was asked for a number.",
                        gives(lambda store, first, last: store.reverse_range(first, last - 1)),
                    ),
                    Misconception(
                        "range end taken for exclusive",
                        "The last order is in the list, and the task leaves it out. range and reverse_range have both "
                        "ends in them, unlike Python's range.",
                        gives(
                            lambda store, first, last: found_items(store.reverse_range(padded(first), padded(last))),
                            lambda store, first, last: found_items(store.range(padded(first), padded(last))),
                        ),
                    ),
                    Misconception(
                        "first one first",
                        "The orders are the right ones, from the earliest to the latest. The task wants the latest "
                        "first: reverse_range reads from the other end.",
                        gives(lambda store, first, last: found_items(store.range(padded(first), padded(last - 1)))),
                    ),
                    Misconception(
                        "bounds the wrong way round",
                        "A range from a key to one before it is empty, also when it is read backwards: the lower key "
                        "comes first in both, range and reverse_range.",
                        gives(
                            lambda store, first, last: found_items(
                                store.reverse_range(padded(last - 1), padded(first))
                            ),
                            lambda store, first, last: found_items(store.reverse_range(padded(last), padded(first))),
                        ),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for a few rows",
                        "The answers are right, and for each of them the whole store was read. Keys lie in order, so "
                        "that a range reads no more than its own rows.",
                        reads_all,
                    ),
                ),
            ),
            (
                "How is order 9 written as a key, and how is order 12? Is the first really before the second?",
                'f"{number:08}" writes a number with eight digits. Which one is the last order that is in the list?',
                'store.reverse_range(f"{first:08}", f"{last - 1:08}") has the rows; take the value of each.',
            ),
        ),
        Exercise(
            "trades_between",
            "Sum up a symbol's trades in the windows of ten seconds from one time up to another one.",
            Asks(
                ask_trades_between,
                "of spans that begin and end at windows, also after the store has forgotten the first of them.",
                (
                    Misconception(
                        "range end taken for exclusive",
                        "The window that begins at the end of the span is counted, too. fetch(key, from, to) has both "
                        "ends in it: all windows that start from the one to the other.",
                        gives(in_windows(short=0)),
                    ),
                    Misconception(
                        "a window's end taken for its start",
                        "Each window is looked for by its end. A window store knows windows by their starts: the one "
                        "that ends after 20 seconds is asked for with 10.",
                        gives(
                            in_windows(back=TEN_SECONDS),
                            in_windows(back=TEN_SECONDS, short=0),
                            lambda store, symbol, first, last: in_windows()(store, symbol, first + TEN_SECONDS, last),
                            lambda store, symbol, first, last: in_windows(short=0)(
                                store, symbol, first + TEN_SECONDS, last
                            ),
                        ),
                    ),
                    Misconception(
                        "windows counted in place of trades",
                        "You count the windows that were found. Each row is the start of a window and the number of "
                        "trades in it.",
                        gives(
                            lambda store, symbol, first, last: len(store.fetch(symbol, first, last - 1)),
                            lambda store, symbol, first, last: len(store.fetch(symbol, first, last)),
                        ),
                    ),
                    Misconception(
                        "one window for the whole span",
                        "With one time, fetch gives the value of the one window that starts then. With two times it "
                        "gives all windows that start between them.",
                        gives(
                            lambda store, symbol, first, last: store.fetch(symbol, first),
                            lambda store, symbol, first, last: store.fetch(symbol, first) or 0,
                        ),
                    ),
                    Misconception(
                        "trades of all symbols",
                        "The trades of the other symbols are in it. fetch_all asks for all keys, fetch for one.",
                        gives(
                            lambda store, symbol, first, last: sum(
                                count for _, count in store.fetch_all(first, last - 1)
                            ),
                            lambda store, symbol, first, last: sum(count for _, count in store.fetch_all(first, last)),
                        ),
                    ),
                    Misconception(
                        "seconds in place of milliseconds",
                        "The times are milliseconds, as everywhere in Kafka, and you divide them.",
                        gives(in_windows(divisor=SECOND), in_windows(short=0, divisor=SECOND)),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for a few windows",
                        "The answers are right, and for each of them all windows of all symbols were read. fetch reads "
                        "those of one symbol in a span of time.",
                        reads_all,
                    ),
                ),
            ),
            (
                "A window store is asked for a key and two times. Times of what, and are both of them in it?",
                "fetch(symbol, from, to) gives pairs of a window's start and its value, for all windows that start "
                "between the two, both included. The one that starts at time_to must not be there.",
                "return sum(count for start, count in store.fetch(symbol, time_from, time_to - 1))",
            ),
        ),
        Exercise(
            "price_at",
            "Say what a share was worth at a time, and None where no price is known.",
            Asks(
                ask_price_at,
                "before the first price, at prices and between them, after a withdrawn one, and further back than the "
                "store remembers. All answers are those of Kafka Streams.",
                (
                    Misconception(
                        "the latest price for any time",
                        "You answer with the price of now. A versioned store has those before it, too: "
                        "get(key, as_of) asks for the one that was valid at a time.",
                        gives(
                            lambda store, symbol, time: found_value(store.get(symbol)),
                            lambda store, symbol, time: store.get(symbol),
                            lambda store, symbol, time: store.get(symbol).value,
                        ),
                    ),
                    Misconception(
                        "null taken for 0",
                        "Where no price is known you say 0, and a share that is worth nothing is news. Whoever adds up "
                        "these answers will not see the difference; None says that there is none.",
                        gives(
                            lambda store, symbol, time: found_value(store.get(symbol, time)) or 0.0,
                            lambda store, symbol, time: found_value(store.get(symbol, time)) or 0,
                        ),
                    ),
                    Misconception(
                        "no version taken for a version",
                        "get(...) returns None where no price was valid, and None has no value. Ask whether there is a "
                        "version before you take its value.",
                        gives(lambda store, symbol, time: store.get(symbol, time).value),
                    ),
                    Misconception(
                        "a version in place of its value",
                        "A versioned store answers with a VersionedRecord: a value, and the time from which on it was "
                        "valid. The task wants the value.",
                        gives(lambda store, symbol, time: store.get(symbol, time)),
                    ),
                    Misconception(
                        "a price that is valid only after its time",
                        "At the very time of a new price you still give the one before. A version is valid from its "
                        "timestamp on, that time included.",
                        gives(lambda store, symbol, time: found_value(store.get(symbol, time - 1))),
                    ),
                ),
            ),
            (
                "This store has more than one version of a row. Which argument of get says which of them you want?",
                "get(symbol, time) returns a VersionedRecord with .value and .timestamp, or None.",
                "version = store.get(symbol, time), then: return None if version is None else version.value",
            ),
        ),
        Exercise(
            "count_anywhere",
            "Say how often a symbol was traded, whichever instance has it; None while nobody can say.",
            Asks(
                ask_count_anywhere,
                "keys of all three instances and keys that nobody has, with all instances alive and with one dead.",
                (
                    Misconception(
                        "one instance's share taken for the whole store",
                        "You ask the instance that you are in, and its store has only the partitions of its own. That "
                        "a key is not in it says nothing about the others: the client asks the one that has it.",
                        gives(
                            locally,
                            locally_or_nothing,
                            locally_or_none,
                            lambda here, client, symbol: dict(here.all()).get(symbol),
                        ),
                    ),
                    Misconception(
                        "503 taken for a missing key",
                        "While an instance is dead, nobody can say how often its symbols were traded, and you say 0. "
                        "A refusal (503, StreamsRebalancingError) is not the answer that there is no such key (404).",
                        gives(remotely(otherwise=0)),
                    ),
                    Misconception(
                        "a missing key and a silent instance told alike",
                        "None is for what nobody can say at the moment. Of a symbol that nobody has traded one can "
                        "say it: 0.",
                        gives(remotely(otherwise=None, missing=None)),
                    ),
                    Misconception(
                        "a refusal that stops the program",
                        "While an instance is dead the client raises StreamsRebalancingError for its keys, and nobody "
                        "catches it. The task wants None then.",
                        gives(remotely(otherwise=...), remotely(otherwise=..., missing=None)),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for one key",
                        "The answers are right, and for each of them a whole store was read. get(...) asks for one "
                        "key.",
                        reads_all,
                    ),
                ),
            ),
            (
                "Which of the two, here and client, knows the whole store? And what happens when nobody does?",
                'client.store("trades-by-symbol").get(symbol) asks the right instance. It returns None for a key that '
                "is not there, and raises StreamsRebalancingError while nobody can answer.",
                "try: return client.store(...).get(symbol) or 0; except StreamsRebalancingError: return None",
            ),
        ),
        Exercise(
            "trades_board",
            "Show how many symbols and trades there are, whether that is all, and how far behind it is.",
            Asks(
                ask_board,
                "of a store that is 3 updates behind, of one whose instance is dead, and of one with 10,400 rows on "
                "the disk.",
                (
                    Misconception(
                        "a partial list taken for the whole one",
                        "An instance is dead, its rows are missing, and your board says that it is whole. What could "
                        'not be asked stands in the answer, under "missing".',
                        gives(board(whole=True)),
                    ),
                    Misconception(
                        "first page taken for the whole list",
                        "A list comes in pages, of 1000 rows unless limit= says otherwise, and you read the first one. "
                        'As long as "next" is not null there is another: ask for it with after=.',
                        gives(
                            board(pages=False),
                            board(pages=False, whole=True),
                            board(pages=False, partial=False),
                        ),
                    ),
                    Misconception(
                        "an estimate taken for the number",
                        "You ask the store how many rows it has, and on the disk it only knows about how many: rows "
                        "that were written twice are counted twice for a while. approximate_num_entries, and /count, "
                        "are for watching growth; exact is who counts the rows.",
                        gives(board(estimate=True)),
                    ),
                    Misconception(
                        "no board where a part is missing",
                        "While an instance is dead a list is refused, unless ?partial=true allows for it. A board "
                        "should show what there is, and say that it is not all.",
                        gives(board(partial=False)),
                    ),
                    Misconception(
                        "behind taken for incomplete",
                        "A copy that is some updates behind has all its rows, only not the newest values; a missing "
                        'partition has none. "whole" is about the second, "lag" about the first.',
                        gives(whole_if_not_behind),
                    ),
                    Misconception(
                        "a stale answer taken for a fresh one",
                        "Your board says that it is not behind, and it is. Each partition of the answer tells its "
                        '"lag"; the largest of them is that of the board.',
                        gives(board(lag=False)),
                    ),
                ),
            ),
            (
                "Look at one answer of ask(...) as a whole. Which of its parts says what is missing, which how fresh "
                "it is, and which that there is more?",
                "/state/keyvalues/trades-by-symbol/all?partial=true gives rows, partitions, missing and next. While "
                "next is not None, ask again with &after= and next.",
                'symbols: len(rows); trades: the sum of each row["value"]; whole: not said["missing"]; lag: the '
                'maximum of each["lag"] in said["partitions"].',
            ),
        ),
    ),
)
