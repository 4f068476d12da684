"""Expected results computed by a plain Python loop over the records, where nothing was recorded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.recording import Batch, OutcomeRow, Piped, Recording, Step
from streamskit.course.labs.trial import Trial
from streamskit.topology import Topology

LOOP = "a plain Python loop over the same records"


class Due(NamedTuple):
    """A record that has to come out; a timestamp that is None may be any."""

    topic: str
    key: Any
    value: Any
    timestamp: int | None = None


def looped(
    steps: Sequence[Step],
    topics: Iterable[str],
    loop: Callable[[Piped], Iterable[Due]],
    stores: Mapping[str, Mapping[Any, Any]] | None = None,
) -> Recording:
    """Return the recording of a loop.

    Args:
        steps: what goes in.
        topics: those that are compared.
        loop: called with each record in order; returns the results that are due.
        stores: the rows of each store as the loop leaves them.
    """
    outputs: dict[str, list[OutcomeRow]] = {topic: [] for topic in topics}
    for number, step in enumerate(steps):
        for record in step.records if isinstance(step, Batch) else (step,):
            for due in loop(record) if isinstance(record, Piped) else ():
                outputs[due.topic].append(OutcomeRow(number, due.key, due.value, due.timestamp))
    left = {
        name: tuple(OutcomeRow(-1, key, value) for key, value in rows.items()) for name, rows in (stores or {}).items()
    }
    return Recording(tuple(steps), {topic: tuple(rows) for topic, rows in outputs.items()}, left, source=LOOP)


class Later(NamedTuple):
    """A record after those of a recording: the results that are due, and how many times it is dropped."""

    record: Piped
    due: tuple[Due, ...] = ()
    dropped: int = 0


def followed_by(recording: Recording, *later: Later) -> Recording:
    """Return a recording with more records at its end; a store of a topic's name holds the last results of its keys."""
    outputs = {topic: list(rows) for topic, rows in recording.outputs.items()}
    stores = {name: {row.key: row for row in rows} for name, rows in recording.stores.items()}
    dropped = dict(recording.dropped)
    for number, each in enumerate(later, len(recording.steps)):
        for topic, key, value, timestamp in each.due:
            outputs[topic].append(OutcomeRow(number, key, value, timestamp))
            if topic in stores:
                stores[topic][key] = OutcomeRow(-1, key, value)
        dropped |= {number: each.dropped} if each.dropped else {}
    return replace(
        recording,
        steps=(*recording.steps, *(each.record for each in later)),
        outputs={topic: tuple(rows) for topic, rows in outputs.items()},
        stores={name: tuple(row for row in rows.values() if row.value is not None) for name, rows in stores.items()},
        dropped=dropped,
    )


def piped(topic: str, records: Iterable[Mapping[str, Any]]) -> list[Piped]:
    """Return the records of a generator of the course as steps."""
    return [Piped(topic, record["key"], record["value"], record["timestamp"]) for record in records]


@dataclass(frozen=True)
class WrongLoop:
    """A wrong answer to a task that a loop answers: the loop with the mistake in it.

    Args:
        recording: makes the results of that loop, from the same steps.
    """

    recording: Callable[[], Recording]

    def outcome(self, right: Recording) -> Outcome:
        """Return the results of the wrong loop, compared with the right ones."""
        wrong = self.recording()
        outputs = {topic: list(rows) for topic, rows in wrong.outputs.items()}
        stores = {name: list(rows) for name, rows in wrong.stores.items()}
        return Outcome(right, Trial(Topology(()), outputs, stores))
