"""What goes into a topology step by step, and what Kafka Streams returned: a recorded vector in a lab's words."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, NamedTuple

from streamskit.api.windows import Windowed

RECORDED = files("streamskit.course.labs") / "recorded"
"""The vectors that labs use, as they were recorded from the Java library; see `tests/conformance/README.md`."""


class Piped(NamedTuple):
    """A record that goes in. `raw` names the parts ("key", "value") that are bytes past the topic's serde."""

    topic: str
    key: Any
    value: Any
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()
    raw: tuple[str, ...] = ()


class Batch(NamedTuple):
    """Many records of one topic that go in together; all have the same `raw`."""

    records: tuple[Piped, ...]


class Advance(NamedTuple):
    """The wall clock moves forward by this many milliseconds."""

    milliseconds: int


class Question(NamedTuple):
    """A step of the recording that only queries a store."""

    store: str


Step = Piped | Batch | Advance | Question


class OutcomeRow(NamedTuple):
    """A record that came out after a step, or a row of a store, which belongs to no step (-1)."""

    step: int
    key: Any
    value: Any
    timestamp: int | None = None


@dataclass(frozen=True)
class Costume:
    """A story told with a vector's records: other names for its topics, stores and keys, and another pace of time.

    Args:
        topics: the story's name of each topic of the vector.
        stores: likewise of each store.
        keys: likewise of each key; other keys stay unchanged.
        scale: how many milliseconds of the story one of the vector is; sizes of windows grow with it.
        value: returns the story's value, given the topic (as the vector calls it) and the value.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[Any, Any] = field(default_factory=dict)
    scale: int = 1
    value: Callable[[str, Any], Any] = lambda _, value: value

    def topic(self, name: str) -> str:
        """Return the story's name of a topic."""
        return self.topics.get(name, name)

    def key(self, record: Mapping[str, Any]) -> Any:
        """Return the story's key of a recorded row, with its window if it has one."""
        key = record.get("key")
        key = self.keys.get(key, key) if isinstance(key, str) else key
        window = record.get("window")
        return Windowed(key, window["start"] * self.scale, window["end"] * self.scale) if window else key

    def time(self, timestamp: int | None) -> int | None:
        """Return the story's time of a recorded one."""
        return None if timestamp is None else timestamp * self.scale


@dataclass(frozen=True)
class Recording:
    """The steps, and the results that are due.

    Args:
        steps: what goes in, in order.
        outputs: the records of each output topic, in order.
        stores: the final rows of each store that has a name in the task.
        letters: the output topics to which error handlers write dead letters: keys and values are bytes.
        dropped: by step how many records are dropped.
        driver: settings of the `TopologyTestDriver` that differ from the usual.
        fails: whether the last step has to stop the application.
        since: by store the earliest start of a window that counts; a program may keep older ones, or forget them.
        source: where the expected results come from, for the sentence shown on passing.
    """

    steps: tuple[Step, ...]
    outputs: Mapping[str, tuple[OutcomeRow, ...]]
    stores: Mapping[str, tuple[OutcomeRow, ...]] = field(default_factory=dict)
    letters: tuple[str, ...] = ()
    dropped: Mapping[int, int] = field(default_factory=dict)
    driver: Mapping[str, Any] = field(default_factory=dict)
    fails: bool = False
    since: Mapping[str, int] = field(default_factory=dict)
    source: str = "Kafka Streams 4.1"

    @staticmethod
    def of(
        vector: str,
        costume: Costume | None = None,
        stores: Sequence[str] = (),
        driver: Mapping[str, Any] | None = None,
        until: int | None = None,
        changelogs: bool = False,
    ) -> "Recording":
        """Return a recorded vector in its costume.

        `stores` are those to compare, as the vector calls them; `until` keeps only the first steps and their
        results; with `changelogs` the records of internal topics are included.
        """
        recorded, dress = json.loads((RECORDED / f"{vector}.json").read_text()), costume or Costume()

        def goes_in(came: Mapping[str, Any]) -> bool:
            return until is None or came["after_step"] < until

        outputs = {
            dress.topic(topic): tuple(
                _row(dress, topic, record, record["after_step"]) for record in records if goes_in(record)
            )
            for topic, records in recorded["outputs"].items()
            if changelogs or recorded["topics"][topic]["role"] == "output"
        }
        rows = {
            dress.stores.get(name, name): tuple(_row(dress, name, row, -1) for row in recorded["stores"][name])
            for name in stores
        }
        return Recording(
            steps=tuple(_step(dress, step) for step in recorded["steps"][:until]),
            outputs=outputs,
            stores=rows,
            dropped={
                drop["after_step"]: drop["count"] for drop in recorded.get("dropped_by_step", []) if goes_in(drop)
            },
            driver=driver or {},
            fails=bool(recorded.get("errors")) and until is None,
        )

    def kept_for(self, store: str, retention: int) -> "Recording":
        """Return the recording in which those windows of a store count that it has even if it keeps none for longer.

        Args:
            store: its name.
            retention: for how many milliseconds it has to keep a window from the window's start on.
        """
        since = max(record.timestamp for record in self.records) - retention + 1
        return replace(self, since={**self.since, store: since})

    def counts(self, store: str, row: OutcomeRow) -> bool:
        """Say whether a row of a store is one that has to be as it was recorded."""
        return not isinstance(row.key, Windowed) or row.key.start >= self.since.get(store, row.key.start)

    @property
    def records(self) -> list[Piped]:
        """The records that go in."""
        each = (step.records if isinstance(step, Batch) else (step,) for step in self.steps)
        return [record for records in each for record in records if isinstance(record, Piped)]

    def told(self) -> str:
        """Say what is tested, as in "15 records went in (1 without a key, 3 too late)"."""
        records = self.records
        kinds = {
            "without a key": sum(record.key is None for record in records),
            "with a null value": sum(record.value is None for record in records),
            "with bytes that cannot be read": sum(bool(record.raw) for record in records),
            "out of order": _out_of_order(records),
            "dropped on the way": len(self.dropped),
        }
        special = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        came = sum(map(len, self.outputs.values()))
        went = f"{len(records):,} records went in{f' ({special})' if special else ''};"
        stores = f"the rows of {' and '.join(self.stores)}"
        if not came:
            return f"{went} {stores} are those of {self.source}."
        rows = f", and {stores}," if self.stores else ""
        same = "after the same record and with the same timestamp"
        return f"{went} all {came} results{rows} are those of {self.source}, {same}."


def _row(dress: Costume, topic: str, record: Mapping[str, Any], step: int) -> OutcomeRow:
    return OutcomeRow(step, dress.key(record), dress.value(topic, record["value"]), dress.time(record.get("timestamp")))


def _step(dress: Costume, step: Mapping[str, Any]) -> Step:
    if "advance_wall_clock_ms" in step:
        return Advance(step["advance_wall_clock_ms"] * dress.scale)
    if "query" in step:
        return Question(dress.stores.get(step["query"]["store"], step["query"]["store"]))
    piped = step["pipe"]
    raw = tuple(part for part in ("key", "value") if f"{part}_utf8" in piped)
    parts: dict[str, Any] = {part: piped[f"{part}_utf8"].encode() for part in raw}
    key = parts.get("key", dress.key(piped))
    value = parts.get("value") if "value" in raw else dress.value(piped["topic"], piped.get("value"))
    headers = tuple((name, text.encode()) for name, text in piped.get("headers", {}).items())
    return Piped(dress.topic(piped["topic"]), key, value, piped["timestamp"] * dress.scale, headers, raw)


def _out_of_order(records: Sequence[Piped]) -> int:
    """Count the records older than one before them."""
    latest, count = -1, 0
    for record in records:
        count += record.timestamp < latest
        latest = max(latest, record.timestamp)
    return count
