"""The topics of a source: how a program names them, where it begins to read, and that no topic is read twice."""

import re
from collections.abc import Iterable, Sequence

from streamskit.api.auto_offset_reset import AutoOffsetReset
from streamskit.common.errors import TopologyError
from streamskit.common.names import LONGEST_NAME, is_topic_name
from streamskit.serdes import Serde
from streamskit.topology.nodes import Node, Source, of_kind


def names_or_pattern(given: Sequence[object], step: str) -> tuple[tuple[str, ...], str]:
    """Return the named topics, or the pattern that is given in their place.

    Args:
        given: names, or one collection of names, or one pattern.
        step: the step and its line in the program, for the error.

    Raises:
        TopologyError: names and a pattern are given, or several patterns, a pattern with flags, a topic twice, an empty
            collection, or what is no name.
    """
    topics = _each_of(given, step)
    patterns = [topic for topic in topics if isinstance(topic, re.Pattern)]
    if twice := [topic for topic in topics if topics.count(topic) > 1]:
        raise TopologyError(f"{step}: topic '{twice[0]}' is named twice.")
    if not patterns:
        return tuple(map(str, topics)), ""
    if len(topics) > 1:
        raise TopologyError(
            f"{step}: give the names of topics or one pattern, not both: re.compile('orders-.*|payments') matches "
            "whole names."
        )
    pattern = patterns[0]
    if pattern.flags & ~re.UNICODE:
        raise TopologyError(f"{step}: a pattern of topics has no flags: write '(?i)' and the like into it.")
    return (), pattern.pattern


def _each_of(given: Sequence[object], step: str) -> list[str | re.Pattern[str]]:
    """Return the topics one by one; a collection that is given alone stands for what is in it."""
    alone = given[0] if len(given) == 1 else given
    if isinstance(alone, set | frozenset):
        topics = sorted(alone, key=str)  # the order in which a set has them differs from run to run
    else:
        topics = list(alone) if isinstance(alone, list | tuple) else [alone]
    if not topics:
        raise TopologyError(f"{step}: {alone!r} names no topic; give at least one, such as ['orders', 'returns'].")
    for topic in topics:
        if isinstance(topic, Serde):
            raise TopologyError(f"{step}: {topic} is a serde, and no topic: write key=... or value=... before it.")
        if not isinstance(topic.pattern if isinstance(topic, re.Pattern) else topic, str):
            raise TopologyError(
                f"{step}: {topic!r} is no topic. Give names, 'orders', 'returns'; a list of names; or one pattern, "
                "re.compile('orders-.*')."
            )
    return topics


def check_topic(topic: object, step: str) -> None:
    """Check that a topic can have this name.

    Raises:
        TopologyError: none can.
    """
    if not isinstance(topic, str) or not is_topic_name(topic):
        raise TopologyError(
            f"{step}: no topic can be called {topic!r}: give at most {LONGEST_NAME} letters of a to z, digits, dots, "
            "dashes and underscores, such as 'orders'."
        )


def offset_reset(given: AutoOffsetReset | str | None, step: str) -> AutoOffsetReset | None:
    """Return where a source's first start begins to read; None leaves it to the application's config.

    Raises:
        TopologyError: it is not known.
    """
    try:
        return None if given is None else AutoOffsetReset.of(given)
    except ValueError as unknown:
        raise TopologyError(f"{step}: {unknown}") from None


def readers_of(named: Sequence[str], pattern: str, nodes: Iterable[Node]) -> list[Source]:
    """Return the sources that read one of the topics, or one that matches the pattern, or have the same pattern."""
    return [
        source
        for source in of_kind(Source, nodes)
        if not source.internal
        if any(map(source.reads_topic, named))
        or (pattern and (source.pattern == pattern or any(re.fullmatch(pattern, topic) for topic in source.topics)))
    ]


def read_twice(topic: str, other: Source) -> TopologyError:
    """Return the error for a topic, or a pattern of topics, that another source reads in a different way."""
    read = f"the pattern '{other.pattern}'" if other.pattern else ", ".join(other.topics)
    return TopologyError(
        f"'{topic}' is already read by {other.name} ({other.call_site}), which reads {read}, in another way: keep what "
        "that returned in a variable and use it twice."
    )


def check_read_once(topic: str, sources: Sequence[Source]) -> None:
    """Check that a topic matches one pattern only.

    Raises:
        TopologyError: several sources would read it.
    """
    if len(sources) > 1:
        one, other = sources[:2]
        raise TopologyError(
            f"Topic '{topic}' matches the patterns of two sources: '{one.pattern}' of {one.name} ({one.call_site}) and "
            f"'{other.pattern}' of {other.name} ({other.call_site}). A topic is read once: write patterns that have no "
            "topic in common."
        )
