"""Labs: exercises with checks that know typical mistakes, staged hints, and progress over the course.

A lab is a notebook in `labs/`; its solutions are in `labs/source/`; what its checks know is in
`streamskit.labs.exercises`.
"""

from streamskit.labs.checking import CheckFailed, check, hint
from streamskit.labs.scores import Progress, progress
from streamskit.labs.student import reset
from streamskit.labs.trying_out import try_out

__all__ = ["CheckFailed", "Progress", "check", "hint", "progress", "reset", "try_out"]
