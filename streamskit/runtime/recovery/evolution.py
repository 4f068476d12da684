"""Whether an application may go on with a changed topology: what it has kept must still be what its queries expect."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from streamskit.common.durations import spell
from streamskit.common.errors import StreamsError
from streamskit.runtime.recovery.fingerprint import OperatorPrint, QueryPrint

GENERATED = re.compile(r"-\d{10}(?!\d)")
"""The number in a name that nobody gave."""


def check(
    application_id: str,
    folder: Path,
    before: Mapping[str, QueryPrint],
    now: Mapping[str, QueryPrint],
    read: Collection[str] = (),
) -> None:
    """Compare the queries that have begun with what is to go on in their place.

    A change is compatible if the state of a query stays with the operators that made it: other steps without state,
    more sinks, additional sub-topologies after the others, one more topic to read, or one less without state. Whether a
    sub-topology still runs as the same queries is checked before (`StartupChecks.compare`).

    Args:
        application_id: the name to use in messages.
        folder: the application's folder.
        before: the queries that have begun, as they were noted at the last start.
        now: the queries of this start.
        read: the topics that the program reads now, in any query.

    Raises:
        StreamsError: what was kept no longer fits because of a change, which the sentence names.

    Mirrors what Kafka Streams leaves to the reader of its upgrade guide.
    """
    changed = {
        name: found
        for name, query in now.items()
        if name in before and (found := list(changes(before[name], query, read)))
    }
    if not changed:
        return
    if all(_has_other_sources(application_id, before[name], now[name], read) for name in changed):
        name = next(iter(changed))
        raise other_partitions(application_id, name, now[name].reads, before[name].tasks, now[name].tasks)
    said = "; ".join(f"sub-topology {name} {', and '.join(found)}" for name, found in changed.items())
    if all(_has_other_settings(before[name], now[name], read) for name in changed):
        raise _other_settings(application_id, folder, said)
    raise StreamsError(
        f"The topology of '{application_id}' has changed, and what is kept in {folder} no longer matches it: "
        f"{said}. Run the old topology again, or begin anew with this one: clean_up() forgets what was kept, and the "
        "next start reads the topics from their first records; another application_id leaves the old one as it is."
        f"{_advice(before, now, changed)}"
    )


def other_partitions(application_id: str, name: str, topics: list[str], before: int, now: int) -> StreamsError:
    """Return the refusal to run a sub-topology with state when its topics have another number of partitions.

    Mirrors the refusal of Kafka Streams, whose changelogs and repartition topics have the old number.
    """
    said = (
        f"The topics of sub-topology {name} of '{application_id}' ({_quoted(topics)}) have {_count(now, 'partition')} "
        f"now, and it keeps state of {before}: "
    )
    if now < before:
        return StreamsError(
            f"{said}the topic that had so many is gone. To begin anew, call clean_up(); the next start reads the "
            "topics from their first records."
        )
    return StreamsError(
        f"{said}partitions were added. Keys go to other partitions since then, and "
        "would not meet the state that is kept for them. Kafka never removes partitions. To begin anew, call "
        "clean_up(); the next start reads the topics from their first records. Records of one key from before and "
        "after are in different partitions, though: put repartition() in front of the first step with state, so that "
        "they meet, or copy the records into a new topic and read that."
    )


def _other_settings(application_id: str, folder: Path, said: str) -> StreamsError:
    """Return the error for state that Spark's own operators kept and Python would keep now, or the other way round."""
    return StreamsError(
        f"'{application_id}' has the same steps as before, but a changed setting moves their state from Spark's own "
        f"operators to Python, or back, and neither reads the state of the other. What is kept in {folder} no longer "
        f"matches: {said}. With a record cache, or in real-time mode, Spark's own operators count; otherwise Python "
        "does. Did statestore_cache_max_bytes, real_time, an exception handler or with_caching_disabled() change? Set "
        "it as it was, or begin anew: clean_up() forgets what was kept, and the next start reads the topics from their "
        "first records."
    )


def _has_other_settings(before: QueryPrint, now: QueryPrint, read: Collection[str]) -> bool:
    """Whether the same steps keep their state, some of them in Spark's own operators before or now, but not both."""
    pairs = [*zip(before.operators, now.operators, strict=False)]
    return (
        len(before.operators) == len(now.operators)
        and all(one.is_of_same_step(other) for one, other in pairs)
        and any(one.in_python != other.in_python for one, other in pairs)
        and not any(changes(before, replace(now, operators=before.operators), read))
    )


def _has_other_sources(application_id: str, before: QueryPrint, now: QueryPrint, read: Collection[str]) -> bool:
    """Whether only a query's number of tasks has changed, and because of its topics rather than the program."""
    own = any(topic.startswith(f"{application_id}-") and topic.endswith("-repartition") for topic in now.reads)
    return not own and not any(changes(before, replace(now, tasks=before.tasks), read))


def changes(before: QueryPrint, now: QueryPrint, read: Collection[str] = ()) -> Iterator[str]:
    """Yield the changes that keep a query from continuing, each as the end of a sentence about it."""
    gone = [topic for topic in before.reads if topic not in now.reads]
    new = [topic for topic in now.reads if topic not in before.reads]
    has_state = bool(before.operators or before.stores)
    # Another query would read a topic that has moved there once more; and without any topic left, it is another query.
    if gone and (has_state or len(gone) == len(before.reads) or not {*gone}.isdisjoint(read)):
        yield f"read {_quoted(gone)}" + (f" and now reads {_quoted(new)} instead" if new else " and does so no more")
    if [*map(_identity, before.operators)] != [*map(_identity, now.operators)]:
        yield f"kept the state of {_named(before.operators)} and now keeps that of {_named(now.operators)}"
    elif not all(one.is_same(other) for one, other in zip(before.operators, now.operators, strict=True)):
        yield from (
            f"kept {one} and now {other}"
            for one, other in zip(before.operators, now.operators, strict=True)
            if not one.is_same(other)
        )
    elif now.operators and before.tasks != now.tasks:
        yield (
            f"had {_count(before.tasks, 'task')} and now has {now.tasks}: its topics have another number of "
            "partitions, so that keys would not meet their state"
        )
    else:
        yield from _exchanged(before, now, gone)
        yield from _more_patient(before, now)
    if (now.operators or now.stores) and before.keeps_partitions != now.keeps_partitions:
        by = ["their keys alone", "a partitioner"]
        yield (
            f"read records in the partitions that {by[before.keeps_partitions]} had chosen, and now "
            f"{by[now.keeps_partitions]} would choose them, so that keys would not meet their state"
        )
    if added := [store for store in now.stores if store not in before.stores]:
        yield f"has a new store {_quoted(added)}, which would lack all that was read before"
    if before.uses_wall_clock != now.uses_wall_clock:
        yield "now punctuates by the wall clock" if now.uses_wall_clock else "no longer punctuates by the wall clock"


def _exchanged(before: QueryPrint, now: QueryPrint, gone: Collection[str]) -> Iterator[str]:
    """Yield which operators would go on with the rows of others, as steps of one kind have changed places."""
    filled = {store: each.name for each in now.operators for store in each.stores}
    for one, other in zip(before.operators, now.operators, strict=True):
        for store in one.stores:
            if store not in other.stores and store in filled:
                yield f"filled store '{store}' by {one.name} and now does so by {filled[store]}"
        for side, same in zip(one.sides, other.sides, strict=False):
            if moved := [topic for topic in side if topic not in same and topic not in gone]:
                yield f"kept records of {_quoted(moved)} in {one.name} where it now keeps those of {_quoted(same)}"


def _more_patient(before: QueryPrint, now: QueryPrint) -> Iterator[str]:
    """Yield which windows of Spark's own would wait longer: it has forgotten those that have closed.

    Records for these would neither be counted nor reported as dropped.
    """
    for one, other in zip(before.operators, now.operators, strict=True):
        if one.grace is not None and other.grace is not None and one.grace < other.grace:
            yield (
                f"closed windows {spell(one.grace)} after their end ({other.name}) and now has a grace of "
                f"{spell(other.grace)}, but what was counted in closed windows is forgotten"
            )


def _identity(operator: OperatorPrint) -> tuple[str, str, int]:
    return operator.name if operator.in_python else "", operator.kind, operator.level


def _advice(before: Mapping[str, QueryPrint], now: Mapping[str, QueryPrint], changed: Mapping[str, list[str]]) -> str:
    """Return advice on how to keep names stable, if only the numbers in them have moved."""
    moved = {
        name: other
        for name in changed
        for other, query in now.items()
        if other != name and _likeness(before[name]) == _likeness(query)
    }
    if moved:
        pairs = ", ".join(f"sub-topology {old} is number {new} now" for old, new in moved.items())
        return f" It seems that {pairs}: write new parts of the program after the old ones."
    for name in changed:
        gone = {*before[name].reads} - {*now[name].reads}
        if [*map(_identity, before[name].operators)] == [*map(_identity, now[name].operators)] and any(
            _exchanged(before[name], now[name], gone)
        ):
            return (
                " Steps have changed places, and each would go on with the rows of the other: write them in the order "
                "that they had, and the two sides of a join where they were."
            )
        for one, other in zip(before[name].operators, now[name].operators, strict=False):
            if one.name != other.name and GENERATED.sub("", one.name) == GENERATED.sub("", other.name):
                return (
                    " Steps without a name are numbered in the order of the program, and a step before it has come or "
                    f"gone. Name those with state, and they stay who they are: name='{one.name}' gives this one its "
                    "state back."
                )
    return ""


def _likeness(query: QueryPrint) -> tuple[list[str], list[str]]:
    """Return what a query reads and keeps, without the numbers in names."""
    return [GENERATED.sub("", topic) for topic in query.reads], [
        GENERATED.sub("", str(each)) for each in query.operators
    ]


def _named(operators: list[OperatorPrint]) -> str:
    return ", ".join(f"{each.name} ({each.kind})" for each in operators) or "no operator"


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
