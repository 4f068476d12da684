"""Server-sent events, as they are written and read."""

import json
from typing import Any, NamedTuple


class Event(NamedTuple):
    """A server-sent event: what it is ("update", "lost", ...), its data as JSON text, and its id."""

    kind: str
    data: str
    identifier: str = ""

    def text(self) -> str:
        """Return the event as it is written."""
        named = f"id: {self.identifier}\n" if self.identifier else ""
        return f"{named}event: {self.kind}\ndata: {self.data}\n\n"

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
