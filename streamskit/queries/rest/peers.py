"""The other instances of an application, as one of them asks them."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import httpx

from streamskit.queries.metadata import HostInfo
from streamskit.queries.rest.signing import APPLICATION, FORWARDED, SIGNATURE, Signer

TO_CONNECT, IN_ALL = 0.5, 2.0
"""How long another instance may take to take a call, and to answer it, in seconds."""


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
        timeout = httpx.Timeout(IN_ALL, connect=TO_CONNECT)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        # A proxy of the environment's is for the world outside: instances are beside each other.
        self._client = httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def ask(self, host: HostInfo, path: str, partitions: Collection[int]) -> Any:
        """Return the JSON that an instance answers for some partitions.

        Raises:
            PeerError: it cannot be reached, takes too long, or refuses.
        """
        numbers = ",".join(map(str, partitions))
        try:
            async with asyncio.timeout(IN_ALL):
                url = httpx.URL(host.url + path)
                response = await self._client.get(url, headers=self._headers(host, url, numbers))
            sent = response.json()
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise PeerError(_unreachable(host, error)) from None
        if response.status_code != 200:
            raise PeerError(f"{host} says: {_sentence(sent, response.status_code)}")
        return sent

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


def _sentence(sent: Any, status: int) -> str:
    said = sent.get("error") if isinstance(sent, dict) else None
    return said if isinstance(said, str) else f"status {status}."
