"""Calls of a client: which URL to ask, when to ask again, and what a refusal means."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx

from streamskit.common.errors import (
    InvalidStateStoreError,
    StreamsError,
    StreamsRebalancingError,
    UnknownStateStoreError,
)
from streamskit.queries.rest.protocol import UNSENDABLE, is_sendable

SILENCE = 60.0
"""After how many seconds without a line an event stream is given up; there is a comment every ten."""


class Calls:
    """Tries several URLs until one answers, beginning with the one that answered last.

    Args:
        urls: where instances answer.
        token: the token that they require.
        timeout: how long an answer may take, in seconds.
        retry: for how long to ask again while they cannot answer, in seconds.

    Raises:
        ValueError: there is no URL, or one is not valid, or the token cannot be sent.
    """

    def __init__(self, urls: Sequence[str], token: str | None, timeout: float, retry: float) -> None:
        self.urls = [_checked(url) for url in urls]
        if not self.urls:
            raise ValueError('QueryClient wants at least one URL, like "http://127.0.0.1:8080".')
        self._retry = retry
        headers = {"authorization": f"Bearer {_sendable(token)}"} if token else {}
        # The environment's proxy is for the outside world.
        self._http = httpx.Client(headers=headers, timeout=timeout, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(self, path: str) -> Any:
        """Return the JSON that an instance answers.

        Raises:
            StreamsRebalancingError: none can answer at the moment, and the time for retries is over.
            InvalidStateStoreError: the store or the row does not exist; `RowMissingError` where it is the row.
            StreamsError: nobody answers, or the request is refused for good.
        """
        give_up = time.monotonic() + self._retry
        while True:
            response = self._first_answer(path)
            if response.status_code != 503:
                return _read(response)
            wait = _seconds(response.headers.get("retry-after"))
            if time.monotonic() + wait > give_up:
                raise StreamsRebalancingError(_sentence(response))
            time.sleep(wait)

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines of an event stream.

        Raises:
            StreamsError: the stream cannot be opened, or breaks.
        """
        self.ask("/health")  # finds an instance that answers
        url = self.urls[0]
        try:
            with self._http.stream("GET", url + path, timeout=SILENCE) as response:
                if response.status_code != 200:
                    response.read()
                    _read(response)
                yield from response.iter_lines()
        except httpx.TransportError as error:
            raise StreamsError(f"The event stream of {url} broke: {_why(error)}. Open it again.") from None

    def _first_answer(self, path: str) -> httpx.Response:
        """Return what an instance answers; one that can answer, if there is any."""
        failures, unable = [], None
        for url in list(self.urls):
            try:
                response = self._http.get(url + path)
            except (httpx.TransportError, httpx.DecodingError) as error:
                failures.append(f"{url} ({_why(error)})")
                continue
            except httpx.InvalidURL:
                raise StreamsError(
                    f"The request does not fit into a URL: it would have {len(url + path)} characters. "
                    "Read long keys with a list or a range."
                ) from None
            if response.status_code != 503:
                self.urls = [url, *(other for other in self.urls if other != url)]  # at once: threads share a client
                return response
            unable = response
        if unable is None:
            raise StreamsError(
                f"No instance answers at {', '.join(failures)}. Is the application running, with application_server "
                "set to this address? streams.application_server says where it answers."
            )
        return unable


class RowMissingError(InvalidStateStoreError):
    """There is no such row; `partitions` lists the instances that say so."""

    def __init__(self, sentence: str, partitions: list[dict[str, Any]]) -> None:
        super().__init__(sentence)
        self.partitions = partitions


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url if "://" in url else f"http://{url}")
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f'{url!r} is not the URL of an instance: write "http://127.0.0.1:8080".')
    return str(parsed).rstrip("/")


def _sendable(token: str) -> str:
    """Return a token that a header can hold."""
    if not is_sendable(token):
        raise ValueError(f"The token cannot be sent: {UNSENDABLE}")
    return token


def _read(response: httpx.Response) -> Any:
    try:
        said = response.json()
    except ValueError:
        said = None
    if response.status_code == 200 and said is not None:
        return said
    if not isinstance(said, dict) or "error" not in said:
        raise StreamsError(
            f"{response.url.copy_with(path='/', query=None)} answered with status {response.status_code} and is no "
            "instance of an application, or it runs another version. Check the URL."
        )
    if response.status_code == 404 and "partitions" in said:
        raise RowMissingError(_sentence(response), said["partitions"])
    if response.status_code == 404:
        raise UnknownStateStoreError(_sentence(response))
    raise StreamsError(_sentence(response))


def _sentence(response: httpx.Response) -> str:
    try:
        said = response.json()
        return f"{said['error']} {said['what_to_do']}"
    except (ValueError, KeyError, TypeError):
        return f"{response.url} answered with status {response.status_code}. Ask again in a moment."


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after and retry_after.isdecimal() else 1.0


def _why(error: Exception) -> str:
    if isinstance(error, httpx.ConnectError):
        return "connection refused"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.LocalProtocolError):  # its text has the header, and so the token
        return "the request cannot be sent"
    return str(error) or type(error).__name__
