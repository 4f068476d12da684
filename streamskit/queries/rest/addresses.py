"""Paths and queries as URLs have them."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

DOTS = {".": "%2E", "..": "%2E%2E"}
"""Parts of a path that those who pass it on would take for steps in it."""


def path(*parts: str, **query: object) -> str:
    """Return a path of parts, each percent-encoded, and a query; what is None is left out, what is true is `true`.

    >>> path("state", "keyvalue", "counts", "a/b", as_of=100)
    '/state/keyvalue/counts/a%2Fb?as_of=100'
    """
    joined = "".join("/" + DOTS.get(part, quote(part, safe="")) for part in parts)
    asked = _asked(query)
    return f"{joined}?{urlencode(asked)}" if asked else joined


def undotted(raw: str) -> str:
    """Return a path, as it was sent, so that no part of it is taken for a step."""
    return "/".join(DOTS.get(part, part) for part in raw.split("/"))


def _asked(query: Mapping[str, object]) -> dict[str, str]:
    said = {name: "true" if each is True else each for name, each in query.items()}
    return {name: str(each) for name, each in said.items() if each is not None and each is not False}
