"""Records between the queries of a test driver: in which order they go on, and which of them go together."""

from collections import deque
from collections.abc import Collection, Iterable
from functools import cache

from streamskit.planning.plan import Plan
from streamskit.testing.memory import Raw

CALLS = "a call of the user's"
ANYTHING = "anything"


class WaitingRecords:
    """Records that no query has processed yet, in the order in which they were written.

    A program may write two topics in turns, and each batch costs a micro-batch: so records of one topic go together
    past those of another, if nothing can tell in which order the two were processed.

    Args:
        plans: the queries.
        outside: topics whose records also go elsewhere, such as into a global table; they keep their place.

    >>> waiting = WaitingRecords(plans=[])
    >>> waiting.extend([Raw("a", None, b"1", 0), Raw("b", None, b"2", 0), Raw("a", None, b"3", 0)])
    >>> [[record.value for record in waiting.next_batch()] for _ in range(2)]
    [[b'1', b'3'], [b'2']]
    """

    def __init__(self, plans: Collection[Plan], outside: Collection[str] = ()) -> None:
        self._plans, self._outside = plans, frozenset(outside)
        self._waiting: deque[Raw] = deque()
        self._reached = cache(self._what_is_reached)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def extend(self, records: Iterable[Raw]) -> None:
        """Put records after those that wait."""
        self._waiting.extend(records)

    def next_batch(self, singly: bool = False) -> list[Raw]:
        """Take the first record, and all of its topic that may be processed with it; `singly` takes the first alone."""
        batch = [self._waiting.popleft()]
        if singly:
            return batch
        topic = batch[0].topic
        passed: deque[Raw] = deque()
        while self._waiting and (self._waiting[0].topic == topic or self._may_swap(topic, self._waiting[0].topic)):
            record = self._waiting.popleft()
            (batch if record.topic == topic else passed).append(record)
        self._waiting.extendleft(reversed(passed))
        return batch

    def _may_swap(self, one: str, other: str) -> bool:
        reached = self._reached(one), self._reached(other)
        return ANYTHING not in reached[0] | reached[1] and not reached[0] & reached[1]

    def _what_is_reached(self, topic: str) -> frozenset[str]:
        """Return the queries and topics that get something because of a topic's records, however far down."""
        reached: set[str] = set()
        topics = [topic]
        while topics:
            name = topics.pop()
            if name in self._outside:
                return frozenset({ANYTHING})
            reached.add(name)
            for plan in self._plans:
                if plan.reads(name) and f"query {plan.name}" not in reached:
                    reached.add(f"query {plan.name}")
                    topics += _written_by(plan)
            if ANYTHING in reached | set(topics):
                return frozenset({ANYTHING})
        return frozenset(reached)


def _written_by(plan: Plan) -> list[str]:
    """Return the topics whose records may be a query's, and what stands for those that have no name yet."""
    named = [plan.topic(sink) if isinstance(sink.topic, str) else ANYTHING for sink in plan.sinks]
    calls = [CALLS] if plan.side_effects else []
    return [*named, *plan.handovers.values(), *plan.options.handlers.dead_letter_topics, *calls]
