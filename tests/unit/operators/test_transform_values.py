"""Transformers of tables: what they are asked for, and where old values come from."""

from functools import partial
from typing import Any

import pytest

from streamskit import Record, StreamsError, ValueTransformerWithKey
from streamskit.operators import (
    OUT_OF_ORDER,
    STORE_UPDATE,
    InputPort,
    OutputPort,
    ProcessorSpec,
    TransformerNode,
    TransformValuesOperator,
)
from streamskit.serdes import LONG
from streamskit.state.stores import Store
from tests.unit.operators.operator_harness import STRING, Harness, record

NUMBERS = Store("numbers", "key-value", STRING, LONG)


class Numbered(ValueTransformerWithKey):
    """Puts the number of the call and the time behind a value."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.numbers = context.state_store("numbers")

    def transform(self, key: str, value: str | None) -> str | None:
        number = (self.numbers.get(key) or 0) + 1
        self.numbers.put(key, number)
        return f"{value}#{number}@{self.context.timestamp()}"


class Forwarding(ValueTransformerWithKey):
    def transform(self, key: str, value: str | None) -> None:
        self.context.forward(Record(key, value, 0))


def transforming(transformer: type, **options: Any) -> Harness:
    stores = (NUMBERS,) if transformer is Numbered else ()
    spec = ProcessorSpec("t", partial(TransformerNode, transformer), tuple(store.name for store in stores), (("", 0),))
    inputs, outputs = (InputPort(STRING, STRING, processor="t"),), (OutputPort(STRING, STRING),)
    return Harness([TransformValuesOperator("t", "app", (spec,), inputs, outputs, stores, **options)])


def rows(task: Harness, value: bytes | None, time: int, old: bytes | None = None) -> list[Any]:
    made = task.give(0, 0, record(b"a", value, time, old))
    assert all(each.other == STORE_UPDATE + b"\x01" for each in made[1:])
    return [(each.value, each.old) for each in made[:1]]


def test_a_deleted_row_is_transformed_too_and_nothing_is_asked_of_old_values() -> None:
    task = transforming(Numbered)
    assert rows(task, b"x", 1) == [(b"x#1@1", None)]
    assert rows(task, None, 2, old=b"x") == [(b"None#2@2", None)]


def test_an_old_value_that_somebody_needs_is_transformed_after_the_new_one() -> None:
    task = transforming(Numbered, sends_old=True)
    assert rows(task, b"x", 1) == [(b"x#1@1", b"None#2@1")]
    assert rows(task, b"y", 2, old=b"x") == [(b"y#3@2", b"x#4@2")]


def test_rows_that_are_kept_tell_the_old_values() -> None:
    task = transforming(Numbered, sends_old=True, keeps_rows=True)
    assert rows(task, b"x", 1) == [(b"x#1@1", None)]
    assert rows(task, b"y", 2, old=b"x") == [(b"y#2@2", b"x#1@1")]


def test_kept_versions_say_which_update_is_the_latest() -> None:
    task = transforming(Numbered, sends_old=True, keeps_rows=True, history=100)
    notes = [task.give(0, 0, record(b"a", b"x", time))[0].other for time in (50, 40, 60)]
    assert notes == [None, OUT_OF_ORDER, None]


def test_a_transformer_whose_init_keeps_the_context_to_itself_is_told_what_its_first_line_has_to_be() -> None:
    class Forgetful(Forwarding):
        def init(self, context: Any) -> None:
            pass

    with pytest.raises(StreamsError, match=r"Forgetful has no context\. .* super\(\)\.init\(context\)"):
        rows(transforming(Forgetful), b"x", 1)


def test_a_transformer_cannot_forward() -> None:
    with pytest.raises(StreamsError, match=r"t: a transformer forwards nothing: return the new value"):
        transforming(Forwarding).give(0, 0, record(b"a", b"x", 1))


def test_a_supplier_of_something_else_is_told_what_to_make() -> None:
    with pytest.raises(StreamsError, match="made a dict, and has to make a ValueTransformerWithKey"):
        transforming(dict).give(0, 0, record(b"a", b"x", 1))
