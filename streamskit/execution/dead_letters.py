"""Records that a step could not process: what they become instead, as rows among the others.

Each leaves a note, a row without a topic whose key is the node's name and whose value says what was wrong. Notes are
counted at the end of the query, where a user's handler also decides about the records that they describe.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import time as now
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.api.error_handlers import (
    EXCEPTION,
    JAVA_CLASSES,
    KIND,
    LEFT_OUT,
    LONGEST_MESSAGE,
    MESSAGE,
    OFFSET,
    PARTITION,
    STACKTRACE,
    TOPIC,
    DeadLetter,
    ErrorHandlerContext,
    Handler,
    Handlers,
    LogAndContinue,
    ProducerRecord,
    RawRecord,
    StepError,
    ask,
    fitting,
)
from streamskit.api.headers import Headers
from streamskit.api.processor import Record
from streamskit.common.errors import StreamsError
from streamskit.execution.dropped_records import once, tell_dropped, tell_quotes
from streamskit.execution.outcomes import Write
from streamskit.execution.record_columns import Datum, RecordColumns
from streamskit.execution.row_format import FINISHED_FIELDS, HEADER_TYPE
from streamskit.execution.sinks import bytes_of
from streamskit.execution.stages import SOURCE
from streamskit.operators.error_handling import attribute_failure
from streamskit.operators.records import SOURCE_HEADERS
from streamskit.planning.plan import Plan
from streamskit.serdes import Serde
from streamskit.topology.nodes import Node

NodeSerdes = dict[str, tuple[Serde, Serde]]
"""The serdes of keys and values that each node passes on, by its name."""

FURTHEST_AHEAD = 3_600_000
"""How far ahead of its clock a broker takes timestamps, in milliseconds, where nobody has set it otherwise."""

ROW_TYPE = f"topic string, key binary, value binary, timestamp bigint, headers {HEADER_TYPE}"


@dataclass(frozen=True)
class RecordOrigin:
    """Where a record came from, as Columns: its place in a topic, and itself in bytes."""

    topic: Column
    partition: Column
    offset: Column
    timestamp: Column
    headers: Column
    key: Column
    value: Column

    @classmethod
    def of(cls, frame: DataFrame) -> "RecordOrigin":
        """Return the origin of raw records.

        Args:
            frame: with the columns topic, partition, offset, timestamp, headers, key and value.
        """
        names = ("topic", "partition", "offset", "timestamp", "headers", "key", "value")
        return cls(*(frame[name] for name in names))

    @classmethod
    def carried(cls, row: DataFrame) -> "RecordOrigin":
        """Return the origin of a result of a task operator, read from the headers that describe its source.

        Args:
            row: results with the columns of `row_format.SCHEMA` and `source`, the headers that describe the source.
        """
        topic, partition, offset, timestamp, key, value = (
            row[SOURCE][number]["value"] for number in range(SOURCE_HEADERS)
        )
        place = topic.cast("string"), partition.cast("string").cast("int"), offset.cast("string").cast("bigint")
        return cls(*place, timestamp.cast("string").cast("bigint"), row["headers"], key, value)

    def prepended_to(self, headers: Column) -> Column:
        """Return headers behind those that say where the record comes from, as `carried` reads them."""
        place = {"topic": self.topic, "partition": self.partition.cast("string"), "offset": self.offset.cast("string")}
        place |= {"timestamp": self.timestamp.cast("string"), "key": self.key, "value": self.value}
        return F.concat(_headers(place), F.coalesce(headers, F.array().cast(HEADER_TYPE)))

    @classmethod
    def lost(cls, timestamp: Column, headers: Column, key: Column, value: Column) -> "RecordOrigin":
        """Return the origin of a result that Spark's own operators made from many records: only the result is known."""
        nothing, nowhere = F.lit(None).cast("string"), F.lit(-1)
        return cls(nothing, nowhere, nowhere.cast("bigint"), timestamp, headers, key, value)


@dataclass(frozen=True)
class GivenRecord:
    """The record that a handler gets besides the source record: what a node was given, or what a sink could not write.

    `parent` names the node whose serdes read key and value, both in bytes; `is_written` says that they are the bytes
    that were to be written, and go to the handler as they are.
    """

    parent: str
    topic: Column
    key: Column
    value: Column
    is_written: Column

    @classmethod
    def of(cls, record: RecordColumns, parent: Node, topic: str | Column | None = None) -> "GivenRecord":
        """Return the record that `parent` passes on, as a node takes it."""
        key, value = _as_given(record.key, parent.key), _as_given(record.value, parent.value)
        named = topic if isinstance(topic, Column) else F.lit(topic).cast("string")
        return cls(parent.name, named, key, value, F.lit(False))

    def or_written(self, is_written: Column, key: Column, value: Column) -> "GivenRecord":
        """Return the record, in the bytes that were to be written where there are any."""
        key, value = F.when(is_written, key).otherwise(self.key), F.when(is_written, value).otherwise(self.value)
        return GivenRecord(self.parent, self.topic, key, value, is_written)


def _as_given(datum: Datum, serde: Serde) -> Column:
    """Return the bytes of a key or value, null where there are none."""
    if datum.raw is not None and serde == datum.serde:
        return datum.raw
    return serde.try_to_bytes(datum.typed)["value"]


def failed(
    handlers: Handlers,
    kind: str,
    node: Node,
    is_failed: Column,
    error: Column,
    origin: RecordOrigin,
    given: GivenRecord | None = None,
) -> list[Write]:
    """Return what is written for a failed record: a note, and the dead letter that `LogAndContinue` wants.

    Args:
        handlers: those of the application.
        kind: the one of them that decides.
        node: where it failed.
        is_failed: whether it did.
        error: what was wrong.
        origin: the source record, with the time and headers that the failed one has.
        given: the record that a processing or production handler is given, if one is called.
    """
    handler: Handler = getattr(handlers, kind)
    continues = isinstance(handler, LogAndContinue)
    nothing, error = F.lit(None), F.left(F.regexp_replace(error, ADVICE, ""), F.lit(LONGEST_MESSAGE))

    def write(topic: Column, key: Column, value: Column, headers: Column, time: Column = origin.timestamp) -> Write:
        empty = Datum(nothing.cast("binary"))
        return Write(RecordColumns(empty, empty, time, headers, is_failed), topic, key, value)

    undecided = nothing.cast(HEADER_TYPE) if continues else _in_headers(kind, origin, given)
    note = F.lit(node.name).cast("binary"), F.coalesce(error, F.lit("")).cast("binary")
    writes = [write(nothing.cast("string"), *note, undecided)]
    if isinstance(handler, LogAndContinue) and handler.dead_letter_topic is not None:
        headers = _with_error(error, origin, node)
        fits = bytes_of(origin.key, origin.value, headers) <= handlers.largest_record
        left_out = {LEFT_OUT: F.concat(F.coalesce(F.octet_length(origin.value), F.lit(0)), F.lit(" bytes"))}
        headers = F.when(fits, headers).otherwise(F.concat(headers, _headers(left_out)))
        # A failed record may have no time, or one that a broker refuses, which would stop the application after all.
        present = F.unix_millis(F.current_timestamp())
        time = F.when(origin.timestamp.between(0, present + FURTHEST_AHEAD), origin.timestamp).otherwise(present)
        letter = F.lit(handler.dead_letter_topic), origin.key, F.when(fits, origin.value), headers
        writes.append(write(*letter, time))
    return writes


ADVICE = r"( If necessary set .*)? SQLSTATE: .*$"
"""What Spark's errors end with. Switching its checks off would turn errors into wrong answers."""


def counted(plan: Plan, frame: DataFrame) -> DataFrame:
    """Return a frame of finished rows without the notes, which are counted by node; one of each is quoted.

    Args:
        plan: what runs.
        frame: with the columns of `row_format.FINISHED_FIELDS`, and perhaps partition; a row without a topic is a note.
    """
    handlers = plan.options.handlers
    if not handlers.make_rows:
        return frame
    is_note, key = frame["topic"].isNull(), frame["key"].cast("string")
    names = [node.name for node in plan.nodes]
    times = {name: once(is_note & (key == name)) for name in names}
    quotes = {name: F.when(is_note & (key == name), frame["value"].cast("string")) for name in names}
    frame = tell_quotes(tell_dropped(frame, "failed", times, plan.options), "failed", quotes, plan.options)
    if all(isinstance(handler, LogAndContinue) for handler in handlers.that_continue):
        return frame.where(~is_note)
    itself, plan_number = F.struct(*(frame[name] for name in FINISHED_FIELDS)), plan.number
    partition = frame["partition"] if "partition" in frame.columns else F.lit(None).cast("int")
    nodes = plan.topology.nodes.values()
    serdes, places = {node.name: (node.key, node.value) for node in nodes}, {each.name: _place(each) for each in nodes}
    decide = F.udf(
        lambda note: _letters(handlers, serdes, places, plan_number, note), T.ArrayType(T.StructType.fromDDL(ROW_TYPE))
    )
    rows = F.when(is_note, decide(F.when(is_note, itself))).otherwise(F.array(itself))
    return frame.select(F.explode(rows).alias("row"), partition.alias("partition")).select("row.*", "partition")


def _with_error(error: Column, origin: RecordOrigin, node: Node) -> Column:
    """Return the headers of a dead letter, as `error_handlers.dead_letter` makes them of a `StepError`."""
    return _bound(error, lambda error: _bound(_class_name(error), lambda name: _told(error, name, origin, node)))


def _bound(value: Column, make: Callable[[Column], Column]) -> Column:
    """Return what `make` returns for a value that is computed once; Spark would otherwise repeat it at each use."""
    return F.transform(F.array(value), make)[0]


def _class_name(error: Column) -> Column:
    # Spark's own errors begin with the name of their class.
    name = F.regexp_extract(error, KIND, 1)
    return F.when(name == "", F.lit("SerializationException")).otherwise(name)


def _told(error: Column, name: Column, origin: RecordOrigin, node: Node) -> Column:
    message, kind = F.regexp_replace(error, KIND, ""), name
    for package, names in JAVA_CLASSES.items():
        kind = F.when(name.isin(*names), F.concat(F.lit(f"{package}."), name)).otherwise(kind)
    said = {
        EXCEPTION: kind,
        MESSAGE: message,
        STACKTRACE: F.concat(kind, F.lit(": "), message, F.lit(f"\n\tat {_place(node)}")),
        TOPIC: F.coalesce(origin.topic, F.lit("")),
        PARTITION: origin.partition.cast("string"),
        OFFSET: origin.offset.cast("string"),
    }
    return F.concat(F.coalesce(origin.headers, F.array().cast(HEADER_TYPE)), _headers(said))


def _place(node: Node) -> str:
    return f"{node.name} (written at {node.call_site})"


NOTED = 11
"""How many headers of a note describe the record it is about."""


def _in_headers(kind: str, origin: RecordOrigin, given: GivenRecord | None) -> Column:
    """Return the record that a note is about, and the handler that is to decide, as headers before the record's own."""
    nothing = F.lit(None).cast("binary")
    place = {"partition": origin.partition.cast("string"), "offset": origin.offset.cast("string")}
    itself = {"kind": F.lit(kind), "topic": origin.topic, **place, "key": origin.key, "value": origin.value}
    itself |= {
        "parent": F.lit(given.parent) if given else nothing,
        "given topic": given.topic if given else nothing,
        "given key": given.key if given else nothing,
        "given value": given.value if given else nothing,
        "is written": given.is_written.cast("string") if given else nothing,
    }
    return F.concat(_headers(itself), F.coalesce(origin.headers, F.array().cast(HEADER_TYPE)))


def _headers(said: dict[str, Column]) -> Column:
    pairs = [F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in said.items()]
    return F.array(*pairs)


def _letters(
    handlers: Handlers, serdes: NodeSerdes, places: dict[str, str], sub_topology: int, note: Any
) -> list[tuple[Any, ...]]:
    """Return the dead letters for the record that a note is about, as its handler, which is called here, decides."""
    if note is None or note.headers is None:
        return []  # a task has called the handler already
    node = note.key.decode()
    error = StepError(note.value.decode(), places[node])
    headers: list[tuple[str, Any]] = [(name, None if data is None else bytes(data)) for name, data in note.headers]
    kind, topic, partition, offset, key, value = (data for _, data in headers[:6])
    named, own_headers = None if topic is None else topic.decode(), tuple(headers[NOTED:])
    task_id = f"{sub_topology}_{partition.decode()}" if int(partition) >= 0 else f"{sub_topology}"
    place = node, named, int(partition), int(offset), note.timestamp
    context = ErrorHandlerContext(*place, own_headers, key, value, task_id)
    record: Any = RawRecord(named, key, value, note.timestamp)
    if kind != b"deserialization":
        record = _given(kind, serdes, note.timestamp, own_headers, *(data for _, data in headers[6:NOTED]))
    try:
        response = ask(getattr(handlers, kind.decode()), context, record, error)
        if response.fails:
            raise StreamsError(f"{error} The handler said that the application has to fail.")
    except StreamsError as failure:
        attribute_failure(failure, node)
        raise
    return [_row(fitting(letter, handlers.largest_record), note.timestamp) for letter in response.dead_letters]


def _row(letter: DeadLetter, timestamp: int) -> tuple[Any, ...]:
    headers = [{"key": name, "value": value} for name, value in letter.headers]
    time = timestamp if letter.timestamp is None else letter.timestamp
    present = round(now() * 1000)
    time = time if 0 <= time <= present + FURTHEST_AHEAD else present
    return letter.topic, letter.key, letter.value, time, headers


def _given(
    kind: bytes, serdes: NodeSerdes, timestamp: int, headers: Headers,
    parent: bytes, topic: bytes | None, key: bytes | None, value: bytes | None, is_written: bytes,
) -> Any:  # fmt: skip
    """Return the record that a processing or production handler is given."""
    given: tuple[Any, Any] = key, value
    if is_written == b"false":
        of_key, of_value = serdes[parent.decode()]
        with suppress(ValueError):  # what cannot be read stays as bytes
            given = of_key.deserialize(key), of_value.deserialize(value)
    if kind == b"processing":
        return Record(*given, timestamp, headers)
    return ProducerRecord(None if topic is None else topic.decode(), *given, timestamp, headers)
