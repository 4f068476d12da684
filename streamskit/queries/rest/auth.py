"""What a request has to get past before it is looked at: the token, and the name of the host."""

import hmac
import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send

from streamskit.common.errors import StreamsError
from streamskit.queries.rest.http_errors import Refusal, bad_request

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Guard:
    """Lets requests through to an application that have the token, if one is set, and name this host.

    A page from anywhere can point its own host name at 127.0.0.1 and have a browser ask on (DNS rebinding): on loopback
    only the names of loopback are answered.

    Args:
        app: the application.
        host: the address it is bound to.
        token: what `Authorization: Bearer` has to say; None asks for nothing.

    Raises:
        StreamsError: the address is not loopback, and there is no token.
    """

    def __init__(self, app: ASGIApp, host: str, token: str | None) -> None:
        check_address(host, token)
        self._app = app
        self._expected = None if not token else f"Bearer {token}".encode()
        self._names = LOOPBACK_NAMES | {host_name(host), f"[{host}]"} if is_loopback(host) else None

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
        if self._expected is not None:
            sent = headers.get(b"authorization", b"")
            if not hmac.compare_digest(sent, self._expected):
                return Refusal(
                    401,
                    "The token is missing or another one." if sent else "This server asks for a token.",
                    "Send it in the header Authorization: Bearer <token>, or as QueryClient(url, token=...).",
                    headers={"www-authenticate": "Bearer"},
                )
        return None


def check_address(host: str, token: str | None) -> None:
    """Make sure that an address is guarded, if it has to be.

    Raises:
        StreamsError: other machines can reach it, and there is no token.
    """
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
