"""What goes into the exercises of lab 10, and what has to come out: recorded vectors in a story of trucks."""

import re

from streamskit.course.labs.recording import Advance, Costume, Piped, Recording, Row

MINUTE = 60_000
TRUCKS = {"a": "truck-1", "b": "truck-2", "c": "truck-3", "tick": "all"}
PLACES = {"v1": "Basel", "v2": "Bern", "v3": "Thun", "v4": "Olten", "w1": "Chur", "old": "Biel", "null": "nowhere"}
SLOWER = 600
"""100 ms of the recordings are a minute of the story: so many times as slow."""


def stops() -> Recording:
    """Return a truck's stops; a null value ends its trip."""
    topics, stores = {"in": "truck-stops", "out": "stop-counts"}, {"counts": "stops"}
    dress = Costume(topics, stores, TRUCKS, MINUTE, lambda _, value: "stop" if value == "x" else value)
    return Recording.of("processor-key-value-store", dress, ["counts"])


def pallets() -> Recording:
    """Return pallets that are loaded and unloaded."""
    topics = {"in": "pallets", "positive": "loaded-pallets", "negative": "moved-pallets", "audit": "pallet-log"}
    return Recording.of("processor-forward-to-child", Costume(topics, {}, TRUCKS, MINUTE))


def told_by_stream_time() -> Recording:
    """Return readings, and a report for each minute that they tell of."""
    topics = {"in": "truck-readings", "out": "readings-so-far"}
    return Recording.of("processor-punctuate-stream-time", Costume(topics, {}, TRUCKS, SLOWER, _reading))


def told_by_wall_clock() -> Recording:
    """Return readings, and a wall clock that moves between them."""
    topics = {"in": "truck-readings", "out": "roll-calls"}
    return Recording.of("processor-punctuate-wall-clock", Costume(topics, {}, TRUCKS, SLOWER, _reading))


def positions() -> Recording:
    """Return where trucks say they are; some of it arrives late."""
    topics, stores = {"in": "truck-positions", "out": "truck-moves"}, {"latest": "last-seen"}
    return Recording.of("processor-timestamped-store", Costume(topics, stores, TRUCKS, SLOWER, _place), ["latest"])


def highest_readings() -> Recording:
    """Return readings, and in each minute the highest of each truck; folded here, as no vector has it."""
    readings = [
        ("truck-2", 6.5, 10),
        ("truck-10", 4.0, 20),
        ("truck-2", 7.5, 30),
        ("truck-1", 9.0, 50),
        ("truck-2", 7.0, 40),
        ("truck-10", 5.0, 65),
        ("truck-1", -3.0, 70),
        ("truck-1", None, 80),
        ("truck-1", -5.0, 120),
        ("truck-10", 8.0, 150),
        ("truck-2", 3.0, 300),
        ("truck-1", 2.0, 310),
    ]
    records = [Piped("truck-readings", truck, value, second * 1000) for truck, value, second in readings]
    steps: tuple[Piped | Advance, ...] = (*records[:5], Advance(2 * MINUTE), *records[5:])
    reports, kept = _highest_by_the_minute(steps)
    rows = tuple(Row(-1, truck, value) for truck, value in kept.items())
    return Recording(steps, {"highest-readings": reports}, {"highest": rows}, source="a fold in plain Python")


def _highest_by_the_minute(steps: tuple[Piped | Advance, ...]) -> tuple[tuple[Row, ...], dict[str, float]]:
    """Return the reports of each minute of stream time, and what is kept after the last."""
    highest: dict[str, float] = {}
    reports: list[Row] = []
    now = due = 0
    for number, step in enumerate(steps):
        if isinstance(step, Advance):
            continue
        if step.value is not None:
            highest[step.key] = max(step.value, highest.get(step.key, step.value))
        now = max(now, step.timestamp)
        if now >= due:
            reports += [Row(number, truck, highest[truck], now) for truck in sorted(highest)]
            highest, due = {}, (now // MINUTE + 1) * MINUTE
    return tuple(reports), highest


def _reading(topic: str, text: str) -> str | float:
    """Return degrees for a recorded number; in what a report says, the story's times."""
    if topic == "in":
        return float(text) + 2
    return re.sub(r"(?<=by )\d+|(?<=time )\d+", _slower, text.replace("records", "readings"))


def _place(_: str, text: str | None) -> str | None:
    """Return a recorded text with places, and with the story's times."""
    if text is None:
        return None
    return re.sub("|".join(PLACES), lambda found: PLACES[found.group()], re.sub(r"(?<=@)\d+", _slower, text))


def _slower(found: re.Match[str]) -> str:
    return str(int(found.group()) * SLOWER)
