"""The record cache of an application is divided among the tasks of a query."""

from typing import Any

import pytest

from streamskit.execution.stage_rows import StageInputs
from streamskit.execution.task_processor import TaskProcessor
from streamskit.operators import CountOperator, OperatorRecord
from streamskit.operators.paged_state import NoPages
from streamskit.operators.record_cache import ENTRY_BYTES
from streamskit.planning.options import QueryOptions

ROW = ENTRY_BYTES + 9
"""What a key of one byte and a count take."""


@pytest.mark.parametrize(("tasks", "out"), [((7,), []), ((7, 8), [b"a", b"b"])])
def test_each_task_has_its_share_of_the_room(tasks: tuple[int, ...], out: list[bytes]) -> None:
    processor: Any = TaskProcessor(
        [CountOperator("n")],
        [3],
        StageInputs({}, single=True, tasks=tasks),
        QueryOptions(cache=True, cache_bytes=3 * ROW),
    )
    task = processor._stage(NoPages(), 7, 0)
    for key in (b"a", b"b"):
        task.process(0, 0, OperatorRecord(key, b"", None, None, 1, None))
    assert [each.key for each in task.take_outputs()] == out
