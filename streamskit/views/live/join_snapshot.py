"""What a view shows of the records of two streams and how they meet, as plain values."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamskit.api.windows import JoinWindows
from streamskit.views.live.replay import Step, replay_join
from streamskit.views.live.window_snapshot import Seen

FATES = ("joined", "alone", "waiting", "unmatched", "dropped")
"""What may become of a record: see `JoinSnapshot.fates`."""


@dataclass(frozen=True)
class JoinSnapshot:
    """A join of two streams after the first `at` of the records that were seen; `taken_at` in seconds since 1970.

    `names` are what the left and the right stream are called, `outer` says whose records go out without a match.
    """

    name: str
    names: tuple[str, str]
    windows: JoinWindows
    outer: tuple[bool, bool]
    seen: Seen
    steps: Sequence[Step]
    at: int
    taken_at: float

    @property
    def stopped(self) -> str:
        """Why no more will come."""
        return self.seen.stopped

    @property
    def done(self) -> Sequence[Step]:
        """The steps so far."""
        return self.steps[: self.at]

    @property
    def pairs(self) -> list[tuple[int | None, int | None]]:
        """The results so far, as places of records among the steps, left and right; None where a side stays empty."""
        return [pair for step in self.done for pair in step.pairs]

    def after(self, count: int) -> "JoinSnapshot":
        """Return the same after another number of records."""
        return replace(self, at=max(0, min(count, len(self.steps))))

    def fates(self) -> Mapping[tuple[int, int], str]:
        """Return what has become of each record, by its side and place.

        It is "joined", went out "alone", is "waiting" for a match that may still come, "unmatched" when its window has
        closed, or "dropped".
        """
        met = {(side, pair[side]) for pair in self.pairs for side in (0, 1) if None not in pair}
        alone = {(side, pair[side]) for pair in self.pairs for side in (0, 1) if pair[1 - side] is None}
        now = self.done[-1].stream_time if self.done else 0
        found = {}
        for place, step in enumerate(self.done):
            for side in step.arrival.sides:
                reach = self.windows.before_ms if side else self.windows.after_ms
                is_over = step.arrival.timestamp + reach + self.windows.grace < now
                which = (side, place)
                fate = (
                    "joined" if which in met else "alone" if which in alone else "unmatched" if is_over else "waiting"
                )
                found[which] = "dropped" if step.is_dropped else fate
        return found


def join_snapshot(
    name: str, names: tuple[str, str], windows: JoinWindows, outer: tuple[bool, bool], seen: Seen,
    previous: JoinSnapshot | None = None,
) -> JoinSnapshot:  # fmt: skip
    """Return the join after all records that were seen; nothing is computed anew where none are new.

    Args:
        name: the join's name.
        names: what the left and the right stream are called.
        windows: how far apart two records may be.
        outer: for each side whether its records go out without a match.
        seen: the records.
        previous: the snapshot before.
    """
    if previous is not None and previous.seen.arrivals == seen.arrivals:
        steps = previous.steps
    else:
        steps = replay_join(windows, outer, seen.arrivals)
    return JoinSnapshot(name, names, windows, outer, seen, steps, len(steps), time.time())
