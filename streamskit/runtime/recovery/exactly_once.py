"""Exactly-once output: each micro-batch is one Kafka transaction, in which a mark says which batch it was.

Spark notes in its checkpoint that it begins a batch, writes the records, and notes that the batch is done. A driver
that dies before the last of these runs the batch again when it comes back, and its records are in the topics twice:
at-least-once. Exactly-once takes two more things.

1. All records of a batch, to all topics, are one transaction. Whoever reads with `isolation.level=read_committed` sees
   all of them or none; an unfinished transaction is aborted by the next producer with the same transactional id.
2. With the records, the transaction writes a mark, the number of the batch, to a topic of its own. A batch whose mark
   exists was written, whatever Spark knows about it.

Spark saves a batch's state before its transaction is committed. So if the mark says that a batch was written, its state
exists as well: at the next start the batch is noted as done, and does not run again. If the mark is missing, readers
have seen nothing of the batch, and it runs again on the state before it. Either way, state and output belong together,
though no transaction spans both.

The sink is `streamskit/jvm/TransactionalKafka.scala`; this module does what is needed before a query starts.

Mirrors `processing.guarantee=exactly_once_v2`, where the offsets that were read stand in the mark's place.
"""

import logging
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError

from streamskit.common.durations import spell
from streamskit.common.errors import StreamsError
from streamskit.jvm import java_class
from streamskit.planning.plan import Plan
from streamskit.runtime.denials import denied
from streamskit.runtime.recovery.checkpoint import Checkpoint

logger = logging.getLogger("streamskit")

SINK = "org.apache.spark.sql.streamskit.TransactionalKafka"

TRANSACTION_TIMEOUT = 5 * 60 * 1000
"""After how many milliseconds the broker aborts a transaction; a producer that cannot reach it gives up before."""

GROWN = (
    " Does an aggregate collect more with each record? Keep less in it, or raise max_request_size of the application "
    "and max.message.bytes of the topic."
)
"""What to do about a record that is larger than the producer sends."""

REFUSED = re.compile(r"a record could not be written to topic '([^']+)': (?:[\w.]+\.)?(\w+: [^\n]*)")
"""What `NotWritten` says (in `streamskit/jvm/Transactions.scala`)."""

TOO_LONG = re.compile(r"the transaction was open for (\d+) ms, and the broker has aborted it")
"""What `TransactionTimedOut` says (in the same file)."""

PRODUCER_ID = "InitProducerId"
"""What a producer waits for first: the broker keeps it in its own topic for transactions."""

FENCED = re.compile(r"\b(ProducerFenced|InvalidProducerEpoch)Exception\b")


@dataclass(frozen=True)
class CommittedBatch:
    """What the last transaction of a query wrote: a micro-batch of the query with this id."""

    query: str
    batch: int


def last_written(checkpoint: Checkpoint, last: CommittedBatch | None, plan: Plan) -> int:
    """Return the last micro-batch of a query whose records are in the topics.

    Args:
        checkpoint: what Spark has noted.
        last: what the last transaction says, if there was one.
        plan: the query.

    Raises:
        StreamsError: the two do not belong together, so that going on might write records twice or lose some.
    """
    begun = checkpoint.last_begun
    # A mark without an id belongs to a query that had not started yet.
    known = last.batch if last is not None and last.query in (checkpoint.query_id, "") else None
    whose = f"sub-topology {plan.name} of '{plan.application_id}'"
    if begun <= checkpoint.last_finished:
        if known is not None and known > begun:
            raise StreamsError(
                f"The checkpoint of {whose} ends with micro-batch {begun}, and batch {known} was written "
                "already: files are missing there, or an old copy was put in its place. To go on might write records "
                "twice or lose some. Put the newest copy back, or begin anew with clean_up()."
            )
        return checkpoint.last_finished
    if known is None or known not in (begun - 1, begun):
        raise StreamsError(
            f"Nothing says whether micro-batch {begun} of {whose} was written before it stopped: it ran with "
            f"processing_guarantee='at_least_once', or the topic '{plan.transactions_topic}' was deleted. Start it "
            "once with 'at_least_once', which may write that batch a second time, and close() it when "
            "await_processed() is done; then go on with 'exactly_once'. Or begin anew with clean_up()."
        )
    return known


@dataclass(frozen=True)
class Transactions:
    """The transactions of one run of a query.

    Args:
        plan: what the query runs.
        producer: the settings of the producer, each with "kafka." before its name.
        reader: the settings of a consumer beside it, as text; the address alone when not given.
    """

    plan: Plan
    producer: dict[str, str]
    reader: str = ""
    run: str = field(default_factory=lambda: str(uuid.uuid4()))

    def begin(self, checkpoint: Checkpoint, about: str) -> dict[str, str]:
        """Fence all earlier runs of the query, and mark the last batch that was written: this run continues after it.

        Args:
            checkpoint: what Spark has noted.
            about: what is stored with each position of the checkpoint's copy.

        Returns:
            The options of the sink.

        Raises:
            StreamsError: the last written batch cannot be determined, or the broker accepts no transactions.
        """
        with self._opened() as transactions:
            found = transactions.last()
            last = None if found is None else CommittedBatch(found.query(), found.batch())
            written = last_written(checkpoint, last, self.plan)
            if written > checkpoint.last_finished:
                checkpoint.finish()
                logger.warning(
                    "'%s': sub-topology %s wrote micro-batch %d before it was stopped, and does not run it again.",
                    self.plan.application_id, self.plan.name, written,
                )  # fmt: skip
            place = str(checkpoint.folder), self.plan.checkpoint_topic, about
            copy = java_class("CheckpointCopy")(self.settings["reader"], *place)
            transactions.begin()
            begins = copy.bring(transactions, written)
            transactions.commit(java_class("Mark")(checkpoint.query_id, self.run, written))
        options = {"marks": self.plan.transactions_topic, "run": self.run, "from": str(begins)}
        return self.settings | options | dict(zip(("checkpoint", "copy", "about"), place, strict=True))

    def abort(self) -> None:
        """Fence all earlier runs of the query, and abort the transaction they left open, which would block readers.

        Raises:
            StreamsError: the broker takes no transactions.
        """
        with self._opened():
            pass

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the producer, each with "kafka." before its name, and of a consumer beside it."""
        return self.producer | {
            "reader": self.reader or self.producer["kafka.bootstrap.servers"],
            "kafka.transactional.id": f"{self.plan.application_id}-{self.plan.name}",
            "kafka.transaction.timeout.ms": str(TRANSACTION_TIMEOUT),
        }

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            transactions = java_class("Transactions")(self.settings, self.plan.transactions_topic)
            try:
                yield transactions
            finally:
                transactions.close()
        except Py4JJavaError as failure:
            raise self._not_begun(failure.java_exception.toString()) from failure

    def _not_begun(self, said: str) -> StreamsError:
        """Return the error to raise where transactions could not begin, by what Java says."""
        whole = f"Sub-topology {self.plan.name} of '{self.plan.application_id}' could not begin its transactions"
        if (why := denied(said, self.plan)) is not None:
            return StreamsError(f"{whole}. {why}")
        servers = self.plan.options.bootstrap_servers
        advice = f"Does the broker at {servers} answer? Start the application again when it does."
        if PRODUCER_ID in said:
            advice += (
                " If it does, its own topic for transactions could not be made: with one node it has to have "
                "transaction.state.log.replication.factor=1."
            )
        return StreamsError(f"{whole}: {said.rstrip('.')}. {advice}")


def transaction_failure(text: str, plan: Plan) -> StreamsError | None:
    """Return the error to raise for a query whose transaction failed, if that is what Spark's message says.

    Args:
        text: Spark's message.
        plan: what the query runs.
    """
    if (open_for := TOO_LONG.search(text)) is not None:
        return StreamsError(
            f"A micro-batch of sub-topology {plan.name} of '{plan.application_id}' took {spell(int(open_for[1]))}: the "
            f"broker aborts a transaction that is open for more than {spell(TRANSACTION_TIMEOUT)}. Nothing of the "
            "batch can be seen, and nothing is lost: start again. From then on, until clean_up(), a micro-batch takes "
            "half as many records at most, or fewer with a smaller max_records_per_batch. If you know the reason, such "
            "as a slow service that is called for each record, fix that."
        )
    if FENCED.search(text) is not None:
        return StreamsError(
            f"Sub-topology {plan.name} of '{plan.application_id}' was fenced: another run of the application has "
            "begun, and only one may write, so that this one has ended before it wrote anything twice. Close one of "
            "them, or give this one an application_id of its own."
        )
    if (refused := REFUSED.search(text)) is not None:
        topic, why = refused.groups()
        sink = next((f"{sink.name} (written at {sink.call_site})" for sink in plan.sinks if plan.topic(sink) == topic),
                    f"Sub-topology {plan.name} of '{plan.application_id}'")  # fmt: skip
        advice = GROWN if "max.request.size" in why else ""
        return StreamsError(
            f"{sink}: a record could not be written to topic '{topic}': {why.strip()} Nothing of its micro-batch was."
            f"{advice}"
        )
    return None
