"""A second application: it reads the dead letters of the first, and counts them by what was wrong."""

from typing import Any

from examples.music.schemas import LETTER_COUNT, LETTER_COUNTS, LETTERS
from streamskit import Processor, Record, Serdes, StreamsBuilder, Topology

PREFIX = "__streams.errors."
"""How the headers of a dead letter begin, as in Kafka Streams."""


class WhatWasWrong(Processor):
    """Turns a dead letter into the kind of its error, and the place of the record that failed."""

    def process(self, record: Record) -> None:
        """Read the headers: the letter's value is of no use to anybody."""
        said = {name.removeprefix(PREFIX): value.decode() for name, value in record.headers if name.startswith(PREFIX)}
        place = f"{said.get('topic')}-{said.get('partition')}@{said.get('offset')}"
        kind = said.get("exception", "unknown").rpartition(".")[2]  # the class, without its package
        self.context.forward(record.with_key(kind).with_value(place))


def none() -> dict[str, Any]:
    """Return the count before the first letter."""
    return {"count": 0, "last": ""}


def one_more(kind: str, place: str, so_far: dict[str, Any]) -> dict[str, Any]:
    """Return the count with one letter more."""
    return {"count": so_far["count"] + 1, "last": place}


def topology() -> Topology:
    """Return the topology: dead letters in, a count for each kind of error out."""
    builder = StreamsBuilder()
    letters = builder.stream(LETTERS, key=Serdes.bytes(), value=Serdes.bytes())
    kinds = letters.process(WhatWasWrong, key=Serdes.string(), value=Serdes.string(), name="what-was-wrong")
    counted = kinds.group_by_key().aggregate(none, one_more, "letters-by-kind", value=LETTER_COUNT)
    counted.to_stream().to(LETTER_COUNTS)
    return builder.build()
