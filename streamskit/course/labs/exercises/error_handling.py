"""Lab 12: who decides about a record that fails, what is kept of it, and where all have gone."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.error_handlers import DeadLetter, LogAndContinue, Response
from streamskit.course.labs.exercise import Judges, Runs, Says, Verdict, mistaken, topology_of, wrong
from streamskit.course.labs.exercises.error_handling_mission import (
    STOPPED,
    WRONG,
    bills_of_a_night,
    judge_bring_back,
)
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import others_in, stopped_at, unasked_in, went_on
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, Piped, Recording, Row
from streamskit.dsl.builder import StreamsBuilder
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


@dataclass(frozen=True, kw_only=True)
class Decides(Runs):
    """Examines handlers: with them a topology of the task has to give what the recording says.

    Args:
        topology: the task's.
        handler: the setting that the answer itself is; none if it is a function that returns settings.
    """

    topology: Callable[[StreamsBuilder], None]
    handler: str = ""

    @quietly()
    def __call__(self, answer: Any) -> Verdict:
        settings = {self.handler: answer} if self.handler else answer()
        if not isinstance(settings, dict):
            return wrong(f"It has to return a dict of settings, by their names; it returned {settings!r}.")
        if unknown := [name for name in settings if name not in HANDLERS]:
            return wrong(f"No handler is set by {unknown[0]!r}; those there are: {', '.join(HANDLERS)}.")
        return self.judge(self.topology, replace(self.recording(), driver=settings))


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


# ---- who decides -----------------------------------------------------------------------------------------------------

CASES: dict[str, bytes | None] = {
    "half a JSON text": b'{"id": 2, "price": 4',
    "guests is a word": as_bill(3, 50, "two"),
    "no guests": as_bill(4, 50, "0"),
    "price is a word": b'{"id": 5, "price": "much", "guests": "2"}',
    "three million for two": as_bill(6, 3_000_000, "2"),
    "a null value": None,
}
TYPICAL_DECIDERS: dict[str, Typical] = {
    "cannot be read at all": {"half a JSON text": "processing"},
    "read, and then it fails": {"guests is a word": "deserialization", "no guests": "deserialization"},
    "the schema is part of reading": {"price is a word": "processing"},
    "made, and not writable": {"three million for two": "processing"},
    "a null value is no failure": {"a null value": ("deserialization", "processing")},
}
"""Who is wrongly said to decide about a case, by the mistake in that."""


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
    unread = {each.key.decode() for each in letters if _cannot_be_read(each)}
    failed = {each.key.decode() for each in letters} - unread
    written = {each.key for each in out}
    dropped = set(came_in) - written - unread - failed
    expected = {"out": len(written), "cannot be read": len(unread), "step failed": len(failed), "dropped": len(dropped)}
    if not isinstance(accounts, dict):
        return wrong(f"It has to return a dict with the keys {', '.join(expected)}; it returned {accounts!r}.")
    if accounts.get("out") == len(out) or accounts.get("step failed") == len(failed) + _again(letters, failed):
        return mistaken("duplicates counted")
    if accounts.get("dropped") == len(set(came_in) - written):
        return mistaken("bytes are no text")
    if accounts.get("cannot be read") == len(unread | failed) or accounts.get("step failed") == len(unread | failed):
        return mistaken("two kinds of dead letters")
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


def _cannot_be_read(letter: Any) -> bool:
    return bool(dict(letter.headers)["__streams.errors.exception"].endswith(b"SerializationException"))


def _again(letters: list[Any], keys: set[str]) -> int:
    """Count the letters with these keys that are there a second time."""
    return sum(each.key.decode() in keys for each in letters) - len(keys)


def _sum(accounts: dict[str, int]) -> str:
    parts = " + ".join(f"{count} {name}" for name, count in accounts.items())
    return f"{parts} = {sum(accounts.values())}, each bill once"


# ---- wrong answers ---------------------------------------------------------------------------------------------------

Decision = Callable[[Any, str], Any]
"""Makes a handler's response of the context and the text of an error."""


def drop(context: Any, text: str) -> Response:
    """Go on without the record."""
    return Response.resume()


def keep(context: Any, text: str) -> Response:
    """Go on, and keep the record as it was."""
    return Response.resume(DeadLetter(LETTERS, context.source_raw_key, context.source_raw_value))


def stop(context: Any, text: str) -> Response:
    """Stop the application."""
    return Response.fail()


def keep_error(context: Any, text: str) -> Response:
    """Keep what the error says in place of the record."""
    return Response.resume(DeadLetter(LETTERS, context.source_raw_key, text.encode()))


def keep_text(context: Any, text: Any) -> Response:
    """Keep what the error says, and not as bytes."""
    return Response.resume(DeadLetter(LETTERS, context.source_raw_key, text))


def handler(joke: Decision = drop, word: Decision = keep, otherwise: Decision = stop) -> Any:
    """Return a handler that decides so about bills without guests, those whose guests are a word, and others."""

    def decide(context: Any, record: Any, exception: Exception) -> Any:
        text = str(exception)
        decision = joke if "DIVIDE_BY_ZERO" in text else word if "CAST_INVALID_INPUT" in text else otherwise
        return decision(context, text)

    return decide


def by_class(context: Any, record: Any, exception: Exception) -> Response:
    """Tell errors apart by classes that Python would raise."""
    return drop(context, "") if isinstance(exception, ZeroDivisionError | ValueError) else stop(context, "")


def accounted(once: bool = True, as_text: bool = True, two_kinds: bool = True) -> Any:
    """Return accounts that count once what came twice, read keys as text, and know two kinds of letters; or do not."""

    def answer(came_in: list[str], out: list[Any], letters: list[Any]) -> dict[str, int]:
        collect: Any = set if once else list
        unread = collect(each.key for each in letters if _cannot_be_read(each) or not two_kinds)
        failed = collect(each.key for each in letters if not _cannot_be_read(each))
        written = collect(record.key for record in out)
        kept = {key.decode() if as_text else key for key in [*unread, *failed]}
        dropped = set(came_in) - set(written) - kept
        return {
            "out": len(written), "cannot be read": len(unread), "step failed": len(failed), "dropped": len(dropped)
        }  # fmt: skip

    return answer


# ---- the lab ---------------------------------------------------------------------------------------------------------

UNREAD = {"what its serde reads": "another handler decides"}
"""What an application says that stops where bytes cannot be read."""

LAB = lab(
    "12-error-handling",
    go_on_without_it=Decides(
        recording=amounts,
        topology=booked,
        wrong={
            "another handler decides": [
                lambda: {"processing_handler": LogAndContinue()},
                lambda: {"production_handler": LogAndContinue()},
                dict,
            ]
        },
        errors=UNREAD,
    ),
    kept_aside=Decides(
        recording=slips,
        topology=ordered,
        wrong={
            "another handler decides": lambda: {"production_handler": LogAndContinue("dead-slips")},
            "counted, not kept": [
                lambda: {"deserialization_handler": LogAndContinue()},
                lambda: {"deserialization_handler": LogAndContinue("slips-dead")},
            ],
        },
        errors=UNREAD,
    ),
    who_decides=SaysEach(
        deciders,
        f"{len(CASES)} records went in, each of the three handlers with dead letters of its own.",
        TYPICAL_DECIDERS,
    ),
    jokes_and_worse=Decides(
        recording=jokes_and_worse,
        topology=shared,
        handler="processing_handler",
        wrong={
            "a handler has to decide": [handler(lambda *_: None), handler(word=lambda *_: None)],
            "dead letters are bytes": handler(word=keep_text),
            "an exception of Spark's is its text": [by_class, handler(stop)],
            "what can be mended is kept aside": [handler(word=stop), handler(keep, stop)],
            "everything forgiven": [
                handler(otherwise=drop),
                handler(otherwise=keep),
                LogAndContinue(LETTERS),
                LogAndContinue(),
            ],
            "a dead letter for a joke": handler(keep),
            "not the record as it was": handler(word=keep_error),
        },
        signs={
            "an exception of Spark's is its text": stopped_at(lambda record: record.value["guests"] == "0"),
            "what can be mended is kept aside": stopped_at(lambda record: not record.value["guests"].isdigit()),
            "everything forgiven": went_on,
            "a dead letter for a joke": unasked_in(LETTERS),
            "not the record as it was": others_in(LETTERS),
        },
        errors={
            "the error handler returned": "a handler has to decide",
            "A dead letter is made of bytes": "dead letters are bytes",
        },
    ),
    accounts=Judges(
        examine_accounts,
        {
            "duplicates counted": accounted(once=False),
            "bytes are no text": accounted(as_text=False),
            "two kinds of dead letters": accounted(two_kinds=False),
        },
    ),
    bring_back=Lives("bring_back", bills_of_a_night, judge_bring_back, wrong=WRONG, errors=STOPPED),
)
