"""How the answers of lab 12 are judged: what goes in and has to come out, and signs of typical mistakes."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.error_handlers import LogAndContinue
from streamskit.common.errors import StreamsError
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs, Says, Verdict, topology_of, unwritten, wrong
from streamskit.course.labs.misconceptions import Misconception, Sign
from streamskit.course.labs.recording import Costume, Piped, Recording, Row
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.uncaught_exceptions import MaxFailures, UncaughtExceptionResponse
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver

BILL = Serdes.json("id int, price double, guests string")
TABLES = {"a": "table-1", "b": "table-2"}
HANDLERS = ("deserialization_handler", "processing_handler", "production_handler")
LETTERS = "dead-bills"


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out the warnings that quote records: they would tell a learner what a check is made of."""
    logger = logging.getLogger("streamskit")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@dataclass(frozen=True)
class Decides:
    """Examines handlers: with them a topology of the task has to give what the recording says.

    Args:
        topology: the task's.
        recording: makes what goes in and has to come out.
        mistakes: the typical ones of this task.
        handler: the setting that the answer itself is; none if it is a function that returns settings.
    """

    topology: Callable[[StreamsBuilder], None]
    recording: Callable[[], Recording]
    mistakes: tuple[Misconception[Outcome], ...] = ()
    handler: str = ""

    @quietly()
    def __call__(self, answer: Any) -> Verdict:
        settings = {self.handler: answer} if self.handler else answer()
        if not isinstance(settings, dict):
            return wrong(f"It has to return a dict of settings, by their names; it returned {settings!r}.")
        if unknown := [name for name in settings if name not in HANDLERS]:
            return wrong(f"No handler is set by {unknown[0]!r}; those there are: {', '.join(HANDLERS)}.")
        recording = replace(self.recording(), driver=settings)
        return Runs(lambda: recording, self.mistakes)(self.topology)


# ---- the topologies of the tasks -------------------------------------------------------------------------------------


def booked(builder: StreamsBuilder) -> None:
    """Amounts, as they come."""
    builder.stream("amounts", value=Serdes.long()).to("booked")


def ordered(builder: StreamsBuilder) -> None:
    """Slips with the number of a dish, as they come."""
    builder.stream("slips", value=Serdes.json("n int")).to("kitchen")


def shared(builder: StreamsBuilder) -> None:
    """What each guest pays of a bill; a price below zero is no joke."""
    builder.stream("bills", value=BILL).map_values(_share, name="share").to("shares", value=Serdes.double())


def drawn(builder: StreamsBuilder) -> None:
    """For each guest's share a bar, one star for each euro."""
    shares = builder.stream("bills", value=BILL).map_values(_share, name="share")
    shares.map_values(lambda v: F.repeat(F.lit("*"), v.cast("int"))).to("bars")


def _share(v: Column) -> Column:
    return F.when(v.price < 0, F.raise_error(F.lit("a price below zero"))).otherwise(v.price / v.guests.cast("int"))


def as_bill(number: int, price: float, guests: str) -> bytes:
    """Return a bill as its topic holds it."""
    return json.dumps({"id": number, "price": price, "guests": guests}).encode()


# ---- what goes in, and what has to come out --------------------------------------------------------------------------


def amounts() -> Recording:
    """Return amounts, of which some are no numbers."""
    return Recording.of(
        "errors-deserialization-continue", Costume({"in": "amounts", "out": "booked"}, {}, TABLES, 1000)
    )


def slips() -> Recording:
    """Return slips; those that cannot be read come out as dead letters, as they were."""
    topics = {"in": "slips", "out": "kitchen"}
    recording = Recording.of("errors-deserialization-dead-letters", Costume(topics, {}, TABLES, 1000))
    failed = [(number, recording.steps[number]) for number in recording.dropped]
    letters = tuple(_letter(number, step) for number, step in failed if isinstance(step, Piped))
    return replace(recording, outputs={**recording.outputs, "dead-slips": letters}, letters=("dead-slips",))


def jokes_and_worse() -> Recording:
    """Return bills: good ones, jokes, such as need a look, and one that has to stop everything."""
    bills: list[tuple[str | None, float, str]] = [
        ("table-1", 90.0, "3"),
        ("table-2", 50.0, "0"),
        ("table-3", 70.0, "two"),
        ("table-4", 10.0, "4"),
        (None, 20.0, "a few"),
        ("table-5", 0.0, "0"),
        ("table-6", -5.0, "2"),
    ]
    steps = tuple(
        Piped("bills", table, {"id": number, "price": price, "guests": guests}, number * 1000)
        for number, (table, price, guests) in enumerate(bills)
    )
    shares, letters = list[Row](), list[Row]()
    for number, (table, price, guests) in enumerate(bills[:-1]):
        if not guests.isdigit():
            letters.append(_letter(number, steps[number]))
        elif guests != "0":
            shares.append(Row(number, table, price / int(guests), number * 1000))
    outputs = {"shares": tuple(shares), LETTERS: tuple(letters)}
    return Recording(steps, outputs, letters=(LETTERS,), fails=True, source="a fold in plain Python")


def _letter(number: int, step: Piped) -> Row:
    value = step.value if "value" in step.raw else BILL.serialize(step.value)
    return Row(number, None if step.key is None else step.key.encode(), value, step.timestamp)


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def said(text: str) -> Sign:
    """Return the sign that the application stopped with an error that says this."""
    return lambda outcome: text in str(outcome.trial.error or "")


def no_letter_came(topic: str) -> Sign:
    """Return the sign that nothing came in the topic of dead letters, and all else is right."""
    return lambda outcome: (
        not outcome.trial.error
        and not outcome.trial.outputs.get(topic)
        and all(moment.topic == topic for moment in outcome.differing)
    )


def stopped_at_guests(where: Callable[[str], bool]) -> Sign:
    """Return the sign that it stopped at a bill whose guests are such."""

    def stopped(outcome: Outcome) -> bool:
        step = outcome.recording.steps[outcome.trial.stopped_at] if outcome.trial.error else None
        return isinstance(step, Piped) and where(step.value["guests"])

    return stopped


def letter_for_a_joke(outcome: Outcome) -> bool:
    """A dead letter came where none is due."""
    return any(moment.topic == LETTERS and moment.actual and not moment.expected for moment in outcome.moments)


def other_letters(outcome: Outcome) -> bool:
    """Dead letters came when they should, and hold something else."""
    letters = [moment for moment in outcome.moments if moment.topic == LETTERS]
    return any(moment.differs for moment in letters) and all(
        len(moment.expected) == len(moment.actual) for moment in letters
    )


def resumed_too_often(outcome: Outcome) -> bool:
    """It went on where it should have stopped, and all else is right."""
    return outcome.trial.error is None and outcome.recording.fails


# ---- who decides -----------------------------------------------------------------------------------------------------

CASES: dict[str, bytes | None] = {
    "half a JSON text": b'{"id": 2, "price": 4',
    "guests is a word": as_bill(3, 50, "two"),
    "no guests": as_bill(4, 50, "0"),
    "price is a word": b'{"id": 5, "price": "much", "guests": "2"}',
    "three million for two": as_bill(6, 3_000_000, "2"),
    "a null value": None,
}
WHY = {
    ("half a JSON text", "processing"): (
        "cannot be read at all",
        "Half a JSON text does not reach any step: the source fails to read it, which is deserialization.",
    ),
    ("guests is a word", "deserialization"): (
        "read, and then it fails",
        "guests is a string in the schema, so that a word can be read. It is a step that cannot make a number of it.",
    ),
    ("no guests", "deserialization"): (
        "read, and then it fails",
        "A bill without guests can be read. It is a step that divides by zero.",
    ),
    ("price is a word", "processing"): (
        "the schema is part of reading",
        "price is a double in the schema, and a word is none: that is found when the value is read, before any step.",
    ),
    ("three million for two", "processing"): (
        "made, and not writable",
        "Every step succeeds, and makes a text of 1,500,000 stars. It is larger than a request may be: it cannot be "
        "written.",
    ),
    ("a null value", "deserialization"): (
        "a null value is no failure",
        "A null value is not handed to the serde, and what functions of Spark make of null is null. Nobody is asked.",
    ),
    ("a null value", "processing"): (
        "a null value is no failure",
        "A null value is not handed to the serde, and what functions of Spark make of null is null. Nobody is asked.",
    ),
}


def examine_who_decides(answer: Any) -> Verdict:
    """Judge who is said to decide about each case, by who does."""
    if not isinstance(answer, dict) or ... in answer.values():
        return unwritten("Put a word in place of each `...`.")
    expected = deciders()
    for (case, said_), (name, says) in WHY.items():
        if answer.get(case) == said_ != expected[case]:
            return wrong(f"{case}: {says}", name)
    return Says(expected, f"{len(expected)} records went in, each of the three handlers with dead letters of its own.")(
        answer
    )


@quietly()
def deciders() -> dict[str, str]:
    """Run the cases, each handler with a dead-letter topic of its own, and return in which of them each came."""
    kinds = ("deserialization", "processing", "production")
    handlers: dict[str, Any] = {f"{kind}_handler": LogAndContinue(kind) for kind in kinds}
    with TopologyTestDriver(topology_of(drawn), **handlers) as driver:
        driver.create_input_topic("bills", value=Serdes.byte_array()).pipe_records(list(CASES.items()))
        found = {
            str(letter.key.decode()): kind
            for kind in kinds
            for letter in driver.dead_letters(kind).read_records_to_list()
        }
    return {case: found.get(case, "nobody") for case in CASES}


# ---- all are accounted for -------------------------------------------------------------------------------------------


def examine_accounts(answer: Any) -> Verdict:
    """Judge a learner's accounts of bills that went through an application, part of them twice."""
    came_in, out, letters = bills_that_went_through()
    accounts = answer(list(came_in), list(out), list(letters))
    unread = {each.key.decode() for each in letters if _kind(each) == "SerializationException"}
    failed = {each.key.decode() for each in letters} - unread
    written = {each.key for each in out}
    dropped = set(came_in) - written - unread - failed
    expected = {"out": len(written), "cannot be read": len(unread), "step failed": len(failed), "dropped": len(dropped)}
    if not isinstance(accounts, dict):
        return wrong(f"It has to return a dict with the keys {', '.join(expected)}; it returned {accounts!r}.")
    if accounts.get("out") == len(out) or accounts.get("step failed") == len(failed) + _again(letters, failed):
        return wrong(
            "Some bills are counted twice. At least once means that a batch that ran again writes again: count "
            "different keys, not records.",
            "duplicates counted",
        )
    if accounts.get("dropped") == len(set(came_in) - written):
        return wrong(
            "Bills that are in dead letters are counted as dropped. A dead letter's key is bytes, as it was in the "
            "topic, and bytes never equal a text.",
            "bytes are no text",
        )
    if accounts.get("cannot be read") == len(unread | failed) or accounts.get("step failed") == len(unread | failed):
        return wrong(
            "All dead letters are counted as one kind. The header __streams.errors.exception tells them apart.",
            "two kinds of dead letters",
        )
    return Says(expected, f"{len(came_in)} bills went in; {_sum(expected)}.")(accounts)


@quietly()
def bills_that_went_through() -> tuple[list[str], list[Any], list[Any]]:
    """Return the keys that went in, and the records and dead letters that came out, as after a batch that ran twice."""
    guests = ["2", "0", "4", "two", "1", "5", "", "3", "0", "2", "many", "8", "0", "2"]
    bills: list[tuple[str, bytes]] = [(f"bill-{n}", as_bill(n, 60, each)) for n, each in enumerate(guests)]
    bills += [("bill-14", b'{"id": 14, "pr'), ("bill-15", b"<bill/>"), ("bill-16", b"{}}")]
    keep = LogAndContinue(LETTERS)
    quiet: Any = lambda context, record, error: (  # noqa: E731
        LogAndContinue()(context, record, error) if "ZERO" in str(error) else keep(context, record, error)
    )
    with TopologyTestDriver(topology_of(shared), deserialization_handler=keep, processing_handler=quiet) as driver:
        driver.create_input_topic("bills", value=Serdes.byte_array()).pipe_records(bills)
        out = driver.create_output_topic("shares").read_records_to_list()
        letters = driver.dead_letters(LETTERS).read_records_to_list()
    return [key for key, _ in bills], [*out, *out[-3:]], [*letters, *letters[:2], *letters[-2:]]


def _kind(letter: Any) -> str:
    return str(dict(letter.headers)["__streams.errors.exception"].decode())


def _again(letters: list[Any], keys: set[str]) -> int:
    """Count the letters with these keys that are there a second time."""
    return sum(each.key.decode() in keys for each in letters) - len(keys)


def _sum(accounts: dict[str, int]) -> str:
    parts = " + ".join(f"{count} {name}" for name, count in accounts.items())
    return f"{parts} = {sum(accounts.values())}, each bill once"


def tries() -> int:
    """Return how often a query reads a record that fails every time, with MaxFailures(2, "1 minute")."""
    handler, count = MaxFailures(2, "1 minute"), 1
    while handler(StreamsError("the same record again")) is UncaughtExceptionResponse.REPLACE_THREAD:
        count += 1
    return count


# ---- the lab ---------------------------------------------------------------------------------------------------------

ANOTHER_HANDLER = Misconception(
    "another handler decides",
    "It stopped at a record that its source cannot read. The handler for that is the one for deserialization; those "
    "for processing and production are asked about other failures.",
    said("what its serde reads"),
)
