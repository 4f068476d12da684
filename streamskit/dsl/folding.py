"""What an aggregation needs to be given: windows of the right kind, functions, and the serde of its aggregates."""

from streamskit.api.windows import AnyWindows, SessionWindows, SlidingWindows, TimeWindows
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.serdes import Serde, Serdes


def windowed_key(key: Serde, windows: AnyWindows | None) -> Serde:
    """Return the serde of an aggregation's keys: with the window, if there are any."""
    if windows is None:
        return key
    if isinstance(windows, SessionWindows):
        return Serdes.session_windowed(key)
    return Serdes.time_windowed(key, windows.size)


def check_windows(windows: object, what: str) -> None:
    """Check that these are windows to aggregate in.

    Raises:
        TopologyError: they are not.
    """
    if not isinstance(windows, TimeWindows | SlidingWindows | SessionWindows):
        hint = " JoinWindows are for joins." if type(windows).__name__ == "JoinWindows" else ""
        raise TopologyError(
            f"{what}: give TimeWindows, SlidingWindows or SessionWindows, such as "
            f"TimeWindows.of_size_with_no_grace('5 seconds'), not {windows!r}.{hint}"
        )


def check_fold(
    initializer: object,
    aggregator: object,
    merger: object,
    value: Serde | None,
    windows: AnyWindows | None,
    what: str,
) -> Serde:
    """Check the Python functions of an aggregation, and return the serde of its aggregates.

    Raises:
        TopologyError: a function or the serde is missing, or a function takes other arguments.
    """
    type_inference.check_signature(initializer, "initializer", (), what)
    type_inference.check_signature(aggregator, "aggregator", ("key", "value", "aggregate"), what)
    check_merger(merger, windows, what)
    if value is None:
        raise TopologyError(
            f"{what}: say which serde writes the aggregates, as Python functions do not: value=Serdes.long(), "
            "value=Serdes.json('count long, total double')."
        )
    return value


def check_merger(merger: object, windows: AnyWindows | None, what: str) -> None:
    """Check that sessions, and only they, have a function that joins two aggregates.

    Raises:
        TopologyError: it is missing, or given for other windows.
    """
    if isinstance(windows, SessionWindows):
        if merger is None:
            raise TopologyError(
                f"{what}: a record can join two sessions into one, so sessions need a merger= that makes one aggregate "
                "of two: merger=lambda key, one, other: one + other."
            )
        type_inference.check_signature(merger, "merger", ("key", "one", "other"), what)
    elif merger is not None:
        raise TopologyError(f"{what}: only sessions meet and need a merger=; leave it out.")
