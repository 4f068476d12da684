"""Names of streamskit: what a dotted path leads to, and what a class has for its users."""

import importlib
import inspect
import re
from enum import Enum
from functools import cache, reduce
from typing import Any

import streamskit

PATH = re.compile(r"([A-Za-z]\w*(?:\.\w+)*)(?:\((\w+)=\))?")
"""A dotted path below `streamskit`, and one keyword of what it leads to: `StreamsBuilder.stream(key=)`."""

LISTED = ("streamskit", "streamskit.testing")
"""The faces whose classes are held against Kafka Streams' one by one."""


class NoSuchNameError(Exception):
    """A path leads nowhere."""


class _Field:
    """A member of a class that only its objects have, such as a field without a default."""


def snake_case(name: str) -> str:
    """Return Java's name in Python's spelling.

    >>> snake_case("currentStreamTimeMs")
    'current_stream_time_ms'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def find(path: str) -> Any:
    """Return what a path leads to.

    Raises:
        NoSuchNameError: it leads nowhere.
    """
    matched = PATH.fullmatch(path)
    if matched is None:
        raise NoSuchNameError(f"'{path}' is no dotted path, such as KStream.filter or StreamsBuilder.stream(key=)")
    found = _attribute(path, matched[1].split("."))
    if (keyword := matched[2]) and keyword not in inspect.signature(found).parameters:
        raise NoSuchNameError(f"{matched[1]} takes no keyword {keyword}=")
    return found


def exists(path: str) -> bool:
    """Return whether a path leads somewhere."""
    try:
        find(path)
    except NoSuchNameError:
        return False
    return True


def without_keyword(path: str) -> str:
    """Return a path without the keyword behind it."""
    return path.partition("(")[0]


def home_of(simple_name: str) -> str | None:
    """Return the path of the public class of that name, if there is one."""
    if simple_name in streamskit.__all__:
        return simple_name
    return f"testing.{simple_name}" if simple_name in importlib.import_module("streamskit.testing").__all__ else None


def public_names(face: str) -> list[str]:
    """Return the paths of a face's public names."""
    module = importlib.import_module(face)
    prefix = face.removeprefix("streamskit").lstrip(".")
    return [f"{prefix}.{name}".lstrip(".") for name in module.__all__ if not name.startswith("__")]


def members(cls: type) -> list[str]:
    """Return a class's public methods, properties and constants; fields are no more than what the constructor takes."""
    if issubclass(cls, Enum):
        return list(cls.__members__)
    left_out = {name for base in (tuple, Exception) if issubclass(cls, base) for name in dir(base)} | {*_fields(cls)}
    return [name for name in dir(cls) if not name.startswith("_") and name not in left_out]


def definers(cls: type, name: str) -> set[tuple[type, str]]:
    """Return where a member is defined: in which of a class and its bases, with its name."""
    return {(base, name) for base in cls.__mro__ if name in vars(base) or name in vars(base).get("__annotations__", {})}


def _attribute(path: str, parts: list[str]) -> Any:
    if parts[0] in streamskit.__all__:
        return _below(path, getattr(streamskit, parts[0]), parts[1:])
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(["streamskit", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        return _below(path, module, parts[length:])
    raise NoSuchNameError(f"'{path}' leads nowhere: streamskit has no '{parts[0]}'")


def _below(path: str, start: Any, parts: list[str]) -> Any:
    try:
        return reduce(_member, parts, start)
    except AttributeError as missing:
        raise NoSuchNameError(f"'{path}' leads nowhere: {missing}") from None


def _member(owner: Any, name: str) -> Any:
    if isinstance(owner, type) and name in _fields(owner) and not hasattr(owner, name):
        return _Field()
    return getattr(owner, name)


def _fields(cls: type) -> list[str]:
    """Return the names of what objects have by annotation: fields of dataclasses and of named tuples, and the like."""
    return [name for base in reversed(cls.__mro__) for name in vars(base).get("__annotations__", {})]
