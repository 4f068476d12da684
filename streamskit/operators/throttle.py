"""How often results that have become due are looked for."""

from streamskit.operators.stream_task import OperatorContext


class Throttle:
    """Lets a look pass at most once in a task's emit interval of wall-clock time.

    Mirrors `TimeTracker` of `KStreamKStreamJoin` and of the windowed aggregations.
    """

    def __init__(self, task: OperatorContext) -> None:
        self._memory, self._interval, self._now = task.memory, task.emit_interval, task.now

    def lets_pass(self) -> bool:
        """Return whether it is time for a look; if so, the next one has to wait."""
        if self._interval == 0:
            return True
        now = self._now()
        if now < self._memory.get("next look", 0):
            return False
        self._memory["next look"] = now + self._interval
        return True
