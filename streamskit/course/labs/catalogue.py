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
    """Return a lab by its name, with or without its number, or by its number.

    Raises:
        StreamsKitError: there is none.
    """
    _check_is_text(name, "lab", [NAMES[7]])
    if found := _lab(name):
        return found
    owner = next((each.name for each in labs() if name in _exercises(each)), "")
    told = f"That is an exercise of the lab {owner}." if owner else _nearest(name, [each.name for each in labs()])
    raise StreamsKitError(f"There is no lab '{name}'. {told}")


def exercise(name: str) -> Exercise:
    """Return an exercise by its name.

    Raises:
        StreamsKitError: there is none.
    """
    found = {each.name: each for lab_ in labs() for each in lab_.exercises}
    _check_is_text(name, "exercise", list(found))
    if name in found:
        return found[name]
    owner = _lab(name)
    told = f"Those of the lab {owner.name} are: {', '.join(_exercises(owner))}." if owner else _nearest(name, [*found])
    raise StreamsKitError(f"There is no exercise '{name}'. {told}")


def _lab(name: str) -> Lab | None:
    names = ((each, *each.name.partition("-")[::2], each.name) for each in labs())
    return next((each for each, *known in names if name in known or name.zfill(2) in known), None)


def _exercises(lab_: Lab) -> list[str]:
    return [each.name for each in lab_.exercises]


def _module(name: str) -> str:
    return name.partition("-")[2].replace("-", "_")


def _check_is_text(name: object, kind: str, names: list[str]) -> None:
    if not isinstance(name, str) or not name.strip():
        such_as = getattr(name, "__name__", "")  # a function in place of its name
        example = such_as if such_as in names else names[0]
        raise StreamsKitError(f'Give the name of the {kind} in quotes, such as "{example}", and not {name!r}.')


def _nearest(name: str, names: list[str]) -> str:
    if near := difflib.get_close_matches(name, names, 3, 0.4):
        return f"Did you mean {' or '.join(near)}?"
    return f"There are: {', '.join(names)}." if len(names) <= len(NAMES) else "progress() shows the names of all."
