"""The mission of lab 12: an application that stopped at night is brought back, and every bill is worked out once."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from streamskit.api.error_handlers import LogAndContinue
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.topology import Topology

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
        return mistaken("begun anew")
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
        return wrong(f"Worked out more than once: {', '.join(twice)}.")
    return right(
        f"{len(due)} bills were worked out once each, {len(IN_WORDS)} of them after they were mended; {len(TORN)} that "
        "nobody can read are in dead-bills, and the application went on where it had stopped."
    )


# ---- wrong answers ---------------------------------------------------------------------------------------------------

Mend = Callable[[Site, dict[str, Any]], None]


def brought_back(
    mend: Mend | None, kept: bool = True, anew: bool = False, kinds: tuple[str, ...] = ("deserialization", "processing")
) -> Callable[[Site], None]:
    """Return an answer that goes on with handlers for these failures, and then mends what is in the dead letters.

    Args:
        mend: what it does with the bills in the letters, by key.
        kept: whether dead letters are written.
        anew: whether it begins from the first bill.
        kinds: of failures that it goes on at.
    """

    def answer(site: Site) -> None:
        handler = LogAndContinue(site.topic("dead-bills")) if kept else LogAndContinue()
        streams = site.application(night_shift(site), **{f"{kind}_handler": handler for kind in kinds})
        if anew:
            streams.clean_up()
        with streams:
            streams.await_processed("60 seconds")
            letters = site.broker.consume(site.topic("dead-bills"))
            if mend:
                mend(site, dict(zip(letters["key"], letters["value"], strict=True)))
            streams.await_processed("60 seconds")

    return answer


def mended(letters: dict[str, Any]) -> dict[str, Any]:
    """Return the bills that can be read, with their guests as a number."""
    bills = {key: json.loads(value) for key, value in letters.items() if str(value).endswith("}")}
    return {key: {**bill, "guests": str(WORDS[bill["guests"]])} for key, bill in bills.items()}


def send(site: Site, letters: dict[str, Any]) -> None:
    """Send mended bills where all bills go."""
    site.broker.produce(site.topic("bills"), list(mended(letters).items()))


def send_as_they_are(site: Site, letters: dict[str, Any]) -> None:
    """Send what is in the dead letters back, unchanged."""
    site.broker.produce(site.topic("bills"), list(letters.items()))


def send_all(site: Site, letters: dict[str, Any]) -> None:
    """Send the whole night again, with mended bills."""
    site.broker.produce(site.topic("bills"), [*NIGHT.items(), *mended(letters).items()])


def write_results(site: Site, letters: dict[str, Any]) -> None:
    """Work mended bills out by hand, and write the results."""
    shares = [(key, bill["price"] / int(bill["guests"])) for key, bill in mended(letters).items()]
    site.broker.produce(site.topic("shares"), shares, value=DOUBLE)


WRONG = {
    "begun anew": brought_back(send, anew=True),
    "still down": [brought_back(None, kinds=("deserialization",)), lambda site: None],
    "left without a trace": brought_back(None, kept=False),
    "not sent again": brought_back(None),
    "sent again as it was": brought_back(send_as_they_are),
    "the whole night sent again": brought_back(send_all),
    "past the application": brought_back(write_results),
}
STOPPED = {"share": "still down"}
"""What an application says that has stopped at a step which fails."""
