"""Invoices of a chain of household shops as their tills write them, made from a seed.

Stores, goods and customers are always the same; the seed says who buys what, where and when. Cities are real, with
their states and postal codes; people, streets and numbers are not.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from streamskit.course.datasets.arguments import checked
from streamskit.course.datasets.event_time import DAY, HOUR, NEW_YEAR, numbers

INVOICE_SCHEMA = """
    InvoiceNumber string, CreatedTime long, StoreID string, PosID string, CashierID string,
    CustomerType string, CustomerCardNo string,
    TotalAmount double, NumberOfItems int, PaymentMethod string,
    TaxableAmount double, CGST double, SGST double, CESS double, DeliveryType string,
    DeliveryAddress struct<AddressLine: string, City: string, State: string, PinCode: string, ContactNumber: string>,
    InvoiceLineItems array<struct<
        ItemCode: string, ItemDescription: string, ItemPrice: double, ItemQty: int, TotalValue: double>>
"""
"""The fields of an invoice, as `Serdes.json` takes them."""


class City(NamedTuple):
    """Where stores are and customers live."""

    name: str
    state: str
    pin_code: str


class Shop(NamedTuple):
    """One of the chain's stores; its tills and cashiers are numbered after `number`."""

    code: str
    city: City
    tills: int
    number: int


class Item(NamedTuple):
    """Something to buy; the price in paise, hundredths of a rupee, with all taxes."""

    code: str
    description: str
    price: int


class Customer(NamedTuple):
    """Somebody with a card; `kind` is PRIME or NONE, `address` where home deliveries go."""

    card: str
    kind: str
    address: dict[str, str]


PUNE, MUMBAI = City("Pune", "Maharashtra", "411001"), City("Mumbai", "Maharashtra", "400001")
JAIPUR, BENGALURU = City("Jaipur", "Rajasthan", "302001"), City("Bengaluru", "Karnataka", "560001")

SHOPS = tuple(
    Shop(code, city, tills, number)
    for number, (code, city, tills) in enumerate([
        ("STR1534", PUNE, 3), ("STR3875", PUNE, 2), ("STR2629", MUMBAI, 4), ("STR5864", MUMBAI, 3),
        ("STR7188", BENGALURU, 3), ("STR8510", BENGALURU, 2), ("STR4027", JAIPUR, 2), ("STR6793", JAIPUR, 1),
    ])
)  # fmt: skip

ITEMS = (
    Item("308", "Paper napkins, 100", 6_500), Item("419", "Tea glass", 8_900), Item("258", "Dish towel", 14_900),
    Item("283", "Steel tumbler", 17_500), Item("334", "Cereal bowl", 22_000), Item("347", "Dinner plate", 28_500),
    Item("372", "Scented candle", 34_900), Item("391", "Photo frame", 45_000), Item("403", "Cushion cover", 59_900),
    Item("458", "Wine glasses, 4", 64_450), Item("476", "Desk lamp", 99_900), Item("523", "Pressure cooker", 115_300),
    Item("558", "Wall clock", 129_900), Item("582", "Double bed sheet", 149_900), Item("601", "Curtains", 189_900),
    Item("647", "Wool rug", 349_900),
)  # fmt: skip
"""What the shops sell; the first are sold most."""

STREETS = ("Lotus Lane", "Station Road", "Mango Street", "Lake View", "Temple Road", "Garden Row", "Hill Street")

BUSY = {9: 2, 10: 4, 11: 6, 12: 8, 13: 7, 14: 4, 15: 4, 16: 5, 17: 8, 18: 11, 19: 10, 20: 5}
"""How many customers come in each hour of the day, relative to the other hours: some at noon, most after work."""


@checked
def invoices(
    count: int | None = None, seed: int = 7, per_day: int = 200, start: int = NEW_YEAR
) -> Iterator[dict[str, Any]]:
    """Yield invoices in the order of their time, ready for `broker.produce`; the key is the store.

    Prices hold all taxes: the lines of an invoice add up to its TotalAmount, and so do TaxableAmount, CGST, SGST and
    CESS. Only a home delivery has a DeliveryAddress. Customers are PRIME or NONE, all with a card; they buy mostly in
    the stores of their own city. NumberOfItems counts the lines.

    Args:
        count: how many; a smaller count gives the first of the same invoices. Without it they never end.
        seed: another seed gives other purchases of the same customers in the same stores.
        per_day: how many invoices all stores together write in a day, between nine and nine o'clock.
        start: the midnight before the first, in milliseconds since 1970.

    >>> next(invoices(1))["value"]["InvoiceLineItems"][0]["ItemDescription"]
    'Cereal bowl'
    """
    chance = random.Random(seed)
    customers = _customers(400)
    times: list[int] = []
    for number in numbers(count):
        day, place = divmod(number, per_day)
        if place == 0:
            hours = chance.choices([*BUSY], [*BUSY.values()], k=per_day)
            times = sorted(start + day * DAY + hour * HOUR + chance.randrange(HOUR) for hour in hours)
        # Some come every day, most of them rarely.
        customer = chance.choices(customers, [1 / (rank + 40) for rank in range(len(customers))])[0]
        value = _invoice(chance, str(51_402_977 + number), times[place], customer)
        yield {"key": value["StoreID"], "value": value, "timestamp": times[place]}


def _invoice(chance: random.Random, number: str, time: int, customer: Customer) -> dict[str, Any]:
    nearby = [shop for shop in SHOPS if shop.city.name == customer.address["City"]]
    shop = _any_shop(chance, nearby if chance.random() < 0.8 else SHOPS)
    till, is_late_shift = chance.randrange(shop.tills), time % DAY >= 15 * HOUR
    is_delivered = chance.random() < (0.5 if customer.kind == "PRIME" else 0.2)
    lines = _lines(chance)
    amounts = _amounts(sum(item.price * quantity for item, quantity in lines))
    return {
        "InvoiceNumber": number,
        "CreatedTime": time,
        "StoreID": shop.code,
        "PosID": f"POS{101 + 10 * shop.number + till}",
        "CashierID": f"OAS{101 + 10 * shop.number + 2 * till + is_late_shift}",
        "CustomerType": customer.kind,
        "CustomerCardNo": customer.card,
        "TotalAmount": amounts["TotalAmount"],
        "NumberOfItems": len(lines),
        "PaymentMethod": chance.choice(("CARD", "UPI") if is_delivered else ("CASH", "CARD", "UPI")),
        **amounts,
        "DeliveryType": "HOME-DELIVERY" if is_delivered else "TAKEAWAY",
        **({"DeliveryAddress": dict(customer.address)} if is_delivered else {}),
        "InvoiceLineItems": [_line(item, quantity) for item, quantity in lines],
    }


def _any_shop(chance: random.Random, shops: Sequence[Shop]) -> Shop:
    """Return one of some shops; those with more tills have more customers."""
    return chance.choices(shops, [shop.tills for shop in shops])[0]


def _lines(chance: random.Random) -> list[tuple[Item, int]]:
    """Return what is bought, each thing with its quantity: several of what is cheap, one of what is expensive."""
    often = [1 / (place + 3) for place in range(len(ITEMS))]
    basket = dict.fromkeys(chance.choices(ITEMS, often, k=chance.choice((1, 1, 2, 2, 3, 3, 4, 6))))
    return [(item, chance.randint(1, 4) if item.price < 50_000 else 1) for item in basket]


def _line(item: Item, quantity: int) -> dict[str, Any]:
    return {
        "ItemCode": item.code,
        "ItemDescription": item.description,
        "ItemPrice": item.price / 100,
        "ItemQty": quantity,
        "TotalValue": item.price * quantity / 100,
    }


def _amounts(total: int) -> dict[str, float]:
    """Take the taxes out of a sum of paise: of each 105.125 that are paid 2.5 are CGST, 2.5 SGST and 0.125 CESS."""
    half, cess = (_rounded(total * part, 105_125) for part in (2_500, 125))
    return {
        "TotalAmount": total / 100,
        "TaxableAmount": (total - 2 * half - cess) / 100,
        "CGST": half / 100,
        "SGST": half / 100,
        "CESS": cess / 100,
    }


def _rounded(number: int, divisor: int) -> int:
    return (2 * number + divisor) // (2 * divisor)


def _customers(count: int) -> list[Customer]:
    """Return the customers, the same ones each time, near shops and so in the cities that have many tills."""
    chance = random.Random(2026)
    customers = []
    for number in range(count):
        city = _any_shop(chance, SHOPS).city
        address = {
            "AddressLine": f"{chance.randint(1, 90)} {chance.choice(STREETS)}",
            "City": city.name,
            "State": city.state,
            "PinCode": city.pin_code,
            "ContactNumber": f"555-{number + 100:04}",
        }
        # A card's first digits count up, so that no two customers have the same number.
        card = f"{4_000 + 7 * number}{chance.randrange(1_000_000):06}"
        customers.append(Customer(card, chance.choices(("PRIME", "NONE"), (45, 55))[0], address))
    return customers
