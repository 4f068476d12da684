"""The exercises of lab 01: a record's bytes, its order, two filters, and an application on the real broker."""

import json
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

from pyspark.sql import Column

from streamskit.common.names import own_name
from streamskit.course.datasets.trades import widgets
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Judges, Runs, Says, Verdict, mistaken, right, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams

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
        if not isinstance(made, tuple | list) or len(made) != 2:
            return wrong(f"It has to return two things, the key's bytes and the value's; it returned {made!r}.")
        key, value = made
        found = _not_bytes((key, value)) or _other_bytes(key, value, widget)
        if found:
            return found
    return right("Two widgets, one with a colour that is not ASCII, became bytes and were read back unchanged.")


def _not_bytes(made: tuple[Any, Any]) -> Verdict | None:
    for part, value in zip(("key", "value"), made, strict=True):
        if not isinstance(value, bytes):
            return mistaken("text in place of bytes", part=part, kind=type(value).__name__)
    return None


def _other_bytes(key_bytes: bytes, value_bytes: bytes, widget: dict[str, Any]) -> Verdict | None:
    try:
        key, value = key_bytes.decode(), value_bytes.decode()
    except UnicodeDecodeError as error:
        return wrong(f"Key and value have to be text in UTF-8, as encode() writes it; {error.object!r} is none.")
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


def is_gift(v: Column) -> Column:
    """Whether a widget is a gift."""
    return (v.colour == "red") & (v.grams < 60)


def light_ones_came(outcome: Outcome) -> bool:
    """All that came is what should be dropped."""
    return bool(outcome.actual) and all((row.value or {}).get("grams", 0) <= 100 for row in outcome.actual)


# ---- an application on the real broker -------------------------------------------------------------------------------

WIDGETS = list(widgets(30, seed=5))


def widgets_wait(site: Site) -> None:
    """Put the first widgets into their topic."""
    site.create_topics(widgets=2, red_widgets=2)
    site.broker.produce(site.topic("widgets"), WIDGETS[:20])


def judge_application(site: Site, first: KafkaStreams) -> Verdict:
    """Judge an application by what it has written, once it was started a second time and there were more widgets."""
    if found := _settled(site, first):
        return found
    site.broker.produce(site.topic("widgets"), WIDGETS[20:])
    again = site.answer(site)
    if not isinstance(again, KafkaStreams):
        return wrong(f"When it was called a second time, it returned {again!r} and not the KafkaStreams that runs.")
    if found := _settled(site, again):
        return found
    due = [widget["key"] for widget in WIDGETS if widget["value"]["colour"] == "red"]
    return _judge_written(list(site.broker.consume(site.topic("red-widgets"))["key"]), due)


def _settled(site: Site, streams: KafkaStreams) -> Verdict | None:
    """Let the application process all there is, and close it; return what is wrong with it, if anything is."""
    try:
        if streams.application_id != own_name(site.application_id):
            return wrong("The application has another id: it should be site.application_id.")
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
            f"Your application ran twice on the broker, and sent {len(due)} of 30 widgets: those from before its first "
            "start once, and after the second start only new ones."
        )
    if set(came) == set(due):
        return mistaken("from the beginning at each start")
    if set(came) < set(due):
        return wrong(f"{len(set(due) - set(came))} red widgets are missing from the topic red-widgets.")
    return wrong(f"Some widgets in red-widgets are not red, such as {min(set(came) - set(due))}.")


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
        signs={"filter the other way round": light_ones_came},
    ),
    gifts_and_others=Runs(
        gifts,
    ),
    red_widgets_live=Lives(
        "red_widgets_live",
        widgets_wait,
        judge_application,
        returns_application=True,
    ),
)
