"""The exercises of lab 11: tests that pass with a program that is right, and fail with those that are not."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.processor import Processor, Record
from streamskit.api.windows import TimeWindows
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.parts import SaysEach
from streamskit.course.labs.telling_apart import Program, SingleProcessor, TellsApart
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.kstream import KStream
from streamskit.dsl.materialized import EmitStrategy, Materialized
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

LOGIN = Serdes.json("ok boolean, address string")
LIMIT = 1000


# ---- the programs under test, which arguments break ------------------------------------------------------------------


def alarms(
    least: int = 3,
    size: str = "1 minute",
    grace: str = "10 seconds",
    successes_too: bool = False,
    last: Callable[[KStream], KStream] = lambda alarms: alarms,
) -> Topology:
    """Report who fails to log in three times within a minute."""
    builder = StreamsBuilder()
    logins = builder.stream("logins", value=LOGIN)
    failures = logins if successes_too else logins.filter(lambda v: ~v.ok)
    counts = failures.group_by_key().windowed_by(TimeWindows.of_size_and_grace(size, grace))
    table = counts.count(Materialized("failures", retention="1 hour"))
    last(table.to_stream().filter(lambda v: v >= least)).to("alarms")
    return builder.build()


def finals(final: bool = True, last: Callable[[KStream], KStream] = lambda finals: finals) -> Topology:
    """Send the number of each person's logins in a minute once, when the minute is over."""
    builder = StreamsBuilder()
    grouped = builder.stream("logins", value=LOGIN).group_by_key()
    windowed = grouped.windowed_by(TimeWindows.of_size_and_grace("1 minute", "10 seconds"))
    if final:
        windowed = windowed.emit_strategy(EmitStrategy.on_window_close())
    last(windowed.count("per-minute").to_stream()).to("finals")
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


class Lockout(Processor):
    """Lock an account at the third failed login in a row, and count from nothing again."""

    least, child, remembers_a_success, forgets_a_lock = 3, "lock", True, True

    def key(self, record: Record) -> Any:
        return record.key

    def locked(self, record: Record, count: int) -> Record:
        return record.with_value(count)

    def process(self, record: Record) -> None:
        failed, key = self.context.state_store("failed"), self.key(record)
        if record.value:
            if self.remembers_a_success:
                failed.delete(key)
            return
        count = (failed.get(key) or 0) + 1
        failed.put(key, count)
        if count >= self.least:
            self.context.forward(self.locked(record, count), to=self.child)
            if self.forgets_a_lock:
                failed.delete(key)


def lockout(**broken: Any) -> SingleProcessor:
    """Return the processor, with some of what it does broken."""
    return SingleProcessor(type("Lockout", (Lockout,), broken))


# ---- a question whose answer is counted ------------------------------------------------------------------------------


@cache
def alarms_sent() -> dict[str, int]:
    """Count the alarms of five failures piped one by one, and of five piped together, with a cache."""
    failures = [({"ok": False, "address": "10.0.0.7"}, second * 1000) for second in range(5)]
    with TopologyTestDriver(alarms(), cache=True) as driver:
        logins, reported = driver.create_input_topic("logins"), driver.create_output_topic("alarms")
        for failure in failures:
            logins.pipe_input("ada", *failure)
        one_by_one = len(reported.read_records_to_list())
        logins.pipe_records([("bob", *failure) for failure in failures])
        return {"one by one": one_by_one, "together": len(reported.read_records_to_list())}


CLOCK = {"emit_interval": "1 second"}


# ---- tests that let a program through --------------------------------------------------------------------------------


LAB = lab(
    "11-testing",
    three_failures=TellsApart(
        Program(alarms),
        {
            "two are enough": Program(partial(alarms, least=2)),
            "four are needed": Program(partial(alarms, least=4)),
            "successes are counted": Program(partial(alarms, successes_too=True)),
            "nobody is named": Program(
                partial(alarms, last=lambda alarms: alarms.select_key(lambda v: F.lit("somebody")))
            ),
            "another number": Program(partial(alarms, last=lambda alarms: alarms.map_values(lambda v: v - 2))),
        },
    ),
    late_failures=TellsApart(
        Program(alarms),
        {
            "no grace": Program(partial(alarms, grace="0 seconds")),
            "a second of grace too much": Program(partial(alarms, grace="11 seconds")),
            "windows of two minutes": Program(partial(alarms, size="2 minutes")),
        },
    ),
    alarms_of_five=SaysEach(
        alarms_sent,
        "The five failures were piped both ways: your numbers are what came out.",
        {
            "an alarm for each failure": {"one by one": 5},
            "one alarm for all": {"one by one": 1},
            "a cache that folds nothing": {"together": lambda due: due["one by one"]},
            "five alarms together": {"together": 5},
            "no alarm together": {"together": 0},
        },
    ),
    lockout_alone=TellsApart(
        lockout(),
        {
            "two are enough": lockout(least=2),
            "the number is missing": lockout(locked=lambda self, record, count: record),
            "four are needed": lockout(least=4),
            "a success changes nothing": lockout(remembers_a_success=False),
            "people are mixed up": lockout(key=lambda self, record: "everybody"),
            "a lock at every further failure": lockout(forgets_a_lock=False),
            "every child gets it": lockout(child=None),
        },
        takes="the processor's class",
    ),
    accounts_that_fall=TellsApart(
        Program(large_balances),
        {
            "nothing is deleted": Program(large_records),
            "a closed account stays": Program(partial(large_balances, nulls_too=False)),
            "the limit is large": Program(partial(large_balances, limit=LIMIT - 1)),
        },
    ),
    finals_by_the_clock=TellsApart(
        Program(finals, driver=CLOCK),
        {
            "every update is sent": Program(partial(finals, final=False), CLOCK),
            "it does not look at the clock": Program(finals),
            "it never comes out": Program(partial(finals, last=lambda finals: finals.filter(lambda v: v < 1)), CLOCK),
            "it comes out twice": Program(
                partial(finals, last=lambda finals: finals.flat_map_values(lambda v: F.array(v, v))), CLOCK
            ),
        },
    ),
    large_orders_tested=TellsApart(
        Program(large_orders),
        {
            "1000 is large": Program(partial(large_orders, is_large=lambda v: v >= 1000)),
            "everything is an order": Program(partial(large_orders, is_order=lambda v: v.contains("-"))),
            "nulls come through": Program(
                partial(
                    large_orders,
                    is_order=lambda v: v.isNull() | is_order(v),
                    is_large=lambda v: v.isNull() | is_large(v),
                )
            ),
            "the key is lost": Program(
                partial(large_orders, last=lambda orders: orders.select_key(lambda v: v.cast("string")))
            ),
            "texts for numbers": Program(
                partial(large_orders, last=lambda orders: orders.map_values(lambda v: v.cast("string")))
            ),
            "every record twice": Program(
                partial(large_orders, last=lambda orders: orders.flat_map_values(lambda v: F.array(v, v)))
            ),
        },
    ),
)
