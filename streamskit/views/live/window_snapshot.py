"""What a view shows of records and their windows, as plain values."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamskit.api.windows import AnyWindows
from streamskit.views.live.record_source import Arrival
from streamskit.views.live.replay import Step, replay_windows
from streamskit.views.live.store_source import matches


@dataclass(frozen=True)
class Seen:
    """What a view of event time has seen of one task's records.

    `topics` is where they lie, `partition` which one of the `partitions` this is; `before` counts those that came
    before the first one kept; `caveat` says what cannot be known from them; `dropped` is what each node of the engine
    says it has dropped, of all partitions; `stopped` says why no more will come.
    """

    topics: Sequence[str]
    partition: int
    partitions: Sequence[int]
    arrivals: Sequence[Arrival]
    before: int
    caveat: str
    dropped: Mapping[str, int]
    stopped: str = ""


@dataclass(frozen=True)
class WindowSnapshot:
    """The windows of a store after the first `at` of the records that were seen; `taken_at` in seconds since 1970.

    `search` says how the keys begin that are shown.
    """

    name: str
    windows: AnyWindows
    seen: Seen
    steps: Sequence[Step]
    at: int
    taken_at: float
    search: str = ""

    @property
    def stopped(self) -> str:
        """Why no more will come."""
        return self.seen.stopped

    @property
    def done(self) -> Sequence[Step]:
        """The steps so far."""
        return self.steps[: self.at]

    @property
    def keys(self) -> list[str]:
        """The keys to show, in the order they came."""
        came = dict.fromkeys(step.arrival.key for step in self.steps if step.arrival.key is not None)
        return [key for key in came if matches(key, self.search)]

    def after(self, count: int) -> "WindowSnapshot":
        """Return the same after another number of records."""
        return replace(self, at=max(0, min(count, len(self.steps))))


def window_snapshot(
    name: str, windows: AnyWindows, retention: int, seen: Seen, search: str = "", previous: WindowSnapshot | None = None
) -> WindowSnapshot:
    """Return the windows after all records that were seen; nothing is computed anew where none are new.

    Args:
        name: the store's name.
        windows: its windows.
        retention: how long it keeps them, in milliseconds.
        seen: the records.
        search: how the keys begin that are to be shown.
        previous: the snapshot before.
    """
    if previous is not None and previous.seen.arrivals == seen.arrivals:
        steps = previous.steps
    else:
        steps = replay_windows(windows, retention, seen.arrivals)
    return WindowSnapshot(name, windows, seen, steps, len(steps), time.time(), search)
