"""What those who ask over REST and those who answer agree on: paths, and server-sent events."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

DASHBOARD = "/dashboard"
"""Where the page is that follows views live. It has no data, so it needs no token; it asks for one."""

DOTS = {".": "%2E", "..": "%2E%2E"}
"""Parts of a path that proxies and clients would take for relative steps in it."""


LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}
"""What a reader of lines may take for the end of one, and its escape in JSON; an event has one line for each field."""


UNSENDABLE = (
    "it has blanks or a line end around it, or characters other than letters of ASCII, digits and signs. If it comes "
    "from a file, read it with .strip(), in a shell with $(cat FILE)."
)
"""Why no header can hold a token. No sentence says what it is: it is a secret."""


def is_sendable(token: str) -> bool:
    """Whether a header can hold a token.

    >>> is_sendable("a long secret text"), is_sendable("read from a file\\n")
    (True, False)
    """
    return token.isascii() and token.isprintable() and token == token.strip()


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


class Event(NamedTuple):
    """A server-sent event: what it is ("update", "lost", ...), its data as JSON text in one line, and its id."""

    kind: str
    data: str
    identifier: str = ""

    def text(self) -> str:
        """Return the event as it is written."""
        kind, data, identifier = (each.translate(LINE_ENDS) for each in self)
        named = f"id: {identifier}\n" if identifier else ""
        return f"{named}event: {kind}\ndata: {data}\n\n"

    def json(self) -> Any:
        """Return its data."""
        return json.loads(self.data)


class EventReader:
    """Puts the lines of an event stream together to events."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def read(self, line: str) -> Event | None:
        """Return the event that ends with a line, if one does."""
        if line:
            name, _, value = line.partition(": ")
            self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        return Event(fields.get("event", ""), fields["data"], fields.get("id", "")) if "data" in fields else None
