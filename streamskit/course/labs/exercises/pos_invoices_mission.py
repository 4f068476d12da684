"""The mission of lab 19: invoices get one more field while shops are open; readers change first, then writers."""

import threading
from collections import Counter
from itertools import islice
from typing import Any

from pyspark.sql import functions as F

from streamskit.course.datasets.invoices import invoices
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.environment.processes import wait_until
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes
from streamskit.topology import Topology

FIELDS = "InvoiceNumber string, CustomerCardNo string, TotalAmount double"
OLD, NEW = Serdes.json(FIELDS), Serdes.json(f"{FIELDS}, Discount double")
NOTE = Serdes.json("InvoiceNumber string, EarnedLoyaltyPoints double")
POINTS = 0.02
"""Points for a rupee."""
AT_ONCE = 4
SECONDS_BETWEEN_SALES = 0.2
ENOUGH = 8
"""How many invoices with a discount the tills write before an update of them is over."""

Invoice = dict[str, Any]


class Tills:
    """Tills that write invoices as long as the shops are open, a few each moment.

    Args:
        site: the site to whose topic they write.
    """

    def __init__(self, site: Site) -> None:
        self.sent: list[Invoice] = []
        self._site = site
        self._sold = (record["value"] for record in invoices(100_000))
        self._are_new = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._sell, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        software = "new" if self._are_new.is_set() else "old"
        return f"<Tills with the {software} software: {len(self.sent)} invoices>"

    def update(self) -> None:
        """Install the new software on all tills; when this returns, it is in use, and invoices have a Discount."""
        self._are_new.set()
        wait_until(lambda: self.discounted() >= ENOUGH or self._closed.is_set(), "invoices of the new tills")
        if self._site.old.state is State.RUNNING:
            self._site.old.await_processed("60 seconds")

    def discounted(self) -> int:
        """Return how many invoices with a discount were written."""
        return sum("Discount" in invoice for invoice in self.sent)

    def close(self) -> None:
        """Close the shops: no invoice comes any more."""
        self._closed.set()
        self._thread.join(30)

    def _sell(self) -> None:
        while not self._closed.wait(SECONDS_BETWEEN_SALES):
            some = [self._invoice(value) for value in islice(self._sold, AT_ONCE)]
            self._site.broker.produce(self._site.topic("invoices"), [(each["InvoiceNumber"], each) for each in some])
            self.sent += some

    def _invoice(self, value: Invoice) -> Invoice:
        invoice = {name: value[name] for name in ("InvoiceNumber", "CustomerCardNo", "TotalAmount")}
        return invoice | ({"Discount": round(value["TotalAmount"] * 0.25, 2)} if self._are_new.is_set() else {})


def points_of_invoices(site: Site) -> Topology:
    """Send for each invoice how many points it earns, by its total amount."""
    builder = StreamsBuilder()
    sold = builder.stream(site.topic("invoices"), value=OLD)
    notes = sold.map_values(
        lambda v: F.struct(v.InvoiceNumber, (v.TotalAmount * POINTS).alias("EarnedLoyaltyPoints")), name="points"
    )
    notes.to(site.topic("notifications"))
    return builder.build()


def open_shops(site: Site) -> None:
    """Let the application of the old tills run, and the tills sell."""
    site.create_topics(invoices=2, notifications=2)
    old = site.application(points_of_invoices(site))
    old.start()
    tills = Tills(site)
    site.on_close(tills.close)
    site.props |= {"old": old, "tills": tills}
    wait_until(lambda: len(tills.sent) >= AT_ONCE, "the first invoices")
    old.await_processed("60 seconds")


def judge_new_tills(site: Site, returned: KafkaStreams) -> Verdict:
    """Judge by the notifications: one for each invoice, of any till, with the right points."""
    if returned is site.old:
        return mistaken("the old program goes on")
    if not site.tills.discounted():
        return mistaken("tills never updated")
    sold = len(site.tills.sent)
    wait_until(lambda: len(site.tills.sent) >= sold + AT_ONCE, "more invoices")
    site.tills.close()
    returned.await_processed("60 seconds")
    notes = site.broker.consume(site.topic("notifications"), value=NOTE)["value"]
    return _by_notes(site.tills.sent, [(note["InvoiceNumber"], note["EarnedLoyaltyPoints"]) for note in notes])


def _by_notes(sent: list[Invoice], notes: list[tuple[str, float | None]]) -> Verdict:
    times, told = Counter(number for number, _ in notes), dict(notes)
    due = {each["InvoiceNumber"]: (each["TotalAmount"] - each.get("Discount", 0.0)) * POINTS for each in sent}
    discounted = {each["InvoiceNumber"] for each in sent if "Discount" in each}
    if missing := due.keys() - times.keys():
        return mistaken("invoices left out", count=len(missing))
    if nothing := [number for number, points in told.items() if points is None]:
        return mistaken("a discount that is not there", count=len(nothing))
    off = {number for number, points in due.items() if abs((told[number] or 0.0) - points) > 1e-6}
    if off and off <= discounted:
        return mistaken("tills first", count=len(off))
    if off:
        return wrong(f"{len(off)} invoices have the wrong points, such as {min(off)}.")
    if twice := [number for number, count in times.items() if count > 1]:
        return mistaken("started again from the beginning", count=len(twice))
    return right(
        f"{len(due)} invoices made one message each, while the shops were open; {len(discounted)} of them have a "
        "discount, and the others needed none."
    )


# ---- wrong answers ---------------------------------------------------------------------------------------------------
