"""Stores as JSON: what one process writes down and another one reads, without running code."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, fields
from typing import Any

from streamskit.api.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from streamskit.common.errors import StreamsError
from streamskit.serdes import Serde, SerdeError
from streamskit.serdes.description import describe, described
from streamskit.state.stores import Store

WINDOWS = {each.__name__: each for each in (TimeWindows, SlidingWindows, SessionWindows, JoinWindows)}


def describe_store(store: Store) -> dict[str, Any]:
    """Return a store as JSON.

    >>> describe_store(Store("counts", "key-value", Serdes.string(), Serdes.long()))["value"]
    {'serde': 'long'}
    """
    said = {each.name: getattr(store, each.name) for each in fields(Store)}
    windows = None if store.windows is None else {"kind": type(store.windows).__name__, **asdict(store.windows)}
    return {**said, "key": describe(store.key), "value": describe(store.value), "windows": windows}


def described_store(said: Mapping[str, Any], own: Collection[Serde] = ()) -> Store:
    """Return the store that `describe_store` wrote down.

    Args:
        said: what it wrote.
        own: serdes of the program's own.

    Raises:
        StreamsError: one of its serdes is a class of a program's own, and not among those.
        ValueError: the JSON describes no store.
    """
    try:
        key, value = described(said["key"], own), described(said["value"], own)
    except SerdeError as custom:
        raise StreamsError(f"Store '{said['name']}' cannot be read here: {custom}") from None
    windows = said["windows"]
    if windows is not None:
        windows = WINDOWS[windows["kind"]](**{name: int(each) for name, each in windows.items() if name != "kind"})
    changelog = tuple((name, value) for name, value in said.get("changelog", ()))
    return Store(**{**said, "key": key, "value": value, "windows": windows, "changelog": changelog})
