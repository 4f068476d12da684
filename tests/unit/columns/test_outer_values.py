"""A function that takes another value from around it at the start than on its line is refused, and nothing else is."""

import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import Processor, Serdes, StreamsBuilder, Topology, TopologyError
from streamskit.planning.planner import plan

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

TRADE = Serdes.json("price bigint, size bigint")

limit: Any = 10
seen = 0


def planned(*steps: Callable[[Any], Any]) -> None:
    plan(built(*steps), "outer-values")


def built(*steps: Callable[[Any], Any]) -> Topology:
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=TRADE)
    for number, step in enumerate(steps):
        made = step(trades)
        (made.to_stream() if hasattr(made, "to_stream") else made).to(f"out-{number}")
    return builder.build()


def test_functions_of_a_loop_that_would_all_see_its_last_value_are_refused() -> None:
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=TRADE)
    for field in ("price", "size"):
        trades.map_values(lambda v: v[field]).to(f"out-{field}")  # noqa: B023
    with pytest.raises(
        TopologyError,
        match=r"KSTREAM-MAPVALUES-0000000001 at .*test_outer_values.py line \d+: its function uses a variable that has "
        r"changed: 'field' was 'price' on that line, and is 'size' now\..*lambda v, field=field: \.\.\.",
    ):
        plan(builder.build(), "outer-values")


def test_one_function_used_with_several_values_is_refused() -> None:
    field = "price"

    def pick(v: Any) -> Any:
        return v[field]

    builder = StreamsBuilder()
    trades = builder.stream("trades", value=TRADE)
    for field in ("price", "size"):
        trades.map_values(pick).to(f"out-{field}")
    with pytest.raises(TopologyError, match="'field' was 'price' on that line, and is 'size' now"):
        plan(builder.build(), "outer-values")


@pytest.mark.parametrize(
    "write",
    [
        lambda field: lambda v, field=field: v[field],
        lambda field: functools.partial(lambda field, v: v[field], field),
        lambda field: lambda v: v[field],
    ],
)
def test_functions_that_keep_a_value_of_their_own_are_fine(write: Callable[[str], Any]) -> None:
    planned(*(lambda s, field=field: s.map_values(write(field)) for field in ("price", "size")))


def test_a_reducer_keeps_a_value_in_a_default_argument() -> None:
    planned(*(lambda s, n=n: s.group_by_key().reduce(lambda a, v, n=n: v) for n in (1, 2)))


STEPS: dict[str, Callable[[Any], Any]] = {
    "map": lambda s: s.map(lambda k, v: (k, v.price + limit)),
    "nested": lambda s: s.map_values(lambda v: F.transform(F.array(v.price), lambda each: each + limit)),
    "reduce": lambda s: s.group_by_key().reduce(lambda a, v: limit),
    "aggregate": lambda s: s.group_by_key().aggregate(lambda: limit, lambda k, v, a: a, value=Serdes.long()),
    "filter": lambda s: s.filter(lambda v: v.price < limit),
    "process": lambda s: s.process(lambda: Kept(limit)),
}


class Kept(Processor):
    def __init__(self, most: int) -> None:
        self.most = most

    def process(self, record: Any) -> None:
        self.context.forward(record)


@pytest.mark.parametrize("step", STEPS)
def test_a_changed_global_variable_is_refused(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topology = built(STEPS[step])
    plan(topology, "outer-values")
    monkeypatch.setitem(globals(), "limit", 10.0)
    plan(topology, "outer-values")  # it is equal
    monkeypatch.setitem(globals(), "limit", 11)
    with pytest.raises(TopologyError, match="'limit' was 10 on that line, and is 11 now"):
        plan(topology, "outer-values")
    planned(STEPS[step])  # written again, it has the new value


def test_a_changed_variable_of_a_timestamp_extractor_is_refused() -> None:
    offset: object = 5
    builder = StreamsBuilder()
    builder.stream("trades", value=TRADE, timestamps=lambda v: v.price + offset).to("out")
    topology = builder.build()
    offset = [5]
    with pytest.raises(TopologyError, match="'offset' was 5 on that line, and is a list now"):
        plan(topology, "outer-values")
    assert offset


def test_what_may_change_is_not_refused() -> None:
    texts, price, amount, counted = ["a"], 1, Decimal("1.0"), 0
    rate: object = float("nan")

    def count(aggregate: Any, value: Any) -> Any:
        nonlocal counted
        counted += 1
        return value

    topology = built(
        lambda s: s.map_values(lambda v: F.lit(texts[0])),
        lambda s: s.map_values(lambda v: v.price),  # a field with the name of a variable
        lambda s: s.map_values(lambda v: v.size * F.lit(amount) * F.lit(rate)),
        lambda s: s.group_by_key().reduce(count),
        lambda s: s.peek(lambda k, v: print(price)),
    )
    texts[0], price, amount, rate, counted = "b", 2, Decimal("1.00"), float("nan"), 5
    plan(topology, "outer-values")
    assert price
    assert counted
