"""Topics in memory whose query never pauses: how a test driver has Spark process a record in about a millisecond."""

import struct
import tempfile
from collections import Counter
from io import BytesIO
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamskit.common.errors import StreamsError
from streamskit.execution.compiler import compile_plan
from streamskit.execution.task_worker import INT, Line, framed
from streamskit.jvm import java_class, plan_contains, with_time_of_each_record
from streamskit.planning.plan import CLOCK_TOPIC, FLUSH_KEY, Plan
from streamskit.runtime.progress import warn_of_dropped
from streamskit.runtime.real_time import FROM_ANY_CHECKPOINT, UNLISTED, WITH_STATE_IDS
from streamskit.testing.memory import SETTINGS, Raw, optimized, without_rules

TOPICS = "org.apache.spark.sql.streamskit.DriverTopicsFormat"
"""The source and the sink (`streamskit/jvm/DriverTopics.scala`)."""

IN_MEMORY = UNLISTED | {  # one task needs no more than `coalesce`, which Spark has not tried there either
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",
}
OPEN = {"realTime": "1 day"}
"""How long a batch may last: it ends before that, when nobody gives it a record."""

PLACE = struct.Struct(">iqq")
"""Partition, offset and timestamp of a record."""

IS_MORE, TIME, COUNT = struct.Struct(">?"), struct.Struct(">q"), struct.Struct(">q")
"""Whether a written record follows, its timestamp, and how many records were dropped."""


class NotInRealTimeError(StreamsError):
    """A query has to run in micro-batches: one of its steps gathers rows, or stands still during a batch."""


class RealTimeQuery:
    """Runs one plan on records from memory in Spark's real-time mode, with one task and a batch that stays open.

    Args:
        spark: the session.
        plan: what to run.

    Raises:
        NotInRealTimeError: the plan needs micro-batches.

    Mirrors a thread of `org.apache.kafka.streams.TopologyTestDriver`: one record after the other, each whole.
    """

    def __init__(self, spark: SparkSession, plan: Plan) -> None:
        self.plan = plan
        self.dropped: Counter[str] = Counter()
        self.has_failed = False
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._id, own = plan.options.driver, own_session(spark)
        self._topics = java_class("DriverTopics").open(self._id)
        self._checkpoint = tempfile.TemporaryDirectory(prefix="streamskit-test-", ignore_cleanup_errors=True)

        def read(topics: list[str]) -> DataFrame:
            return own.readStream.format(TOPICS).option("id", self._id).load().coalesce(1)

        try:
            frame = compile_plan(plan, read, tasks=1, checkpoint=self._checkpoint.name)
            if plan_contains(frame, "PYTHON_UDF"):
                raise NotInRealTimeError(
                    f"A function of sub-topology {plan.name} calls F.udf or another UDF in Python."
                )
            self.query = (
                optimized(with_time_of_each_record(frame), spark)
                .writeStream.format(TOPICS)
                .option("id", self._id)
                .outputMode("update")
                .option("checkpointLocation", self._checkpoint.name)
                .trigger(**OPEN)
                .start()
            )
        except BaseException:
            self._forget()
            raise

    def run(self, records: list[Raw]) -> list[Raw]:
        """Process records, one after the other, and return what the query writes; then the record cache is empty."""
        if self.plan.options.cache and self.plan.operators:
            records = [*records, Raw(CLOCK_TOPIC, FLUSH_KEY, None, -1)]
        made = self._topics.process(bytearray(self._packed(records)), self.query._jsq.streamingQuery())
        if made is None:
            self.has_failed = True
            self.query.awaitTermination()  # raises the reason
            raise StreamsError(f"Sub-topology {self.plan.name} of the test driver was stopped: open a new driver.")
        from_query = Reader(bytes(made))
        records = [record for record in from_query.records() if record.topic != CLOCK_TOPIC]
        before, self.dropped = self.dropped, from_query.counts()
        for node, quote in from_query.quotes().items():
            warn_of_dropped(self.plan, node, self.dropped[node] - before[node], quote)
        return records

    def finish(self) -> None:
        """End the batch, if it has to be checked whether what processors hold can be kept.

        Raises:
            Exception: it cannot be kept, which an application would have to do from one micro-batch to the next.
        """
        if self.plan.groups and not self.has_failed and not self._topics.finish(self.query._jsq.streamingQuery()):
            self.query.awaitTermination()

    def stop(self) -> None:
        """Stop the query and forget its state."""
        self.query.stop()
        self._forget()

    def _forget(self) -> None:
        java_class("DriverTopics").close(self._id)
        self._checkpoint.cleanup()

    def _packed(self, records: list[Raw]) -> bytes:
        parts = [INT.pack(len(records))]
        for record in records:
            place = record.topic, record.partition or 0
            parts += [framed(record.topic.encode()), framed(record.key), framed(record.value)]
            parts.append(PLACE.pack(place[1], self._offsets[place], record.timestamp))
            parts.append(INT.pack(len(record.headers)))
            for name, value in record.headers:
                parts += [framed(name.encode()), framed(value)]
            self._offsets[place] += 1
        return b"".join(parts)


class Reader:
    """Reads what a query reports about records: those that it writes, and how many each node has dropped so far."""

    def __init__(self, data: bytes) -> None:
        self._line = Line(BytesIO(data), BytesIO())

    def records(self) -> list[Raw]:
        """Return the records that were written."""
        line, found = self._line, list[Raw]()
        while line.read_struct(IS_MORE) == (True,):
            topic, key, value, partition = line.read_text(), line.read_bytes(), line.read_bytes(), line.read_int()
            (timestamp,) = line.read_struct(TIME)
            headers: Any = tuple((line.read_text(), line.read_bytes()) for _ in range(line.read_int()))
            found.append(Raw(topic, key, value, timestamp, headers, partition if partition >= 0 else None))
        return found

    def counts(self) -> Counter[str]:
        """Return how many records each node has dropped."""
        line = self._line
        return Counter({line.read_text(): line.read_struct(COUNT)[0] for _ in range(line.read_int())})

    def quotes(self) -> dict[str, str]:
        """Return, by node, what was wrong with one of the records that the node has just dropped."""
        return {self._line.read_text(): self._line.read_text() for _ in range(self._line.read_int())}


def own_session(spark: SparkSession) -> SparkSession:
    """Return a copy of a session as it is now, with the settings of a test driver's queries."""
    own = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    settings = SETTINGS | IN_MEMORY | WITH_STATE_IDS | FROM_ANY_CHECKPOINT | without_rules(spark)
    for name, value in settings.items():
        own.conf.set(name, value)
    return own
