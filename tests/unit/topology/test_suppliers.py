"""Suppliers of processors are tried where they are given: each task needs a processor of its own."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    Topology,
    TopologyError,
    ValueTransformerWithKey,
)

Give = Callable[[Any], Any]

NAMES = Stores.persistent_key_value_store("names", Serdes.string(), Serdes.string()).with_logging(False)


class Pass(Processor):
    def __init__(self, limit: int = 0) -> None:
        self.limit = limit

    def process(self, record: Record) -> None:
        self.context.forward(record)


class PassValues(FixedKeyProcessor):
    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record)


class Same(ValueTransformerWithKey):
    def transform(self, key: Any, value: Any) -> Any:
        return value


class Limited(Pass):
    def __init__(self, limit: int) -> None:
        super().__init__(limit)


class Unfinished(Processor):
    """Has no `process`."""


PLACES: dict[str, tuple[Give, type]] = {
    "process": (lambda given: StreamsBuilder().stream("in").process(given), Pass),
    "process_values": (lambda given: StreamsBuilder().stream("in").process_values(given), PassValues),
    "transform_values": (lambda given: StreamsBuilder().table("in").transform_values(given), Same),
    "add_global_store": (lambda given: StreamsBuilder().add_global_store(NAMES, "names-in", given), Pass),
    "add_processor": (lambda given: Topology().add_source("s", "in").add_processor("p", given, "s"), Pass),
    "add_global_store by hand": (lambda given: Topology().add_global_store(NAMES, "s", "in", "p", given), Pass),
}
EVERYWHERE = pytest.mark.parametrize("place", PLACES)


@EVERYWHERE
def test_a_supplier_that_returns_the_same_object_each_time_is_refused_at_its_line(place: str) -> None:
    give, kind = PLACES[place]
    only = kind()
    said = (
        rf"at test_suppliers\.py line \d+: its supplier returned the same {kind.__name__} twice, and each task needs "
        rf"one of its own: make a new one in the function, such as lambda: {kind.__name__}\(\.\.\.\)"
    )
    with pytest.raises(TopologyError, match=said):
        give(lambda: only)


@EVERYWHERE
def test_a_class_a_function_and_an_object_that_make_new_ones_are_taken(place: str) -> None:
    give, kind = PLACES[place]

    class Making:
        def __call__(self) -> Any:
            return kind()

    for supplier in (kind, lambda: kind(), partial(kind), Making()):
        give(supplier)


def test_a_class_is_not_called_where_it_is_given() -> None:
    class Busy(Pass):
        def __init__(self) -> None:
            raise AssertionError("only a task makes one")

    PLACES["process"][0](Busy)


@EVERYWHERE
@pytest.mark.parametrize(
    ("supplier", "said"),
    [
        (lambda: "text", "its supplier made a str, and has to make a "),
        (dict, "dict is not a "),
        (Pass(), "give the .* class itself, or a function that makes one"),
        (lambda limit: Pass(limit), r"called without arguments, and <lambda> takes \(limit\)\. Give a function that"),
        (lambda: dict[str, int]()["no"], "its supplier raised KeyError: 'no'"),
    ],
)
def test_what_makes_no_processor_is_refused_where_it_is_given(place: str, supplier: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=rf"at test_suppliers\.py line \d+: .*{said}"):
        PLACES[place][0](supplier)


def test_a_class_that_needs_arguments_is_told_to_be_wrapped_in_a_function() -> None:
    with pytest.raises(
        TopologyError, match=r"Limited takes \(limit: int\).* Give .* passes them: lambda: Limited\(\.\.\.\)"
    ):
        PLACES["process"][0](Limited)


def test_a_class_without_process_is_refused_where_it_is_given() -> None:
    with pytest.raises(TopologyError, match=r"Unfinished has no method process\(\), which a Processor needs"):
        PLACES["process"][0](Unfinished)


def test_a_processor_that_may_change_keys_is_refused_where_keys_have_to_stay() -> None:
    for supplier, said in (
        (Pass, r"Pass is not a FixedKeyProcessor; make it one: class Pass\(FixedKeyProcessor\)"),
        (lambda: Pass(), "its supplier made a Pass, and has to make a FixedKeyProcessor"),
    ):
        with pytest.raises(TopologyError, match=rf"process_values .*{said}"):
            PLACES["process_values"][0](supplier)


def test_a_processor_that_keeps_keys_may_stand_where_keys_may_change() -> None:
    PLACES["process"][0](PassValues)
    PLACES["add_processor"][0](lambda: PassValues())
