"""Whether a record can be written: whether its serdes can encode it, it is small enough, and its topic exists."""

from functools import reduce
from operator import or_

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.api.error_handlers import OVERHEAD
from streamskit.execution.outcomes import Write
from streamskit.execution.record_columns import LARGEST_TIME, Datum, RecordColumns
from streamskit.execution.row_format import HEADER_TYPE
from streamskit.kafka.client_libraries import java_text
from streamskit.planning.options import ANY_TIME, QueryOptions
from streamskit.serdes import Serde
from streamskit.topology.nodes import Sink

MISSING_TOPIC = "streamskit_missing_topic"
"""A function of Spark's SQL: why a topic that a record chooses would not accept it (in `streamskit/jvm`)."""

NO_TOPIC = "the function that chooses a record's topic chose none, but null."


def learn_to_ask_for_topics(spark: SparkSession) -> None:
    """Register in Spark the function that asks a broker whether a topic exists, and which records it accepts."""
    spark.udf.registerJavaFunction(MISSING_TOPIC, "streamskit.MissingTopic", T.StringType())


def writable(
    record: RecordColumns, node: Sink, topic: str | Column, options: QueryOptions
) -> tuple[Write, Column, Column]:
    """Return what is to be written of a record, why a serde cannot encode it, and why it cannot be written.

    Each reason is null if there is none; where there is a first, the second is the same.
    """
    key, key_error = tried(record.key, node.key, record.condition)
    value, value_error = tried(record.value, node.value, record.condition)
    size = bytes_of(key, value, record.headers)
    named = F.lit(topic) if isinstance(topic, str) else F.coalesce(topic, F.lit("null"))
    too_large = _too_large(size, named, options)
    refusals = [error for error in (key_error, value_error) if error is not None]
    unwritable = F.coalesce(*refusals, F.lit(None).cast("string"))
    errors = [unwritable, *refused(record.timestamp, key, size, topic, options)]
    if not isinstance(topic, str):
        errors.append(F.when(topic.isNull(), F.lit(f"InvalidTopicException: {NO_TOPIC}")))
        if options.bootstrap_servers:
            asked = F.lit(java_text(options.bootstrap_servers, "admin"))
            of_record = key.isNotNull(), size.cast("int"), record.timestamp.cast("bigint"), F.lit(OVERHEAD)
            errors.append(F.call_function(MISSING_TOPIC, asked, topic, *of_record))
    return Write(record, topic, key, value), unwritable, F.coalesce(*errors, too_large)


def refused(time: Column, key: Column, size: Column, topic: str | Column, options: QueryOptions) -> list[Column]:
    """Return why a broker would refuse a record: for each of the topic's rules a Column that is null if it would not.

    A producer learns this too late: when the record has been sent with all others of its micro-batch.

    Args:
        time: the record's timestamp.
        key: its key in bytes.
        size: how many bytes it has.
        topic: where it goes. If records choose the topic, only the rules that hold for all topics are known here.
        options: those of the query, with the rules of topics.
    """
    errors = [
        F.when(
            (time < 0) | (time > LARGEST_TIME),
            F.format_string(
                "InvalidTimestampException: the timestamp %d is no time in milliseconds since 1970; is it one in "
                "microseconds or nanoseconds?", time,
            ),
        )
    ]  # fmt: skip
    rules = options.rules.get(topic) if isinstance(topic, str) else None
    if rules is None:
        return errors
    now = F.unix_millis(F.current_timestamp())
    too_far = [F.lit(False)]
    too_far += [] if rules.after == ANY_TIME else [time > now + rules.after]
    too_far += [] if rules.before == ANY_TIME else [time < now - rules.before]
    errors.append(
        F.when(
            reduce(or_, too_far),
            F.format_string(
                f"InvalidTimestampException: the timestamp %d is too far from the broker's clock for topic {topic} "
                "(message.timestamp.after.max.ms and message.timestamp.before.max.ms).", time,
            ),
        )
    )  # fmt: skip
    if rules.is_compacted:
        message = f"InvalidRecordException: topic {topic} is compacted, and takes no record without a key."
        errors.append(F.when(key.isNull(), F.lit(message)))
    if rules.max_bytes < options.handlers.max_request_size:
        message = f"RecordTooLargeException: a record of %d bytes is larger than topic {topic} takes, {rules.max_bytes}"
        errors.append(F.when(size > rules.max_bytes - OVERHEAD, F.format_string(f"{message} bytes.", size)))
    elif rules.max_bytes > options.handlers.max_request_size + OVERHEAD:
        errors.append(_too_large(size, F.lit(topic), options))
    return errors


def _too_large(size: Column, topic: Column, options: QueryOptions) -> Column:
    """Return why a record does not fit into a request; null if it does."""
    return F.when(
        size > options.handlers.largest_record,
        F.format_string(
            "RecordTooLargeException: a record of %d bytes for topic %s is larger than the "
            f"{options.handlers.max_request_size} that a request may have (max_request_size).", size, topic,
        ),
    )  # fmt: skip


def bytes_of(key: Column, value: Column, headers: Column) -> Column:
    """Return how many bytes a record has."""
    pairs = F.coalesce(headers, F.array().cast(HEADER_TYPE))
    in_headers = F.aggregate(pairs, F.lit(0), lambda size, pair: size + _size(pair["key"]) + _size(pair["value"]))
    return _size(key) + _size(value) + in_headers


def _size(data: Column) -> Column:
    return F.coalesce(F.octet_length(data), F.lit(0))


def tried(datum: Datum, serde: Serde, condition: Column | None) -> tuple[Column, Column | None]:
    """Return the bytes of a key or value, and why there are none; this is None if the bytes are known already."""
    if datum.raw is not None and serde == datum.serde:
        return datum.to_bytes(serde, condition), None
    tried = serde.try_to_bytes(datum.given_to(serde, condition))
    return tried["value"], tried["error"]
