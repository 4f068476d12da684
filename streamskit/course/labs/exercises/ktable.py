"""The exercises of lab 03: rows that are replaced and deleted, groups that they enter and leave, updates kept back."""

from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.exercises.ktable_judging import (
    BALANCES,
    MINUTE,
    OTHERWISE,
    ROWS_OWN_KEY,
    SECOND,
    SILENT_FILTER,
    TOMBSTONE_MISSED,
    UPDATES_COUNTED,
    adding_subtracts,
    addresses,
    at_the_limit,
    below_zero,
    counts_updates,
    every_update,
    fees,
    large_ones,
    last_fee,
    never_falls,
    number_of_large_ones,
    read_as_a_stream,
    rows_that_do_not_pass,
    sent_too_early,
    sent_too_late,
    store_of_all_rows,
    typical_numbers,
    updates_sent,
)
from streamskit.course.labs.misconceptions import Misconception
from streamskit.course.labs.parts import SaysEach

LAB = Lab(
    "03-ktable",
    "KTable",
    (
        Exercise(
            "newest_address",
            "Keep each customer's newest address in a table, and send its updates.",
            Runs(
                lambda: addresses("ktable-source", "address-changes", SECOND, {"rows": "addresses-now"}),
                (
                    Misconception(
                        "a table read as a stream",
                        "A record without a key came out, and nothing keeps rows. What stream() reads are events; the "
                        "newest address of each customer is a table.",
                        read_as_a_stream,
                    ),
                    TOMBSTONE_MISSED,
                ),
            ),
            (
                "Every record is the new value of its key's row, and a null deletes the row: what is that called?",
                "builder.table(...) reads a topic so. Its store gets a name with materialized=..., and to_stream() "
                "gives its updates.",
                'builder.table("addresses", materialized="addresses-now")',
            ),
        ),
        Exercise(
            "large_balances",
            "Keep the accounts with more than 1000, and say when one no longer belongs to them.",
            Runs(
                large_ones,
                (
                    SILENT_FILTER,
                    Misconception(
                        "the limit itself",
                        "A balance of exactly 1000 came through. Above 1000 means more than that.",
                        at_the_limit,
                    ),
                    Misconception(
                        "the store of another table",
                        "The store holds rows that do not pass the filter: it is that of the table before. Here the "
                        "result of the filter is to be kept, so the name is given to filter(...).",
                        store_of_all_rows,
                    ),
                ),
            ),
            (
                "Is it the stream that is filtered, or the table? They differ when an account falls below the limit.",
                "builder.table(...), then filter(...), then to_stream(). The filter takes the name of the store.",
                'builder.table("balances", value=Serdes.long()).filter(lambda v: v > 1000, "large-balances")',
            ),
        ),
        Exercise(
            "updates_sent",
            "Say how many updates a filtered table sends: without a store, with one, in one batch.",
            SaysEach(
                updates_sent,
                f"The three programs ran on the {len(BALANCES)} records: your numbers are what they sent.",
                typical_numbers,
                OTHERWISE,
            ),
            (
                "Without a store: every record of the table makes an update, the value or a tombstone.",
                "With a store a tombstone is sent only where a row was there before. In a batch, only the last value "
                "of each key counts.",
                "No store: one for each of the seven records. A store: bob's 2000 and 2500, ada's 1500, and one more. "
                "One batch: of three rows only bob's passes in the end.",
            ),
        ),
        Exercise(
            "fees_of_cities",
            "Sum up the fees of each city's members, who move, pay more, and leave.",
            Runs(
                fees,
                (
                    ROWS_OWN_KEY,
                    UPDATES_COUNTED,
                    Misconception(
                        "last instead of sum",
                        "Each result is the fee that has just come. The adder gets the sum so far and the new fee.",
                        last_fee,
                    ),
                    Misconception(
                        "old value not taken out",
                        "Your sums never fall. Before a row's new value is added, the subtractor gets its old one and "
                        "has to take it out: of the same city, or of the one that the member left.",
                        never_falls,
                    ),
                    Misconception(
                        "adder and subtractor exchanged",
                        "A member who comes makes the sum smaller. The adder is the first function, the subtractor the "
                        "second.",
                        adding_subtracts,
                    ),
                    Misconception(
                        "subtractor the wrong way round",
                        "The sums are right until something is taken out, and then fall below zero. The subtractor "
                        "gets the sum first and the old value second.",
                        below_zero,
                    ),
                ),
            ),
            (
                "Group the table by city, each row with its fee for a value, and reduce: one function puts a fee in, "
                "the other takes the old one out.",
                "group_by(lambda k, v: (v.city, v.fee)), then reduce(adder, subtractor, name). Both functions get the "
                "sum and a fee.",
                '.reduce(lambda total, new: total + new, lambda total, old: total - old, "fees-of-cities")',
            ),
        ),
        Exercise(
            "labels_to_print",
            "Hold the updates of each row back for a minute, and send the last of them.",
            Runs(
                lambda: addresses("ktable-suppress-time-limit", "seldom-changes", MINUTE, {}),
                (
                    Misconception(
                        "every update goes out",
                        "Each update goes out at once, so nothing holds it back. A store or a cache does not do that "
                        "for a given time; suppress(...) does.",
                        every_update,
                    ),
                    Misconception(
                        "held back too short",
                        "Updates go out before a row's minute is over. A duration without a unit is in milliseconds, "
                        "and a buffer that emits early does not wait for the time limit.",
                        sent_too_early,
                    ),
                    Misconception(
                        "held back too long",
                        "Updates that should be out are still held back. A row waits for a minute of stream time from "
                        "the first update that is held back, whichever key moves that time.",
                        sent_too_late,
                    ),
                ),
            ),
            (
                "Between the table and its updates stands a step that keeps them back for some stream time.",
                "suppress(...) takes Suppressed.until_time_limit(duration), and belongs before to_stream().",
                'builder.table("addresses").suppress(Suppressed.until_time_limit("1 minute")).to_stream()',
            ),
        ),
        Exercise(
            "how_many_are_large",
            "Keep count of the accounts with more than 1000.",
            Runs(
                number_of_large_ones,
                (
                    ROWS_OWN_KEY,
                    Misconception(
                        "updates counted as new rows",
                        "Your count is larger than the number of accounts: an account that changes is counted once "
                        "more. Group and count the table, not the stream of its updates.",
                        counts_updates,
                    ),
                    Misconception(
                        "rows that never leave",
                        "Your count never falls. An account that falls below the limit, or is closed, has to leave the "
                        "group. A stream's filter does not tell that; a table's filter does.",
                        never_falls,
                    ),
                    Misconception(
                        "the filter is missing",
                        "An account below the limit changed the count. Filter the table before it is grouped.",
                        rows_that_do_not_pass,
                    ),
                ),
            ),
            (
                "Which rows are counted? And how do you count all rows of a table together: under which key?",
                'A table, filter(...), then group_by(...) with the same key for every row: F.lit("large"). Then count.',
                '.filter(lambda v: v > 1000).group_by(lambda k, v: (F.lit("large"), v)).count("how-many")',
            ),
        ),
    ),
)
