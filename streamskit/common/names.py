"""Names that people give: whether one can be part of a topic's name, and what one that nobody knows may mean."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from streamskit.common.errors import TopologyError


def check_name(name: str) -> str:
    """Return a user's name for a step or a store.

    Raises:
        TopologyError: it cannot be part of a topic's name.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in (".", ".."):
        raise TopologyError(
            f"'{name}' cannot be a name: at most 249 letters, digits, dots, dashes and underscores can, because "
            "it becomes part of topic names."
        )
    return name


def unknown_name(kind: str, name: str, names: Iterable[str]) -> str:
    """Return a sentence that there is nothing of that name, with the one that may be meant.

    >>> unknown_name("command", "borker", ["broker", "lab"])
    "There is no command 'borker': did you mean 'broker'?"
    """
    close = get_close_matches(name, list(names), 1)
    return f"There is no {kind} '{name}'" + (f": did you mean '{close[0]}'?" if close else ".")
