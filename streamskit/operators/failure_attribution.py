"""Whose fault a failure in a task was: noted on it in the worker, read from Spark's message in the driver."""

import json
from dataclasses import asdict, dataclass
from traceback import walk_tb
from types import FrameType

from streamskit.serdes import Serde

MARK = "streamskit blames "
LONGEST_VALUE = 80


@dataclass(frozen=True)
class FailedOperator:
    """Which operator failed, on a record of which of its sides; and where a serde did, with what value.

    `verb` is "write" or "read".
    """

    operator: str
    side: int
    serde: str = ""
    verb: str = ""
    value: str = ""


def attribute_failure(failure: Exception, operator: str, side: int = 0) -> bool:
    """Note on an exception in which operator it was raised; a traceback that is printed ends with such notes.

    The first one to be blamed is the one: an operator that runs others has nothing to add. Returns whether this is it.
    """
    if any(note.startswith(MARK) for note in getattr(failure, "__notes__", ())):
        return False
    found = FailedOperator(operator, side)
    for frame, _ in walk_tb(failure.__traceback__):
        if isinstance(frame.f_locals.get("self"), Serde) and frame.f_code.co_name in ("serialize", "deserialize"):
            found = _blame_serde(frame, found)
            break
    failure.add_note(MARK + json.dumps(asdict(found)))
    return True


def read_attribution(text: str) -> FailedOperator | None:
    """Return what was noted in a printed traceback, if anything was."""
    noted = [line for line in text.splitlines() if line.startswith(MARK)]
    return FailedOperator(**json.loads(noted[-1].removeprefix(MARK))) if noted else None


def _blame_serde(frame: FrameType, found: FailedOperator) -> FailedOperator:
    serde, argument = (frame.f_locals[name] for name in frame.f_code.co_varnames[:2])
    value = repr(argument)
    shown = value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…"
    verb = "write" if frame.f_code.co_name == "serialize" else "read"
    return FailedOperator(found.operator, found.side, str(serde), verb, shown)
