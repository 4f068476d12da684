"""A test driver that takes many records in one micro-batch, and tells what came of each."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from streamskit.api.error_handlers import asks, fails
from streamskit.common.errors import StreamsError
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan, punctuates_by_stream_time
from streamskit.runtime.failures import explain
from streamskit.runtime.topics import side_effects
from streamskit.testing.driver import TestInputTopic, TopologyTestDriver
from streamskit.testing.memory import Raw, Turn
from streamskit.topology import Topology
from streamskit.topology.nodes import Source

PipedRecord = tuple[Any, Any, int, tuple[tuple[str, bytes], ...]]
"""The arguments of `pipe_input`: key, value, timestamp and headers."""


class CannotTakeTurnsError(StreamsError):
    """What comes of each of many records cannot be told: they have to be piped one by one."""


class TurnsTestDriver(TopologyTestDriver):
    """Runs a topology on many records at once, and tells of each what a `TopologyTestDriver` would.

    A micro-batch takes about as long for twenty records as for one. So whoever has all records at hand, as a check of
    an exercise has, waits less.

    Args:
        topology: as of a `TopologyTestDriver`, and so are the others; there are no partitions.

    Raises:
        CannotTakeTurnsError: of this topology only records that come one by one have results that can be told apart.

    >>> with TurnsTestDriver(topology) as driver:
    ...     orders, out = driver.create_input_topic("orders"), driver.create_output_topic("out")
    ...     for dropped in driver.pipe_in_turn([(orders, ("key", "value", 0, ())), (orders, ("key", "next", 5, ()))]):
    ...         print(dropped, out.read_records_to_list())
    """

    def _planned(self, topology: Topology, application_id: str, options: QueryOptions) -> list[Plan]:
        plans = plan(topology, application_id, replace(options, in_turn=True))
        if why := _against_turns(plans):
            raise CannotTakeTurnsError(f"{why}. Pipe the records one by one, into a TopologyTestDriver.")
        return plans

    def pipe_in_turn(self, records: Sequence[tuple[TestInputTopic, PipedRecord]]) -> Iterator[int]:
        """Send records through the topology, and yield of each how many were dropped because of it.

        Before that, the topics have what came of it, and of no record after it.

        Args:
            records: where each goes in, and the arguments of `pipe_input`.

        Raises:
            StreamsError: a node failed on a record; nothing says on which.
            CannotTakeTurnsError: nothing says of which record so many were dropped.
        """
        before = sum(query.dropped.total() for query in self._queries)
        given = [self._placed(topic._raw(*arguments)) for topic, arguments in records]
        internal: list[list[Raw]] = [[] for _ in given]
        made: list[list[Turn]] = []
        for query in self._queries:
            turns = [[record for record in (new, *between) if query.plan.reads(record.topic)]
                     for new, between in zip(given, internal, strict=True)]  # fmt: skip
            try:
                made.append(query.run_in_turn(turns))
            except Exception as failure:
                raise explain(failure, query.plan) from failure
            for waiting, made_of_one in zip(internal, made[-1], strict=True):
                made_of_one.written = [self._placed(record) for record in made_of_one.written]
                waiting += [record for record in made_of_one.written if record.topic in self._internal]
        dropped = sum(query.dropped.total() for query in self._queries) - before
        if sum(one.dropped for of_query in made for one in of_query) != dropped:
            raise CannotTakeTurnsError("Some records were dropped, and nothing says which.")
        for number, record in enumerate(given):
            yield self._note(record, [of_query[number] for of_query in made])

    def _note(self, record: Raw, made: list[Turn]) -> int:
        """Put what came of a record where it can be read, and return how many were dropped because of it."""
        before = self._dropped.total()
        self._fill_global(record.topic, [record])
        for written in (each for one in made for each in one.written):
            self._keep(written)
        return sum(one.dropped for one in made) + self._dropped.total() - before


def _against_turns(plans: list[Plan]) -> str:
    """Return why the results of many records cannot be told apart; "" if they can.

    With one topic between two queries, all that comes of a record in the first comes before what comes of the next in
    the second, too. With more, that depends on all other records that wait.
    """
    if len(plans) > 1 and any(each.options.cache for each in plans):
        return "The record cache is emptied after each record, also between sub-topologies"
    if any(each.native is not None for each in plans):
        return "Spark's own aggregations fold the updates of a micro-batch"
    if side_effects(plans) or any(map(asks, (handler for each in plans for handler in each.options.handlers.every))):
        return "Functions that are called for what they do would be called in another order"
    if any(_is_passed_over(source, each) for each in plans for source in each.sources):
        return "Records that cannot be read, or have no time, are passed over, and nothing says which"
    if len(plans) > 1 and any(map(punctuates_by_stream_time, plans)):
        return "Stream time goes on in all sub-topologies with each record"
    known: set[str] = set()
    every = set[str]().union(*(each.named_topics for each in plans))
    for each in plans:
        between = every & set(each.topics)
        if each.patterns or len(between) > 1 or not between <= known:
            return f"Sub-topology {each.name} reads more than one topic that is written meanwhile, or may be"
        known |= each.named_topics
    return ""


def _is_passed_over(source: Source, plan_: Plan) -> bool:
    """Return whether a record of a source may be passed over, rather than fail."""
    is_skipped = source.timestamps is not None and source.timestamps.invalid == "skip"
    return not source.internal and (is_skipped or not fails(plan_.options.handlers.deserialization))
