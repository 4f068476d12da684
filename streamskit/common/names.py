"""Names that people give: whether one can be part of a topic's name, and what an unknown one may mean.

On a broker that many share, the names of topics, applications and groups begin with a prefix. STREAMSKIT_PREFIX says
which; on a JupyterHub it is the user's name unless that variable says otherwise, and elsewhere there is none. Programs
go on using plain names: the prefix is added where a name goes to the broker, once, and taken away where names come from
it.
"""

import os
import re
from collections.abc import Iterable
from difflib import get_close_matches

from streamskit.common.errors import StreamsError, TopologyError

LONGEST_NAME = 249
"""How many characters the name of a topic may have."""

PREFIX_VARIABLE = "STREAMSKIT_PREFIX"
HUB_VARIABLE = "JUPYTERHUB_USER"
KAFKAS_OWN = "__"
"""What the names of Kafka's own topics begin with."""

TOPICS_SIGNS = r"A-Za-z0-9._-"
NO_TOPICS_SIGNS = rf"[^{TOPICS_SIGNS}]"
HUBS_SIGNS = r"[^A-Za-z0-9.]|\.(?=[0-9a-f]{2})"
"""What of a hub's user is spelled out: for Kafka, names that differ in a dot and an underscore only are the same."""


def is_topic_name(name: str) -> bool:
    """Whether Kafka takes it as the name of a topic, so that topics and folders can be named after it.

    >>> [is_topic_name(name) for name in ("trades-app", "", "..", "a/b")]
    [True, False, False, False]
    """
    return re.fullmatch(rf"[{TOPICS_SIGNS}]+", name) is not None and len(name) <= LONGEST_NAME and bool(name.strip("."))


def check_application_id(application_id: str) -> str:
    """Return an application's id.

    Raises:
        StreamsError: topics and folders cannot be named after it.
    """
    if not isinstance(application_id, str) or not is_topic_name(application_id):
        raise StreamsError(
            f"application_id is {application_id!r}; give a name of at most {LONGEST_NAME} letters, digits, '.', '_' "
            "and '-', such as 'trades-app': topics and folders are named after it."
        )
    return application_id


def check_name(name: str) -> str:
    """Return a user's name for a step or a store.

    Raises:
        TopologyError: it cannot be part of a topic's name.
    """
    if not is_topic_name(name):
        raise TopologyError(
            f"'{name}' cannot be a name: at most {LONGEST_NAME} letters, digits, dots, dashes and underscores can, "
            "because it becomes part of topic names."
        )
    return name


def unknown_name(kind: str, name: str, names: Iterable[str]) -> str:
    """Return a sentence that there is nothing of that name, with the one that may be meant.

    >>> unknown_name("command", "borker", ["broker", "lab"])
    "There is no command 'borker': did you mean 'broker'?"
    """
    close = get_close_matches(name, list(names), 1)
    return f"There is no {kind} '{name}'" + (f": did you mean '{close[0]}'?" if close else ".")


def own_prefix() -> str:
    """Return what this user's names begin with on the broker, such as "ann-"; nothing where there is no prefix.

    One that STREAMSKIT_PREFIX names gets a hyphen if it ends in a letter or a digit, and characters that cannot be part
    of a topic's name are written as in "_40" for "@". In a hub's name hyphens and underscores are written so as well:
    its own hyphen is then the only one, so that no user's prefix is another's, or begins with it.
    """
    named = os.environ.get(PREFIX_VARIABLE)
    if named is None:
        user = _spelled(HUBS_SIGNS, os.environ.get(HUB_VARIABLE, ""))
        return user and user + "-"
    prefix = _spelled(NO_TOPICS_SIGNS, named)
    return prefix + "-" if prefix and prefix[-1].isalnum() else prefix


def own_name(name: str) -> str:
    """Return the full name of a topic, an application or a group; one that has the prefix stays as it is.

    >>> own_name("trades")  # doctest: +SKIP
    'ann-trades'
    """
    prefix = own_prefix()
    return prefix + name if prefix and not name.startswith((prefix, KAFKAS_OWN)) else name


def plain_name(name: str) -> str:
    """Return a name without the prefix."""
    return name.removeprefix(own_prefix())


def _spelled(signs: str, text: str) -> str:
    """Return a text with the bytes of some signs in it as two digits each, after an underscore."""
    return re.sub(
        signs, lambda sign: "".join(f"_{byte:02x}" for byte in sign[0].encode(errors="surrogateescape")), text
    )
