"""The topics that running queries write: one that is deleted meanwhile is missed within seconds.

Kafka's producer waits for two minutes until it gives up, and it does not ask before there is something to write.
"""

import logging
from collections.abc import Mapping

from streamskit.common.errors import StreamsError
from streamskit.kafka.topics import TopicIdentity, unseen
from streamskit.planning.plan import Plan

logger = logging.getLogger("streamskit")


class WrittenTopics:
    """Looks whether the topics that queries write are there, and whether changelogs are still the same.

    A topic counts as deleted when two looks in a row do not find it, so one that is made anew at once is written on.
    Topics whose names depend on records are not known here; who writes them looks by itself.

    Args:
        application_id: the name to use in messages.
    """

    def __init__(self, application_id: str) -> None:
        self._application_id = application_id
        self._missing = self._gone = frozenset[str]()
        self._ids: dict[str, str] = {}

    def look(self, plans: list[Plan], found: Mapping[str, TopicIdentity]) -> None:
        """Note which of the topics are there.

        Args:
            plans: what the queries run.
            found: the topics that are there.
        """
        missing = frozenset(topic for plan in plans for topic in watched(plan) if topic not in found)
        before, self._missing, self._gone = self._gone, missing, missing & self._missing
        for plan in plans:
            if plan.checkpoint_topic in self._gone - before and plan.checkpoint_topic not in written(plan):
                logger.warning(
                    "'%s': topic '%s', which keeps a copy of the checkpoint of sub-topology %s, was deleted. The "
                    "application goes on without it, and its next start makes it again; should its folder be lost "
                    "before that, it cannot be rebuilt.", self._application_id, plan.checkpoint_topic, plan.name,
                )  # fmt: skip
            for topic in (plan.changelog(store) for store in plan.stores):
                if topic in found and self._ids.setdefault(topic, found[topic].id) != found[topic].id:
                    self._gone |= {topic}

    def refusal(self, plan: Plan) -> StreamsError | None:
        """Return why a query cannot go on, as of the last look; None if all that it writes is there."""
        for store in plan.stores:
            if (topic := plan.changelog(store)) in self._gone:
                return StreamsError(
                    f"The changelog of store '{store.name}', topic '{topic}', was deleted while "
                    f"'{self._application_id}' ran: the store would have only what changes from now on. Call "
                    f"clean_up() and start again: the application begins anew, and makes the topic."
                    f"{unseen(plan.options.bootstrap_servers)}"
                )
        for node in plan.side_effects:
            if (topic := plan.calls_topic(node)) in self._gone:
                return StreamsError(
                    f"Topic '{topic}', on which records travel to the function of {node.name}, was deleted while "
                    f"'{self._application_id}' ran. Start the application again: it makes the topic. The function is "
                    f"not called for records that were on their way.{unseen(plan.options.bootstrap_servers)}"
                )
        for topic, what in _notes(plan).items():
            if topic in self._gone:
                return StreamsError(
                    f"Topic '{topic}', in which sub-topology {plan.name} of '{self._application_id}' {what}, was "
                    "deleted while the application ran. Start it again: it makes the topic, and goes on after its last "
                    "whole micro-batch, or says what to do about the one that was under way."
                    f"{unseen(plan.options.bootstrap_servers)}"
                )
        if gone := [topic for topic in written(plan) if topic in self._gone]:
            return StreamsError(
                f"Topic '{gone[0]}', which sub-topology {plan.name} of '{self._application_id}' writes, is not there "
                "any more: it was deleted while the application ran. Create it again, then start the application: it "
                f"goes on after its last whole micro-batch.{unseen(plan.options.bootstrap_servers)}"
            )
        return None


def watched(plan: Plan) -> list[str]:
    """Return the topics that a query writes, and the one beside it that keeps a copy of its checkpoint."""
    return list(dict.fromkeys([*written(plan), plan.checkpoint_topic]))


def written(plan: Plan) -> list[str]:
    """Return the topics that a query writes and no query is to read, as far as their names are known in advance."""
    own = [*map(plan.changelog, plan.stores), *map(plan.calls_topic, plan.side_effects), *_notes(plan)]
    return list(dict.fromkeys([*plan.outer_topics, *plan.options.handlers.dead_letter_topics, *own]))


def _notes(plan: Plan) -> dict[str, str]:
    """Return the topics that a query's transactions need beside those of its records, and what each is for."""
    if not plan.options.in_transactions:
        return {}
    return {
        plan.transactions_topic: "notes what it has written",
        plan.checkpoint_topic: "keeps a copy of its checkpoint",
    }
