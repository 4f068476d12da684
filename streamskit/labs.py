"""Labs: exercises with checks that know typical mistakes, staged hints, and progress over the course."""

from streamskit.course.labs.checking import CheckFailed, check, hint
from streamskit.course.labs.local_instances import LocalInstances
from streamskit.course.labs.missions import Site, scene
from streamskit.course.labs.scores import Progress, progress
from streamskit.course.labs.solutions import solution
from streamskit.course.labs.stores import table, windows
from streamskit.course.labs.student import reset
from streamskit.course.labs.trying_out import try_out
from streamskit.course.labs.warming_up import warm_up_in_a_kernel

__all__ = [
    "CheckFailed",
    "LocalInstances",
    "Progress",
    "Site",
    "check",
    "hint",
    "progress",
    "reset",
    "scene",
    "solution",
    "table",
    "try_out",
    "windows",
]

warm_up_in_a_kernel()
