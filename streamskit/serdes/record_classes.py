"""Records as objects of a learner's own class, made from dicts by the class's type hints."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def make_record(record_class: type, value: Any) -> Any:
    """Return an object of `record_class` with the fields of a dict.

    Fields whose hints name a dataclass or an Enum become such, in lists, dicts and Optional too.

    >>> make_record(Trade, {"symbol": "KO", "price": 61.5})
    Trade(symbol='KO', price=61.5)
    """
    if not isinstance(value, Mapping):
        return value
    hints = _hints(record_class)
    return record_class(**{name: _converted(hints.get(name), each) for name, each in value.items()})


@lru_cache(maxsize=100)
def _hints(record_class: type) -> dict[str, Any]:
    return get_type_hints(record_class)


def _converted(hint: Any, value: Any) -> Any:
    if value is None or hint is None:
        return value
    origin, inner = get_origin(hint), [each for each in get_args(hint) if each is not type(None)]
    if origin in (Union, UnionType):
        return _converted(inner[0], value) if len(inner) == 1 else value
    if origin is list:
        return [_converted(inner[0], each) for each in value]
    if origin is dict:
        return {name: _converted(inner[1], each) for name, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint[value]
    return make_record(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value
