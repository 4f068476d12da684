"""The exercises of lab 11: tests that pass with a program that is right, and fail with those that are not."""

from collections.abc import Callable, Mapping
from functools import cache, partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.windows import TimeWindows
from streamskit.course.labs.exercise import Exercise, Lab
from streamskit.course.labs.parts import SaysEach
from streamskit.course.labs.telling_apart import Program, TellsApart
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.kstream import KStream
from streamskit.dsl.materialized import EmitStrategy, Materialized
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

LOGIN = Serdes.json("ok boolean, address string")
LIMIT = 1000


# ---- the programs under test, which arguments break ------------------------------------------------------------------


def alarms(least: int = 3, size: str = "1 minute", grace: str = "10 seconds", successes_too: bool = False) -> Topology:
    """Report who fails to log in three times within a minute."""
    builder = StreamsBuilder()
    logins = builder.stream("logins", value=LOGIN)
    failures = logins if successes_too else logins.filter(lambda v: ~v.ok)
    counts = failures.group_by_key().windowed_by(TimeWindows.of_size_and_grace(size, grace))
    table = counts.count(Materialized("failures", retention="1 hour"))
    table.to_stream().filter(lambda v: v >= least).to("alarms")
    return builder.build()


def finals(final: bool = True) -> Topology:
    """Send the number of each person's logins in a minute once, when the minute is over."""
    builder = StreamsBuilder()
    grouped = builder.stream("logins", value=LOGIN).group_by_key()
    windowed = grouped.windowed_by(TimeWindows.of_size_and_grace("1 minute", "10 seconds"))
    if final:
        windowed = windowed.emit_strategy(EmitStrategy.on_window_close())
    windowed.count("per-minute").to_stream().to("finals")
    return builder.build()


def large_balances(limit: int = LIMIT, nulls_too: bool = True) -> Topology:
    """Keep the accounts with more than the limit, and delete those that no longer have it."""
    builder = StreamsBuilder()
    balances = builder.stream("balances", value=Serdes.long())
    table = (balances if nulls_too else balances.filter(lambda v: v.isNotNull())).to_table()
    table.filter(lambda v: v > limit).to_stream().to("large-balances")
    return builder.build()


def large_records() -> Topology:
    """Send balances above the limit on, and nothing else."""
    builder = StreamsBuilder()
    builder.stream("balances", value=Serdes.long()).filter(lambda v: v > LIMIT).to("large-balances")
    return builder.build()


def is_order(text: Column) -> Column:
    """Say whether a text is an order."""
    return text.startswith("orderNumber-")


def is_large(number: Column) -> Column:
    """Say whether the number of an order is a large one."""
    return number > 1000


def large_orders(
    is_order: Callable[[Column], Column] = is_order,
    is_large: Callable[[Column], Column] = is_large,
    last: Callable[[KStream], KStream] = lambda numbers: numbers,
) -> Topology:
    """Send the numbers of orders above 1000."""
    builder = StreamsBuilder()
    orders = builder.stream("orders").filter(is_order)
    numbers = orders.map_values(lambda v: F.split_part(v, F.lit("-"), F.lit(2)).cast("int"))
    last(numbers.filter(is_large)).to("large-orders")
    return builder.build()


# ---- a question whose answer is counted ------------------------------------------------------------------------------


@cache
def alarms_sent() -> dict[str, int]:
    """Count the alarms of five failures that are piped one by one, and of five that are piped as a batch."""
    failures = [({"ok": False, "address": "10.0.0.7"}, second * 1000) for second in range(5)]
    with TopologyTestDriver(alarms()) as driver:
        logins, reported = driver.create_input_topic("logins"), driver.create_output_topic("alarms")
        for failure in failures:
            logins.pipe_input("ada", *failure)
        one_by_one = len(reported.read_records_to_list())
        logins.pipe_records([("bob", *failure) for failure in failures])
        return {"one by one": one_by_one, "as a batch": len(reported.read_records_to_list())}


def typical_numbers(expected: Mapping[str, int]) -> dict[str, dict[int, tuple[str, str]]]:
    """Return for each part the wrong numbers that are typical, each with the mistake's name and what to think of."""
    return {
        "one by one": {
            5: ("an alarm for each failure", "The first two failures raise none: three are needed."),
            1: (
                "one alarm for all",
                "Each failure from the third on changes the count, and each change of three or more is sent.",
            ),
        },
        "as a batch": {
            expected["one by one"]: (
                "a batch taken for single records",
                "Spark's own count folds what a batch brings: the row changes once, from nothing to five.",
            ),
            5: (
                "a batch taken for single records",
                "Spark's own count folds what a batch brings: the row changes once, from nothing to five.",
            ),
            0: ("a batch taken for nothing", "The count goes from nothing to five, and five is an alarm."),
        },
    }


CLOCK = {"emit_interval": "1 second"}

LAB = Lab(
    "11-testing",
    "Testing",
    (
        Exercise(
            "three_failures",
            "Test that the third failed login within a minute raises an alarm.",
            TellsApart(
                Program(alarms),
                (
                    Program(
                        partial(alarms, least=2),
                        "two are enough",
                        "It raises an alarm at the second failure already: what is in the topic before the third?",
                    ),
                    Program(
                        partial(alarms, least=4),
                        "four are needed",
                        "It is silent at the third failure: is there an alarm, and for whom?",
                    ),
                    Program(
                        partial(alarms, successes_too=True),
                        "successes are counted",
                        "It counts successful logins as well, so that two failures and a success raise an alarm.",
                    ),
                ),
            ),
            (
                "Assert twice: what is there after two failures, and what after three?",
                "alarms.is_empty() before the third; alarms.read_record() after it. Its key is windowed: key.key is "
                "the person.",
                'assert alarms.is_empty(); logins.pipe_input("ada", FAILED, 30_000); '
                'alarm = alarms.read_record(); assert (alarm.key.key, alarm.value) == ("ada", 3)',
            ),
        ),
        Exercise(
            "late_failures",
            "Test that a failure counts until its window has closed, and not after it.",
            TellsApart(
                Program(alarms),
                (
                    Program(
                        partial(alarms, grace="0 seconds"),
                        "no grace",
                        "It drops what comes after the end of its window, though the grace period is not over: try a "
                        "failure of the first minute when stream time is between 60 and 70 seconds.",
                    ),
                    Program(
                        partial(alarms, grace="11 seconds"),
                        "a second of grace too much",
                        "It closes the window at 71 seconds, not at 70. Test at the limit: move stream time to exactly "
                        "70,000, and pipe a failure of the first minute.",
                    ),
                    Program(
                        partial(alarms, size="2 minutes"),
                        "windows of two minutes",
                        "Its windows are two minutes long, so that the first one is open much longer.",
                    ),
                ),
            ),
            (
                "Somebody else's failure moves stream time. Do that twice: into the grace period, and to its end.",
                'driver.state_store("failures").fetch("ada", 0) is ada\'s count in the first minute, and '
                "driver.dropped() the number of records that came too late.",
                "ada at 20_000; bob at 65_000; ada at 40_000 counts (2). bob at 70_000; ada at 50_000 is dropped: "
                "still 2, and dropped() is 1.",
            ),
        ),
        Exercise(
            "alarms_of_five",
            "Say how many alarms five failures raise, one by one and as a batch.",
            SaysEach(
                alarms_sent, "The five failures were piped both ways: your numbers are what came out.", typical_numbers
            ),
            (
                "One by one every failure changes the count. From which one on is it sent?",
                "In a batch the count is changed once, by all that the batch brings.",
                "One by one: 3, 4 and 5. As a batch: 5 only.",
            ),
        ),
        Exercise(
            "accounts_that_fall",
            "Test that an account which is no longer large leaves the table of large ones.",
            TellsApart(
                Program(large_balances),
                (
                    Program(
                        large_records,
                        "nothing is deleted",
                        "It filters a stream: an account that falls below the limit makes no tombstone, and so stays "
                        "large for ever.",
                    ),
                    Program(
                        partial(large_balances, nulls_too=False),
                        "a closed account stays",
                        "It ignores null values, so that an account that is closed stays where it is: pipe a null.",
                    ),
                    Program(
                        partial(large_balances, limit=LIMIT - 1),
                        "the limit is large",
                        "It takes an account of exactly 1000 for a large one. Test at the limit.",
                    ),
                ),
            ),
            (
                "What can happen to a large account? It stays large, falls to the limit, falls below it, is closed.",
                "A row that leaves makes a record with a null value. Read all records and compare their keys and "
                "values with a list.",
                'ada has 2000, then 1000: ("ada", 2000), ("ada", None). bob has 3000, then 999: the same. cy has 4000, '
                'and is closed with a null: ("cy", 4000), ("cy", None).',
            ),
        ),
        Exercise(
            "finals_by_the_clock",
            "Test that a final count comes once, after its window has closed and the clock has moved.",
            TellsApart(
                Program(finals, driver=CLOCK),
                (
                    Program(
                        partial(finals, final=False),
                        "every update is sent",
                        "It sends every update of a window that is still open: what is in the topic after the first "
                        "record?",
                        CLOCK,
                    ),
                    Program(
                        finals,
                        "it does not look at the clock",
                        "It sends a closed window's count at once, without waiting for the clock on the wall: what is "
                        "in the topic before you move it?",
                    ),
                ),
            ),
            (
                "Two clocks: records move stream time, advance_wall_clock_time moves the other. A record after that "
                "makes the program look.",
                "Pipe into the minute and past its end within the grace; move the clock, pipe, and nothing must be "
                "there. Then close the window with a record: still nothing, until the clock has moved once more.",
                'ada at 10_000 and 71_000: the topic is empty. advance_wall_clock_time("1 second"); ada at 72_000: one '
                "record, the count 1 of the window that starts at 0.",
            ),
        ),
        Exercise(
            "large_orders_tested",
            "Test a program as well as you can: six broken ones are waiting.",
            TellsApart(
                Program(large_orders),
                (
                    Program(
                        partial(large_orders, is_large=lambda v: v >= 1000),
                        "1000 is large",
                        "It takes 1000 for a number above 1000. Test at the limit.",
                    ),
                    Program(
                        partial(large_orders, is_order=lambda v: v.contains("-")),
                        "everything is an order",
                        "It takes a text such as test-9999 for an order. Pipe what should not come out, too.",
                    ),
                    Program(
                        partial(
                            large_orders,
                            is_order=lambda v: v.isNull() | is_order(v),
                            is_large=lambda v: v.isNull() | is_large(v),
                        ),
                        "nulls come through",
                        "It lets a record without a value through. Pipe a null.",
                    ),
                    Program(
                        partial(large_orders, last=lambda orders: orders.select_key(lambda v: v.cast("string"))),
                        "the key is lost",
                        "It sends the number for a key in place of the customer. Assert the keys.",
                    ),
                    Program(
                        partial(large_orders, last=lambda orders: orders.map_values(lambda v: v.cast("string"))),
                        "texts for numbers",
                        "It sends the number as a text. Assert the values themselves.",
                    ),
                    Program(
                        partial(large_orders, last=lambda orders: orders.flat_map_values(lambda v: F.array(v, v))),
                        "every record twice",
                        "It sends each record twice. Assert all that comes out, and not only the first record.",
                    ),
                ),
            ),
            (
                "What can go wrong? The limit, the texts that are no orders, a null, the key, the type, the number of "
                "records.",
                "Pipe six or seven records of each kind, and compare the list of all keys and values that came out "
                "with the list that you expect.",
                "assert [(r.key, r.value) for r in large.read_records_to_list()] == [...], with orders of 999, 1000, "
                "1001 and 2400, a test-9999 and a null among what you pipe",
            ),
        ),
    ),
)
