"""Serves the REST layer of an instance, in a thread of its own."""

import errno
import socket
import sys
import threading

import uvicorn

from streamskit.common.errors import StreamsError
from streamskit.queries.metadata import HostInfo
from streamskit.queries.queryable_instance import QueryableInstance
from streamskit.queries.rest.app import rest_app
from streamskit.queries.rest.auth import Guard, check_address
from streamskit.queries.rest.connections import CarefulProtocol
from streamskit.queries.rest.dashboard_routes import DashboardSource
from streamskit.queries.rest.signing import SignatureCheck
from streamskit.queries.rest_service import RestService

__all__ = ["Server", "bind", "check_address", "serve"]

SWITCH_INTERVAL = 0.0005
"""How long another thread may keep Python to itself while a request waits, in seconds; it is usually 5 ms."""

TO_START, TO_STOP = 30.0, 10.0
"""How long to wait for the thread, in seconds."""

LAST_WORDS = 3
"""For how many seconds requests under way may still be answered when the server stops."""


def bind(host: str, port: int = 0) -> socket.socket:
    """Return a socket bound to an address, which is thus known before anything is served; it does not listen yet.

    Args:
        host: the address, such as "127.0.0.1".
        port: the port; 0 takes a free one.

    Raises:
        StreamsError: the port is taken, or the address is not one of this machine's.

    >>> bind("127.0.0.1").getsockname()
    ('127.0.0.1', ...)
    """
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((bare, port))
    except (OSError, OverflowError, TypeError) as error:  # TypeError: a name that no host can have
        bound.close()
        raise _not_served(host, port, error) from None
    return bound


def _not_served(host: str, port: int, error: Exception) -> StreamsError:
    if isinstance(error, TypeError | socket.gaierror) or getattr(error, "errno", None) == errno.EADDRNOTAVAIL:
        return StreamsError(
            f"Nothing can be served at {host}:{port}: {error}. Give an address of this machine, such as 127.0.0.1; "
            "where others find it elsewhere, as behind a proxy, set `listen` to an address of this machine."
        )
    return StreamsError(f"Nothing can be served at {host}:{port}: {error}. Choose another port, or 0 for a free one.")


class _Uvicorn(uvicorn.Server):
    """uvicorn, which says when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()


class Server:
    """Answers REST requests for an instance, in a thread of its own, from `start` to `stop`.

    Args:
        instance: the instance.
        bound: the socket to listen on, from `bind`.
        token: what requests have to send as `Authorization: Bearer`; without one only loopback is served. Instances
            sign what they ask each other with it, and do not send it.
        service: the application's own routes, if it has any.

    Raises:
        StreamsError: the socket is not on loopback, without a token, or a route names a store that does not exist.

    >>> server = Server(instance, bind("127.0.0.1"))  # doctest: +SKIP
    >>> server.start()  # doctest: +SKIP
    >>> server.address  # doctest: +SKIP
    HostInfo(host='127.0.0.1', port=40123)
    """

    def __init__(
        self,
        instance: QueryableInstance,
        bound: socket.socket,
        token: str | None = None,
        service: RestService | None = None,
    ) -> None:
        host, port = bound.getsockname()[:2]
        self.address = HostInfo(host, port)
        self._socket = bound
        self._app = rest_app(instance, token, service)
        signatures = SignatureCheck(token, instance.application_id, str(instance.here)) if token else None
        config = uvicorn.Config(
            Guard(self._app, host, token, signatures, instance.here.host),
            http=CarefulProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=LAST_WORDS,
        )
        self._server = _Uvicorn(config)
        self._thread = threading.Thread(target=self._run, name=f"streamskit: REST at {self.address}", daemon=True)
        self._failure: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Server at {self.address.url}>"

    @property
    def dashboard(self) -> DashboardSource | None:
        """What returns the views of the page /dashboard; None where there is none."""
        source: DashboardSource | None = self._app.state.dashboard
        return source

    @dashboard.setter
    def dashboard(self, source: DashboardSource | None) -> None:
        self._app.state.dashboard = source

    def start(self) -> None:
        """Begin to answer, and return when it does.

        Raises:
            StreamsError: it does not, or another program has begun to listen there.
        """
        try:
            self._socket.listen(1024)
        except OSError as error:
            raise _not_served(self.address.host, self.address.port, error) from None
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
        self._thread.start()
        if not self._server.is_up.wait(TO_START) or self._failure is not None:
            raise StreamsError(
                f"The REST layer at {self.address} did not start: {self._failure or 'it takes too long'}."
            )

    def stop(self) -> None:
        """Stop answering; requests that are under way have a moment to end."""
        self._app.state.is_ending = True
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(TO_STOP)
        self._socket.close()

    def hand_over(self) -> socket.socket:
        """Return the socket, for another server to answer there; this one is not to start any more."""
        handed_over = self._socket.dup()
        self.stop()
        return handed_over

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except BaseException as failure:  # uvicorn ends a process that cannot start
            self._failure = failure
        finally:
            self._server.is_up.set()


def serve(instance: QueryableInstance, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> Server:
    """Serve an instance over REST.

    Args:
        instance: the instance.
        host: the address to listen on; any but loopback wants a token.
        port: the port; 0 takes a free one.
        token: what requests have to send.

    Returns:
        The server; it answers at its `address` until `stop()`.

    Raises:
        StreamsError: nothing can be served there.
    """
    check_address(host, token)
    server = Server(instance, bind(host, port), token)
    server.start()
    return server
