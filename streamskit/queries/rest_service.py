"""`RestService`: an application's own routes, in addition to those that every instance has."""

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from streamskit.common.errors import StreamsError
from streamskit.queries.metadata import HostInfo

Handler = TypeVar("Handler", bound=Callable[..., Any])

RESERVED = ("state", "health", "ready", "metrics", "dashboard", "docs", "openapi.json", "static-offline-docs")
"""What the paths that every instance already has begin with."""

PARAMETER = re.compile(r"\{([^{}]*)\}")
AS_SENT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
"""What stands in a URL as it is, between the parameters of a path."""


class RestCall:
    """A call of a route, as its function gets it: the stores that are here, and a way to ask for the rest.

    Args:
        here: the instance at which the function runs.
        role: "active", or "standby" where the active instance of the key does not answer.
        store: returns the part of a store that is here.
        ask: asks a path.
    """

    def __init__(
        self,
        here: HostInfo,
        role: str,
        store: Callable[[str], Any],
        ask: Callable[..., Awaitable[Any]],
    ) -> None:
        self.here, self.role = here, role
        self._store, self._ask = store, ask

    def __repr__(self) -> str:
        return f"<RestCall at {self.here}, {self.role}>"

    def store(self, name: str) -> Any:
        """Return the part of a store that is at this instance; it has the methods of `streams.store(name)`.

        Raises:
            UnknownStateStoreError: the application has no such store.
            InvalidStateStoreError: the part is not ready. A client gets a 503, or another instance answers.
        """
        return self._store(name)

    async def ask(self, *parts: str, **query: object) -> Any:
        """Return what a route answers, as JSON: one of the service's own or a built-in one, at whichever instance.

        Args:
            parts: the parts of the path, not encoded: `"song", "song-07"`.
            query: what follows the question mark.

        Returns:
            The answer; None if there is nothing of that name (a 404).

        Raises:
            StreamsError: nobody answers, or the request is refused.

        >>> await call.ask("state", "keyvalue", "songs", "song-07")  # doctest: +SKIP
        {'key': 'song-07', 'value': {'name': 'Seven Gates', ...}, 'partition': 1, ...}
        """
        return await self._ask(*parts, **query)


@dataclass(frozen=True)
class Route:
    """One route: its path, the function that answers it, and where that runs: at a store's key, or at any instance."""

    path: str
    handler: Callable[..., Any]
    store: str | None = None
    key: str | None = None

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of its function, but for the call."""
        return list(inspect.signature(self.handler, eval_str=True).parameters.values())[1:]

    @property
    def name(self) -> str:
        """What the function is called."""
        return getattr(self.handler, "__name__", "a function")


@dataclass
class RestService:
    """Routes that an application adds to the REST layer of its instances.

    A function answers each. With `store` and `key` it runs **at the instance that has the key**, whichever is asked:
    business logic goes to the data. If that one is away, a standby replica runs it.

    >>> service = RestService()
    >>> @service.get("/charts/genre/{genre}", store="top-five-by-genre", key="{genre}")
    ... async def chart(call, genre: str, most: int = 5):
    ...     "The songs of a genre that are played most."
    ...     top = call.store("top-five-by-genre").get(genre) or []
    ...     return [await call.ask("song", song["id"]) for song in top[:most]]
    >>> here = "127.0.0.1:8080"
    >>> KafkaStreams(topology, "music", "b:9092", application_server=here, rest_service=service)  # doctest: +SKIP

    Mirrors what applications write around `KafkaStreams#queryMetadataForKey` and a web server of their own.
    """

    routes: list[Route] = field(default_factory=list)

    def get(self, path: str, *, store: str | None = None, key: str | None = None) -> Callable[[Handler], Handler]:
        """Let the decorated function answer a path.

        The function gets the `RestCall`, then the parameters of the path by name, then those after the question mark,
        if it takes more; its annotations give their types. What it returns is sent as JSON; None becomes a 404; a
        Starlette `Response` is sent as it is. It only reads: there is no method other than GET. An `async def` may
        `await call.ask(...)` and must be quick; a plain `def` runs in a thread.

        To refuse a call, raise FastAPI's `HTTPException(400, "That is no genre.")`. Whichever instance it has asked,
        the client gets that status and those headers, with the text as `error` in the JSON, and the function does not
        run again at another instance. Any other exception of the function is a 500 that names it.

        Args:
            path: the path, with parameters in braces: "/charts/genre/{genre}".
            store: the store to whose instance the call goes; the instance that is asked answers when not given.
            key: the key, as text, with parameters of the path in braces: "{genre}", or "all" for a fixed one.

        Raises:
            StreamsError: the path is taken or cannot stand in a URL, or path, key and function do not fit together.
        """

        def add(handler: Handler) -> Handler:
            route = Route(path, handler, store, key)
            _check(route, [each.path for each in self.routes])
            self.routes.append(route)
            return handler

        return add


def _check(route: Route, others: list[str]) -> None:
    begin = f"The route '{route.path}' of {route.name}()"
    if not route.path.startswith("/") or route.path[1:].partition("/")[0] in RESERVED:
        taken = ", ".join(f"/{name}" for name in RESERVED)
        raise StreamsError(f"{begin} needs a path that begins with / and with none of these, which are taken: {taken}.")
    if not AS_SENT.fullmatch(PARAMETER.sub("", route.path)):
        raise StreamsError(
            f"{begin} would never be found: a URL has letters with accents, blanks and the like percent-encoded. Write "
            "the path with plain letters, digits and - . _ ~ between the slashes; a parameter may be any text."
        )
    if PARAMETER.sub("{}", route.path) in [PARAMETER.sub("{}", other) for other in others]:
        raise StreamsError(f"{begin} is there twice: give each function a path of its own.")
    if (route.store is None) != (route.key is None):
        raise StreamsError(f"{begin} needs both store= and key=, or neither: a call goes to the instance of a key.")
    in_path, takes = PARAMETER.findall(route.path), [each.name for each in route.parameters]
    for name in (*in_path, *PARAMETER.findall(route.key or "")):
        if name not in in_path:
            raise StreamsError(f"{begin} has no parameter {{{name}}} for its key '{route.key}': put it into the path.")
        if name not in takes:
            raise StreamsError(
                f"{begin} has a parameter {{{name}}} that the function does not take: "
                "give the function a parameter of that name."
            )
