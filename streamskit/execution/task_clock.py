"""The clocks of a task: the current record, how far stream time has advanced, and which punctuations are due."""

from typing import Any

from streamskit import operators
from streamskit.api.processor import PunctuationType
from streamskit.execution.row_format import (
    BEGIN,
    CLOCK,
    HEADERS,
    KEY,
    ORIGIN,
    OTHER,
    OTHER_OLD,
    PORT,
    POSITION,
    SOURCE,
    TIME_UNDECIDED,
    TIMESTAMP,
    TOPIC,
    VALUE,
    Row,
)
from streamskit.execution.stage_rows import StageInputs
from streamskit.operators.records import NO_SOURCE, SourceRecord


class TaskClock:
    """Looks at each row before its stage does, and moves the clocks of the stage's processors.

    Mirrors what `org.apache.kafka.streams.processor.internals.StreamThread` does between two records.
    """

    def __init__(self, stage: operators.StreamTask, inputs: StageInputs, task: int) -> None:
        self._stage, self._inputs = stage, inputs
        self._partition = inputs.tasks.index(task) if inputs.tasks else -1
        self._place: Any = None
        # In a test driver stream time looks for what is due after a record only, as in Kafka Streams' own.
        self._is_test = stage.wall_clock is not None
        self._is_between = self._is_test
        stage.open_punctuating()
        self._punctuate_by_wall_clock()

    def see(self, row: Row) -> None:
        """Take note of a row that begins a new record or moves a clock."""
        port = row[PORT]
        if port == CLOCK:
            self._finish_last()
            if row[KEY] is not None:
                if row[TIMESTAMP] >= 0:  # stream time has advanced, in another sub-topology
                    self._stage.advance_stream_time(row[TIMESTAMP])
                    self.finish()
                return
            self._is_between = self._is_test
            if self._stage.wall_clock is not None:
                self._stage.advance_wall_clock(row[TIMESTAMP])
            self._punctuate_by_wall_clock()
        elif not self._inputs.topics:
            if port in (BEGIN, SOURCE):
                partition, offset = map(int, row[OTHER_OLD].split())
                source = SourceRecord(row[TOPIC], partition, offset, *_itself(row))
                (self._begin if port == BEGIN else self._stage.go_on_with)(source)
        elif port != BEGIN and self._inputs.begins_apart:
            return
        elif row[ORIGIN] not in self._inputs.first and (place := (row[ORIGIN], row[POSITION])) != self._place:
            self._place = place
            itself = _itself(row) if port == BEGIN else (row[TIMESTAMP],)
            topic = (row[TOPIC] if port == BEGIN else None) or self._inputs.topics[row[ORIGIN] - 1]
            source = SourceRecord(topic, self._partition, row[POSITION], *itself)
            if row[OTHER] == TIME_UNDECIDED:
                self._stage.begin_when_timed(source, self._begin)
            else:
                self._begin(source)

    def finish(self) -> None:
        """Do what is due after a record."""
        stream_time = self._stage.stream_time
        if stream_time >= 0:
            self._stage.punctuate(PunctuationType.STREAM_TIME, stream_time)

    def end(self) -> None:
        """Do what is due after the last record; what was held back until now, and follows, comes after that."""
        self._begin(NO_SOURCE)

    def _finish_last(self) -> None:
        if not self._is_between:
            self.finish()

    def _begin(self, source: SourceRecord) -> None:
        self._finish_last()
        self._is_between = self._is_between and source is NO_SOURCE
        self._stage.begin(source)

    def _punctuate_by_wall_clock(self) -> None:
        self._stage.punctuate(PunctuationType.WALL_CLOCK_TIME, self._stage.now())


def _itself(row: Row) -> tuple[int, bytes | None, bytes | None, Any]:
    return row[TIMESTAMP], row[KEY], row[VALUE], row[HEADERS]
