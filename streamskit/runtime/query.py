"""A query of an application: its plan, the Spark query that runs it now, and what it has done so far."""

import json
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming import StreamingQuery

from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import StreamsError
from streamskit.environment.spark_java import LOST, although_stopped
from streamskit.jvm import java_class
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan
from streamskit.runtime.progress import Metrics, Progress
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.exactly_once import TOO_LONG

OPEN_BATCH = "org.apache.spark.sql.kafka010.OpenBatch"
"""What a query in real-time mode reads now (`streamskit/jvm/KafkaInRealTime.scala`)."""

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""How many seconds a query waits before it is run again: at first, and at most."""


def query_options(config: StreamsConfig, **changes: Any) -> QueryOptions:
    """Return the options of a configuration's queries; `changes` replace fields of the result."""
    options = QueryOptions(
        cache=config.statestore_cache_max_bytes > 0,
        cache_bytes=config.statestore_cache_max_bytes,
        emit_interval=config.milliseconds("emit_interval"),
        real_time=config.in_real_time,
        as_they_come=config.max_task_idle_ms < 0,
        in_transactions=config.exactly_once,
        handlers=config.handlers,
        bootstrap_servers=config.connection,
        threads_of="" if config.in_real_time else config.application_id,
    )
    return replace(options, **changes)


class PlannedEndError(StreamsError):
    """A query was ended in order to run again, later or with another plan; nothing has failed."""


class RunningQuery:
    """Runs a plan, again after each failure if asked to, from the last whole micro-batch.

    Args:
        plan: what to run.
        start: starts a Spark query for it; takes the name of its producers, and whether its processors stay as they
            are.
        checkpoint: the folder where Spark notes what is done.

    Mirrors the stream thread of Kafka Streams: what fails, and is replaced.
    """

    def __init__(self, plan: Plan, start: Callable[[str, bool], StreamingQuery], checkpoint: Path) -> None:
        self.plan, self.checkpoint = plan, checkpoint
        self.restarts = 0
        self.last_failure: StreamsError | None = None
        self._start = start
        self._interrupted: StreamsError | None = None
        self.query = self._begin(goes_on=False)
        self.metrics = Metrics(self.query, plan)
        self._wait, self._batches_then = FIRST_WAIT, 0
        self._progress, self._told = Progress({}), (-1, "")

    def restart(self, counts: bool = True) -> None:
        """Run the plan again, after its Spark query has ended.

        Args:
            counts: whether to count it among the `restarts`, which indicate trouble. One that does not count, as after
                a pause, leaves processors as they are.
        """
        self.restarts += counts
        self.close_producers()
        self.query = self._begin(goes_on=not counts)
        self.metrics.follow(self.query)

    def stop(self, finish: float = 0.0) -> None:
        """Stop the Spark query, if it runs, and close its producers.

        Args:
            finish: how many seconds it may take to finish its current micro-batch. One that is interrupted runs again
                at the next start, and with at-least-once its output is written again.
        """
        with although_stopped():  # with its Java or its session, a query has ended
            if self.query.isActive:
                if finish:
                    batch = str(self.checkpoint) if self.plan.runs_in_real_time else ""
                    _closing().finish(self.query._jsq, batch, int(finish * 1000))
                self.query.stop()
        self.close_producers()

    def close_producers(self) -> None:
        """Close the producers of the Spark query; records that they have not sent yet are dropped."""
        if SparkContext._jvm is None:  # they ended with Spark's Java
            return
        with suppress(*LOST):
            _closing().closeProducers(self._producers)

    def end_batch(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Have a batch in real-time mode end once it has read up to these offsets, and report its progress then.

        Otherwise, Spark ends it when its time is over.
        """
        if (batch := java_class(OPEN_BATCH).of(str(self.checkpoint))) is not None:
            batch.endBehind(json.dumps(ends))

    @property
    def can_end_batch(self) -> bool:
        """Whether `end_batch` reaches the tasks; it does not reach those in other processes."""
        return bool(java_class(OPEN_BATCH).canEnd())

    def interrupt(self, why: StreamsError, finish: float = 0.0) -> None:
        """Stop the Spark query, if it runs, as if it had failed with this error.

        Args:
            why: what it failed with, or a `PlannedEndError`.
            finish: how many seconds it may take to end the micro-batch that it is in.
        """
        with suppress(*LOST):
            if self.query.isActive:
                self._interrupted = why
                self.stop(finish)

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        reported: Any = self.query._jsq.lastProgress()
        if reported is None:
            return Progress({})
        told = reported.batchId(), reported.timestamp()
        if told != self._told:  # reading a whole report takes Spark as long as an idle batch, and this is called often
            self._progress, self._told = Progress.of(self.query), told
        return self._progress

    @property
    def position(self) -> Mapping[str, Mapping[int, int]]:
        """By topic and partition, the offset to go on from, as far as known; at first, where the last run left off."""
        return self.progress.offsets or Checkpoint(self.checkpoint).position()

    def lag(self, ends: Mapping[str, Mapping[int, int]]) -> int:
        """Return how many records lie between its position and the given offsets, by topic and partition."""
        return Progress({topic: dict(offsets) for topic, offsets in self.position.items()}).lag(ends)

    def await_end(self) -> Exception | None:
        """Wait until the Spark query has ended, and return why if it has failed."""
        try:
            while not self.query.awaitTermination(1):
                self.metrics.update()
        except Exception as failure:
            with suppress(*LOST):
                self.metrics.update()
            return failure
        why, self._interrupted = self._interrupted, None
        return why

    def _begin(self, goes_on: bool) -> StreamingQuery:
        # Spark caches producers, which cache a topic's metadata: it may be outdated, so use a new name each time.
        self._producers = f"{self.plan.application_id}-{self.plan.name}-{uuid.uuid4()}"
        return self._start(self._producers, goes_on)

    def heed_time(self, failure: Exception) -> None:
        """From the next run on, take fewer records per micro-batch if this one took too long for a transaction.

        Raises:
            StreamsError: the checkpoint cannot be read.
        """
        if TOO_LONG.search(str(failure)):
            Checkpoint(self.checkpoint).note_too_long()

    def next_wait(self) -> float:
        """Return how many seconds to wait before the next run: longer each time, until a micro-batch has succeeded."""
        if self.metrics.batches > self._batches_then:
            self._wait = FIRST_WAIT
        self._batches_then = self.metrics.batches
        wait, self._wait = self._wait, min(2 * self._wait, LONGEST_WAIT)
        return wait

    @property
    def trouble(self) -> str:
        """A sentence on its last failure and how often it ran again, or nothing."""
        if not self.restarts:
            return ""
        times = "once" if self.restarts == 1 else f"{self.restarts} times"
        return f" It was run again {times}" + (f", last because: {self.last_failure}" if self.last_failure else ".")


def _closing() -> Any:
    """Return the Java object that ends queries in an orderly way (`streamskit/jvm/Closing.scala`)."""
    return java_class("org.apache.spark.sql.kafka010.producer.Closing")
