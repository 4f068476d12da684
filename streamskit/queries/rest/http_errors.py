"""Why a query over REST gets no answer: a status, a sentence, and what to do."""

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from streamskit.common.errors import (
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    StateStoreMigratedError,
    StateStoreNotAvailableError,
    StreamsNotStartedError,
    StreamsRebalancingError,
    UnknownStateStoreError,
)
from streamskit.queries.rest.json_codec import dumps, encoded

RETRY_AFTER = 1
"""When to ask again what cannot be answered now, in seconds."""

AGAIN = "Ask again in a moment, or add ?partial=true to a list to get what there is."

STATUS: tuple[tuple[type[InvalidStateStoreError], int, str], ...] = (
    (UnknownStateStoreError, 404, "GET /state/stores lists the stores there are."),
    (StreamsNotStartedError, 503, "Start the application, then ask again."),
    (StateStoreNotAvailableError, 503, "Start the application again, then ask again."),
    (StreamsRebalancingError, 503, AGAIN),
    (StateStoreMigratedError, 503, AGAIN),
    (InvalidStateStorePartitionError, 503, AGAIN),
    (InvalidStateStoreError, 400, "GET /state/stores says which kind each store is of."),
)
"""For each kind of error the status that stands for it, and what to do."""


class Refusal(Exception):  # noqa: N818 - no error of the server
    """A request that gets no answer.

    Args:
        status: the HTTP status.
        error: what is wrong, a sentence.
        what_to_do: what to do about it, a sentence.
        more: what else the answer says.
        headers: what its head has besides.
    """

    def __init__(
        self,
        status: int,
        error: str,
        what_to_do: str,
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status, self.headers = status, dict(headers or {})
        self.body = {"error": error, "what_to_do": what_to_do, **(more or {})}
        if status == 503:
            self.headers.setdefault("retry-after", str(RETRY_AFTER))

    def response(self) -> Response:
        """Return the response that says so."""
        return Response(encoded(dumps(self.body)), self.status, self.headers, "application/json")


def refusal_of(error: InvalidStateStoreError) -> Refusal:
    """Return the refusal that stands for an error of a store."""
    status, advice = next((status, advice) for kind, status, advice in STATUS if isinstance(error, kind))
    return Refusal(status, str(error), advice)


def bad_request(error: str, what_to_do: str = "GET /docs shows an example of each request.") -> Refusal:
    """Return the refusal of a parameter that is none."""
    return Refusal(400, error, what_to_do)
