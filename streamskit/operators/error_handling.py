"""Error handling in a task: which operator failed on a record, and what the application's handler decides about it.

A worker notes the operator on the exception; the driver reads the note from Spark's message.
"""

import json
from dataclasses import asdict, dataclass, replace
from traceback import walk_tb
from types import FrameType
from typing import Any

from streamskit.api.error_handlers import (
    FAILED_AT,
    LONGEST_MESSAGE,
    ErrorHandlerContext,
    Handlers,
    ask,
    fails,
    fitting,
)
from streamskit.common.errors import StreamsError
from streamskit.operators.records import ERROR_ROW, Output, SourceRecord, header_pairs
from streamskit.operators.state_store import StateStore
from streamskit.serdes import Serde

LONGEST_VALUE = 80


@dataclass(frozen=True)
class FailedOperator:
    """The operator that failed, and on which of its sides; where a serde failed, also the value it failed on.

    `verb` is "write" or "read"; `store` is the processor's store that the serde belongs to, if it is one's.
    """

    operator: str
    side: int
    serde: str = ""
    verb: str = ""
    value: str = ""
    store: str = ""


def attribute_failure(failure: BaseException, operator: str, side: int = 0) -> bool:
    """Note on an exception in which operator it was raised; a traceback that is printed ends with such notes.

    Only the first note counts: an operator that runs others has nothing to add. Returns whether this note is the first.
    """
    if any(note.startswith(FAILED_AT) for note in getattr(failure, "__notes__", ())):
        return False
    failed = FailedOperator(operator, side)
    for frame, _ in walk_tb(failure.__traceback__):
        of = frame.f_locals.get("self")
        if isinstance(of, StateStore):
            failed = replace(failed, store=of.name)
        if isinstance(of, Serde) and frame.f_code.co_name in ("serialize", "deserialize"):
            failed = _with_serde(failed, frame)
            break
    failure.add_note(FAILED_AT + json.dumps(asdict(failed)))
    return True


def read_attribution(text: str) -> FailedOperator | None:
    """Return what was noted in a printed traceback, if anything was."""
    notes = [line for line in text.splitlines() if line.startswith(FAILED_AT)]
    return FailedOperator(**json.loads(notes[-1].removeprefix(FAILED_AT))) if notes else None


def _with_serde(failed: FailedOperator, frame: FrameType) -> FailedOperator:
    serde, argument = (frame.f_locals[name] for name in frame.f_code.co_varnames[:2])
    value = repr(argument)
    value = value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…"
    verb = "write" if frame.f_code.co_name == "serialize" else "read"
    return replace(failed, serde=str(serde), verb=verb, value=value)


def error_rows(
    handlers: Handlers,
    node: str,
    failure: BaseException,
    record: Any,
    source: SourceRecord,
    task_id: str,
    *,
    side: int,
    writing: bool,
) -> list[Output]:
    """Let the handler decide about a record that a node failed on, and return the rows that it makes.

    The arguments are those of `StreamTask.fail`, and the handlers, source record and id of the task.

    Raises:
        BaseException: the failure, if that is what the handler decides, or if it has been decided before; and if it is
            no `Exception`, such as the one of `sys.exit()`, about which no handler decides.
        StreamsError: the handler itself failed.
    """
    handler = handlers.production if writing else handlers.processing
    is_first = attribute_failure(failure, node, side)
    if fails(handler) or not is_first or not isinstance(failure, Exception):
        raise failure
    record = record() if callable(record) else record
    given = source if record is None else record
    headers = header_pairs(source.headers) if record is None else record.headers
    context = ErrorHandlerContext(node, *source[:3], given.timestamp, headers, source.key, source.value, task_id)
    try:
        response = ask(handler, context, record, failure)
    except StreamsError as refusal:
        attribute_failure(refusal, node, side)
        raise
    if response.fails:
        raise failure
    message = f"{type(failure).__name__}: {failure}"[:LONGEST_MESSAGE]
    rows = [Output(ERROR_ROW, node.encode(), message.encode(), None, None, None, given.timestamp, None)]
    for letter in response.dead_letters:
        letter = fitting(letter, handlers.largest_record)
        letter_headers = [{"key": name, "value": value} for name, value in letter.headers]
        time = given.timestamp if letter.timestamp is None else letter.timestamp
        topic = letter.topic.encode()
        rows.append(Output(ERROR_ROW, letter.key, letter.value, None, topic, None, time, letter_headers))
    return rows
