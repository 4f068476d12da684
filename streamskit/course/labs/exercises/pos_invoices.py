"""The exercises of lab 19: one stream of invoices, and readers that may not all see the same fields."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.processor import FixedKeyProcessor, FixedKeyRecord, ProcessorContext
from streamskit.course.datasets.invoices import invoices
from streamskit.course.labs.asking import Ask, Asks
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs, Verdict, mistaken, topology_of
from streamskit.course.labs.exercises.pos_invoices_mission import judge_new_tills, open_shops
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, WrongLoop, looped, piped
from streamskit.course.labs.misconceptions import one_at_most
from streamskit.course.labs.missions import A_PROCESSOR, ID_IS_TAKEN, Lives
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.course.labs.several_tasks import SPLIT
from streamskit.dsl.builder import StreamsBuilder
from streamskit.kafka.topic_partition import partition_for
from streamskit.serdes import Serdes
from streamskit.state.stores import Stores
from streamskit.topology.nodes import Node, Source, of_kind

FIELDS = ("InvoiceNumber", "CreatedTime", "StoreID", "CustomerType", "CustomerCardNo", "TotalAmount", "DeliveryType")
ADDRESS = ("AddressLine", "City", "PinCode", "ContactNumber")
ITEM = ("ItemCode", "ItemPrice", "ItemQty")

Invoice = dict[str, Any]
Answer = Callable[[StreamsBuilder], None]

INVOICE = Serdes.json(
    "InvoiceNumber string, CreatedTime long, StoreID string, CustomerType string, CustomerCardNo string, "
    "TotalAmount double, DeliveryType string, "
    "DeliveryAddress struct<AddressLine: string, City: string, PinCode: string, ContactNumber: string>, "
    "InvoiceLineItems array<struct<ItemCode: string, ItemPrice: double, ItemQty: long>>"
)


def some_invoices(count: int, seed: int) -> list[Piped]:
    """Return invoices of the generator with the fields of this lab."""
    return piped("pos-invoices", (record | {"value": slim(record["value"])} for record in invoices(count, seed)))


def slim(invoice: Invoice) -> Invoice:
    """Return the fields of an invoice that this lab reads."""
    kept = {name: invoice[name] for name in FIELDS}
    if "DeliveryAddress" in invoice:
        kept["DeliveryAddress"] = {name: invoice["DeliveryAddress"][name] for name in ADDRESS}
    return kept | {"InvoiceLineItems": [{name: line[name] for name in ITEM} for line in invoice["InvoiceLineItems"]]}


# ---- 1: two readers of one stream ------------------------------------------------------------------------------------


def _drivers_and_messages() -> Recording:
    topics = {"pos": "pos-invoices", "shipment": "pos-shipment", "loyalty": "pos-loyalty"}
    recording = Recording.of("examples-pos-fanout", Costume(topics))
    sent = tuple(row._replace(value={**row.value, "CustomerCardNo": None}) for row in recording.outputs["pos-shipment"])
    return replace(recording, outputs={"pos-loyalty": recording.outputs["pos-loyalty"], "pos-shipment": sent})


def _is_delivered(invoice: Invoice) -> bool:
    return invoice["DeliveryType"].upper() == "HOME-DELIVERY"


def _is_prime(invoice: Invoice) -> bool:
    return invoice["CustomerType"].upper() == "PRIME"


def in_one_branch_only(outcome: Outcome) -> bool:
    """What should be in both topics is in one of them."""
    both = outcome.at(lambda record: _is_delivered(record.value) and _is_prime(record.value))
    due = [moment for moment in both if moment.expected]
    return any(moment.actual for moment in due) and any(moment.missing and not moment.actual for moment in due)


# ---- 2: nobody can be found in the lines -----------------------------------------------------------------------------


def _lines(
    counts: Callable[[Invoice], bool] = lambda invoice: True,
    worth: Callable[[Invoice], float] = lambda line: line["ItemPrice"] * line["ItemQty"],
    secret: str = "",
    apart: bool = True,
) -> Recording:
    """Return the lines of invoices.

    Args:
        counts: whether an invoice is one of those whose lines come.
        worth: returns the value of a line.
        secret: a confidential field of the invoice that is also sent.
        apart: whether every line is sent, or only the first.
    """

    def loop(record: Piped) -> Iterator[Due]:
        invoice = record.value
        place = invoice.get("DeliveryAddress", {})
        for line in invoice["InvoiceLineItems"][: None if apart else 1] if counts(invoice) else ():
            value = {"InvoiceNumber": invoice["InvoiceNumber"], "StoreID": invoice["StoreID"]}
            value |= {"City": place.get("City"), **{name: line[name] for name in ("ItemCode", "ItemQty")}}
            value |= {"TotalValue": worth(line)} | ({secret: invoice[secret]} if secret else {})
            yield Due("pos-trends", record.key, value, record.timestamp)

    return looped(some_invoices(8, seed=19), ["pos-trends"], loop)


def _secrets(outcome: Outcome) -> set[str]:
    values = [record.value for record in outcome.recording.records]
    addresses = [value["DeliveryAddress"] for value in values if "DeliveryAddress" in value]
    cards = {value["CustomerCardNo"] for value in values}
    return cards | {address[name] for address in addresses for name in ("AddressLine", "ContactNumber")}


def customers_can_be_found(outcome: Outcome) -> bool:
    """A card, a street or a telephone number is in what came out."""
    text = " ".join(repr(row.value) for row in outcome.actual)
    return any(secret in text for secret in _secrets(outcome))


# ---- 3: points to spend ----------------------------------------------------------------------------------------------

CHANGES = (
    "A STR1 PRIME 5000", "A STR2 150", "A STR2 prime 5000", "A STR3 150", "B STR1 NONE 9000", "B STR1 10",
    "C STR3 PRIME 1000", "C STR1 20", "A STR1 60", "A STR2 50", "A STR3 PRIME 2500", "A STR3 50",
)  # fmt: skip
"""What customers buy, if they are prime or not, and how many points they want to spend."""


class _Points(Runs):
    """Examines the results, and then, as a driver has one partition, whether a customer's records would meet."""

    def __call__(self, answer: Any) -> Verdict:
        verdict = super().__call__(answer)
        with_stores = [nodes for nodes in _sub_topologies(answer, verdict) if any(node.stores for node in nodes)]
        sources = [source for nodes in with_stores for source in of_kind(Source, nodes)]
        if any(not source.internal for source in sources):
            return mistaken("no repartition before the store")
        topics = {topic for source in sources for topic in source.topics}
        counts = {sink.partitions for sink in topology_of(answer).sinks if sink.topic in topics} if topics else set()
        if len(topics) > 1 and (None in counts or len(counts) > 1):
            return mistaken("two repartition topics")
        return verdict


def _sub_topologies(answer: Any, verdict: Verdict) -> list[list[Node]]:
    is_split = verdict.misconception is not None and verdict.misconception.name == SPLIT
    return topology_of(answer).sub_topologies() if verdict.passed or is_split else []


def _vouchers(
    key: Callable[[Piped], str] = lambda record: str(record.value["CustomerCardNo"]),
    is_prime: Callable[[Invoice], bool] = lambda invoice: _is_prime(invoice),
    least: float = 0.0,
    takes_off: bool = True,
    refused_too: bool = False,
) -> Recording:
    """Return the vouchers that are due.

    Args:
        key: returns the key by which points are summed.
        is_prime: whether an invoice earns points.
        least: how many points have to be left.
        takes_off: whether points that are spent are gone.
        refused_too: whether points that got no voucher are gone, too.
    """
    held: dict[str, float] = {}

    def loop(record: Piped) -> Iterator[Due]:
        value, owner = record.value, key(record)
        had = held.get(owner, 0.0)
        if record.topic == "pos-invoices":
            held[owner] = had + (value["TotalAmount"] * 0.02 if is_prime(value) else 0.0)
            return
        left = had - value["Points"]
        if left >= least:
            yield Due("pos-vouchers", owner, {"Points": value["Points"], "Left": left}, record.timestamp)
        if takes_off and (left >= least or refused_too):
            held[owner] = left

    return looped([_change(number, *each.split()) for number, each in enumerate(CHANGES)], ["pos-vouchers"], loop)


def _change(number: int, card: str, shop: str, *what: str) -> Piped:
    topic, value = "pos-redemptions", {"CustomerCardNo": f"card-{card}"}
    if len(what) == 1:
        return Piped(topic, shop, value | {"Points": float(what[0])}, number * 1_000)
    bought = {"InvoiceNumber": str(number), "StoreID": shop, "CustomerType": what[0], "TotalAmount": float(what[1])}
    return Piped("pos-invoices", shop, value | bought, number * 1_000)


class _Account(FixedKeyProcessor):
    """Adds up points, and forwards what is left of them."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.points = context.state_store("customer-points")

    def process(self, record: FixedKeyRecord) -> None:
        change = record.value["Points"]
        left = (self.points.get(record.key) or 0.0) + change
        if left >= 0:
            self.points.put(record.key, left)
            if change < 0:
                self.context.forward(record.with_value({"Points": -change, "Left": left}))


def spending(earned_repartitioned: bool, spent_repartitioned: bool = False) -> Answer:
    """Return the answer that repartitions what is earned, or what is spent, or both apart, or neither."""

    def points(number: Callable[[Column], Column]) -> Callable[[Column], Column]:
        return lambda v: F.struct(v.CustomerCardNo, number(v).alias("Points"))

    def answer(builder: StreamsBuilder) -> None:
        prime = builder.stream("pos-invoices", value=INVOICE).filter(lambda v: F.upper(v.CustomerType) == "PRIME")
        earned = prime.map_values(points(lambda v: v.TotalAmount * 0.02)).select_key(lambda v: v.CustomerCardNo)
        spent = builder.stream("pos-redemptions", value=Serdes.json("CustomerCardNo string, Points double"))
        taken = spent.map_values(points(lambda v: -v.Points)).select_key(lambda v: v.CustomerCardNo)
        changes = (earned.repartition() if earned_repartitioned else earned).merge(
            taken.repartition() if spent_repartitioned else taken
        )
        store = Stores.persistent_key_value_store("customer-points", Serdes.string(), Serdes.double())
        voucher = Serdes.json("Points double, Left double")
        changes.process_values(_Account, stores=[store], value=voucher).to("pos-vouchers")

    return answer


# ---- 4: who would have several totals --------------------------------------------------------------------------------


def _ask_in_several_tasks() -> list[Ask]:
    asks = []
    for count, seed, partitions in ((120, 23, 3), (300, 29, 4), (60, 31, 1)):
        records = [_of_its_till(record) for record in some_invoices(count, seed)]
        partition = _partition_of(partitions)
        expected = _split(records, _place_by(partition))
        told = f"split_customers(records, partition_of) for {count} invoices in {partitions} partitions"
        asks.append(Ask(told, (records, partition), expected))
    return asks


def _of_its_till(record: Piped) -> dict[str, Any]:
    """Return an invoice as its till writes it: those of every other shop have no capitals."""
    has_capitals = int(record.key[-1]) % 2 == 0
    kind = record.value["CustomerType"]
    return record._asdict() | {"value": record.value | {"CustomerType": kind if has_capitals else kind.lower()}}


def _place_by(partition_of: Callable[[str], int]) -> Callable[[dict[str, Any]], int]:
    return lambda record: partition_of(record["key"])


def _partition_of(partitions: int) -> Callable[[str], int]:
    return lambda key: partition_for(key.encode(), partitions)


def _split(
    records: Sequence[dict[str, Any]],
    place: Callable[[dict[str, Any]], Any],
    is_prime: Callable[[Invoice], bool] = _is_prime,
    least: int = 2,
) -> set[str]:
    places: dict[str, set[Any]] = defaultdict(set)
    for record in records:
        if is_prime(record["value"]):
            places[record["value"]["CustomerCardNo"]].add(place(record))
    return {card for card, some in places.items() if len(some) >= least}


# ---- 5: what is sold best --------------------------------------------------------------------------------------------


def _sales(
    pieces: Callable[[Invoice], float] = lambda line: line["ItemQty"],
    worth: Callable[[Invoice], float] = lambda line: line["ItemPrice"] * line["ItemQty"],
    by_shop: bool = False,
) -> Recording:
    sales: dict[str, dict[str, Any]] = {}

    def loop(record: Piped) -> Iterable[Due]:
        for line in record.value["InvoiceLineItems"]:
            key = record.key if by_shop else line["ItemCode"]
            sold = sales.setdefault(key, {"invoices": 0, "sold": 0, "worth": 0.0})
            sold["invoices"] += 1
            sold["sold"] += pieces(line)
            sold["worth"] += worth(line)
        return ()

    return looped(some_invoices(10, seed=37), [], loop, {"sales-by-item": sales})


LAB = lab(
    "19-pos-invoices",
    drivers_and_messages=Runs(_drivers_and_messages, signs={"a record in one branch only": in_one_branch_only}),
    lines_without_names=Runs(
        _lines,
        wrong={
            "a customer can be found": WrongLoop(lambda: _lines(secret="CustomerCardNo")),
            "invoice not taken apart": WrongLoop(lambda: _lines(apart=False)),
            "lines of deliveries only": WrongLoop(lambda: _lines(_is_delivered)),
            "price taken for worth": WrongLoop(lambda: _lines(worth=lambda line: line["ItemPrice"])),
        },
        signs={"a customer can be found": customers_can_be_found, "invoice not taken apart": one_at_most},
    ),
    points_to_spend=_Points(
        _vouchers,
        wrong={
            "points by shop": WrongLoop(lambda: _vouchers(key=lambda record: str(record.key))),
            "points for those who are not prime": WrongLoop(lambda: _vouchers(is_prime=lambda invoice: True)),
            "capital letters taken for granted": WrongLoop(
                lambda: _vouchers(is_prime=lambda invoice: invoice["CustomerType"] == "PRIME")
            ),
            "more spent than there is": WrongLoop(lambda: _vouchers(least=float("-inf"))),
            "the last points kept back": WrongLoop(lambda: _vouchers(least=0.01)),
            "points spent twice": WrongLoop(lambda: _vouchers(takes_off=False)),
            "a refusal that costs points": WrongLoop(lambda: _vouchers(refused_too=True)),
            "no repartition before the store": [spending(False), spending(True)],
            "two repartition topics": spending(True, True),
        },
        partitions=3,
    ),
    split_customers=Asks(
        _ask_in_several_tasks,
        "with 60 to 300 invoices in one to four partitions.",
        wrong={
            "the new key taken for the place": lambda records, partition_of: set(),
            "shops taken for partitions": [
                lambda records, partition_of: _split(records, lambda record: record["key"]),
                lambda records, partition_of: _split(records, lambda record: record["value"]["StoreID"]),
            ],
            "customers who get no points": lambda records, partition_of: _split(
                records, _place_by(partition_of), lambda invoice: True
            ),
            "capital letters taken for granted": lambda records, partition_of: _split(
                records, _place_by(partition_of), lambda invoice: invoice["CustomerType"] == "PRIME"
            ),
            "customers of one task": lambda records, partition_of: _split(
                records, lambda record: partition_of(record["key"]), least=1
            ),
        },
    ),
    sales_by_item=Runs(
        _sales,
        wrong={
            "sales by shop": WrongLoop(lambda: _sales(by_shop=True)),
            "lines counted in place of pieces": WrongLoop(lambda: _sales(pieces=lambda line: 1)),
            "prices added in place of worth": WrongLoop(lambda: _sales(worth=lambda line: line["ItemPrice"])),
        },
        partitions=3,
    ),
    new_tills=Lives(
        "new_tills",
        open_shops,
        judge_new_tills,
        returns_application=True,
        errors={ID_IS_TAKEN: "two of one name", A_PROCESSOR: "a processor in its place"},
    ),
)
