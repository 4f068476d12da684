"""All labs of the course, in its order, each from a module of `streamskit.course.labs.exercises`."""

import difflib
from functools import cache
from importlib import import_module

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Exercise, Lab

NAMES = (
    "01-getting-started",
    "02-basic-operations",
    "03-ktable",
    "04-serialization",
    "05-joins",
    "06-global-ktable",
    "07-stateful-operations",
    "08-windows",
    "09-time",
    "10-processor-api",
    "11-testing",
    "12-error-handling",
    "13-topology-and-tasks",
    "14-elasticity",
    "15-fault-tolerance",
    "16-interactive-queries",
    "17-trade-statistics",
    "18-kafka-music",
    "19-pos-invoices",
    "20-movie-ratings",
    "21-risk-management",
    "22-flights",
    "23-kafka-music-as-a-service",
)
"""The labs by the names of their notebooks; "08-windows" is in the module `windows`."""


@cache
def labs() -> tuple[Lab, ...]:
    """Return all labs."""
    return tuple(import_module(f"streamskit.course.labs.exercises.{_module(name)}").LAB for name in NAMES)


def lab(name: str) -> Lab:
    """Return a lab by its name, with or without its number.

    Raises:
        StreamsKitError: there is none.
    """
    _check_is_text(name, "lab", NAMES[7])
    for each in labs():
        if name in (each.name, each.name.partition("-")[2], each.name.partition("-")[0]):
            return each
    raise StreamsKitError(f"There is no lab '{name}'. {_nearest(name, [each.name for each in labs()])}")


def exercise(name: str) -> Exercise:
    """Return an exercise by its name.

    Raises:
        StreamsKitError: there is none.
    """
    found = {each.name: each for lab_ in labs() for each in lab_.exercises}
    _check_is_text(name, "exercise", next(iter(found)))
    if name not in found:
        raise StreamsKitError(f"There is no exercise '{name}'. {_nearest(name, list(found))}")
    return found[name]


def _module(name: str) -> str:
    return name.partition("-")[2].replace("-", "_")


def _check_is_text(name: object, kind: str, such_as: str) -> None:
    if not isinstance(name, str):
        raise StreamsKitError(f'Give the name of the {kind} in quotes, such as "{such_as}", and not {name!r}.')


def _nearest(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 3, 0.4)
    return f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(names)}."
