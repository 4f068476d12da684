"""What Spark is given of a stage: it names the state variables, and unpacks the rest where there are rows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from streamskit.execution.task_processor import TaskProcessor


class StageProcessor(StatefulProcessor):
    """Runs a `TaskProcessor`, which it carries as bytes.

    Spark starts a Python process for each query, only to ask which state variables it has. Without the operators, and
    all that these import, that takes a third of the time.

    Mirrors Spark's `StatefulProcessor`.
    """

    def __init__(self, processor: "TaskProcessor") -> None:
        self._packed: bytes = CPickleSerializer().dumps(processor)  # type: ignore[no-untyped-call]
        self._processor: TaskProcessor | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable of a stage: its pages."""
        self._pages = handle.getMapState("pages", "page string", "data binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> "Iterator[pd.DataFrame]":  # noqa: N802, N803
        """Process a task's rows of this micro-batch."""
        if self._processor is None:
            self._processor = CPickleSerializer().loads(self._packed)  # type: ignore[no-untyped-call]
        yield from self._processor.process(self._pages, key[0], rows)

    def close(self) -> None:
        """Nothing to close: pages are saved at the end of each micro-batch."""
