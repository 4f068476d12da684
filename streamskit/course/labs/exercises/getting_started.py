"""The exercises of lab 01: a record's bytes, its order, two filters, and an application on the real broker."""

import json
from collections.abc import Callable, Iterator
from itertools import islice, permutations
from typing import Any

from streamskit.broker import shared_broker
from streamskit.broker.base import Broker
from streamskit.course.datasets.trades import widgets
from streamskit.course.labs.difference import Moment, Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says, Verdict, right, wrong
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.misconceptions import Misconception
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
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
        if not isinstance(made, tuple) or len(made) != 2:
            return wrong(f"Two things are asked for, the key's bytes and the value's; you return {made!r}.")
        found = _not_bytes(made) or _other_bytes(made[0].decode(), made[1].decode(), widget)
        if found:
            return found
    return right("Two widgets were made into bytes, one of a green that is no ASCII text, and read again as they were.")


def _not_bytes(made: tuple[Any, Any]) -> Verdict | None:
    for part, value in zip(("key", "value"), made, strict=True):
        if not isinstance(value, bytes):
            return wrong(
                f"The {part} is a {type(value).__name__}. Kafka knows only bytes: a text becomes bytes with encode().",
                "text in place of bytes",
            )
    return None


def _other_bytes(key: str, value: str, widget: dict[str, Any]) -> Verdict | None:
    if key != widget["key"]:
        return wrong(f"The key reads {key!r} and should read {widget['key']!r}.")
    try:
        read = json.loads(value)
    except ValueError:
        return wrong(
            f"The value reads {value!r}, which is how Python prints a dict, and no JSON: others could not read it. "
            "json.dumps makes JSON.",
            "printed in place of JSON",
        )
    if read == widget:
        return wrong(
            "The value holds the whole widget. Key and timestamp are parts of the record beside its value.",
            "the record in its own value",
        )
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


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def grams_at_the_limit(grams: int) -> Callable[[Outcome], bool]:
    """Return the sign that a widget of exactly so many grams went wrong, and no other one."""

    def sign(outcome: Outcome) -> bool:
        values = [record.value for moment in outcome.differing if (record := outcome.piped(moment))]
        return bool(values) and all(value is not None and value.get("grams") == grams for value in values)

    return sign


def light_ones_came(outcome: Outcome) -> bool:
    """All that came is what should be dropped."""
    return bool(outcome.actual) and all((row.value or {}).get("grams", 0) <= 100 for row in outcome.actual)


def one_reason_is_enough(outcome: Outcome) -> bool:
    """Widgets for which one of two conditions holds are gifts."""
    extra = [row.value for moment in _of(outcome, "gifts") for row in moment.extra]
    return any(v.get("colour") == "red" for v in extra) and any(v.get("colour") != "red" for v in extra)


def unknown_in_neither(outcome: Outcome) -> bool:
    """Widgets of which something is not known come nowhere, and only they."""
    lost = [moment for moment in _of(outcome, "others") if moment.missing and not moment.actual]
    values = [record.value for moment in lost if (record := outcome.piped(moment))]
    return bool(values) and all(len(value) < 2 for value in values)


def rest_is_missing(outcome: Outcome) -> bool:
    """Nothing came in the topic of the others."""
    return not outcome.trial.outputs.get("others")


def all_in_others(outcome: Outcome) -> bool:
    """A gift is among the others, too."""
    return any(moment.extra for moment in _of(outcome, "others"))


def _of(outcome: Outcome, topic: str) -> list[Moment]:
    return [moment for moment in outcome.moments if moment.topic == topic]


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
    if left := KafkaStreams.running.get(APPLICATION):
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
        if streams.application_id != APPLICATION:
            return wrong(f"The application's id is {streams.application_id!r}, and should be {APPLICATION!r}.")
        if streams.state is State.CREATED:
            return wrong(
                "The application was made and not started. It reads nothing before start().", "made and not started"
            )
        if streams.state is State.NOT_RUNNING:
            return wrong("The application was closed. It should run when the function returns.", "closed too early")
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
        return wrong(
            "Some widgets came twice: at its second start the application read everything again. clean_up() forgets "
            "how far it had come, so an application that should go on where it was does not call it.",
            "begun anew at each start",
        )
    if set(came) < set(due):
        return wrong(f"{len(set(due) - set(came))} red widgets did not come in the topic {TARGET}.")
    return wrong(f"Among the widgets in {TARGET} are some that are not red, such as {min(set(came) - set(due))}.")


LAB = Lab(
    "01-getting-started",
    "Getting started",
    (
        Exercise(
            "bytes_of_a_widget",
            "Make the key and the value of a widget into bytes, as Kafka keeps them.",
            judge_bytes,
            (
                "A text has a method that makes bytes of it. The value is a dict: make a text of it first.",
                "json.dumps(...) makes JSON, a text; encode() makes bytes of a text.",
                'return widget["key"].encode(), json.dumps(widget["value"]).encode()',
            ),
        ),
        Exercise(
            "orders_of_three",
            "Say in how many orders three records of two partitions can be read.",
            Says(
                possible_orders,
                "Of the six orders of three records those were counted that keep the two of one key in theirs.",
                {
                    1: (
                        "one order for the whole topic",
                        "There is an order within each partition, and none between partitions: the third record may "
                        "come anywhere.",
                    ),
                    6: (
                        "no order at all",
                        "The two records with one key are in one partition, and there the first stays before the "
                        "second. Which of the six orders break that?",
                    ),
                    2: (
                        "partitions read one after the other",
                        "A consumer need not read one partition to its end before the other: the third record may also "
                        "come between the first two.",
                    ),
                },
            ),
            (
                "Equal keys lead to the same partition, and order holds within a partition.",
                "Write down the six orders of a, b and c, where a and b have one key. In which does b come before a?",
                "abc, acb, cab: c may come anywhere, and a stays before b.",
            ),
        ),
        Exercise(
            "heavy_widgets",
            "Send the widgets of more than 100 grams to a topic of their own.",
            Runs(
                heavy,
                (
                    Misconception(
                        "the limit itself",
                        "A widget of exactly 100 grams went wrong. More than 100 does not mean 100.",
                        grams_at_the_limit(100),
                    ),
                    Misconception(
                        "filter the other way round",
                        "The light ones came. filter keeps the records for which the function is true.",
                        light_ones_came,
                    ),
                ),
            ),
            (
                "One step keeps the records for which a function is true.",
                "In the function, v has the fields that the serde names: v.colour, v.grams.",
                "widgets.filter(lambda v: v.grams > 100)",
            ),
        ),
        Exercise(
            "gifts_and_others",
            "Send light red widgets to one topic, and all others to another.",
            Runs(
                gifts,
                (
                    Misconception(
                        "one of two conditions",
                        "Widgets that are red or light became gifts. Both have to hold: & between two conditions, each "
                        "in parentheses.",
                        one_reason_is_enough,
                    ),
                    Misconception(
                        "no topic for the others",
                        "Nothing came in the topic others. A filter drops what it does not keep; what is dropped comes "
                        "nowhere by itself.",
                        rest_is_missing,
                    ),
                    Misconception(
                        "a gift among the others",
                        "A widget is in both topics. The others are those for which the gifts' condition is not true.",
                        all_in_others,
                    ),
                    Misconception(
                        "the limit itself",
                        "A widget of exactly 60 grams went wrong. Less than 60 does not mean 60.",
                        grams_at_the_limit(60),
                    ),
                    Misconception(
                        "unknown in neither",
                        "A widget of unknown colour or weight comes in neither topic: with null a comparison is null, "
                        "and so is its opposite. filter_not keeps all that is not true, and that includes null.",
                        unknown_in_neither,
                    ),
                ),
            ),
            (
                "One condition decides about both topics. A record for which it is null belongs to the others.",
                "Conditions on Columns are joined with &, each in parentheses. filter and filter_not share all records "
                "between them.",
                'is_gift = lambda v: (v.colour == "red") & (v.grams < 60), then filter(is_gift) and '
                "filter_not(is_gift)",
            ),
        ),
        Exercise(
            "red_widgets_live",
            "Start an application on the broker that sends the red widgets on, and goes on where it stopped.",
            judge_application,
            (
                "Build the topology, make a KafkaStreams of it, start it, return it.",
                "KafkaStreams(builder.build(), application_id, bootstrap_servers), then start(). clean_up() would make "
                "it begin anew.",
                'streams = KafkaStreams(builder.build(), "live-red-widgets-app", bootstrap_servers); streams.start(); '
                "return streams",
            ),
        ),
    ),
)
