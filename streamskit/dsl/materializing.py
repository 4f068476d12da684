"""From what a learner wants materialized to the store a node keeps."""

from streamskit.api.windows import AnyWindows, SessionWindows, SlidingWindows
from streamskit.common.durations import to_milliseconds
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.dsl.materialized import Materialized
from streamskit.serdes import Serde
from streamskit.topology import Store


def key_value_store(wanted: Materialized, name: str, key: Serde, value: Serde) -> Store:
    """Return the store of a table without windows: one row for each key, or its versions."""
    kind, retention = "key-value", None
    if wanted.history is not None:
        kind, retention = "versioned", to_milliseconds(wanted.history, "history retention")
    return Store(check_name(name), kind, key, value, None, retention, wanted.name is not None, wanted.logged)


def windowed_store(wanted: Materialized, name: str, key: Serde, value: Serde, windows: AnyWindows, what: str) -> Store:
    """Return the store of a windowed table: one row for each key and window.

    Raises:
        TopologyError: it would lose windows that are still open, or it was to keep versions.
    """
    if wanted.history is not None:
        raise TopologyError(f"{what}: a windowed table keeps a row for each window, not versions: leave history out.")
    kept = windows.retention
    if wanted.retention is not None:
        kept = to_milliseconds(wanted.retention, "retention")
    if kept < windows.retention:
        raise TopologyError(
            f"{what}: a retention of {kept} ms is shorter than windows stay open with their grace "
            f"({_open_for(windows)} ms), so windows would be lost while open. Keep at least that long."
        )
    kind = "session" if isinstance(windows, SessionWindows) else "window"
    return Store(check_name(name), kind, key, value, windows, kept, wanted.name is not None, wanted.logged)


def _open_for(windows: AnyWindows) -> str:
    if isinstance(windows, SessionWindows):
        return f"{windows.gap} + {windows.grace}"
    # A record can make the window that follows that of another one, so sliding windows are kept for two of their sizes.
    size = f"2 * {windows.size}" if isinstance(windows, SlidingWindows) else f"{windows.size}"
    return f"{size} + {windows.grace}"
