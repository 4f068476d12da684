"""Why a query over REST gets no answer: a status, a sentence, and what to do."""

from collections.abc import Mapping
from typing import Any

from fastapi import Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from streamskit.common.errors import (
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    StateStoreMigratedError,
    StateStoreNotAvailableError,
    StreamsError,
    StreamsNotStartedError,
    StreamsRebalancingError,
    UnknownStateStoreError,
)
from streamskit.queries.rest.json_codec import dumps, encoded
from streamskit.serdes import SerdeError

RETRY_AFTER = 1
"""After how many seconds to repeat a request that cannot be answered now."""

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
        headers: further headers of the response.
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


REFUSED = (Refusal, RequestValidationError, HTTPException, SerdeError, StreamsError)
"""The errors that are answers, by `refusal_of`."""


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal that stands for an error."""
    match error:
        case Refusal():
            return error
        case RequestValidationError():
            first = error.errors()[0]
            return bad_request(f"Parameter '{first['loc'][-1]}': {first['msg']}.")
        case HTTPException(status_code=404):
            return Refusal(404, "There is nothing at this path.", "GET /docs shows all there are.")
        case HTTPException():
            only_get = "Everything here is only read: ask with GET."
            return Refusal(error.status_code, f"{error.detail}.", only_get, headers=error.headers)
        case SerdeError():
            advice = "The store names another serde than the one that wrote its changelog: correct it."
            return Refusal(500, f"A row cannot be read: {error}", advice)
        case InvalidStateStoreError():
            return next(
                Refusal(status, str(error), advice) for kind, status, advice in STATUS if isinstance(error, kind)
            )
    return Refusal(503, str(error), "Ask another instance, or this one again in a moment.")


def bad_request(error: str, what_to_do: str = "GET /docs shows an example of each request.") -> Refusal:
    """Return the refusal of an invalid parameter."""
    return Refusal(400, error, what_to_do)
