"""Records between the queries of a test driver: in which order they are processed, and which of them together."""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable
from functools import cache
from itertools import combinations

from streamskit.planning.plan import Plan
from streamskit.testing.memory import Raw
from streamskit.topology.java_order import PriorityQueue

CALLS = "a call of the user's"
ANYTHING = "anything"

AT_ONCE = -(2**63)
"""Before any timestamp."""


class WaitingRecords:
    """Records that no query has processed yet, in the order in which Kafka Streams' own test driver takes them.

    All sub-topologies are one task there: each topic has a queue, and the one whose first record is the oldest is next.
    The results of many records that were piped at once are processed in the order in which they were written, as if
    each record had been piped by itself.

    A program may write two topics alternately, and each batch costs a micro-batch. Records of one topic are therefore
    processed together, ahead of another topic's, if no result depends on the order of the two.

    Args:
        plans: the queries.
        outside: topics whose records also go elsewhere, into a global table or store; they keep their place, and those
            that are written are there before any other record is processed.

    >>> waiting = WaitingRecords(plans=[])
    >>> waiting.extend([Raw("a", None, b"1", 0), Raw("b", None, b"2", 0), Raw("a", None, b"3", 0)])
    >>> [[record.value for record in waiting.next_batch()] for _ in range(2)]
    [[b'1', b'3'], [b'2']]
    """

    def __init__(self, plans: Collection[Plan], outside: Collection[str] = ()) -> None:
        self._plans, self._outside = plans, frozenset(outside)
        self._queues: dict[str, deque[tuple[int, Raw]]] = defaultdict(deque)
        self._next = PriorityQueue(self._priority)
        self._written = 0
        self._reached = cache(self._what_is_reached)
        self._meets_itself = cache(self._what_meets_itself)
        self._branches_meet = cache(self._what_has_branches_that_meet)
        self.by_time = False
        """Whether the oldest record is next; otherwise the one that was written first."""

    def __bool__(self) -> bool:
        return bool(self._next)

    def extend(self, records: Iterable[Raw]) -> None:
        """Add records after those of their topics that are already waiting."""
        for record in records:
            self._written += 1
            self._queues[record.topic].append((self._written, record))
            if len(self._queues[record.topic]) == 1:
                self._next.offer(record.topic)

    def next_batch(self, singly: bool = False) -> list[Raw]:
        """Take the next record, and all of its topic that may be processed with it; `singly` takes the first alone."""
        topic = self._next.poll()
        batch = [self._take(topic)]
        while not singly and self._queues[topic] and self._may_join(topic, batch[-1]):
            self._next.remove(topic)
            batch.append(self._take(topic))
        return batch

    def _take(self, topic: str) -> Raw:
        """Take the first record of a topic that was taken out of the queue of topics, and put the topic back."""
        _, record = self._queues[topic].popleft()
        if self._queues[topic]:
            self._next.offer(topic)
        return record

    def _priority(self, topic: str) -> int:
        number, record = self._queues[topic][0]
        if not self.by_time:
            return number
        return AT_ONCE if topic in self._outside else record.timestamp

    def _may_join(self, topic: str, last: Raw) -> bool:
        """Return whether the next record of a topic may be processed together with the last one of a batch."""
        if self.by_time and self._queues[topic][0][1].timestamp > last.timestamp and self._meets_itself(topic):
            return False  # results of the last record may be older
        if self.by_time and self._branches_meet(topic):
            return False  # whose results are next there, at one time, depends on whether this topic still waits
        if self.by_time and any(self._priority(each) == self._priority(topic) for each in self._next if each != topic):
            return False  # which of several topics is next at the same time depends on when this one is put back
        if self.by_time and self._others_meet(topic):
            return False  # which of those is next at the same time depends on where this one is among them
        before = [each for each in self._next if self._priority(each) <= self._priority(topic)]
        return self._next.first == topic or all(each == topic or self._may_swap(topic, each) for each in before)

    def _others_meet(self, topic: str) -> bool:
        """Return whether of the other topics that wait two lead to one place."""
        others = [each for each in self._next if each != topic]
        return any(not self._may_swap(*pair) for pair in combinations(others, 2))

    def _may_swap(self, one: str, other: str) -> bool:
        reached = self._reached(one), self._reached(other)
        return ANYTHING not in reached[0] | reached[1] and not reached[0] & reached[1]

    def _what_is_reached(self, topic: str) -> frozenset[str]:
        """Return the queries and topics that a topic's records reach, however far downstream."""
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

    def _what_meets_itself(self, topic: str) -> bool:
        """Return whether a topic's record leads to one topic or query both directly and by way of another topic."""
        reached = self._reached(topic)
        plans = [plan for plan in self._plans if f"query {plan.name}" in reached]
        writes = Counter(name for plan in plans for name in _written_by(plan))
        topics = [name for name in reached if not name.startswith("query ")]
        reads = [sum(map(plan.reads, topics)) for plan in plans]
        return ANYTHING in reached or any(count > 1 for count in [*writes.values(), *reads])

    def _what_has_branches_that_meet(self, topic: str) -> bool:
        """Return whether a topic's record is written on to two topics that are read again, and lead to one place."""
        written = {name for plan in self._plans if plan.reads(topic) for name in _written_by(plan)}
        read_again = [name for name in written if any(plan.reads(name) for plan in self._plans)]
        return any(not self._may_swap(*pair) for pair in combinations(read_again, 2))


def _written_by(plan: Plan) -> list[str]:
    """Return the topics that a query may write, and placeholders for those that have no name yet."""
    named = [plan.topic(sink) if isinstance(sink.topic, str) else ANYTHING for sink in plan.sinks]
    calls = [CALLS] if plan.side_effects else []
    return [*named, *plan.handovers.values(), *plan.options.handlers.dead_letter_topics, *calls]
