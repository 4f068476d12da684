"""Answers whose processors keep in fields what has to last: right until a task starts again, and told by a check."""

from typing import Any

import pytest

from streamskit import FixedKeyProcessor, FixedKeyRecord, Processor, PunctuationType, Record
from streamskit.course.labs import catalogue
from streamskit.course.labs.edits import Edit
from streamskit.course.labs.starting_again import IN_A_FIELD, called_anew, starting_again


class Counting(Processor):
    count = 0

    def process(self, record: Record) -> None:
        self.count += 1
        self.context.forward(record.with_value(self.count))


class Context:
    def __init__(self) -> None:
        self.forwarded: list[Any] = []

    def forward(self, record: Record) -> None:
        self.forwarded.append(record.value)


def test_a_processor_that_starts_again_has_lost_its_fields_and_not_its_context() -> None:
    context: Any = Context()
    processor = starting_again(Counting)()
    processor.init(context)
    for number in range(3):
        processor.process(Record("ann", "click", number))
    assert context.forwarded == [1, 1, 1]


NOTEBOOK = """
from streamskit import Processor

seen = []


class Counting(Processor):
    numbers = []

    def process(self, record):
        seen.append(record)
        self.numbers.append(record)
        self.context.forward(record.with_value(max(len(seen), len(self.numbers))))
"""


def test_a_processor_that_starts_again_has_lost_what_its_class_and_its_notebook_have_in_variables() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(NOTEBOOK, names)
    context: Any = Context()
    processor = starting_again(names["Counting"])()
    processor.init(context)
    for number in range(3):
        processor.process(Record("ann", "click", number))
    assert context.forwarded == [1, 1, 1]


def test_a_processor_that_keeps_keys_still_does_when_it_starts_again() -> None:
    class Same(FixedKeyProcessor):
        def process(self, record: FixedKeyRecord) -> None: ...

    assert isinstance(starting_again(Same)(), FixedKeyProcessor)
    assert isinstance(starting_again(Counting)(), Processor)


def test_a_processor_that_punctuates_does_not_start_again() -> None:
    class Reporting(Counting):
        def init(self, context: Any) -> None:
            super().init(context)
            context.schedule("1 minute", PunctuationType.STREAM_TIME, print)

    assert starting_again(Reporting) is Reporting


IN_FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("10-processor-api", "stops_of_a_trip"): (
        'self.stops = context.state_store("stops")', 'self.stops, self.counts = context.state_store("stops"), {}',
        "self.stops.delete(record.key)", "self.stops.delete(record.key) and self.counts.pop(record.key)",
        "(self.stops.get(record.key) or 0) + 1", "self.counts[record.key] = self.counts.get(record.key, 0) + 1",
    ),
    ("15-fault-tolerance", "standby"): (
        'self.rows = context.state_store("copy")', 'self.rows, self.last = context.state_store("copy"), {}',
        "last = self.rows.get(record.key)", "last = self.last.get(record.key)",
        "# None deletes the row", "\n            self.last[record.key] = record.value",
    ),
    ("18-kafka-music", "newcomers"): (
        'self.last = context.state_store("last-chart")', "self.last = {}",
        "self.last.put(record.key, record.value)", "self.last[record.key] = record.value",
    ),
    ("19-pos-invoices", "points_to_spend"): (
        'self.points = context.state_store("customer-points")', "self.points = {}",
        "self.points.put(record.key, left)", "self.points[record.key] = left",
    ),
    ("21-risk-management", "limit_alarms"): (
        'self.held = context.state_store("held")', "self.held = {}",
        "self.held.put(record.key, after)", "self.held[record.key] = after",
    ),
    ("23-kafka-music-as-a-service", "second_life"): (
        'self.done = context.state_store("done")', "self.done = {}",
        'self.done.put(place, "seen")', 'self.done[place] = "seen"',
    ),
}  # fmt: skip
"""Our solutions with a dict where they have a store, or beside it: texts of them, by turns old and new."""


IN_A_VARIABLE = (
    "def standby(builder):", "known = {}\n\n\ndef standby(builder):",
    "last = self.rows.get(record.key)", "last = known.get(record.key)",
    "# None deletes the row", "\n            known[record.key] = record.value",
)  # fmt: skip


@pytest.mark.spark
def test_a_right_answer_whose_processor_keeps_state_in_a_variable_of_the_notebook_is_told_so() -> None:
    found = catalogue.exercise("standby").examine_answer(Edit("15-fault-tolerance", "standby", IN_A_VARIABLE).answer())
    assert found.misconception
    assert (found.passed, found.misconception.name) == (False, IN_A_FIELD)


IN_AN_AGGREGATOR = (
    "def order_summary(builder):", "known = {}\n\n\ndef order_summary(builder):",
    '[*summary["prices"], price][-2:]', "known[product] = [*known.get(product, []), price][-2:]",
)  # fmt: skip


@pytest.mark.spark
def test_a_right_answer_whose_aggregator_keeps_state_in_a_variable_of_the_notebook_is_told_so() -> None:
    answer = Edit("07-stateful-operations", "order_summary", IN_AN_AGGREGATOR).answer()
    found = catalogue.exercise("order_summary").examine_answer(answer)
    assert found.misconception
    assert (found.passed, found.misconception.name) == (False, IN_A_FIELD)


def test_a_function_that_uses_nothing_that_can_change_is_called_as_it_is() -> None:
    def add(key: str, value: int, total: int) -> int:
        return total + value

    assert called_anew(add) is add
    assert called_anew(max) is max


@pytest.mark.spark
@pytest.mark.parametrize(("lab", "name"), IN_FIELDS)
def test_a_right_answer_that_would_lose_its_state_at_a_restart_is_told_so(lab: str, name: str) -> None:
    found = catalogue.exercise(name).examine_answer(Edit(lab, name, IN_FIELDS[lab, name]).answer())
    assert found.misconception
    assert found.misconception.name == IN_A_FIELD
    assert "Keep in a store whatever a processor has to know about earlier records" in found.says
    assert found.outcome
    assert not found.outcome.is_right
