"""What holds of every invoice that the generator makes, whatever the seed."""

import runpy
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import Serdes
from streamskit.datasets import DAY, HOUR, INVOICE_SCHEMA, NEW_YEAR, invoices

DATA = Path(__file__).parents[3] / "data"

seeds = st.integers(0, 10_000)
few = settings(max_examples=20, deadline=None)


def values(count: int, seed: int = 7) -> list[dict[str, Any]]:
    return [record["value"] for record in invoices(count, seed)]


def paise(rupees: float) -> int:
    """Return an amount in the smallest coin; sums of these are exact."""
    assert rupees == round(rupees, 2)
    return round(rupees * 100)


def test_the_same_seed_gives_the_same_invoices_and_another_gives_others() -> None:
    assert list(invoices(300)) == list(invoices(300))
    assert list(invoices(300)) != list(invoices(300, seed=8))


def test_fewer_invoices_are_the_first_ones_of_more() -> None:
    assert list(invoices(250)) == list(invoices(600))[:250]


def test_the_recorded_invoices_are_what_the_generator_makes(tmp_path: Path) -> None:
    write_invoices = runpy.run_path(str(DATA / "make.py"))["write_invoices"]
    write_invoices(tmp_path / "invoices.jsonl")
    assert (tmp_path / "invoices.jsonl").read_bytes() == (DATA / "invoices.jsonl").read_bytes()


@few
@given(seeds)
def test_lines_taxes_and_totals_add_up_to_the_paisa(seed: int) -> None:
    for value in values(50, seed):
        lines = value["InvoiceLineItems"]
        assert len(lines) == value["NumberOfItems"] > 0
        assert len({line["ItemCode"] for line in lines}) == len(lines)
        for line in lines:
            assert paise(line["ItemPrice"]) * line["ItemQty"] == paise(line["TotalValue"]) > 0
        total = sum(paise(line["TotalValue"]) for line in lines)
        assert total == paise(value["TotalAmount"])
        assert total == sum(paise(value[part]) for part in ("TaxableAmount", "CGST", "SGST", "CESS"))


@few
@given(seeds)
def test_the_taxes_are_their_share_of_the_taxable_amount(seed: int) -> None:
    for value in values(50, seed):
        for tax, rate in (("CGST", 0.025), ("SGST", 0.025), ("CESS", 0.00125)):
            assert value[tax] == pytest.approx(value["TaxableAmount"] * rate, abs=0.0101)


@few
@given(seeds)
def test_only_home_deliveries_have_an_address_and_it_is_the_customers(seed: int) -> None:
    addresses = defaultdict(list)
    for value in values(200, seed):
        assert (value["DeliveryType"] == "HOME-DELIVERY") == ("DeliveryAddress" in value)
        if "DeliveryAddress" in value:
            addresses[value["CustomerCardNo"]].append(value["DeliveryAddress"])
    assert addresses
    assert all(each == found[0] for found in addresses.values() for each in found)


def test_a_customer_is_prime_or_not_and_stays_so() -> None:
    kinds = defaultdict(set)
    for value in [*values(1_000), *values(1_000, seed=8)]:
        kinds[value["CustomerCardNo"]].add(value["CustomerType"])
    assert all(len(card) == 10 and card.isdigit() for card in kinds)
    assert Counter(kind for found in kinds.values() for kind in found).keys() == {"PRIME", "NONE"}
    assert all(len(found) == 1 for found in kinds.values())


def test_a_till_stands_in_one_store_and_a_cashier_sits_at_one_till() -> None:
    stores, tills = defaultdict(set), defaultdict(set)
    for record in invoices(1_000):
        value = record["value"]
        assert record["key"] == value["StoreID"]
        stores[value["PosID"]].add(value["StoreID"])
        tills[value["CashierID"]].add(value["PosID"])
    assert all(len(found) == 1 for found in [*stores.values(), *tills.values()])
    assert len({store for found in stores.values() for store in found}) == 8


@few
@given(seeds)
def test_invoices_are_numbered_in_the_order_of_their_time_while_the_stores_are_open(seed: int) -> None:
    records = list(invoices(500, seed))
    assert all(one["timestamp"] <= next_["timestamp"] for one, next_ in pairwise(records))
    numbers = [int(record["value"]["InvoiceNumber"]) for record in records]
    assert numbers == list(range(numbers[0], numbers[0] + 500))
    assert all(record["timestamp"] == record["value"]["CreatedTime"] for record in records)
    assert all(9 <= record["timestamp"] % DAY // HOUR < 21 for record in records)
    assert Counter((record["timestamp"] - NEW_YEAR) // DAY for record in records) == {0: 200, 1: 200, 2: 100}


def test_more_is_sold_after_work_than_in_the_morning_and_more_in_the_stores_with_more_tills() -> None:
    sold = values(2_000)
    hours = Counter(value["CreatedTime"] % DAY // HOUR for value in sold)
    stores = Counter(value["StoreID"] for value in sold)
    assert hours[18] > hours[12] > hours[9]
    assert stores["STR2629"] > stores["STR8510"] > stores["STR6793"]


def test_many_prime_customers_buy_in_several_stores() -> None:
    stores = defaultdict(set)
    for value in values(1_000):
        if value["CustomerType"] == "PRIME":
            stores[value["CustomerCardNo"]].add(value["StoreID"])
    assert sum(len(found) > 1 for found in stores.values()) > 50


@pytest.mark.spark
def test_the_schema_reads_every_field_of_an_invoice(spark: SparkSession) -> None:
    serde, made = Serdes.json(INVOICE_SCHEMA), values(50)
    texts = spark.createDataFrame([(serde.serialize(value),) for value in made], "text binary")
    read = texts.select(serde.from_bytes(F.col("text")).alias("invoice")).collect()
    assert [row.invoice.asDict(recursive=True) for row in read] == [{"DeliveryAddress": None} | value for value in made]
