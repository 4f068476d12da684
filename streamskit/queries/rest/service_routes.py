"""Routes of an application's own: each call goes to the instance that has its key, and runs there."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any

import httpx
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from streamskit.common.errors import InvalidStateStoreError, StreamsError, UnknownStateStoreError
from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.hosted_view import HostedView
from streamskit.queries.queryable_instance import QueryableInstance
from streamskit.queries.rest.http_errors import AGAIN, REFUSED, Refusal, refusal_of
from streamskit.queries.rest.json_codec import dumps, encoded, to_json, to_text
from streamskit.queries.rest.peers import ANSWERED_BY, TO_RUN, PeerError
from streamskit.queries.rest.protocol import path
from streamskit.queries.rest.queries import path_of
from streamskit.queries.rest.routes_common import StrictRoute, queries_of
from streamskit.queries.rest.routing import NOBODY
from streamskit.queries.rest_service import PARAMETER, RestCall, RestService, Route

logger = logging.getLogger("streamskit")

NOT_PASSED_ON = frozenset(
    (
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
        b"trailer", b"transfer-encoding", b"upgrade", b"content-length", b"content-encoding", b"date", b"server",
    )
)  # fmt: skip
"""Headers of one connection, and those that this server writes itself: it passes an answer on unpacked and whole."""


class ServiceRoute(StrictRoute):
    """A route whose function may want a parameter that is not in the path."""

    may_be_plain = False


@dataclass(frozen=True)
class Place:
    """Where a route runs: as the active instance of a partition, or in place of that one, as its standby."""

    role: str = "active"
    partitions: Collection[int] = ()


def router_of(service: RestService, instance: QueryableInstance) -> APIRouter:
    """Return the routes of a service, for an instance to answer.

    Raises:
        StreamsError: a route names a store that does not exist, or whose keys have no instance of their own.
    """
    for each in service.routes:
        _check_store(each, instance)
    router = APIRouter(route_class=ServiceRoute, tags=["this application's own"])
    for route in service.routes:
        router.add_api_route(
            PARAMETER.sub(r"{\1:part}", route.path),
            _endpoint(route),
            methods=["GET"],
            name=route.name,
            description=inspect.getdoc(route.handler),
            response_model=None,
        )
    return router


def _check_store(route: Route, instance: QueryableInstance) -> None:
    if route.store is None:
        return
    begin = f"The route '{route.path}' of {route.name}() goes to the instance of a key of store '{route.store}'"
    store = instance.stores.get(route.store)
    if store is None:
        known = ", ".join(sorted(instance.stores)) or "none"
        raise StreamsError(f"{begin}, which '{instance.application_id}' does not have; it has: {known}.")
    if not store.routed and not store.is_global:
        raise StreamsError(
            f"{begin}, and any instance may have that key: a processor puts keys where it runs. Leave store= and key= "
            f'out, and let the function await call.ask("state", "keyvalue", "{route.store}", key), which asks them all.'
        )


def inside(app: FastAPI) -> httpx.AsyncClient:
    """Return a client that asks the application itself, without the network and past the token."""

    async def as_sent(scope: Scope, receive: Receive, send: Send) -> None:
        await asgi({**scope, "path": scope["raw_path"].decode("latin-1")}, receive, send)

    asgi: ASGIApp = app
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(as_sent, raise_app_exceptions=False), base_url="http://localhost"
    )


def _endpoint(route: Route) -> Callable[..., Any]:
    """Return what FastAPI calls: it has the parameters of the route's function, so that they are checked and listed."""

    async def answer(http_request: Request, **given: Any) -> Response:
        queries = queries_of(http_request)
        if route.store is None or queries.instance.stores[route.store].is_global:
            return await _run(http_request, route, given, Place())
        return await _at_the_owner(http_request, route, given, queries.store(route.store))

    request = inspect.Parameter("http_request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    taken = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in route.parameters]
    answer.__signature__ = inspect.Signature([request, *taken])  # type: ignore[attr-defined]
    return answer


async def _at_the_owner(request: Request, route: Route, given: dict[str, Any], store: QueryableStore) -> Response:
    """Run a route at the instance that has its key: the active one, else a standby."""
    queries = queries_of(request)
    instance = queries.instance
    key = PARAMETER.sub(lambda found: _text_of(given[found[1]]), route.key or "")
    partition = instance.partition_of(store.name, queries.key(store, key)[1])
    assert partition is not None  # the route was checked
    forwarded = queries.forwarded_to_us(request, store)
    hosts = instance.hosts(store.name, partition) if forwarded is None else [instance.here]
    why = NOBODY
    for host in hosts:
        try:
            if host == instance.here:
                return await _run(request, route, given, _place(instance, store.name, partition))
            return _passed_on(await queries.peers.run(host, path_of(request), partition))
        except (InvalidStateStoreError, PeerError) as error:
            why = str(error)
    raise Refusal(503, f"No instance can answer for partition {partition} of store '{store.name}'. {why}", AGAIN)


def _text_of(value: Any) -> str:
    """Return a parameter of the path as the text of a key: `true` for True, and a text as it is."""
    return to_text("string", value.value if isinstance(value, Enum) else value)


def _place(instance: QueryableInstance, store: str, partition: int) -> Place:
    """Return in which role this instance has a partition.

    Raises:
        InvalidStateStoreError: it does not have it, or it is not ready.
    """
    instance.local(store, [partition])
    roles = {state.partition: state.role for state in instance.states(store)}
    return Place(roles.get(partition, "active"), [partition])


async def _run(request: Request, route: Route, given: dict[str, Any], place: Place) -> Response:
    """Call the function of a route here, and make a response of what it returns.

    Raises:
        InvalidStateStoreError: a partition that it wants is not here, or not any more: another instance may have it.
        Refusal: the function refuses, fails, or has found nothing; this is the answer, whichever instance was asked.
    """
    instance = queries_of(request).instance
    answered_by = {ANSWERED_BY: f"{instance.here} {place.role}"}
    call = RestCall(instance.here, place.role, _stores(instance, place), _asking(request))
    try:
        if inspect.iscoroutinefunction(route.handler):
            said = await route.handler(call, **given)
        else:
            said = await run_in_threadpool(route.handler, call, **given)
        if isinstance(said, Response):
            said.headers.update(answered_by)
            return said
        body = encoded(dumps(to_json(said)))
    except UnknownStateStoreError as failure:  # a mistake in the function; as an answer it would be a 404
        raise _broken(route, failure, answered_by) from failure
    except InvalidStateStoreError:
        raise
    except REFUSED as failure:
        raise _refused(route, failure, answered_by) from failure
    except Exception as failure:
        raise _broken(route, failure, answered_by) from failure
    if said is None:
        asked = request.scope["path"]
        raise Refusal(404, f"There is nothing for {asked}.", "Ask for another key.", headers=answered_by)
    return Response(body, media_type="application/json", headers=answered_by)


def _refused(route: Route, failure: Exception, headers: dict[str, str]) -> Refusal:
    """Return what a function raises to refuse a call, with a header that says that it has run."""
    if isinstance(failure, HTTPException):  # the function's own words
        said = {**(failure.headers or {}), **headers}
        return Refusal(
            failure.status_code, str(failure.detail), f"GET /docs shows what {route.path} takes.", headers=said
        )
    refusal = refusal_of(failure)
    refusal.headers.update(headers)
    return refusal


def _broken(route: Route, failure: Exception, headers: dict[str, str]) -> Refusal:
    logger.error("%s(), which answers %s, has failed", route.name, route.path, exc_info=failure)
    where = headers[ANSWERED_BY].split()[0]
    return Refusal(
        500,
        f"{route.name}() has failed at {where}: {type(failure).__name__}: {failure}",
        "The log of that instance shows the line: fix the function, and start the instance again.",
        headers=headers,
    )


def _passed_on(heard: httpx.Response) -> Response:
    """Return what another instance has answered."""
    response = Response(heard.content, heard.status_code)
    heard_headers = [(name.lower(), value) for name, value in heard.headers.raw]
    response.raw_headers += [header for header in heard_headers if header[0] not in NOT_PASSED_ON]
    return response


def _stores(instance: QueryableInstance, place: Place) -> Callable[[str], HostedView]:
    def store(name: str) -> HostedView:
        if name not in instance.stores:
            known = ", ".join(sorted(instance.stores))
            raise UnknownStateStoreError(f"There is no store '{name}'; there are: {known}.")
        return HostedView(instance, name, place.partitions, for_all=True)

    return store


def _asking(request: Request) -> Callable[..., Any]:
    """Return a function that requests a path, as a client of this instance would."""
    client: httpx.AsyncClient = request.app.state.inside

    async def ask(*parts: str, **query: object) -> Any:
        if parts[:2] == ("state", "stream"):
            raise StreamsError("/state/stream never ends, so that no call can wait for it: let a client follow it.")
        asked = path(*parts, **query)
        try:
            async with asyncio.timeout(TO_RUN):
                heard = await client.get(asked)
        except TimeoutError:
            raise StreamsError(f"{asked} did not answer within {TO_RUN:.0f} s: ask again in a moment.") from None
        return _read(asked, heard)

    return ask


def _read(asked: str, heard: httpx.Response) -> Any:
    try:
        said = heard.json()
    except ValueError:
        raise StreamsError(f"{asked} answers with {heard.headers.get('content-type')}, and not with JSON.") from None
    if heard.status_code == 200:
        return said
    if heard.status_code == 404 and (ANSWERED_BY in heard.headers or "partitions" in said):
        return None
    raise StreamsError(f"{asked}: {said['error']}")
