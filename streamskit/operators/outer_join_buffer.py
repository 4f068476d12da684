"""The records of an outer stream-stream join that wait for a match."""

from typing import Any

from streamskit.api.windows import JoinWindows
from streamskit.operators.stream_task import OperatorContext
from streamskit.operators.throttle import Throttle
from streamskit.operators.timeline import Timeline, width_for


class OuterJoinBuffer:
    """Records without a match so far, in the order of time, side (the right one first) and key.

    Mirrors the shared outer-join store of `KStreamKStreamJoin` and its time tracker.

    Args:
        task: the task whose state it is part of.
        windows: the join's.
        both: whether records of both sides may be here, or left ones only.
    """

    def __init__(self, task: OperatorContext, windows: JoinWindows, both: bool) -> None:
        self._timeline = Timeline(f"{task.name}/waiting", task.pages, width_for(windows.retention))
        self._memory, self._forward, self._throttle, self._both = task.memory, task.forward, Throttle(task), both
        self._windows = windows
        # The time of the oldest record as far as the last look went; None stands for "later than any time".
        self._memory.setdefault("oldest", None)
        task.keep(self._timeline)

    def add(self, timestamp: int, side: int, key: bytes, value: bytes) -> None:
        """Let a record wait; several of one key and time wait together."""
        entry = (timestamp, 1 - side, key)
        self._timeline.put(entry, [*(self._timeline.get(entry) or ()), value])
        oldest = self._memory["oldest"]
        self._memory["oldest"] = timestamp if oldest is None else min(oldest, timestamp)

    def remove(self, timestamp: int, side: int, key: bytes) -> None:
        """Take out what waits at a time, for it has found a match."""
        if self._timeline.first_time() is not None:
            self._timeline.pop((timestamp, 1 - side, key))

    def emit_closed(self, stream_time: int, after: int, headers: Any) -> None:
        """Pass on the records whose window has closed.

        Args:
            stream_time: of both streams together.
            after: how far the window of the side that is being processed reaches forward.
            headers: of the record that is being processed.
        """
        if not self._may_be_due(stream_time, after) or not self._throttle.lets_pass():
            return
        self._memory["oldest"] = None
        after_ms, before_ms, grace = self._windows.after_ms, self._windows.before_ms, self._windows.grace
        # Which sides have come to a record that still waits: they have no more to give. A left join has one side only.
        is_open = [not self._both, False]
        for entry in self._timeline.in_order():
            timestamp, is_left, key = entry
            self._memory["oldest"] = timestamp
            if all(is_open):
                if not self._both:
                    self._memory["oldest"] = self._timeline.last_time()
                return
            if timestamp + (after_ms if is_left else before_ms) + grace >= stream_time:
                is_open[is_left] = True
                continue
            for value in self._timeline.pop(entry):
                left, right = (value, None) if is_left else (None, value)
                self._forward(key, left, timestamp, headers, None, right)

    def _may_be_due(self, stream_time: int, after: int) -> bool:
        oldest, grace = self._memory["oldest"], self._windows.grace
        if oldest is None:
            # Kafka Streams adds to the largest number there is, which makes it the smallest.
            return after + grace > 0
        return bool(oldest + after + grace < stream_time)
