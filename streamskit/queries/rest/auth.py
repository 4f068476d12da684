"""What a request has to get past before it is looked at: the token, and the name of the host."""

import hmac
import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send

from streamskit.common.errors import StreamsError
from streamskit.queries.rest.http_errors import Refusal, bad_request
from streamskit.queries.rest.protocol import DASHBOARD, UNSENDABLE, is_sendable
from streamskit.queries.rest.signing import APPLICATION, FORWARDED, SIGNATURE, SignatureCheck

SIGN_AGAIN = "Instances of one application need one token, one version and the right time; ask again in a moment."
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

OPEN = frozenset({DASHBOARD.encode()})
"""Paths that need no token: a page that asks for it, as a browser cannot send one with an address. It has no data."""


class Guard:
    """Lets a request through to an application if it has the token, where one is set, and names this host.

    A page from anywhere can point its own host name at 127.0.0.1 and have a browser send requests there (DNS
    rebinding): on loopback, only requests to loopback's names or this server's own are answered.

    Args:
        app: the application.
        host: the address it is bound to.
        token: what `Authorization: Bearer` has to say, unless the request is signed with it; None asks for nothing.
        signatures: looks at the requests that other instances have signed.
        name: the name under which others know it, if that is another one: a proxy may stand before it.

    Raises:
        StreamsError: the address is not loopback, and there is no token; or there is one that no client can send.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        token: str | None,
        signatures: SignatureCheck | None = None,
        name: str = "localhost",
    ) -> None:
        check_address(host, token)
        self._app, self._signatures = app, signatures
        self._expected = None if not token else f"Bearer {token}".encode()
        names = {host_name(host), f"[{host}]", host_name(name), f"[{name}]"}
        self._names = LOOPBACK_NAMES | names if is_loopback(host) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal.response()(scope, receive, send)
                return
            # Routes are found in the path as it was sent: a key may hold a slash, as %2F.
            scope["path"] = scope["raw_path"].decode("latin-1")
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = dict(scope["headers"])
        if self._names is not None:
            name = host_name(headers.get(b"host", b"").decode("latin-1"))
            if name not in self._names:
                return bad_request(
                    f"This server answers on loopback only, and was asked as '{name[:60]}'.",
                    "Ask it as http://127.0.0.1 or http://localhost, with its port.",
                )
        if self._signatures is not None and SIGNATURE.encode() in headers:
            fault = self._signatures.fault(_target(scope), *_signed(scope))
            return None if fault is None else Refusal(401, fault, SIGN_AGAIN, headers={"www-authenticate": "Bearer"})
        if self._expected is not None and scope["raw_path"] not in OPEN:
            sent = headers.get(b"authorization", b"")
            if not hmac.compare_digest(sent, self._expected):
                return Refusal(
                    401,
                    "The token is missing or another one." if sent else "This server asks for a token.",
                    "Send it in the header Authorization: Bearer <token>, or as QueryClient(url, token=...).",
                    headers={"www-authenticate": "Bearer"},
                )
        return None


def _target(scope: Scope) -> str:
    """Return what was asked for, as it was sent."""
    query = scope["query_string"].decode("latin-1")
    return scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")


def _signed(scope: Scope) -> tuple[str, list[str]]:
    """Return the signature of a request, and the values of the headers that it holds for."""
    found: dict[str, list[str]] = {name: [] for name in (SIGNATURE, APPLICATION, FORWARDED)}
    for name, value in scope["headers"]:
        found.get(name.decode("latin-1"), []).append(value.decode("latin-1"))
    signature, *signed = (", ".join(values) for values in found.values())  # a header that came twice is never right
    return signature, signed


def check_address(host: str, token: str | None) -> None:
    """Make sure that an address is guarded, if it has to be, and by a token that clients can send.

    Raises:
        StreamsError: other machines can reach it, and there is no token; or there is one that no client can send.
    """
    if token and not is_sendable(token):
        raise StreamsError(f"No client could send the token: {UNSENDABLE}")
    if not token and not is_loopback(host):
        raise StreamsError(
            f"'{host}' can be reached from other machines, and no token guards it: bind to 127.0.0.1, "
            "or give a token (any long secret text) that clients and other instances have to send."
        )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(server: str) -> str:
    """Return the name in "name:port", in lower case; an IPv6 address keeps its brackets."""
    server = server.strip().lower()
    if server.startswith("["):
        return server.partition("]")[0] + "]"
    return server if server.count(":") > 1 else server.partition(":")[0]
