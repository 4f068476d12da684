"""Why a transaction was not committed: a record that could not be written, or somebody else who writes."""

import re

from streamskit.common.errors import StreamsError
from streamskit.planning.plan import Plan

REFUSED = re.compile(r"a record could not be written to topic '([^']+)': (?:[\w.]+\.)?(\w+: [^\n]*)")
"""What `NotWritten` says (in `streamskit/jvm/Transactions.scala`)."""

FENCED = re.compile(r"\b(ProducerFenced|InvalidProducerEpoch)Exception\b")


def unwritten(text: str, plan: Plan) -> StreamsError | None:
    """Return the error to raise for a query whose transaction failed, if that is what Spark's message says.

    Args:
        text: Spark's message.
        plan: what the query runs.
    """
    if FENCED.search(text) is not None:
        return StreamsError(
            f"Sub-topology {plan.name} of '{plan.application_id}' was fenced: another run of the application has "
            "begun, and only one may write, so that this one has ended before it wrote anything twice. Close one of "
            "them, or give this one an application_id of its own. (One that stays open for too long ends so, too.)"
        )
    if (refused := REFUSED.search(text)) is not None:
        topic, why = refused.groups()
        sink = next((f"{sink.name} (written at {sink.call_site})" for sink in plan.sinks if plan.topic(sink) == topic),
                    f"Sub-topology {plan.name} of '{plan.application_id}'")  # fmt: skip
        return StreamsError(
            f"{sink}: a record could not be written to topic '{topic}': {why.strip()} Nothing of its micro-batch was."
        )
    return None
