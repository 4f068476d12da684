"""What the routes have in common: the parts of a path, how a list is requested, unknown parameters."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.convertors import Convertor, register_url_convertor

from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.rest.http_errors import Refusal, bad_request
from streamskit.queries.rest.json_codec import shown
from streamskit.queries.rest.models import After, Limit, Partial, Reverse
from streamskit.queries.rest.queries import ANY_KIND, Queries, cursor_of
from streamskit.queries.rest.results import read_span
from streamskit.state.rows import Span

LONGEST_KEY = 8 * 1024
"""The most bytes that one part of a path may stand for."""


MOST_STREAMS = 100
"""How many event streams may be open at the same time."""


class Part(Convertor[str]):
    """One part of a path, decoded; it may be empty. In a route it is written `{name:part}`."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        """Return the text of a part.

        Raises:
            Refusal: it is too long, or not UTF-8.
        """
        data = unquote_to_bytes(value) if "%" in value else value.encode("latin-1")
        if len(data) > LONGEST_KEY:
            raise Refusal(
                414,
                f"A part of the path has {len(data)} bytes; keys of up to {LONGEST_KEY} can be asked for.",
                "Read long keys with a list or a range.",
            )
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise bad_request(
                "A part of the path is not UTF-8.", "Percent-encode the UTF-8 of a text, or the base64 of bytes."
            ) from None

    def to_string(self, value: str) -> str:
        """Return a part as it stands in a URL."""
        return value


register_url_convertor("part", Part())


class StrictRoute(APIRoute):
    """A route that refuses unknown parameters: a typing error would otherwise request something else."""

    may_be_plain = True
    """Whether its function has a default for everything that is not in the path."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return what answers a request."""
        answer = super().get_route_handler()
        declared = [self.dependant, *self.dependant.dependencies]
        known = sorted(each.alias for dependant in declared for each in dependant.query_params)
        # Parts of the path are text already: a request without anything else needs no look at its parameters.
        is_plain = (
            self.may_be_plain
            and not self.dependant.dependencies
            and all(
                each.field_info.annotation is str and each.alias == each.name for each in self.dependant.path_params
            )
        )

        async def checked(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_names(request, known)
            elif is_plain:
                plain: Response = await self.endpoint(request, **request.path_params)
                return plain
            return await answer(request)

        return checked


def _check_names(request: Request, known: list[str]) -> None:
    for name in request.query_params:
        if name not in known:
            takes = f"It takes {', '.join(known)}." if known else "It takes none."
            raise bad_request(f"There is no parameter '{shown(name)}' here.", takes)


@dataclass(frozen=True)
class ListOptions:
    """How a list is requested: its order, its length, where it continues, and whether partitions may be missing."""

    reverse: bool
    limit: int
    after: bytes | None
    partial: bool


async def list_options(
    reverse: Reverse = False, limit: Limit = 1000, after: After = None, partial: Partial = False
) -> ListOptions:
    """Return the options of a list."""
    return ListOptions(reverse, limit, cursor_of(after), partial)


Options = Annotated[ListOptions, Depends(list_options)]


def queries_of(request: Request) -> Queries:
    """Return what answers the queries of this server."""
    queries: Queries = request.app.state.queries
    return queries


def begin_a_stream(request: Request) -> Callable[[], None]:
    """Count one more event stream, and return the function to be called when it ends.

    Raises:
        Refusal: there are too many.
    """
    state = request.app.state
    if state.streams >= MOST_STREAMS:
        raise Refusal(503, f"{MOST_STREAMS} event streams are open, and no more are served.", "Close one.")
    state.streams += 1

    def close() -> None:
        state.streams -= 1

    return close


def store_of(request: Request, name: str, kinds: Collection[str] = ANY_KIND) -> tuple[Queries, QueryableStore]:
    """Return what answers the queries of this server, and a store of one of some kinds.

    Raises:
        Refusal: there is none of that name, or it is of another kind.
    """
    queries = queries_of(request)
    return queries, queries.store(name, kinds)


async def answer_list(
    request: Request,
    store: QueryableStore,
    options: ListOptions,
    make: Callable[[Any], Span],
    key: bytes | None = None,
) -> Response:
    """Answer with a page of the span that `make` makes of a store; with a key, all its rows are that key's."""
    read = read_span(make, options.limit, options.after)
    queries = queries_of(request)
    return await queries.many(
        request, store, read, options.limit, key=key, reverse=options.reverse, partial=options.partial
    )
