"""The exercises of lab 02: which records a step lets through, and what key, value and topic they leave it with."""

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import functions as F

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Verdict, right, wrong
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.misconceptions import Misconception, nothing_came
from streamskit.course.labs.recording import Costume, Piped, Recording, Row
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


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def came_of_null(outcome: Outcome) -> bool:
    """A record without a value was let through."""
    return any(moment.extra for moment in outcome.at(lambda record: record.value is None))


def limit_is_missing(limit: int) -> Callable[[Outcome], bool]:
    """Return the sign that a value that is the limit itself did not come."""
    return lambda outcome: any(row.value == limit for moment in outcome.moments for row in moment.missing)


def heavy_ones_came(outcome: Outcome) -> bool:
    """All that came is what should be dropped."""
    weights = [row.value for row in outcome.actual]
    return bool(weights) and all(isinstance(weight, int) and weight > 10 for weight in weights)


def value_in_place_of_key(outcome: Outcome) -> bool:
    """The keys are still those that went in, and the values have become the new keys."""
    due = [row.key for row in outcome.expected]
    return due == [row.value for row in outcome.actual]


def value_changed_too(outcome: Outcome) -> bool:
    """The keys are right and the values are not."""
    due, came = outcome.expected, outcome.actual
    return bool(came) and [row.key for row in due] == [row.key for row in came]


def exchanged(outcome: Outcome) -> bool:
    """Each key stands where its value should, and the other way round."""
    due = [(row.value, row.key) for row in outcome.expected]
    came = [(row.key, row.value) for row in outcome.actual if row.value != ""]
    return bool(came) and came == due


def of_an_empty_text(outcome: Outcome) -> bool:
    """An empty text made a record."""
    return any(moment.extra for moment in outcome.at(lambda record: record.value == ""))


def in_two_topics(outcome: Outcome) -> bool:
    """A record came out in more than one topic."""
    return any(count > 1 for count in _by_step(outcome).values())


def in_the_wider_branch(outcome: Outcome) -> bool:
    """The first branch is empty, and what belongs there is in the next one."""
    large, middle = (outcome.trial.outputs.get(topic, []) for topic in ("large", "middle"))
    return not large and any(row.value > 100 for row in middle)


def rest_is_missing(outcome: Outcome) -> bool:
    """What no branch wants comes nowhere."""
    return not outcome.trial.outputs.get("small")


def limit_is_inside(limit: int) -> Callable[[Outcome], bool]:
    """Return the sign that a value that is the limit itself is taken for one above it."""

    def sign(outcome: Outcome) -> bool:
        return any(limit in (row.value, _total(row)) for moment in outcome.moments for row in moment.extra)

    return sign


def for_nobody(outcome: Outcome) -> bool:
    """A record without a key came, where each should have one."""
    return any(row.key is None for moment in outcome.moments for row in moment.extra)


def key_of_the_basket(outcome: Outcome) -> bool:
    """The keys are still those that went in."""
    return bool(outcome.actual) and {row.key for row in outcome.actual} <= {r.key for r in outcome.recording.records}


def topic_of_another_name(outcome: Outcome) -> bool:
    """Nothing came, and a function names the topics."""
    return nothing_came(outcome) and any(not isinstance(sink.topic, str) for sink in outcome.trial.topology.sinks)


def _total(row: Row) -> Any:
    return row.value.get("total") if isinstance(row.value, dict) else None


def _by_step(outcome: Outcome) -> dict[int, int]:
    counts: dict[int, int] = {}
    for row in outcome.actual:
        counts[row.step] = counts.get(row.step, 0) + 1
    return counts


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
    names, expected = set(answer) if isinstance(answer, set | list | tuple) else {answer}, repartitioned()
    unknown = sorted(map(str, names - set(STEPS)))
    if unknown:
        return wrong(f"{unknown[0]!r} is none of the steps; they are: {', '.join(STEPS)}.")
    if names == expected:
        return right(f"Seven programs with one of these steps each were built: {len(names)} of them repartition.")
    extra, missing = names - expected, expected - names
    if extra & {"filter", "peek"}:
        return wrong(
            f"{_first(extra)} passes records on as they are: the key is the same.", "a step that changes nothing"
        )
    if extra:
        return wrong(
            f"{_first(extra)} makes values and cannot touch the key: that is what its name promises.",
            "a new value taken for a new key",
        )
    return wrong(
        f"{_first(missing)} makes a key. Even if your function gives back the old one: nobody looks, so the records "
        "are sent through a topic before a step that works by key.",
        "a key that may have changed",
    )


def _first(names: set[str]) -> str:
    return next(name for name in STEPS if name in names)


LAB = Lab(
    "02-basic-operations",
    "Basic operations",
    (
        Exercise(
            "parcels_by_bike",
            "Send the parcels of at most 10 kilos to the bikes, and none of unknown weight.",
            Runs(
                parcels,
                (
                    Misconception(
                        "null let through",
                        "A parcel without a weight came through. A comparison with null is null, not false: filter "
                        "drops it, and filter_not keeps it, as it keeps all that is not true.",
                        came_of_null,
                    ),
                    Misconception(
                        "the limit itself",
                        "A parcel of exactly 10 kilos did not come. At most 10 means 10 and less.",
                        limit_is_missing(10),
                    ),
                    Misconception(
                        "filter the other way round",
                        "The heavy ones came and the light ones did not. filter keeps those for which the function is "
                        "true; filter_not those for which it is not.",
                        heavy_ones_came,
                    ),
                ),
            ),
            (
                "Which of filter and filter_not drops what is null?",
                "filter keeps what is true. Neither false nor null is.",
                "parcels.filter(lambda v: v <= 10)",
            ),
        ),
        Exercise(
            "baskets_of_customers",
            "Give each basket its customer for a key.",
            Runs(
                baskets,
                (
                    Misconception(
                        "value in place of key",
                        "The customer has become the value, and the key is the old one. map_values makes a new value, "
                        "select_key a new key.",
                        value_in_place_of_key,
                    ),
                    Misconception(
                        "value changed too",
                        "The keys are right, and the values are others than went in. select_key makes the key and "
                        "leaves the value alone.",
                        value_changed_too,
                    ),
                ),
            ),
            (
                "The value stays as it is. Which step makes a new key, and only that?",
                "select_key takes a function of the value, or of key and value, that makes a Column: the new key.",
                ".select_key(lambda v: v.customer)",
            ),
        ),
        Exercise(
            "goods_wanted",
            "Make a record of each good on a shopping list, with the good for its key.",
            Runs(
                lists,
                (
                    Misconception(
                        "key and value exchanged",
                        "Each record has the list for its key and the good for its value. flat_map_values keeps the "
                        "key; flat_map makes both, and here the good is the key.",
                        exchanged,
                    ),
                    Misconception(
                        "an empty text is not nothing",
                        "An empty list made a record. Splitting an empty text gives one empty part: it has to be taken "
                        "out before records are made.",
                        of_an_empty_text,
                    ),
                ),
            ),
            (
                "One record becomes many, and they have other keys: flat_map. Its function returns an array of structs "
                "with the fields key and value.",
                "F.split makes an array of the text, F.filter takes the empty part out, F.transform makes a struct of "
                "each part.",
                'F.transform(F.filter(F.split(v, ","), lambda part: part != ""), lambda part: '
                'F.struct(part.alias("key"), k.alias("value")))',
            ),
        ),
        Exercise(
            "sizes_of_orders",
            "Split totals into large, middle and small ones.",
            Runs(
                totals,
                (
                    Misconception(
                        "a record in two branches",
                        "A total came out in more than one topic. Several filters each look at all records; a split "
                        "gives each record to the first branch that wants it.",
                        in_two_topics,
                    ),
                    Misconception(
                        "the wider branch first",
                        "Large totals went to the middle, and the large branch got none. A record goes to the first "
                        "branch that wants it, so the narrower predicate comes first.",
                        in_the_wider_branch,
                    ),
                    Misconception(
                        "no branch for the rest",
                        "What no predicate wants is gone: nothing came in the topic small. The default branch takes "
                        "the rest.",
                        rest_is_missing,
                    ),
                    Misconception(
                        "the limit itself",
                        "A total of exactly 100 is in the wrong topic. More than 100 does not mean 100.",
                        limit_is_inside(100),
                    ),
                ),
            ),
            (
                "split(...) begins; each branch(...) takes what the ones before have left; the default branch ends it.",
                'split("of-") returns something to call branch(predicate, name=...) on, and default_branch(name=...) '
                'returns all branches by name: "of-large" and so on.',
                'totals.split("of-").branch(lambda v: v > 100, name="large").branch(lambda v: v > 10, name="middle")'
                '.default_branch(name="small"), and then .to(...) for each of the three',
            ),
        ),
        Exercise(
            "through_a_topic",
            "Say after which steps a count by key needs a repartition.",
            judge_repartitioned,
            (
                "A repartition is needed where the key may have changed since the records were read.",
                "The names tell: which of the seven steps makes a key?",
                "Three of them: one makes a key only, one key and value, one many keys and values.",
            ),
        ),
        Exercise(
            "letters_to_customers",
            "Write to the customers of large baskets, city by city.",
            Runs(
                letters,
                (
                    Misconception(
                        "topics of another name",
                        "Nothing came in letters-oslo and letters-turku. The function that names the topics makes "
                        "others: capital letters count.",
                        topic_of_another_name,
                    ),
                    Misconception(
                        "a letter to nobody",
                        "A basket without a customer made a letter without a key. A Column asks for that with "
                        "isNotNull().",
                        for_nobody,
                    ),
                    Misconception(
                        "the limit itself",
                        "A basket of exactly 100 made a letter. More than 100 does not mean 100.",
                        limit_is_inside(100),
                    ),
                    Misconception(
                        "the basket's key kept",
                        "The letters have the baskets' numbers for keys. A letter's key is its customer.",
                        key_of_the_basket,
                    ),
                ),
            ),
            (
                "Three steps: keep the baskets that matter; make key and value of the letter; say which topic.",
                "filter, then map with (v.customer, F.struct(...)), then to(...) with a function that makes the name "
                "of the topic. F.size counts an array.",
                'F.struct(v.city, v.total, F.size(v.goods).alias("pieces")), and '
                'to(lambda v: F.concat(F.lit("letters-"), F.lower(v.city)))',
            ),
        ),
    ),
)
