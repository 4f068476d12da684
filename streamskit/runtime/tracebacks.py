"""Python tracebacks in Spark's messages: what was raised, and which of its lines are the learner's own."""

import linecache
import os
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from streamskit.common.call_site import file_label
from streamskit.operators.error_handling import FailedOperator, read_attribution

HEAD = "Traceback (most recent call last):"
LIBRARIES = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
OTHERS = (*(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *LIBRARIES)), "<frozen")
"""Where the code lives that no learner wrote: streamskit, Python and its packages."""


class Line(NamedTuple):
    """A line of a program that was under way when something was raised."""

    filename: str
    number: int

    @property
    def is_learners(self) -> bool:
        """Whether it is none of streamskit, of Python or of a package."""
        return not self.filename.startswith(OTHERS)

    def __str__(self) -> str:
        source = linecache.getline(self.filename, self.number).strip()
        return f"{file_label(self.filename)} line {self.number}" + (f", `{source}`" if source else "")


@dataclass(frozen=True)
class PythonError:
    """An exception that a Python worker of Spark's has raised; `lines` are the learner's, the last one failed."""

    kind: str
    message: str
    lines: tuple[Line, ...]
    blame: FailedOperator | None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


def python_error(text: str) -> PythonError | None:
    """Return the exception whose traceback a message holds, or None if it holds none."""
    if HEAD not in text:
        return None
    traceback = text[text.rindex(HEAD) :]
    raised = next((line for line in traceback.splitlines()[1:] if line and not line.startswith(" ")), "an error")
    kind, _, message = raised.partition(": ")
    places = re.findall(r'^ +File "(.+)", line (\d+), in ', traceback, re.M)
    lines = [Line(name, int(number)) for name, number in places]
    mine = tuple(line for line in lines if line.is_learners)
    return PythonError(kind.rpartition(".")[2], message.strip(), mine, read_attribution(traceback))
