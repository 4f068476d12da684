"""Topics in memory: how a test driver feeds a Spark query and reads what it writes, without a broker."""

import base64
import json
import tempfile
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamskit.api.headers import Headers
from streamskit.environment.session import FLEETING_CHECKPOINTS, INTERPRETED, query_settings
from streamskit.execution.compiler import compile_plan
from streamskit.execution.record_columns import WRITE_ORDER
from streamskit.execution.row_format import HEADER_TYPE
from streamskit.jvm import java_class, plan_contains, scala_object
from streamskit.planning.plan import CLOCK_TOPIC, Plan
from streamskit.runtime.progress import Metrics

RAW = f"key binary, value binary, topic string, partition int, offset bigint, timestamp bigint, headers {HEADER_TYPE}"

SETTINGS = {
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # A driver waits for each record, and nothing has to be durable.
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": FLEETING_CHECKPOINTS,
    # Every record is planned again, and what the optimizer could prove about it would save no time.
    "spark.sql.constraintPropagation.enabled": "false",
} | INTERPRETED


@dataclass(frozen=True)
class Raw:
    """A record in bytes, read from a topic or written to it; the timestamp in milliseconds.

    The partition is None until one has been chosen.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    partition: int | None = None


class MemoryQuery:
    """Runs one plan on records from memory; each call of `run` is one micro-batch.

    Args:
        spark: the session.
        plan: what to run.
        tasks: how many tasks it has.
        partitions: how many partitions each topic has; empty where each has one.
    """

    def __init__(
        self, spark: SparkSession, plan: Plan, tasks: int = 1, partitions: Mapping[str, int] | None = None
    ) -> None:
        self.plan = plan
        self.has_failed = False
        self._spark, self._tasks = spark, tasks
        self._offsets: dict[tuple[str, int], int] = {}
        # Spark's own MemoryStream: a batch from it lists no files and starts no Python.
        streams = scala_object("org.apache.spark.sql.execution.streaming.runtime.MemoryStream")
        self._stream = streams.apply(java_class("org.apache.spark.sql.Encoders").STRING(), spark._jsparkSession)
        self._name = f"test_driver_{uuid.uuid4().hex}"
        self._checkpoint = tempfile.TemporaryDirectory(prefix="streamskit-test-", ignore_cleanup_errors=True)
        settings = SETTINGS | {"spark.sql.shuffle.partitions": str(tasks)}
        with query_settings(spark, settings):
            frame = compile_plan(
                plan,
                self._frame,
                tasks=tasks,
                checkpoint=self._checkpoint.name,
                partitions=partitions or None,
                by_time=tasks > 1 and bool(plan.topics_by_time),
            )
            # The optimizer would make the time of day a constant.
            if not plan_contains(frame, "CURRENT_LIKE"):
                frame, settings = optimized(frame, spark), settings | without_rules(spark)
        with query_settings(spark, settings):
            self.query = (
                frame.writeStream.format("memory")
                .queryName(self._name)
                .outputMode(plan.output_mode)
                .option("checkpointLocation", self._checkpoint.name)
                .start()
            )
        self._metrics = Metrics(self.query, plan)

    @property
    def dropped(self) -> Counter[str]:
        """How many records each node has dropped."""
        return self._metrics.dropped

    def run(self, records: list[Raw]) -> list[Raw]:
        """Process records as one micro-batch and return what the query writes."""
        rows = self._rows_of([self._line(record) for record in records])
        return [_output(row) for row in rows if row["topic"] != CLOCK_TOPIC]

    def _rows_of(self, lines: list[str]) -> list[dict[str, Any]]:
        """Return the rows that a micro-batch of records writes, all in JSON."""
        jvm: Any = self._spark.sparkContext._jvm
        self._stream.addData(jvm.PythonUtils.toSeq(lines))
        try:
            self.query.processAllAvailable()
        except StreamingQueryException:
            self.has_failed = True
            raise
        self._metrics.update()
        # Reading the table through Spark would be another query.
        sink: Any = self.query._jsq.streamingQuery().sink()
        rows = sink.allData()
        written = [json.loads(rows.apply(number).json()) for number in range(rows.size())]
        sink.clear()
        if written and set(WRITE_ORDER) <= written[0].keys():  # tasks are merged by time, as they are live
            _, *order = WRITE_ORDER
            written.sort(key=lambda row: [row[name] for name in order])
        return written

    def finish(self) -> None:
        """Do nothing: each micro-batch has ended."""

    def stop(self) -> None:
        """Stop the query and forget its state."""
        self.query.stop()
        self._spark.catalog.dropTempView(self._name)
        self._checkpoint.cleanup()

    def _frame(self, topics: list[str]) -> DataFrame:
        lines = DataFrame(self._stream.toDF(), self._spark)
        if self._tasks == 1:  # a single partition needs no shuffle before each operator
            lines = lines.coalesce(1)
        rows = lines.select(F.from_json("value", RAW, {"mode": "FAILFAST"}).alias("row")).select("row.*")
        return rows.withColumn("timestamp", F.timestamp_millis("timestamp"))

    def _line(self, record: Raw) -> str:
        place = record.topic, record.partition or 0
        offset = self._offsets[place] = self._offsets.get(place, -1) + 1
        headers = [{"key": name, "value": _text(value)} for name, value in record.headers]
        return json.dumps(
            {
                "key": _text(record.key),
                "value": _text(record.value),
                "topic": record.topic,
                "partition": record.partition or 0,
                "offset": offset,
                "timestamp": record.timestamp,
                "headers": headers or None,
            }
        )


def optimized(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Return a query with an optimized plan: Spark optimizes it again for each micro-batch, and then has less to do.

    Args:
        frame: the query.
        spark: a session with all rules of the optimizer.
    """
    plan = spark._jsparkSession.sessionState().optimizer().execute(frame._jdf.queryExecution().analyzed())
    datasets = scala_object("org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(frame.sparkSession._jsparkSession, plan), frame.sparkSession)


@cache
def without_rules(spark: SparkSession) -> dict[str, str]:
    """Return settings that exclude all rules of the optimizer that may be excluded."""
    optimizer = spark._jsparkSession.sessionState().optimizer()
    batches, needed = optimizer.defaultBatches(), optimizer.nonExcludableRules()
    rules = [batches.apply(number).rules() for number in range(batches.size())]
    names = [each.apply(number).ruleName() for each in rules for number in range(each.size())]
    kept = {needed.apply(number) for number in range(needed.size())}
    return {"spark.sql.optimizer.excludedRules": ",".join(dict.fromkeys(name for name in names if name not in kept))}


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _output(row: dict[str, Any]) -> Raw:
    headers: Any = tuple((header["key"], _bytes(header.get("value"))) for header in row.get("headers") or ())
    key, value = _bytes(row.get("key")), _bytes(row.get("value"))
    return Raw(row["topic"], key, value, row["timestamp"], headers, row.get("partition"))
