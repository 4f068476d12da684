"""The other instances of an application, as one of them asks them."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import httpx

from streamskit.queries.metadata import HostInfo
from streamskit.queries.rest.signing import APPLICATION, FORWARDED, SIGNATURE, Signer

TO_CONNECT, IN_ALL = 0.5, 2.0
"""How long another instance may take to accept a connection (tried twice), and to answer in all, in seconds."""

TO_RUN = 5.0
"""How long a route of the application's own may take at another instance, in seconds; it may ask further ones."""

ANSWERED_BY = "streamskit-answered-by"
"""The header of what a route of the application's own has answered: the instance, and its role."""


class PeerError(Exception):
    """Another instance gave no answer; the sentence says which one, and why."""


class Peers:
    """Asks other instances, over connections that stay open.

    Args:
        application_id: the application whose instances they are.
        token: what they have in common, if they do; requests are signed with it, and do not hold it.
    """

    def __init__(self, application_id: str, token: str | None) -> None:
        self._application_id = application_id
        self._signer = Signer(token, application_id) if token else None
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        # The environment's proxy is for the outside world: instances connect to each other directly. A process that
        # pauses for a moment (a garbage collection) may find that its own attempt timed out: it connects once more.
        transport = httpx.AsyncHTTPTransport(limits=limits, trust_env=False, retries=1)
        self._client = httpx.AsyncClient(transport=transport, trust_env=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def ask(self, host: HostInfo, path: str, partitions: Collection[int]) -> Any:
        """Return the JSON that an instance answers for some partitions.

        Raises:
            PeerError: it cannot be reached, takes too long, or refuses.
        """
        response = await self._get(host, path, partitions, IN_ALL)
        sent = _json_of(response)
        if sent is None:
            raise PeerError(f"{host} cannot be reached.")
        if response.status_code != 200:
            raise PeerError(f"{host} says: {_sentence(sent, response.status_code)}")
        return sent

    async def run(self, host: HostInfo, path: str, partition: int) -> httpx.Response:
        """Let an instance run a route of the application's own, for a key in one of its partitions.

        Raises:
            PeerError: it cannot be reached, takes too long, does not have the partition, or has no such route.
        """
        response = await self._get(host, path, [partition], TO_RUN)
        if ANSWERED_BY not in response.headers:  # the call did not reach the route
            sent = _json_of(response)
            raise PeerError(f"{host} says: {_sentence(sent, response.status_code)}")
        return response

    async def _get(self, host: HostInfo, path: str, partitions: Collection[int], seconds: float) -> httpx.Response:
        numbers = ",".join(map(str, partitions))
        timeout = httpx.Timeout(seconds, connect=TO_CONNECT)
        try:
            async with asyncio.timeout(seconds):
                url = httpx.URL(host.url + path)
                return await self._client.get(url, headers=self._headers(host, url, numbers), timeout=timeout)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise PeerError(_unreachable(host, error)) from None

    @asynccontextmanager
    async def listen(self, host: HostInfo, path: str, silence: float) -> AsyncIterator[AsyncIterator[str]]:
        """Open an event stream of an instance, and give its lines.

        Args:
            host: the instance.
            path: what to ask it for.
            silence: after how many seconds without a line it is given up.

        Raises:
            PeerError: it cannot be reached, refuses, or falls silent.
        """
        timeout = httpx.Timeout(silence, connect=TO_CONNECT)
        try:
            url = httpx.URL(host.url + path)
            headers = self._headers(host, url, "")
            async with self._client.stream("GET", url, headers=headers, timeout=timeout) as response:
                if response.status_code != 200:
                    raise PeerError(f"{host} answered with status {response.status_code}.")
                yield response.aiter_lines()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            raise PeerError(_unreachable(host, error)) from None

    def _headers(self, host: HostInfo, url: httpx.URL, partitions: str) -> dict[str, str]:
        headers = {APPLICATION: self._application_id, FORWARDED: partitions}
        if self._signer is None:
            return headers
        return headers | {SIGNATURE: self._signer.sign(str(host), url.raw_path.decode(), headers.values())}


def _unreachable(host: HostInfo, error: Exception) -> str:
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return f"{host} did not answer in time."
    return f"{host} cannot be reached."


def _json_of(response: httpx.Response) -> Any:
    """Return what a response says; None where that is no JSON."""
    try:
        return response.json()
    except ValueError:
        return None


def _sentence(sent: Any, status: int) -> str:
    said = sent.get("error") if isinstance(sent, dict) else None
    return said if isinstance(said, str) else f"status {status}."
