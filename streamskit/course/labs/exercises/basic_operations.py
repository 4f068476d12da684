"""The exercises of lab 02: which records a step lets through, and what key, value and topic they leave it with."""

from collections import Counter
from collections.abc import Callable, Iterator, Set
from typing import Any

from pyspark.sql import functions as F

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Judges, Runs, Verdict, mistaken, right, unwritten, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.misconceptions import extra_at, in_another_topic
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.kstream import KStream
from streamskit.topology.nodes import Node

SECOND = 1_000
"""A millisecond of the recordings is a second of the stories."""

PARCELS = {"a": "parcel-1", "b": "parcel-2"}
BASKETS = {"ann": "ada", "1": "b1", "2": "b2", "3": "b3"}
GOODS = {"x": "tea", "y": "cup", "z": "pot", "k": "list-7"}
CUSTOMERS = {name: f"b{number}" for number, name in enumerate("abcde", 1)}
BASKET = ("customer", "city", "total", "goods")
SIZES = {"high": "large", "mid": "middle", "low": "small"}


# ---- the recordings, in the words of the stories ---------------------------------------------------------------------


def parcels() -> Recording:
    """Return what a filter of weights gives."""
    return Recording.of("basic-filter-not", Costume({"in": "parcels", "out": "by-bike"}, {}, PARCELS, SECOND))


def baskets() -> Recording:
    """Return what baskets with another key are."""

    def basket(topic: str, value: dict[str, Any]) -> dict[str, Any]:
        customer = {"customer": BASKETS.get(value["user"], value["user"])} if "user" in value else {}
        return customer | {"total": value["n"] * 40}

    topics = {"in": "baskets", "out": "baskets-of-customers"}
    return Recording.of("basic-select-key", Costume(topics, {}, BASKETS, SECOND, basket))


def lists() -> Recording:
    """Return what lists of goods are split into."""

    def goods(topic: str, value: str | None) -> str | None:
        return ",".join(GOODS.get(part, part) for part in value.split(",")) if value else value

    return Recording.of(
        "basic-flat-map", Costume({"in": "shopping-lists", "out": "goods-wanted"}, {}, GOODS, SECOND, goods)
    )


def totals() -> Recording:
    """Return what goes into each of three branches."""
    return Recording.of("basic-split-branch", Costume({"in": "totals"} | SIZES, {}, CUSTOMERS, SECOND))


def letters() -> Recording:
    """Return who gets a letter, as a plain loop over baskets says it."""
    baskets: tuple[tuple[str | None, str, int | None, list[str]], ...] = (
        ("ada", "Oslo", 120, ["lamp", "cup"]),
        ("bob", "Turku", 9, ["tea"]),
        (None, "Oslo", 300, ["sofa"]),
        ("cy", "Turku", None, []),
        ("dan", "Turku", 100, ["pot"]),
        ("bob", "Turku", 101, ["pot", "tea", "tea"]),
        ("ada", "Oslo", 450, []),
    )
    steps = [
        Piped("baskets", f"b{number}", dict(zip(BASKET, basket, strict=True)), number * SECOND)
        for number, basket in enumerate(baskets)
    ]
    return looped(steps, ("letters-oslo", "letters-turku"), letter)


def letter(basket: Piped) -> Iterator[Due]:
    """Return the letter that a basket makes, if it makes one."""
    customer, city, total, goods = (basket.value[field] for field in BASKET)
    if customer is not None and total is not None and total > 100:
        value = {"city": city, "total": total, "pieces": len(goods)}
        yield Due(f"letters-{city.lower()}", customer, value, basket.timestamp)


# ---- which steps may change a key: asked of the topologies themselves ------------------------------------------------

STEPS: dict[str, Callable[[KStream], KStream]] = {
    "filter": lambda stream: stream.filter(lambda v: v != ""),
    "map_values": lambda stream: stream.map_values(lambda v: F.upper(v)),
    "flat_map_values": lambda stream: stream.flat_map_values(lambda v: F.split(v, " ")),
    "peek": lambda stream: stream.peek(print),
    "select_key": lambda stream: stream.select_key(lambda v: v),
    "map": lambda stream: stream.map(lambda k, v: (k, F.upper(v))),
    "flat_map": lambda stream: stream.flat_map(lambda k, v: F.array(F.struct(k.alias("key"), v.alias("value")))),
}


def repartitioned() -> set[str]:
    """Return the steps after which a count by key sends the records through a topic."""
    return {name for name, step in STEPS.items() if _internal_topics(step)}


def _internal_topics(step: Callable[[KStream], KStream]) -> list[Node]:
    builder = StreamsBuilder()
    step(builder.stream("in")).group_by_key().count().to_stream().to("out")
    return [sink for sink in builder.build().sinks if sink.internal]


def judge_repartitioned(answer: Any) -> Verdict:
    """Judge a set of names."""
    if answer is None or answer is ... or answer == {"..."}:
        return unwritten("There is no answer yet: put the names of steps in place of the `...`.")
    if not isinstance(answer, Set | list | tuple | str):
        return wrong(f'It has to be a set of names, such as {{"filter", "peek"}}, but is {answer!r}.')
    given = [answer] if isinstance(answer, str) else list(answer)
    unknown = sorted(repr(each) for each in given if each not in list(STEPS))
    if unknown:
        return wrong(f"{unknown[0]} is not one of the steps; they are: {', '.join(STEPS)}.")
    names, expected = set(given), repartitioned()
    if names == expected:
        return right(f"Seven programs were built, each with one of these steps: {len(names)} of them repartition.")
    extra, missing = names - expected, expected - names
    if extra & {"filter", "peek"}:
        return mistaken("a step that changes nothing", step=_first(extra))
    if extra:
        return mistaken("a new value taken for a new key", step=_first(extra))
    return mistaken("a key that may have changed", step=_first(missing))


def _first(names: set[str]) -> str:
    return next(name for name in STEPS if name in names)


def wrongly_repartitioned() -> dict[str, list[set[str]]]:
    """Return sets of steps, of which each has one step too many or too few, by the mistake in that."""
    right = {"select_key", "map", "flat_map"}
    return {
        "a step that changes nothing": [right | {"filter"}, right | {"peek"}],
        "a new value taken for a new key": [right | {"map_values"}, right | {"flat_map_values"}],
        "a key that may have changed": [right - {step} for step in sorted(right)],
    }


# ---- signs -----------------------------------------------------------------------------------------------------------


def value_changed_too(outcome: Outcome) -> bool:
    """The keys are right and the values are not."""
    due, came = outcome.expected, outcome.actual
    return bool(came) and [row.key for row in due] == [row.key for row in came]


def in_two_topics(outcome: Outcome) -> bool:
    """A record came out in more than one topic."""
    return any(count > 1 for count in Counter(row.step for row in outcome.actual).values())


def topic_of_another_name(outcome: Outcome) -> bool:
    """The letters came in topics of other names, which a function has chosen."""
    return in_another_topic(outcome) and any(not isinstance(sink.topic, str) for sink in outcome.trial.topology.sinks)


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "02-basic-operations",
    parcels_by_bike=Runs(
        parcels,
        signs={"null let through": extra_at(lambda record: record.value is None)},
    ),
    baskets_of_customers=Runs(
        baskets,
        signs={"value changed too": value_changed_too},
    ),
    goods_wanted=Runs(
        lists,
        signs={"an empty text is not nothing": extra_at(lambda record: record.value == "")},
    ),
    sizes_of_orders=Runs(
        totals,
        signs={"a record in two branches": in_two_topics},
    ),
    through_a_topic=Judges(judge_repartitioned, wrongly_repartitioned()),
    letters_to_customers=Runs(
        letters,
        signs={"topics of another name": topic_of_another_name},
    ),
)
