"""The programs of the vectors `errors-*`, with their handlers."""

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import (
    DeadLetter,
    ErrorHandlerContext,
    LogAndContinue,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Response,
    Serdes,
    Stores,
    StreamsBuilder,
)
from streamskit.serdes import Serde
from tests.conformance.registry import LETTERS, SETTINGS, program

STRING, LONG = Serdes.string(), Serdes.long()


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def letter(data: dict[str, Any]) -> Response:
    """Go on, and tell in a dead letter what the handler in Java noted as a side effect."""
    return Response.resume(DeadLetter(LETTERS, None, json.dumps(data).encode()))


def deserialization_dead_letters(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
    said = {"topic": record.topic, "partition": context.partition, "offset": context.offset}
    said |= {"timestamp": record.timestamp, "key_utf8": text(record.key), "value_utf8": text(record.value)}
    said |= {"node": context.processor_node_id, "context_timestamp": context.timestamp}
    return letter(said)


def processing_dead_letters(context: ErrorHandlerContext, record: Record | None, exception: Exception) -> Response:
    said: dict[str, Any] = {"topic": context.topic, "partition": context.partition, "offset": context.offset}
    said |= {"node": context.processor_node_id, "context_timestamp": context.timestamp}
    said |= {"source_key_utf8": text(context.source_raw_key), "source_value_utf8": text(context.source_raw_value)}
    fields = ("key", "value", "timestamp")
    said |= {"record": None if record is None else {field: getattr(record, field) for field in fields}}
    return letter(said | {"message": str(exception)})


SETTINGS |= {
    "errors-build-naming": {"ensure_explicit_internal_resource_naming": True},
    "errors-deserialization-continue": {"deserialization_handler": LogAndContinue()},
    "errors-deserialization-dead-letters": {"deserialization_handler": deserialization_dead_letters},
    "errors-deserialization-global": {"deserialization_handler": LogAndContinue()},
    "errors-forward-negative-timestamp": {"processing_handler": processing_dead_letters},
    "errors-processing-continue": {"processing_handler": LogAndContinue()},
    "errors-processing-punctuation": {"processing_handler": processing_dead_letters},
}


@program
def errors_deserialization_continue(builder: StreamsBuilder) -> None:
    builder.stream("in", value=LONG).to("out")


@program
def errors_deserialization_fail(builder: StreamsBuilder) -> None:
    builder.stream("in", value=LONG).to("out")


@program
def errors_deserialization_dead_letters(builder: StreamsBuilder) -> None:
    builder.stream("in", value=Serdes.json("n long")).to("out")


@program
def errors_deserialization_global(builder: StreamsBuilder) -> None:
    builder.global_table("in", value=LONG, materialized="everything")


def parsed(value: Column) -> Column:
    """Return a text as a number, as Java's `Long.parseLong` does: null is none."""
    return F.coalesce(value, F.lit("null")).cast("long")


@program
def errors_processing_continue(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(parsed).to("out")


@program
def errors_processing_fail(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(parsed).to("out")


class FailingTicker(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)

    def tick(self, timestamp: int) -> None:
        self.context.forward(Record("tick", "before", timestamp))
        if timestamp == 100:
            raise RuntimeError(f"punctuation at {timestamp}")

    def process(self, record: Record) -> None:
        self.context.forward(record)


@program
def errors_processing_punctuation(builder: StreamsBuilder) -> None:
    builder.stream("in").process(FailingTicker, name="ticker").to("out")


@dataclass(frozen=True)
class Picky(Serde):
    """A text serde that refuses to write the text 'poison'."""

    @property
    def data_type(self) -> Any:
        return STRING.data_type

    def serialize(self, value: str | None) -> bytes | None:
        if value == "poison":
            raise ValueError(f"will not write {value}")
        return STRING.serialize(value)

    def deserialize(self, data: bytes | None) -> str | None:
        return STRING.deserialize(data)


@program
def errors_production_fail(builder: StreamsBuilder) -> None:
    builder.stream("in").to("out", key=Picky(), value=Picky())


class Ager(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record.with_timestamp(record.timestamp - 100))


@program
def errors_forward_negative_timestamp(builder: StreamsBuilder) -> None:
    builder.stream("in").process(Ager, name="ager").to("out")


@program
def errors_build_naming(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by(lambda v: v).count().to_stream().to("out")


class Unconnected(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.state_store("counts")

    def process(self, record: Record) -> None:
        self.context.forward(record)


@program
def errors_build_store_not_connected(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.persistent_key_value_store("counts", STRING, LONG))
    builder.stream("in").process(Unconnected, name="unconnected").to("out")
