"""Finds, in the messages of Java's clients, which right a failed query lacked."""

import re

from streamskit.common.errors import StreamsError
from streamskit.kafka.access import NoRightError, Right, no_right, shown_certificate
from streamskit.planning.plan import Plan

TOPICS = re.compile(r"TopicAuthorizationException: (?:Not authorized to access topics: \[([^\]]+)\]|Topic auth)")
GROUP = re.compile(r"GroupAuthorizationException: Not authorized to access group: (\S+)")
TRANSACTION = re.compile(r"TransactionalIdAuthorizationException|Transactional Id authorization failed")
CLUSTER = re.compile(r"ClusterAuthorizationException")
NOT_LET_IN = re.compile(r"(?:SaslAuthentication|SslAuthentication)Exception: ([^\n]+?)(?: SQLSTATE: \w+)?\s*$", re.M)


def denied(text: str, plan: Plan) -> NoRightError | None:
    """Return the error for what a query was not allowed, if that is what Java says.

    Args:
        text: Spark's or Java's message.
        plan: what the query runs.
    """
    rights = _rights(text, plan)
    return no_right(plan.options.bootstrap_servers, *rights) if rights else None


def denial(text: str, plan: Plan) -> StreamsError | None:
    """Return the error to raise for a query that has ended because it was not let in, or not allowed something.

    Args:
        text: Spark's message.
        plan: what the query runs.
    """
    whole = f"Sub-topology {plan.name} of '{plan.application_id}' stopped"
    if (why := denied(text, plan)) is not None:
        return StreamsError(f"{whole}. {why}")
    if (found := NOT_LET_IN.search(text)) is not None:
        return StreamsError(
            f"{whole}: the broker at {plan.options.bootstrap_servers} does not let it in any more "
            f"({found[1].strip()}). Give it client settings that hold now, and start it again: it goes on after its "
            "last whole micro-batch."
            + (shown_certificate(plan.options.bootstrap_servers) if "SslAuth" in found.group() else "")
        )
    return None


def _rights(text: str, plan: Plan) -> list[Right]:
    if (found := TOPICS.search(text)) is not None:
        named = found[1].split(", ") if found[1] else list(plan.topics)
        return [Right("Read" if topic in plan.topics else "Write", "topic", topic) for topic in named]
    if (found := GROUP.search(text)) is not None:
        return [Right("Read", "group", found[1])]
    if TRANSACTION.search(text) is not None:
        name = f"{plan.application_id}-{plan.name}"
        return [Right("Write", "transactional id", name), Right("Describe", "transactional id", name)]
    if CLUSTER.search(text) is not None:
        return [Right("IdempotentWrite", "cluster")]
    return []
