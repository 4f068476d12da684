"""The drawings of mechanisms say in words what they show, and fit on their paper."""

import re
from typing import NamedTuple
from xml.etree import ElementTree

import pandas as pd
import pytest

from streamskit.lessons import (
    Drawing,
    byte_strip,
    cached,
    cleaned,
    clocks,
    co_partitioned,
    copies,
    duality,
    foreign_key,
    logs,
    readers,
    readings,
    rekeyed,
)

SVG = "{http://www.w3.org/2000/svg}"


class Row(NamedTuple):
    partition: int
    key: str
    value: str


ORDERS = [Row(0, "ann", "tv"), Row(1, "ben", "lamp"), Row(0, "ann", "sofa")]
BY_PRODUCT = [Row(1, "tv", "ann"), Row(0, "lamp", "ben"), Row(1, "sofa", "ann")]
PRICES = [("tv", "tv 900"), ("lamp", "lamp 40"), ("tv", "tv 850")]

EACH = [
    logs("Orders", "orders", ORDERS, lambda k, v: f"{k} {v}", partitions=3),
    rekeyed("A new key", ORDERS, BY_PRODUCT, ("by customer", "by product")),
    readers("Three members", {"one": [0], "two": [1], "three": []}, 2, "packing"),
    cleaned("Prices", PRICES, expired=1),
    duality("A stream and its table", [("ann", "1"), ("ben", "2"), ("ann", None)], shown=[2, 3]),
    cached("The record cache", PRICES, PRICES[1:]),
    co_partitioned("Two and three", {0: ["ann"], 1: ["ben"]}, {0: [], 1: ["ben"], 2: ["ann"]}, ("orders", "users")),
    copies("Rows", {0: {"NO": "Norway"}, 1: {"FI": "Finland"}}, {"instance A": [0], "instance B": [1]}),
    foreign_key("A foreign key", {"e1": "ann", "e2": "ann"}, {"ann": "Oslo"}, ("orders", "users")),
    byte_strip("Bytes", [("magic byte", b"\x00"), ("schema id, 4 bytes", bytes(4)), ("symbol", b"KO")]),
    clocks("Three clocks", {"e1": (0, 60_000, 90_000), "e2": (30_000, 61_000, 91_000)}),
    readings("Eight bytes", b"KO 61.50", ("A long", 5426591493130171696), {"a long": 1, "a text": "KO 61.50"}),
]


def texts(drawing: Drawing) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawing.svg()).iter(f"{SVG}text"))


@pytest.mark.parametrize("drawing", EACH, ids=lambda each: each.title)
def test_nothing_is_drawn_beyond_the_paper(drawing: Drawing) -> None:
    for each in texts(drawing):
        width = 0.55 * float(each.attrib["font-size"]) * len(each.text or "")
        left = float(each.attrib["x"]) - width * {"start": 0, "middle": 0.5, "end": 1}[each.get("text-anchor", "start")]
        assert left >= 0, each.text
        assert left + width <= drawing.width, each.text
        assert float(each.attrib["y"]) <= drawing.height, each.text
    for rect in ElementTree.fromstring(drawing.svg()).iter(f"{SVG}rect"):
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= drawing.width
        assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= drawing.height


@pytest.mark.parametrize("drawing", EACH, ids=lambda each: each.title)
def test_the_words_of_a_drawing_are_sentences(drawing: Drawing) -> None:
    assert re.fullmatch(r"[A-Z].*\.", drawing.alt)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (0, "Partition 0 has, from offset 0: ann tv, ann sofa. Partition 1 has, from offset 0: ben lamp."),
        (0, "Partition 2 has, from offset 0: nothing."),
        (1, "by product: Partition 0 has: lamp."),
        (2, "three reads nothing: it is idle"),
        (3, "compact: gone, lamp 40, tv 850"),
        (3, "delete: gone, lamp 40, tv 850"),
        (4, "after 3 updates the table is ben=2"),
        (5, "on commit these leave: lamp 40, tv 850."),
        (6, "ann finds no match"),
        (7, "instance B holds FI"),
        (7, "each of instance A, instance B holds all of NO, FI"),
        (8, "e2 subscribes to ann and is sent Oslo"),
        (9, "magic byte: 00; schema id, 4 bytes: 00 00 00 00; symbol: 4b 4f."),
        (10, "e2: event time 00:00:30, ingestion time 00:01:01, processing time 00:01:31"),
        (11, "as the bytes 4b 4f 20 36 31 2e 35 30. In the same bytes, a long reads 1, and a text reads 'KO 61.50'."),
    ],
)
def test_a_drawing_is_told_in_words(place: int, words: str) -> None:
    assert words in EACH[place].alt


def test_a_log_is_drawn_from_what_a_topic_was_read_into() -> None:
    frame = pd.DataFrame(ORDERS)
    assert logs("Orders", "orders", frame).alt == logs("Orders", "orders", ORDERS).alt


def test_records_that_were_picked_from_a_topic_have_no_offsets() -> None:
    shown = {each.text for each in texts(rekeyed("A new key", ORDERS, BY_PRODUCT, ("by customer", "by product")))}
    assert not {"0", "1"} & shown, "others may be between them: these are no offsets"


def test_a_compacted_record_leaves_a_gap_and_offsets_stay() -> None:
    shown = [each.text for each in texts(cleaned("Prices", PRICES, expired=0))]
    assert shown.count("tv 900") == 2  # as written, and under delete
    assert shown.count("2") == 3


def test_a_key_that_is_a_colour_has_this_colour() -> None:
    drawing = logs("Widgets", "widgets", [Row(0, "red", "1"), Row(0, "green", "2")])
    boxes = [each.get("class") for each in ElementTree.fromstring(drawing.svg()).iter(f"{SVG}rect")]
    assert boxes == ["l-paper", "l-red", "l-green"]


def test_a_key_that_is_in_the_same_partition_of_both_topics_finds_its_match() -> None:
    drawing = co_partitioned("Two", {0: ["ann"], 1: ["ben"]}, {0: ["cleo"], 1: ["ben"]}, ("orders", "users"))
    assert "ann finds no match" in drawing.alt
    assert "ben finds no match" not in drawing.alt
