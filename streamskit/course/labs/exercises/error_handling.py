"""Lab 12: which handler decides about a record that fails, what is kept of it, and how all are accounted for."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.error_handlers import DeadLetter, LogAndContinue, Response
from streamskit.course.labs.exercise import Judges, Runs, Says, Verdict, mistaken, right, topology_of, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import others_in, stopped_at, unasked_in, went_on
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, OutcomeRow, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

TABLES = {"a": "table-1", "b": "table-2"}
HANDLERS = ("deserialization_handler", "processing_handler", "production_handler")
LETTERS = "dead-bills"


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress the warnings that quote records: they would reveal to a learner what a check tests."""
    logger = logging.getLogger("streamskit")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@dataclass(frozen=True, kw_only=True)
class Decides(Runs):
    """Examines handlers: with them, a topology of the exercise has to give what the recording says.

    Args:
        topology: the topology of the exercise.
        handler: the setting whose value is the answer; empty if the answer is a function that returns settings.
    """

    topology: Callable[[StreamsBuilder], None]
    handler: str = ""

    @quietly()
    def __call__(self, answer: Any) -> Verdict:
        settings = {self.handler: answer} if self.handler else answer()
        if not isinstance(settings, dict):
            return wrong(f"It has to return a dict of settings, by their names; it returned {settings!r}.")
        if unknown := [name for name in settings if name not in HANDLERS]:
            return wrong(f"{unknown[0]!r} sets no handler; the settings are: {', '.join(HANDLERS)}.")
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
    """Return bills: good ones, jokes, some that need a look, and one that has to stop everything."""
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
    shares, letters = list[OutcomeRow](), list[OutcomeRow]()
    for number, (table, price, guests) in enumerate(bills[:-1]):
        if not guests.isdigit():
            letters.append(_letter(number, steps[number]))
        elif guests != "0":
            shares.append(OutcomeRow(number, table, price / int(guests), number * 1000))
    outputs = {"shares": tuple(shares), LETTERS: tuple(letters)}
    return Recording(steps, outputs, letters=(LETTERS,), fails=True, source="a fold in plain Python")


def _letter(number: int, step: Piped) -> OutcomeRow:
    value = step.value if "value" in step.raw else BILL.serialize(step.value)
    return OutcomeRow(number, None if step.key is None else step.key.encode(), value, step.timestamp)


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
    "a null value is not a failure": {"a null value": ("deserialization", "processing")},
}
"""The handlers wrongly said to decide about a case, by the mistake behind that."""


@quietly()
def deciders() -> dict[str, str]:
    """Run the cases, each handler with its own dead-letter topic, and return which handler decided each case."""
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
        return mistaken("bytes are not text")
    if accounts.get("cannot be read") == len(unread | failed) or accounts.get("step failed") == len(unread | failed):
        return mistaken("two kinds of dead letters")
    return Says(expected, f"{len(came_in)} bills went in; {_sum(expected)}.")(accounts)


@cache
@quietly()
def bills_that_went_through() -> tuple[list[str], list[Any], list[Any]]:
    """Return the keys that went in, and the records and dead letters that came out, as after a batch that ran twice."""
    guests = ["2", "0", "4", "two", "1", "5", "", "3", "0", "2", "many", "8", "0", "2"]
    bills: list[tuple[str, bytes]] = [(f"bill-{n}", as_bill(n, 60, each)) for n, each in enumerate(guests)]
    bills += [("bill-14", b'{"id": 14, "pr'), ("bill-15", b"<bill/>"), ("bill-16", b"{}}"), ("bill-17", b"[")]
    bills += [("bill-18", as_bill(18, 60, "0")), ("bill-19", as_bill(19, 60, "0"))]
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


def keep(context: Any, text: str) -> Response:
    """Go on, and keep the record as it was."""
    return Response.resume(DeadLetter(LETTERS, context.source_raw_key, context.source_raw_value))


# ---- 6: bring it back ------------------------------------------------------------------------------------------------


BILL = Serdes.json("id int, price double, guests string")
DOUBLE = Serdes.double()
WORDS = {"two": 2, "three": 3, "four": 4}

EVENING: dict[str, dict[str, Any]] = {f"table-{n}": {"id": n, "price": 30.0 * n, "guests": "3"} for n in range(1, 6)}
NIGHT: dict[str, dict[str, Any]] = {
    f"table-{n}": {"id": n, "price": 12.0 * n, "guests": str(n % 4 + 1)} for n in range(6, 14)
}
IN_WORDS: dict[str, dict[str, Any]] = {
    f"table-{n}": {"id": n, "price": 24.0 * n, "guests": word} for n, word in ((21, "two"), (22, "four"), (23, "three"))
}
TORN = {"table-31": b'{"id": 31, "price": 4', "table-32": b"<bill/>"}


def night_shift(site: Site) -> Topology:
    """What each guest pays of a bill."""
    builder = StreamsBuilder()
    bills = builder.stream(site.topic("bills"), value=BILL)
    shares = bills.map_values(lambda v: v.price / v.guests.cast("int"), name="share")
    shares.to(site.topic("shares"), value=DOUBLE)
    return builder.build()


def bills_of_a_night(site: Site) -> None:
    """Let the application work out the evening's bills, and put the night's into its topic, some of them poisonous."""
    site.create_topics(bills=2, shares=2, dead_bills=1)
    site.broker.produce(site.topic("bills"), list(EVENING.items()))
    with site.application(night_shift(site)) as streams:
        streams.await_processed("60 seconds")
    bills: dict[str, Any] = {**IN_WORDS, **NIGHT}
    sent = [(key, json.dumps(bill).encode()) for key, bill in bills.items()]
    site.broker.produce(site.topic("bills"), [*sent[:5], *TORN.items(), *sent[5:]])


def judge_bring_back(site: Site, returned: Any) -> Verdict:
    """Judge by the topics whether every bill was worked out once, and nothing left without a trace."""
    site.settle()
    shares = site.broker.consume(site.topic("shares"), value=DOUBLE)
    times = Counter(shares["key"])
    letters = Counter(site.broker.consume(site.topic("dead-bills"))["key"])
    bills = len(EVENING) + len(NIGHT) + len(IN_WORDS) + len(TORN)
    sent_again = len(site.broker.consume(site.topic("bills"))) - bills
    if any(times[key] > 1 for key in EVENING):
        return mistaken("started again from the beginning")
    if NIGHT.keys() - times:
        return mistaken("still down")
    if not TORN.keys() <= letters.keys() or not IN_WORDS.keys() <= letters.keys():
        return mistaken("left without a trace")
    if any(times[key] > 1 for key in NIGHT):
        return mistaken("the whole night sent again")
    if any(letters[key] > 1 for key in letters):
        return mistaken("sent again as it was")
    if missing := sorted(IN_WORDS.keys() - times):
        return mistaken("not sent again", missing=", ".join(missing))
    if sent_again < len(IN_WORDS):
        return mistaken("past the application")
    return _by_value(dict(zip(shares["key"], shares["value"], strict=True)), times)


def _by_value(found: dict[str, float], times: Counter[str]) -> Verdict:
    due = {key: bill["price"] / int(bill["guests"]) for key, bill in {**EVENING, **NIGHT}.items()}
    due |= {key: bill["price"] / WORDS[bill["guests"]] for key, bill in IN_WORDS.items()}
    for key, share in due.items():
        if abs(found[key] - share) > 1e-9:
            return wrong(f"{key} has a share of {found[key]:g} and should have {share:g}.")
    if twice := sorted(key for key in due if times[key] > 1):
        return wrong(f"These bills came out more than once: {', '.join(twice)}.")
    return right(
        f"{len(due)} bills came out once each, {len(IN_WORDS)} of them after you repaired them; {len(TORN)} unreadable "
        "ones are in dead-bills, and the application continued where it had stopped."
    )


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def repaired(letters: dict[str, Any]) -> dict[str, Any]:
    """Return the bills that can be read, with their guests as a number."""
    bills = {key: json.loads(value) for key, value in letters.items() if str(value).endswith("}")}
    return {key: {**bill, "guests": str(WORDS[bill["guests"]])} for key, bill in bills.items()}


STOPPED = {"share": "still down"}
"""What an application says when it has stopped at a step that fails."""


# ---- the lab ---------------------------------------------------------------------------------------------------------

UNREAD = {"what its serde reads": "another handler decides"}
"""What an application says when it stops at bytes that cannot be read."""

LAB = lab(
    "12-error-handling",
    go_on_without_it=Decides(
        recording=amounts,
        topology=booked,
        errors=UNREAD,
    ),
    kept_aside=Decides(
        recording=slips,
        topology=ordered,
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
        signs={
            "an exception of Spark's is its text": stopped_at(lambda record: record.value["guests"] == "0"),
            "what can be repaired is kept aside": stopped_at(lambda record: not record.value["guests"].isdigit()),
            "everything forgiven": went_on,
            "a dead letter for a joke": unasked_in(LETTERS),
            "not the record as it was": others_in(LETTERS),
        },
        errors={
            "the error handler returned": "a handler has to decide",
            "A dead letter is made of bytes": "dead letters are bytes",
            "the error handler itself raised": "a handler that fails itself",
        },
    ),
    accounts=Judges(
        examine_accounts,
    ),
    bring_back=Lives("bring_back", bills_of_a_night, judge_bring_back, errors=STOPPED),
)
