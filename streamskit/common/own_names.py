"""Names of one's own on a broker that many share: topics, application ids and groups begin with a prefix.

STREAMSKIT_PREFIX says which; on a JupyterHub it is the user's name unless that variable says otherwise, and elsewhere
there is none. Programs go on using plain names: the prefix is added where a name goes to the broker, once, and taken
away where names come from it.
"""

import os
import re

PREFIX_VARIABLE = "STREAMSKIT_PREFIX"
HUB_VARIABLE = "JUPYTERHUB_USER"
KAFKAS_OWN = "__"
"""What the names of Kafka's own topics begin with."""


def own_prefix() -> str:
    """Return what this user's names begin with on the broker, such as "ann-"; nothing where there is no prefix.

    What cannot be part of a topic's name becomes a hyphen, and one stands behind a prefix that ends in a letter.
    """
    named = os.environ.get(PREFIX_VARIABLE)
    prefix = re.sub(r"[^A-Za-z0-9._-]", "-", os.environ.get(HUB_VARIABLE, "") if named is None else named)
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
