"""Each mistake that any lab may know is told by its sign, in an outcome with that mistake and no other."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from streamskit import StreamsBuilder, Topology
from streamskit.api.windows import Windowed
from streamskit.common.errors import StreamsError, StreamsKitError
from streamskit.course.labs import asking, catalogue
from streamskit.course.labs.asking import Answered, Ask
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Lab, Runs
from streamskit.course.labs.exercises import joins
from streamskit.course.labs.misconceptions import GENERAL, WORDS, recognise
from streamskit.course.labs.recording import OutcomeRow, Piped, Recording
from streamskit.course.labs.several_tasks import SPLIT
from streamskit.course.labs.starting_again import IN_A_FIELD
from streamskit.course.labs.trial import Trial
from streamskit.serdes.serde import SerdeError

MINUTE = 60_000


def piped(*records: tuple[Any, Any, int]) -> tuple[Piped, ...]:
    return tuple(Piped("in", *record) for record in records)


def minute(key: str, start: int, size: int = MINUTE) -> Windowed:
    return Windowed(key, start * MINUTE, start * MINUTE + size)


@dataclass(frozen=True)
class Case:
    """What should have come of some records, and what came in its place; both in the topic `out`."""

    due: Sequence[OutcomeRow]
    came: Sequence[OutcomeRow]
    steps: Sequence[Piped] = piped(("a", 1, 0), ("a", 2, 1), ("b", 3, 2))
    elsewhere: Sequence[OutcomeRow] = ()
    dropped: tuple[int, ...] = ()
    should_drop: tuple[int, ...] = ()
    store: str = ""
    fails: bool = False
    error: StreamsKitError | SerdeError | None = None
    topology: Topology = field(default_factory=lambda: Topology(()))

    def outcome(self) -> Outcome:
        stores = {self.store: (OutcomeRow(-1, "a", 1),)} if self.store else {}
        dropped = dict.fromkeys(self.should_drop, 1)
        recording = Recording(tuple(self.steps), {"out": tuple(self.due)}, stores, dropped=dropped, fails=self.fails)
        outputs = {"out": list(self.came), "elsewhere": list(self.elsewhere)}
        stopped_at = len(self.steps) - 1 if self.error else -1
        trial = Trial(self.topology, outputs, {}, dict.fromkeys(self.dropped, 1), self.error, stopped_at)
        return Outcome(recording, trial)


SUMS = [OutcomeRow(0, "a", 1, 0), OutcomeRow(1, "a", 3, 1), OutcomeRow(2, "b", 3, 2)]
COUNTS = [OutcomeRow(0, minute("a", 0), 1, 0), OutcomeRow(1, minute("a", 0), 2, 1), OutcomeRow(2, minute("b", 0), 1, 2)]
LATE = piped(("a", 1, 0), ("a", 1, 3 * MINUTE), ("a", 1, 1))
OF_LATE = [OutcomeRow(0, minute("a", 0), 1, 0), OutcomeRow(1, minute("a", 3), 1, 3 * MINUTE)]

CASES = {
    "another serde": Case(SUMS, SUMS[:2], error=SerdeError("no long")),
    "a field of a dict": Case(
        SUMS, SUMS[:2], error=StreamsError("AttributeError: 'dict' object has no attribute 'fee'")
    ),
    "it stopped": Case(SUMS, SUMS[:2], error=StreamsError("It is raining.")),
    "it went on": Case(SUMS, SUMS, fails=True),
    "the store has another name": Case(SUMS, SUMS, store="sums"),
    "another topic": Case(SUMS, [], elsewhere=SUMS),
    "nothing comes out": Case(SUMS, []),
    "results of other keys": Case(
        COUNTS, [OutcomeRow(row.step, minute("home", 0), row.step + 1, row.timestamp) for row in COUNTS]
    ),
    "results without their windows": Case(COUNTS, SUMS),
    "windows of another size": Case(COUNTS, [row._replace(key=minute(row.key.key, 0, 60)) for row in COUNTS]),
    "windows that begin at other times": Case(COUNTS, [row._replace(key=minute(row.key.key, 1)) for row in COUNTS]),
    "late record counted": Case(OF_LATE, [*OF_LATE, OutcomeRow(2, minute("a", 0), 2, 1)], LATE, should_drop=(2,)),
    "record in time dropped": Case([*OF_LATE, OutcomeRow(2, minute("a", 0), 2, 1)], OF_LATE, LATE, dropped=(2,)),
    "record without a key counted": Case(
        SUMS[:1], [SUMS[0], OutcomeRow(1, None, 2, 1)], piped(("a", 1, 0), (None, 2, 1), ("b", None, 2))
    ),
    "tombstone missed": Case(
        [SUMS[0], OutcomeRow(1, "a", None, 1)], [SUMS[0], OutcomeRow(1, "a", 1, 1)], piped(("a", 1, 0), ("a", None, 1))
    ),
    "another type": Case(SUMS, [row._replace(value=str(row.value)) for row in SUMS]),
    "every record twice": Case(SUMS, [row for row in SUMS for _ in range(2)]),
    "wrong key": Case(SUMS, [row._replace(key=row.key.upper()) for row in SUMS]),
    "wrong time": Case(SUMS, [row._replace(timestamp=9) for row in SUMS]),
    "updates that should have been kept back": Case(SUMS[1:], SUMS),
    "only final results": Case(SUMS, SUMS[1:]),
    "some results are missing": Case(SUMS, SUMS[:2]),
}


@pytest.mark.parametrize("name", GENERAL)
def test_a_general_mistake_is_told_by_its_sign(name: str) -> None:
    outcome = CASES[name].outcome()
    found = recognise(outcome, GENERAL)
    assert GENERAL[name](outcome)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", GENERAL)
def test_a_right_outcome_shows_the_sign_of_no_general_mistake(name: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    for rows in (SUMS, COUNTS):
        right = Case(rows, rows, topology=builder.build()).outcome()
        assert right.is_right
        assert not GENERAL[name](right)


def test_a_record_that_is_dropped_is_not_told_as_out_of_order_where_it_is_not() -> None:
    found = recognise(Case(SUMS, SUMS[:2], dropped=(2,)).outcome(), GENERAL)
    assert found is not None
    assert found.name == "some results are missing"


def test_results_with_another_key_are_not_told_as_updates_on_the_way() -> None:
    assert recognise(Case(SUMS, [*SUMS, OutcomeRow(2, "small", 1, 2)]).outcome(), GENERAL) is None


def test_a_record_without_a_key_is_not_told_as_counted_where_a_result_of_it_is_due() -> None:
    steps = piped((None, 1, 0))
    found = recognise(Case([OutcomeRow(0, None, 1, 0)], [OutcomeRow(0, 1, "1", 0)], steps).outcome(), GENERAL)
    assert found is not None
    assert found.name == "another type"


def test_a_store_that_is_not_there_is_wrong_even_where_all_its_rows_are_deleted() -> None:
    recording = Recording(piped(("a", 1, 0)), {"out": (SUMS[0],)}, {"sums": ()})
    outcome = Outcome(recording, Trial(Topology(()), {"out": [SUMS[0]]}))
    assert not outcome.is_right
    assert Outcome(recording, replace(outcome.trial, stores={"sums": []})).is_right


def test_a_field_that_is_null_is_the_same_as_one_that_is_absent() -> None:
    absent, null = ([OutcomeRow(0, "a", value, 0)] for value in ({"total": 1}, {"total": 1, "user": None}))
    assert Case(absent, null).outcome().is_right
    assert not Case(absent, [OutcomeRow(0, "a", {"total": 1, "user": ""}, 0)]).outcome().is_right


def test_a_partner_that_is_left_out_of_the_text_is_not_told_as_a_pair_too_many() -> None:
    due, came = ([OutcomeRow(0, "ann", value, 0)] for value in ("a1+nothing", "a1"))
    assert not joins.more_pairs(Case(due, came).outcome())


@pytest.mark.spark
@pytest.mark.parametrize("lab", catalogue.labs(), ids=lambda lab: lab.name)
def test_results_of_a_type_that_no_lab_expects_end_no_check_with_an_error(lab: Lab) -> None:
    for examine in (exercise.examine for exercise in lab.exercises if isinstance(exercise.examine, Runs)):
        recording = examine.recording()
        for changed in ({"value": True}, {"value": None}, {"key": {"user": "ann"}}, {"value": {"text": None}}):
            came = {topic: [row._replace(**changed) for row in rows] for topic, rows in recording.outputs.items()}
            outcome = Outcome(recording, Trial(Topology(()), came))
            assert examine.by_sign(outcome) or not outcome.is_right


ANSWERS = {
    "nothing is returned": [Answered(Ask("", (), 3), None), Answered(Ask("", (), 4), None)],
    "rows in place of values": [Answered(Ask("", (), [3]), [("a", 3)])],
}


@pytest.mark.parametrize("name", asking.GENERAL)
def test_a_general_mistake_of_functions_is_told_by_their_answers(name: str) -> None:
    found = recognise(ANSWERS[name], asking.GENERAL)
    assert found is not None
    assert found.name == name


def test_every_general_mistake_has_words() -> None:
    assert WORDS.keys() == GENERAL.keys() | asking.GENERAL.keys() | {SPLIT, IN_A_FIELD}
