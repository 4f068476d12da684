"""Each mistake that any lab may know is told by its sign, in an outcome with that mistake and no other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamskit import StreamsBuilder, Topology
from streamskit.api.windows import Windowed
from streamskit.common.errors import StreamsError, StreamsKitError
from streamskit.course.labs import asking
from streamskit.course.labs.asking import Answered, Ask
from streamskit.course.labs.difference import Outcome
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
    "it stopped": Case(SUMS, SUMS[:2], error=StreamsError("It is raining.")),
    "it went on": Case(SUMS, SUMS, fails=True),
    "the store has another name": Case(SUMS, SUMS, store="sums"),
    "another topic": Case(SUMS, [], elsewhere=SUMS),
    "nothing comes out": Case(SUMS, []),
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
