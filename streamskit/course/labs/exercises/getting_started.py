"""The exercises of lab 01: a record's bytes, its order, two filters, and an application on the real broker."""

import json
from collections.abc import Callable, Iterator
from itertools import islice, permutations
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.broker import shared_broker
from streamskit.broker.base import Broker
from streamskit.common.names import own_name
from streamskit.course.datasets.trades import widgets
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Judges, Runs, Says, Verdict, mistaken, right, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes

SECOND = 1_000
"""A millisecond of the recording is a second of the story."""


# ---- a record's bytes ------------------------------------------------------------------------------------------------

MADE = (
    {"key": "widget-70", "value": {"id": 70, "colour": "grün", "grams": 61}, "timestamp": 0},
    {"key": "widget-71", "value": {"id": 71, "colour": "red", "grams": None}, "timestamp": 1},
)


def judge_bytes(answer: Callable[[dict[str, Any]], Any]) -> Verdict:
    """Judge a function that makes key and value of a widget into bytes."""
    for widget in MADE:
        made = answer(widget)
        if not isinstance(made, tuple) or len(made) != 2:
            return wrong(f"Two things are asked for, the key's bytes and the value's; you return {made!r}.")
        found = _not_bytes(made) or _other_bytes(made[0].decode(), made[1].decode(), widget)
        if found:
            return found
    return right("Two widgets were made into bytes, one of a green that is no ASCII text, and read again as they were.")


def _not_bytes(made: tuple[Any, Any]) -> Verdict | None:
    for part, value in zip(("key", "value"), made, strict=True):
        if not isinstance(value, bytes):
            return mistaken("text in place of bytes", part=part, kind=type(value).__name__)
    return None


def _other_bytes(key: str, value: str, widget: dict[str, Any]) -> Verdict | None:
    if key != widget["key"]:
        return wrong(f"The key reads {key!r} and should read {widget['key']!r}.")
    try:
        read = json.loads(value)
    except ValueError:
        return mistaken("printed in place of JSON", value=repr(value))
    if read == widget:
        return mistaken("the record in its own value")
    return None if read == widget["value"] else wrong(f"The value reads {value!r}, which is another widget.")


# ---- in which orders records can be read -----------------------------------------------------------------------------


def possible_orders() -> int:
    """Count the orders of three records of which the first two are in one partition."""
    return sum(order.index("first") < order.index("second") for order in permutations(("first", "second", "other")))


# ---- the recordings, in the words of the stories ---------------------------------------------------------------------


def heavy() -> Recording:
    """Return what a filter of weights gives."""

    def widget(topic: str, grams: int | None) -> dict[str, Any] | None:
        return None if grams is None else {"colour": "blue", "grams": grams * 10}

    topics, keys = {"in": "widgets", "out": "heavy-widgets"}, {"a": "widget-1", "b": "widget-2"}
    return Recording.of("basic-filter", Costume(topics, {}, keys, SECOND, widget))


def gifts() -> Recording:
    """Return which widgets are gifts and which are not, as a plain loop says it."""
    made: tuple[dict[str, Any], ...] = (
        {"colour": "red", "grams": 50},
        {"colour": "blue", "grams": 50},
        {"colour": "red", "grams": 60},
        {"colour": "red"},
        {"grams": 41},
        {"colour": "red", "grams": 59},
        {"colour": "green", "grams": 90},
    )
    steps = [Piped("widgets", f"widget-{number}", value, number * SECOND) for number, value in enumerate(made)]
    return looped(steps, ("gifts", "others"), sorted_out)


def sorted_out(widget: Piped) -> Iterator[Due]:
    """Return a widget in the topic where it belongs."""
    is_gift = widget.value.get("colour") == "red" and widget.value.get("grams", 1000) < 60
    yield Due("gifts" if is_gift else "others", widget.key, widget.value, widget.timestamp)


# ---- answers ---------------------------------------------------------------------------------------------------------

Answer = Callable[[StreamsBuilder], None]
Test = Callable[[Column], Column]
WIDGET = Serdes.json("id int, colour string, grams int")


def are_heavy(test: Test) -> Answer:
    """Return the answer that lets these widgets through."""
    return lambda builder: builder.stream("widgets", value=WIDGET).filter(test).to("heavy-widgets")


def is_gift(v: Column) -> Column:
    """Whether a widget is a gift."""
    return (v.colour == "red") & (v.grams < 60)


def are_gifts(gift: Test = is_gift, other: Test | None = None, others: str = "others") -> Answer:
    """Return the answer that sorts gifts by one function, and the others by its opposite or by another function."""

    def answer(builder: StreamsBuilder) -> None:
        stream = builder.stream("widgets", value=WIDGET)
        stream.filter(gift).to("gifts")
        (stream.filter(other) if other else stream.filter_not(gift)).to(others)

    return answer


def gifts_alone(builder: StreamsBuilder) -> None:
    """Forget the others."""
    builder.stream("widgets", value=WIDGET).filter(is_gift).to("gifts")


def live_answer(*calls: str) -> Callable[[str], KafkaStreams]:
    """Return the answer that makes the application of exercise 5, and calls these of its methods."""

    def answer(servers: str) -> KafkaStreams:
        builder = StreamsBuilder()
        builder.stream(SOURCE, value=WIDGET).filter(lambda v: v.colour == "red").to(TARGET)
        streams = KafkaStreams(builder.build(), APPLICATION, servers)
        for call in calls:
            getattr(streams, call)()
        return streams

    return answer


def light_ones_came(outcome: Outcome) -> bool:
    """All that came is what should be dropped."""
    return bool(outcome.actual) and all((row.value or {}).get("grams", 0) <= 100 for row in outcome.actual)


# ---- an application on the real broker -------------------------------------------------------------------------------

APPLICATION, SOURCE, TARGET = "live-red-widgets-app", "live-widgets", "live-red-widgets"


def judge_application(answer: Callable[[str], Any]) -> Verdict:
    """Start the learner's application twice, with widgets before each start, and read what it has written."""
    broker, made = shared_broker(), widgets(30, seed=5)
    _start_afresh(broker)
    for count in (20, 10):
        broker.produce(SOURCE, islice(made, count))
        found = _run(answer, broker.bootstrap_servers)
        if found:
            return found
    came = list(broker.consume(TARGET)["key"])
    due = [widget["key"] for widget in widgets(30, seed=5) if widget["value"]["colour"] == "red"]
    return _judge_written(came, due)


def _start_afresh(broker: Broker) -> None:
    """Forget what an earlier check has left: topics, and an application that still runs."""
    if left := KafkaStreams.running.get(own_name(APPLICATION)):
        left.close()
    broker.delete_topics(SOURCE, TARGET, missing_ok=True)
    broker.create_topics(SOURCE, TARGET, partitions=2)
    builder = StreamsBuilder()
    builder.stream(SOURCE).to(TARGET)
    KafkaStreams(builder.build(), APPLICATION, broker.bootstrap_servers).clean_up()


def _run(answer: Callable[[str], Any], servers: str) -> Verdict | None:
    """Run the application until all is processed; return what is wrong with it, if anything is."""
    streams = answer(servers)
    if not isinstance(streams, KafkaStreams):
        return wrong(f"The function has to return its KafkaStreams; it returned {streams!r}.")
    try:
        if streams.application_id != own_name(APPLICATION):
            return wrong(f"The application's id is {streams.application_id!r}, and should be {APPLICATION!r}.")
        if streams.state is State.CREATED:
            return mistaken("made and not started")
        if streams.state is State.NOT_RUNNING:
            return mistaken("closed too early")
        streams.await_processed("30 seconds")
    finally:
        streams.close()
    return None


def _judge_written(came: list[str], due: list[str]) -> Verdict:
    if sorted(came) == sorted(due):
        return right(
            f"Your application ran twice on the broker, and sent {len(due)} of 30 widgets: those of before its first "
            "start once, and after the second one only what was new."
        )
    if set(came) == set(due):
        return mistaken("begun anew at each start")
    if set(came) < set(due):
        return wrong(f"{len(set(due) - set(came))} red widgets did not come in the topic {TARGET}.")
    return wrong(f"Among the widgets in {TARGET} are some that are not red, such as {min(set(came) - set(due))}.")


LAB = lab(
    "01-getting-started",
    bytes_of_a_widget=Judges(
        judge_bytes,
        {
            "text in place of bytes": lambda widget: (widget["key"], json.dumps(widget["value"])),
            "printed in place of JSON": lambda widget: (widget["key"].encode(), str(widget["value"]).encode()),
            "the record in its own value": lambda widget: (widget["key"].encode(), json.dumps(widget).encode()),
        },
    ),
    orders_of_three=Says(
        possible_orders,
        "Of the six orders of three records those were counted that keep the two of one key in theirs.",
        wrong={"one order for the whole topic": 1, "no order at all": 6, "partitions read one after the other": 2},
    ),
    heavy_widgets=Runs(
        heavy,
        wrong={
            "the limit itself": are_heavy(lambda v: v.grams >= 100),
            "filter the other way round": [
                are_heavy(lambda v: v.grams <= 100),
                are_heavy(lambda v: v.grams < 100),
            ],
        },
        signs={"filter the other way round": light_ones_came},
    ),
    gifts_and_others=Runs(
        gifts,
        wrong={
            "one of two conditions": are_gifts(lambda v: (v.colour == "red") | (v.grams < 60)),
            "no topic for the others": [gifts_alone, are_gifts(others="the-others")],
            "a gift among the others": [
                are_gifts(other=lambda v: F.lit(True)),
                are_gifts(other=lambda v: (v.colour == "red") | (v.grams < 60)),
            ],
            "the limit itself": are_gifts(lambda v: (v.colour == "red") & (v.grams <= 60)),
            "unknown in neither": [
                are_gifts(other=lambda v: ~is_gift(v)),
                are_gifts(other=lambda v: (v.colour != "red") | (v.grams >= 60)),
            ],
        },
    ),
    red_widgets_live=Judges(
        judge_application,
        {
            "made and not started": live_answer(),
            "closed too early": live_answer("start", "close"),
            "begun anew at each start": live_answer("clean_up", "start"),
        },
    ),
)
