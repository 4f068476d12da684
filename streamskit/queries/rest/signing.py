"""Requests between instances are signed with the token, which itself never leaves a process.

Instances learn each other's addresses from the consumer group, and whoever may join it can name an arbitrary one. What
is sent there must be of no use to its owner: a signature holds for one request to one server, once, for a minute.

    streamskit-signature: 1 <milliseconds since 1970> <a random number> <HMAC-SHA256 in hex>
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from functools import cache
from heapq import heappop, heappush

SIGNATURE = "streamskit-signature"
"""The header with the signature."""

FORWARDED = "streamskit-partitions"
"""The header of a request from one instance to another: the partitions that the other has to answer for itself."""

APPLICATION = "streamskit-application"
"""The header that says whose instance asks: another application may have taken the port of one that died."""

LEEWAY = 60_000
"""For how many milliseconds a signature holds, and by how many the clocks of two machines may differ."""

MOST_REMEMBERED = 100_000
"""How many signatures are remembered; beyond that, the oldest are forgotten, and any as old count as used."""


class Signer:
    """Signs requests to other instances.

    Args:
        token: what the instances have in common.
        application_id: the application.
    """

    def __init__(self, token: str, application_id: str) -> None:
        self._key = _key(token, application_id)

    def sign(self, server: str, target: str, signed: Iterable[str]) -> str:
        """Return the header for one request.

        Args:
            server: which instance is asked, as "host:port".
            target: the path and the query, as they are sent.
            signed: the values of the headers that belong to the question.
        """
        now, number = str(time.time_ns() // 1_000_000), secrets.token_hex(16)
        return f"1 {now} {number} {_hmac(self._key, server, target, *signed, now, number)}"


class SignatureCheck:
    """Checks that a request was signed by another instance, and that its signature was not used before.

    Args:
        token: what the instances have in common.
        application_id: the application.
        server: where this instance answers, as "host:port".
    """

    def __init__(self, token: str, application_id: str, server: str) -> None:
        self._key, self._server = _key(token, application_id), server
        self._used: set[str] = set()
        self._by_time: list[tuple[int, str]] = []
        self._since = _now()  # what was signed before may have been used before this process began

    def fault(self, target: str, header: str, signed: Iterable[str]) -> str | None:
        """Return what is wrong with a signature, as a sentence; None if nothing is: it then counts as used.

        Args:
            target: the path and the query, as they came.
            header: the signature.
            signed: the values of the headers that belong to the question.
        """
        parts = re.fullmatch("1 ([0-9]{1,15}) ([0-9a-f]{32}) ([0-9a-f]{64})", header)
        if parts is None:
            return "The signature has another form than this version's."
        made, number, digest = parts.groups()
        if not hmac.compare_digest(digest, _hmac(self._key, self._server, target, *signed, made, number)):
            return "The signature is wrong: it was made with another token, or for another request."
        then, now = int(made), _now()
        if abs(now - then) > LEEWAY:
            apart = f"{abs(now - then) / 1000:.0f} s {'ago' if then < now else 'ahead'}"
            return f"The signature is from {apart}: set the clocks of both machines by the network's time."
        if now + LEEWAY < self._since:  # our clock was set back
            self._since = 0
        if number in self._used or then < self._since:
            return "The signature was used before, or is older than this instance."
        self._remember(then, number, now)
        return None

    def _remember(self, then: int, number: str, now: int) -> None:
        self._used.add(number)
        heappush(self._by_time, (then, number))
        while self._by_time[0][0] < now - LEEWAY or len(self._by_time) > MOST_REMEMBERED:
            oldest, forgotten = heappop(self._by_time)
            self._used.discard(forgotten)
            self._since = max(self._since, oldest + 1)


@cache
def _key(token: str, application_id: str) -> bytes:
    """Return the signing key; deriving it is slow, so that nobody can find the token by trying words on a signature."""
    return hashlib.scrypt(token.encode(), salt=f"streamskit {application_id}".encode(), n=2**14, r=8, p=1, dklen=32)


def _hmac(key: bytes, *parts: str) -> str:
    return hmac.new(key, "\n".join(parts).encode(), "sha256").hexdigest()


def _now() -> int:
    return time.time_ns() // 1_000_000
