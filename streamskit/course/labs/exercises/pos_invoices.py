"""The exercises of lab 19: one stream of invoices, and readers who may not all know the same."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from streamskit.course.datasets.invoices import invoices
from streamskit.course.labs.asking import Ask, Asks, gives
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Verdict, topology_of, wrong
from streamskit.course.labs.loops import Due, looped, piped
from streamskit.course.labs.misconceptions import Misconception
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.kafka.topic_partition import partition_for

FIELDS = ("InvoiceNumber", "CreatedTime", "StoreID", "CustomerType", "CustomerCardNo", "TotalAmount", "DeliveryType")
ADDRESS = ("AddressLine", "City", "PinCode", "ContactNumber")
ITEM = ("ItemCode", "ItemPrice", "ItemQty")

Invoice = dict[str, Any]


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
    kept = {name: rows for name, rows in recording.outputs.items() if name != "trends"}
    return replace(recording, outputs=kept)


def _missing_of(outcome: Outcome, topic: str, where: Callable[[Invoice], bool]) -> bool:
    """Some record of a topic is missing, all of them after invoices of one kind, and nothing else is wrong."""
    moments = [moment for moment in outcome.differing if moment.topic == topic]
    records = [outcome.piped(moment) for moment in moments]
    others = len(outcome.differing) > len(moments) or any(moment.extra for moment in moments)
    return bool(records) and not others and all(record is not None and where(record.value) for record in records)


def _is_delivered(invoice: Invoice) -> bool:
    return invoice["DeliveryType"].upper() == "HOME-DELIVERY"


def _is_prime(invoice: Invoice) -> bool:
    return invoice["CustomerType"].upper() == "PRIME"


def takeaways_shipped(outcome: Outcome) -> bool:
    """An invoice without a delivery went to the drivers."""
    takeaways = outcome.at(lambda record: not _is_delivered(record.value))
    return any(moment.extra for moment in takeaways if moment.topic == "pos-shipment")


def in_one_branch_only(outcome: Outcome) -> bool:
    """What should be in both topics is in one of them."""
    both = outcome.at(lambda record: _is_delivered(record.value) and _is_prime(record.value))
    due = [moment for moment in both if moment.expected]
    return any(moment.actual for moment in due) and any(moment.missing and not moment.actual for moment in due)


# ---- 2: nobody can be found in the lines -----------------------------------------------------------------------------


def _lines() -> Recording:
    def loop(record: Piped) -> Iterator[Due]:
        invoice = record.value
        place = invoice.get("DeliveryAddress", {})
        for line in invoice["InvoiceLineItems"]:
            sold = {name: line[name] for name in ("ItemCode", "ItemQty")}
            worth = {"TotalValue": line["ItemPrice"] * line["ItemQty"]}
            of_invoice = {"InvoiceNumber": invoice["InvoiceNumber"], "StoreID": invoice["StoreID"]}
            yield Due(
                "pos-trends", record.key, {**of_invoice, "City": place.get("City"), **sold, **worth}, record.timestamp
            )

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


def not_taken_apart(outcome: Outcome) -> bool:
    """One record came of each invoice, however many lines it has."""
    several = any(len(moment.expected) > 1 for moment in outcome.moments)
    return several and bool(outcome.actual) and all(len(moment.actual) <= 1 for moment in outcome.moments)


def only_of_deliveries(outcome: Outcome) -> bool:
    """The lines of what was taken away in the shop are missing, and no others."""
    return _missing_of(outcome, "pos-trends", lambda invoice: not _is_delivered(invoice))


def price_of_one(outcome: Outcome) -> bool:
    """The worth of a line is the price of one piece."""
    prices = {
        line["ItemCode"]: line["ItemPrice"]
        for record in outcome.recording.records
        for line in record.value["InvoiceLineItems"]
    }
    rows = [row.value for row in outcome.actual if isinstance(row.value, dict) and "TotalValue" in row.value]
    return bool(rows) and all(row["TotalValue"] == prices.get(row.get("ItemCode")) for row in rows)


# ---- 3: points -------------------------------------------------------------------------------------------------------

_POINTS = Runs(
    lambda: Recording.of(
        "processor-pos-rewards",
        Costume({"pos": "pos-invoices", "notifications": "pos-notifications"}),
        ["customer-rewards"],
    ),
    (
        Misconception(
            "points by shop",
            "The key of the notifications is the shop, and so is that of the points. A processor works with the key "
            "that a record has: select_key has to make it the customer's card before.",
            lambda outcome: any(str(row.key).startswith("STR") for row in outcome.actual),
        ),
        Misconception(
            "points for those who are not prime",
            "A customer without PRIME got points. Filter before you count.",
            lambda outcome: any(moment.extra for moment in outcome.at(lambda record: not _is_prime(record.value))),
        ),
        Misconception(
            "capital letters taken for granted",
            "Only the invoice on which the till wrote prime is missing. Tills write it in capitals or not; F.upper "
            "makes them alike.",
            lambda outcome: _missing_of(
                outcome, "pos-notifications", lambda invoice: invoice["CustomerType"] != "PRIME" and _is_prime(invoice)
            ),
        ),
        Misconception(
            "total not kept",
            "The total is never more than the points of one invoice. What is to be known at the next invoice has to "
            "be put into the store, and read from there.",
            lambda outcome: (
                bool(outcome.actual)
                and all(
                    isinstance(row.value, dict)
                    and row.value.get("TotalLoyaltyPoints") == row.value.get("EarnedLoyaltyPoints")
                    for row in outcome.actual
                )
            ),
        ),
    ),
)


def _examine_points(answer: Any) -> Verdict:
    """Examine the results, and then what a driver with one partition cannot show: whether a customer's records meet."""
    verdict = _POINTS(answer)
    if verdict.passed and len(topology_of(answer).sub_topologies()) == 1:
        return wrong(
            "All results are right, in a driver whose topics have one partition. With more of them they are not: "
            "select_key writes another key on a record and leaves it in its partition, so that a customer who buys in "
            "several shops has points in several tasks. repartition(...) brings a customer's records together.",
            "no repartition before the store",
        )
    return verdict


# ---- 4: who would have several totals --------------------------------------------------------------------------------


def _ask_in_several_tasks() -> list[Ask]:
    asks = []
    for count, seed, partitions in ((120, 23, 3), (300, 29, 4), (60, 31, 1)):
        records = [record._asdict() for record in some_invoices(count, seed)]
        partition = _partition_of(partitions)
        expected = _split(records, _place_by(partition))
        told = f"split_customers(records, partition_of) for {count} invoices in {partitions} partitions"
        asks.append(Ask(told, (records, partition), expected))
    return asks


def _place_by(partition_of: Callable[[str], int]) -> Callable[[dict[str, Any]], int]:
    return lambda record: partition_of(record["key"])


def _partition_of(partitions: int) -> Callable[[str], int]:
    return lambda key: partition_for(key.encode(), partitions)


def _split(
    records: Sequence[dict[str, Any]], place: Callable[[dict[str, Any]], Any], prime: bool = True, least: int = 2
) -> set[str]:
    places: dict[str, set[Any]] = defaultdict(set)
    for record in records:
        if _is_prime(record["value"]) or not prime:
            places[record["value"]["CustomerCardNo"]].add(place(record))
    return {card for card, some in places.items() if len(some) >= least}


# ---- 5: what is sold best --------------------------------------------------------------------------------------------


def _sales() -> Recording:
    sales: dict[str, dict[str, Any]] = {}

    def loop(record: Piped) -> Iterable[Due]:
        for line in record.value["InvoiceLineItems"]:
            sold = sales.setdefault(line["ItemCode"], {"invoices": 0, "sold": 0, "worth": 0.0})
            sold["invoices"] += 1
            sold["sold"] += line["ItemQty"]
            sold["worth"] += line["ItemPrice"] * line["ItemQty"]
        return ()

    return looped(some_invoices(10, seed=37), [], loop, {"sales-by-item": sales})


def _sales_are(**other: Callable[[list[Invoice]], float]) -> Callable[[Outcome], bool]:
    """Recognise sales of which some fields are made in another way from the lines of an item."""

    def sign(outcome: Outcome) -> bool:
        lines: dict[str, list[Invoice]] = defaultdict(list)
        for record in outcome.recording.records:
            for line in record.value["InvoiceLineItems"]:
                lines[line["ItemCode"]].append(line)
        rows = [row for store in outcome.stores for row in store.actual if row.key in lines]
        return bool(rows) and all(
            isinstance(row.value, dict)
            and all(row.value.get(name) == made(lines[row.key]) for name, made in other.items())
            for row in rows
        )

    return sign


def by_shop(outcome: Outcome) -> bool:
    """The rows of the store are those of shops."""
    return any(str(row.key).startswith("STR") for store in outcome.stores for row in store.actual)


LAB = Lab(
    "19-pos-invoices",
    "Point of sale",
    (
        Exercise(
            "drivers_and_messages",
            "Send home deliveries to the drivers, and messages about their points to prime customers.",
            Runs(
                _drivers_and_messages,
                (
                    Misconception(
                        "a home delivery missed",
                        "An invoice is missing on which the till wrote Home-Delivery, and whose customer is not prime. "
                        "Tills write in capitals or not, F.upper makes them alike; and who is prime does not matter to "
                        "the drivers.",
                        lambda outcome: _missing_of(
                            outcome,
                            "pos-shipment",
                            lambda invoice: invoice["DeliveryType"] == "Home-Delivery",
                        ),
                    ),
                    Misconception(
                        "takeaways sent to the drivers",
                        "The drivers got an invoice on which nothing is to be delivered.",
                        takeaways_shipped,
                    ),
                    Misconception(
                        "a record in one branch only",
                        "An invoice that is delivered to a prime customer went to one topic and not to the other. "
                        "split() gives a record to the first branch that takes it; two steps after the same stream "
                        "both get it.",
                        in_one_branch_only,
                    ),
                ),
            ),
            (
                "The stream pos can be used twice. What do the drivers want to know of an invoice?",
                "pos.filter(...) keeps the invoices for which a Column is true, and to(...) sends them on unchanged.",
                'pos.filter(lambda v: F.upper(v.DeliveryType) == "HOME-DELIVERY").to("pos-shipment")',
            ),
        ),
        Exercise(
            "lines_without_names",
            "Make a record of each line of an invoice, in which nobody can be found.",
            Runs(
                _lines,
                (
                    Misconception(
                        "a customer can be found",
                        "A card, a street or a telephone number stands in the topic, where all who may read it will "
                        "read it for as long as it is kept. The task names the fields; the others stay behind.",
                        customers_can_be_found,
                    ),
                    Misconception(
                        "invoice not taken apart",
                        "One record came of each invoice, however many lines it has. map_values makes one value of a "
                        "value; flat_map_values makes a record of each element of an array.",
                        not_taken_apart,
                    ),
                    Misconception(
                        "lines of deliveries only",
                        "The lines of takeaways are missing. They have no address, and so a null for the city.",
                        only_of_deliveries,
                    ),
                    Misconception(
                        "price taken for worth",
                        "TotalValue is the price of one piece. A line is worth its price times its quantity.",
                        price_of_one,
                    ),
                ),
            ),
            (
                "flat_map_values wants a function that makes an array: here one struct for each line.",
                "F.transform(v.InvoiceLineItems, lambda item: F.struct(...)) makes an array of structs; the function "
                "sees item and v. A field that is computed gets its name with .alias(...).",
                "F.struct(v.InvoiceNumber, v.StoreID, v.DeliveryAddress.City, item.ItemCode, item.ItemQty, "
                '(item.ItemPrice * item.ItemQty).alias("TotalValue"))',
            ),
        ),
        Exercise(
            "points_of_a_customer",
            "Keep each prime customer's points in a store, and tell them with each invoice.",
            _examine_points,
            (
                "A processor sees one invoice after the other. Under which key should it see them, and where are they "
                "brought together?",
                "filter, select_key(lambda v: v.CustomerCardNo), repartition(...), process_values(a class, "
                "stores=[...], value=...). In process: read the store, add, put, forward.",
                "total = (self.points.get(record.key) or 0.0) + earned; self.points.put(record.key, total); "
                "self.context.forward(record.with_value({...}))",
            ),
        ),
        Exercise(
            "split_customers",
            "Find the prime customers who would have points in several tasks without a repartition.",
            Asks(
                _ask_in_several_tasks,
                "with 60 to 300 invoices in one to four partitions.",
                (
                    Misconception(
                        "the new key taken for the place",
                        "You look where the customer's card would lie, and each card lies in one place. The record was "
                        "written by the till, under its shop: it is in the shop's partition, whatever key it has now.",
                        gives(lambda records, partition_of: set()),
                    ),
                    Misconception(
                        "shops taken for partitions",
                        "You count customers of several shops. Two shops may share a partition, and then their "
                        "invoices meet in one task.",
                        gives(
                            lambda records, partition_of: _split(records, lambda record: record["key"]),
                            lambda records, partition_of: _split(records, lambda record: record["value"]["StoreID"]),
                        ),
                    ),
                    Misconception(
                        "customers who get no points",
                        "Customers are in it who are not prime. The filter stands before the store.",
                        gives(
                            lambda records, partition_of: _split(
                                records, lambda record: partition_of(record["key"]), prime=False
                            )
                        ),
                    ),
                    Misconception(
                        "customers of one task",
                        "All prime customers are in it. Those whose invoices lie in one partition have one total, and "
                        "a right one.",
                        gives(
                            lambda records, partition_of: _split(
                                records, lambda record: partition_of(record["key"]), least=1
                            )
                        ),
                    ),
                ),
            ),
            (
                "Which key did the record have when it was written, and where does that put it?",
                'For each prime card, collect partition_of(record["key"]) in a set.',
                "Return the cards whose set has more than one element.",
            ),
        ),
        Exercise(
            "sales_by_item",
            "Keep for each item on how many invoices it was, how often it was sold, and for how much.",
            Runs(
                _sales,
                (
                    Misconception(
                        "sales by shop",
                        "The rows of the store are those of shops. The lines have to be grouped by the item, which is "
                        "in their value: group_by(...).",
                        by_shop,
                    ),
                    Misconception(
                        "lines counted in place of pieces",
                        "sold is the number of lines. A line may be about several pieces: sum up ItemQty.",
                        _sales_are(sold=len),
                    ),
                    Misconception(
                        "prices added in place of worth",
                        "worth is the sum of the prices. A line is worth its price times its quantity.",
                        _sales_are(worth=lambda lines: sum(line["ItemPrice"] for line in lines)),
                    ),
                ),
            ),
            (
                "Three steps: lines, then the lines of one item together, then what is kept of them.",
                "flat_map_values as in exercise 2, group_by(lambda v: v.ItemCode), aggregate(a Column function, "
                '"sales-by-item").',
                'lambda v: F.struct(F.count("*").alias("invoices"), F.sum(v.ItemQty).alias("sold"), '
                'F.sum(v.ItemPrice * v.ItemQty).alias("worth"))',
            ),
        ),
    ),
)
