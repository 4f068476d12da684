"""Exactly-once output: each micro-batch is one Kafka transaction, in which a mark says which batch it was.

Spark notes in its checkpoint that it begins a batch, writes the records, and notes that the batch is done. A driver
that dies before the last of these runs the batch again when it comes back, and its records are there twice: at least
once. Exactly once takes two things more.

1. All records of a batch, to all topics, are one transaction. Whoever reads with `isolation.level=read_committed` sees
   all of them or none; a transaction that nobody ends is aborted by the next who opens it.
2. With the records the transaction writes a mark, the number of the batch, to a topic of its own. A batch that finds
   its own mark there was written, whatever Spark knows of it: it runs once more for its state, and writes nothing.

Spark notes what a batch will read before it begins, and the same input makes the same records and the same state. So
state and output belong together, though no transaction spans both.

The sink is `streamskit/jvm/TransactionalKafka.scala`; here is what happens before a query starts.

Mirrors `processing.guarantee=exactly_once_v2`, where the offsets that were read stand in the mark's place.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamskit.common.errors import StreamsError
from streamskit.planning.plan import Plan

SINK = "org.apache.spark.sql.streamskit.TransactionalKafka"

TRANSACTION_TIMEOUT = 5 * 60 * 1000
"""After how many milliseconds the broker aborts a transaction; a producer that cannot reach it gives up before."""


@dataclass(frozen=True)
class Checkpoint:
    """What Spark has noted of a query: its id, the last micro-batch that it began, and the last that it finished.

    Before the first batch the numbers are -1, and before the first start the id is "".
    """

    query: str
    begun: int
    finished: int

    @classmethod
    def read(cls, folder: Path) -> "Checkpoint":
        """Return what a checkpoint folder says."""
        metadata = folder / "metadata"
        query = json.loads(metadata.read_text())["id"] if metadata.exists() else ""
        return cls(query, _last_batch(folder / "offsets"), _last_batch(folder / "commits"))


def _last_batch(folder: Path) -> int:
    return max((int(file.name) for file in folder.glob("*") if file.name.isdigit()), default=-1)


@dataclass(frozen=True)
class Mark:
    """What the last transaction of a query wrote: a micro-batch of the query with this id."""

    query: str
    batch: int


def last_written(noted: Checkpoint, last: Mark | None, plan: Plan) -> int:
    """Return the last micro-batch of a query whose records are in the topics.

    Args:
        noted: what the checkpoint says.
        last: what the last transaction says, if there was one.
        plan: the query.

    Raises:
        StreamsError: the two do not belong together, so that going on might write records twice or lose some.
    """
    # A mark without an id is of a query that had not started yet.
    known = last.batch if last is not None and last.query in (noted.query, "") else None
    whose = f"sub-topology {plan.name} of '{plan.application_id}'"
    if noted.begun <= noted.finished:
        if known is not None and known > noted.begun:
            raise StreamsError(
                f"The checkpoint of {whose} ends with micro-batch {noted.begun}, and batch {known} was written "
                "already: files are missing there, or an old copy was put in its place. To go on might write records "
                "twice or lose some. Put the newest copy back, or begin anew with clean_up()."
            )
        return noted.finished
    if known is None or known not in (noted.begun - 1, noted.begun):
        raise StreamsError(
            f"Nothing says whether micro-batch {noted.begun} of {whose} was written before it stopped: it ran with "
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
    """

    plan: Plan
    producer: dict[str, str]
    run: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def options(self) -> dict[str, str]:
        """The options of the sink."""
        return self._settings | {"marks": self.plan.transactions_topic, "run": self.run}

    def begin(self, spark: SparkSession, checkpoint: Path) -> None:
        """Fence all earlier runs of the query, and mark what is written: from there this run goes on.

        Raises:
            StreamsError: that cannot be known, or the broker takes no transactions.
        """
        noted = Checkpoint.read(checkpoint)
        with self._opened(spark) as transactions:
            found = transactions.last()
            last = None if found is None else Mark(found.query(), found.batch())
            written = last_written(noted, last, self.plan)
            transactions.begin()
            transactions.commit(_package(spark).Mark(noted.query, self.run, written))

    def abort(self, spark: SparkSession) -> None:
        """Fence all earlier runs of the query, and abort what they left open: readers would wait for its end.

        Raises:
            StreamsError: the broker takes no transactions.
        """
        with self._opened(spark):
            pass

    @property
    def _settings(self) -> dict[str, str]:
        return self.producer | {
            "kafka.transactional.id": f"{self.plan.application_id}-{self.plan.name}",
            "kafka.transaction.timeout.ms": str(TRANSACTION_TIMEOUT),
        }

    @contextmanager
    def _opened(self, spark: SparkSession) -> Iterator[Any]:
        try:
            transactions = _package(spark).Transactions(self._settings, self.plan.transactions_topic)
            try:
                yield transactions
            finally:
                transactions.close()
        except Py4JJavaError as failure:
            raise StreamsError(
                f"Sub-topology {self.plan.name} of '{self.plan.application_id}' could not begin its transactions: "
                f"{failure.java_exception.toString()} They need a broker whose own topic for transactions can be made: "
                "with one node it has to have transaction.state.log.replication.factor=1."
            ) from failure


def _package(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.streamskit
