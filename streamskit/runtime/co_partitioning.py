"""Checks, while an application starts, whether the topics that it joins were written by the same partitioner."""

import logging
import threading
from collections.abc import Sequence
from typing import NamedTuple

from streamskit.api.client_settings import BootstrapServers
from streamskit.kafka.partitioning_check import ADVICE, Partitioning, look_at

logger = logging.getLogger("streamskit")


class Meeting(NamedTuple):
    """Topics whose records with the same key have to be in the same partition.

    Args:
        where: the step that brings them together, as the beginning of a sentence.
        topics: all of them.
        of_others: those that are not the application's own; it writes its own ones with murmur2.
    """

    where: str
    topics: Sequence[str]
    of_others: Sequence[str]


def watch_out(servers: BootstrapServers, meetings: Sequence[Meeting]) -> threading.Thread | None:
    """Check the topics in a thread, and warn if their records cannot meet; this neither delays nor fails the start.

    Args:
        servers: where the topics are.
        meetings: which of them meet.

    Returns:
        The thread; None if there is nothing to look at.
    """
    if not any(each.of_others for each in meetings):
        return None
    thread = threading.Thread(target=_look, args=(servers, meetings), name="streamskit: co-partitioning", daemon=True)
    thread.start()
    return thread


def _look(servers: BootstrapServers, meetings: Sequence[Meeting]) -> None:
    try:
        topics = dict.fromkeys(topic for each in meetings for topic in each.of_others)
        found = {topic: look_at(servers, topic) for topic in topics}
        for sentence in dict.fromkeys(warnings(meetings, found)):
            logger.warning("%s", sentence)
    except Exception as failure:
        logger.debug("The partitioning of topics could not be looked at: %r", failure)


def warnings(meetings: Sequence[Meeting], found: dict[str, Partitioning]) -> list[str]:
    """Return warnings about topics that librdkafka has written and that are joined with others.

    Args:
        meetings: which topics meet.
        found: how each topic of others is partitioned.
    """
    said = []
    for each in meetings:
        librdkafkas = [topic for topic in each.of_others if found[topic].is_librdkafkas]
        if librdkafkas and len(librdkafkas) < len(each.topics):  # what one partitioner has written meets
            spelled, facts = " and ".join(map(repr, each.topics)), "; ".join(str(found[name]) for name in librdkafkas)
            said.append(
                f"{each.where} brings together {spelled}, and librdkafka's default partitioner seems to have written "
                f"{facts}. Records with the same key are then in different tasks and never meet. {ADVICE}"
            )
    return said
