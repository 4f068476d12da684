"""Names that can be part of a topic's name."""

import re

from streamskit.common.errors import TopologyError


def check_name(given: str) -> str:
    """Return a user's name for a step or a store.

    Raises:
        TopologyError: it cannot be part of a topic's name.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", given) or given in (".", ".."):
        raise TopologyError(
            f"'{given}' cannot be a name: at most 249 letters, digits, dots, dashes and underscores can, because "
            "it becomes part of topic names."
        )
    return given
