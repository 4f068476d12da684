"""Runs task operators in process, on a dict, and reads what they make."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from streamskit.operators import Operator, OperatorRecord, Output, StreamTask
from streamskit.serdes import LONG, Serde, Serdes, SessionWindowedSerde, StringSerde, TimeWindowedSerde

STRING = StringSerde()
JSON = Serdes.json("any string")
SERDES = {"string": STRING, "long": LONG, "json": JSON, "integer": Serdes.integer()}


class Pages(dict[str, bytes]):
    """A page store in memory, which counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.loads = self.saves = 0

    def load(self, page: str) -> bytes | None:
        self.loads += 1
        return self.get(page)

    def load_all(self) -> Iterable[tuple[str, bytes]]:
        self.loads += 1
        return list(self.items())

    def save(self, page: str, data: bytes | None) -> None:
        self.saves += 1
        if data is None:
            self.pop(page, None)
        else:
            self[page] = data


class Harness:
    """One task. `together` keeps one stage for all records; otherwise each record has its own and state is saved."""

    def __init__(
        self, operators: Sequence[Operator], *, together: bool = False, cache: bool = False, emit_interval: int = 0
    ) -> None:
        self.operators, self.together, self.cache, self.emit_interval = operators, together, cache, emit_interval
        self.pages, self.wall_clock, self.dropped = Pages(), 0, 0
        self.stage = self._stage()

    def give(self, operator: int, side: int, record: OperatorRecord) -> list[Output]:
        """Give one record to an operator and return what it makes of it."""
        return self.give_all(operator, side, [record])

    def give_all(self, operator: int, side: int, records: Iterable[OperatorRecord]) -> list[Output]:
        """Give the records of one micro-batch to an operator."""
        before = sum(self.stage.dropped.values())
        for record in records:
            self.stage.process(operator, side, record)
        if not self.together:
            self.stage.finish()
        made = self.stage.take_outputs()
        self.dropped += sum(self.stage.dropped.values()) - before
        if not self.together:
            self.stage = self._stage()
        return made

    def advance(self, milliseconds: int) -> None:
        """Move the wall clock."""
        self.wall_clock += milliseconds
        self.stage.advance_wall_clock(self.wall_clock)

    def _stage(self) -> StreamTask:
        return StreamTask(
            self.operators, self.pages, cache=self.cache, emit_interval=self.emit_interval, wall_clock=self.wall_clock
        )


def record(
    key: bytes | None, value: bytes | None, timestamp: int, old: bytes | None = None, extra: bytes | None = None
) -> OperatorRecord:
    return OperatorRecord(key, value, old, extra, timestamp, None)


def long(number: int) -> bytes:
    """Return a number as `Serdes.long()` writes it."""
    return number.to_bytes(8, "big")


def values(outputs: list[Output]) -> list[Any]:
    """Return the values of results as text."""
    return [None if output.value is None else output.value.decode() for output in outputs]


def text(data: bytes | None) -> str:
    """What Java's string concatenation makes of a string that may be null."""
    return "null" if data is None else data.decode()


def plain(output: Output, value: Callable[[Output], Any], key: Serde = STRING) -> dict[str, Any]:
    """Return an output as the vectors write it."""
    made: dict[str, Any] = {"key": key.deserialize(output.key), "value": value(output), "timestamp": output.timestamp}
    if isinstance(key, TimeWindowedSerde | SessionWindowedSerde):
        windowed = made["key"]
        made |= {"key": windowed.key, "window": {"start": windowed.start, "end": windowed.end}}
    return made


def decode(serde: Serde) -> Callable[[Output], Any]:
    return lambda output: serde.deserialize(output.value)


Rows = Iterator[tuple[str, dict[str, Any]]]
"""Topics and rows."""
