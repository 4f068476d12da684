"""How the queries of recorded vectors are asked here, and their answers written as the vectors have them."""

from collections.abc import Iterator
from typing import Any

from streamskit import KeyValue, Windowed
from streamskit.queries import VersionedRecord

Vector = dict[str, Any]

NAMES = {
    "reverseRange": "reverse_range",
    "prefixScan": "prefix_scan",
    "reverseAll": "reverse_all",
    "approximateNumEntries": "approximate_num_entries",
    "backwardFetch": "backward_fetch",
    "fetchAll": "fetch_all",
    "backwardAll": "backward_all",
    "backwardVersions": "backward_versions",
}


def ask(store: Any, query: Vector) -> Any:
    """Return the answer of a store to a query of a vector."""
    name: str = NAMES.get(query["op"]) or query["op"]
    arguments = query["args"]
    if name == "fetch" and len(arguments) == 4:
        name = "fetch_range"
    return as_recorded(getattr(store, name)(*arguments))


def as_recorded(answer: Any) -> Any:
    """Return an answer as the vectors write it."""
    if isinstance(answer, VersionedRecord):
        return _row(answer)
    return list(map(_row, answer)) if isinstance(answer, list) else answer


def answers(vector: Vector) -> Iterator[tuple[int, Vector, Any]]:
    """Yield each query of a vector with its step and what Kafka Streams answered."""
    recorded = {each["after_step"]: each["result"] for each in vector.get("query_results", [])}
    for number, step in enumerate(vector["steps"]):
        if "query" in step:
            yield number, step["query"], recorded[number]


def _row(row: Any) -> Vector:
    if isinstance(row, VersionedRecord):
        return {name: each for name, each in row._asdict().items() if each is not None or name != "valid_to"}
    if not isinstance(row, KeyValue):
        start, value = row
        return {"window_start": start, "value": value}
    if isinstance(row.key, Windowed):
        return {"key": row.key.key, "window": {"start": row.key.start, "end": row.key.end}, "value": row.value}
    return {"key": row.key, "value": row.value}
