"""Runs a program with error handlers in the test driver, and tells what came out, what was kept aside and counted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamskit import (
    DeadLetter,
    ErrorHandlerContext,
    LogAndContinue,
    Response,
    Serde,
    Serdes,
    StreamsBuilder,
    StreamsError,
    TopologyTestDriver,
)
from streamskit.api.error_handlers import STACKTRACE
from streamskit.testing import TestRecord

TEXT, LONG, BYTES = Serdes.string(), Serdes.long(), Serdes.byte_array()
LETTERS = "dead-letters"
DEAD_LETTERS = LogAndContinue(LETTERS)

Program = Callable[[StreamsBuilder], Any]


@dataclass
class Seen:
    """What a program made of records: key and value by topic, dead letters, and how many each node went without."""

    out: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    letters: list[TestRecord] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def letter_headers(self) -> list[dict[str, str]]:
        """The headers of each dead letter but the stack trace, as text, without what their names have in common."""
        return [
            {
                name.removeprefix("__streams.errors."): value.decode()
                for name, value in letter.headers
                if name != STACKTRACE
            }
            for letter in self.letters
        ]

    @property
    def stack_traces(self) -> list[str]:
        """The stack trace that each dead letter has."""
        return [dict(letter.headers)[STACKTRACE].decode() for letter in self.letters]


def seen(
    program: Program,
    *batches: tuple[str, list[tuple[Any, ...]]],
    topics: tuple[str, ...] = ("out",),
    key: Serde | None = None,
    value: Serde | None = None,
    **handlers: Any,
) -> Seen:
    """Return what a program makes of batches of records, each given with its topic and written by the serdes."""
    builder = StreamsBuilder()
    program(builder)
    with TopologyTestDriver(builder.build(), **handlers) as driver:
        for topic, records in batches:
            driver.create_input_topic(topic, key, value).pipe_records(records)
        found = Seen(letters=driver.dead_letters(LETTERS).read_records_to_list(), dropped=driver.metrics())
        for topic in topics:
            records_out = driver.create_output_topic(topic).read_records_to_list()
            found.out[topic] = [(record.key, record.value) for record in records_out]
    return found


def failure_of(program: Program, *batches: tuple[str, list[tuple[Any, ...]]], **options: Any) -> str:
    """Return the sentence with which a program fails on records."""
    with pytest.raises(StreamsError) as failed:
        seen(program, *batches, **options)
    return str(failed.value)


def tell(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
    """Go on, and write what the handler was told into a dead letter."""
    place = f"{context.processor_node_id} {context.topic}-{context.partition}@{context.offset}, {context.timestamp} ms"
    said = f"{place}: {type(record).__name__} {repr(record and record.value)[:40]}: {exception}"
    return Response.resume(DeadLetter(LETTERS, context.source_raw_key, said.encode(), context.headers))
