"""The record cache: the updates of one key within a micro-batch become one."""

from streamskit.operators.records import Output


class RecordCache:
    """Folds the results of a table-like operator until they are flushed.

    Of a key's updates the last one counts; the value before is that before the first of them. A row that was made and
    deleted again in between leaves no trace. Results go out in the order of the keys' last updates.
    Mirrors `org.apache.kafka.streams.state.internals.NamedCache`.
    """

    def __init__(self) -> None:
        self._updates: dict[bytes | None, Output] = {}

    def add(self, output: Output) -> None:
        """Take one update in."""
        earlier = self._updates.pop(output.key, None)
        if earlier is not None:
            output = output._replace(old=earlier.old, other_old=earlier.other_old)
        self._updates[output.key] = output

    def flush(self) -> list[Output]:
        """Return what the updates came to, and forget them."""
        folded = [each for each in self._updates.values() if _is_seen(each)]
        self._updates.clear()
        return folded


def _is_seen(output: Output) -> bool:
    return any(value is not None for value in (output.value, output.other, output.old, output.other_old))
