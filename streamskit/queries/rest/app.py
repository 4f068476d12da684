"""The REST layer: what an instance of an application answers about its stores and those of the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException

from streamskit.common.errors import InvalidStateStoreError, StreamsError
from streamskit.queries.hosting import Hosting
from streamskit.queries.metadata import HostInfo
from streamskit.queries.rest import store_routes
from streamskit.queries.rest.events import Updates
from streamskit.queries.rest.http_errors import Refusal, bad_request, refusal_of
from streamskit.queries.rest.json_codec import dumps, encoded, to_json, type_of
from streamskit.queries.rest.models import Health, InstanceList, Key, KeyMetadata, StoreList, StoreName, says
from streamskit.queries.rest.peers import PeerError, Peers
from streamskit.queries.rest.protocol import path
from streamskit.queries.rest.queries import Queries, hosts_of
from streamskit.queries.rest.routes_common import StrictRoute, queries_of
from streamskit.serdes import SerdeError

MOST_STREAMS = 100
"""How many event streams may be open at the same time."""

routes = APIRouter(route_class=StrictRoute, tags=["the application"])


def rest_app(hosting: Hosting, token: str | None = None) -> FastAPI:
    """Return the application that answers for an instance; `Server` serves it.

    Args:
        hosting: the instance.
        token: what the other instances ask for, if they do.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        peers = Peers(hosting.application_id, token)
        app.state.queries = Queries(hosting, peers)
        yield
        app.state.queries.router.close()
        await peers.close()

    app = FastAPIOffline(  # its page of the API asks no other host for its scripts
        title=f"The stores of {hosting.application_id}",
        description="Keys are routed to the instance that has them; lists are gathered from all.",
        version="1",
        lifespan=lifespan,
        redirect_slashes=False,
        redoc_url=None,
    )
    app.state.streams = 0
    app.state.is_ending = False
    for each in (*store_routes.ROUTERS, routes):
        app.include_router(each)
    app.add_exception_handler(Refusal, _refuse)
    app.add_exception_handler(InvalidStateStoreError, _refuse_store)
    app.add_exception_handler(StreamsError, _refuse_for_now)
    app.add_exception_handler(SerdeError, _cannot_read)
    app.add_exception_handler(RequestValidationError, _refuse_parameters)
    app.add_exception_handler(HTTPException, _refuse_route)
    return app


@routes.get("/state/instances", responses=says(InstanceList))
async def instances(request: Request) -> Response:
    """All instances, the partitions they have, and how far each of these is."""
    return await _instances(request, None)


@routes.get("/state/instances/{store:part}", responses=says(InstanceList))
async def instances_of_a_store(request: Request, store: StoreName) -> Response:
    """All instances, the partitions of a store that they have, and how far each of these is."""
    return await _instances(request, queries_of(request).store(store).name)


@routes.get("/state/instance/{store:part}/{key:part}", responses=says(KeyMetadata))
async def instances_of_a_key(request: Request, store: StoreName, key: Key) -> Response:
    """Which instances have a key: the active one, if there is one at the moment, and its standbys."""
    queries = queries_of(request)
    hosted, hosting = queries.store(store), queries.hosting
    wanted, data = queries.key(hosted, key)
    said = {"store": hosted.name, "key": to_json(wanted)}
    if hosted.everywhere:
        others = [str(each) for each in hosts_of(hosting) if each != hosting.here]
        return _json({**said, "partition": -1, "active_host": str(hosting.here), "standby_hosts": others})
    partition = hosting.partition_of(hosted.name, data)
    if partition is None:
        raise bad_request(
            f"Any instance may have a key of store '{store}': a processor puts keys where it runs.",
            f"Ask for it with {path('state', 'keyvalue', store, key)}, which asks them all.",
        )
    hosts = hosting.hosts(hosted.name, partition)
    active = None if hosts.active is None else str(hosts.active)
    standbys = [str(each) for each in hosts.standbys]
    return _json({**said, "partition": partition, "active_host": active, "standby_hosts": standbys})


@routes.get("/state/stores", responses=says(StoreList))
async def stores(request: Request) -> Response:
    """The stores there are, their kinds, and the types of their keys and values."""
    hosting = queries_of(request).hosting
    said = [
        {
            "name": store.name,
            "kind": store.store.kind,
            "partitions": store.partitions,
            "changelog": store.changelog,
            "key": type_of(store.store.key),
            "value": type_of(store.store.value),
            "routed": store.routed,
            "everywhere": store.everywhere,
        }
        for _, store in sorted(hosting.stores.items())
    ]
    return _json({"application_id": hosting.application_id, "stores": said})


@routes.get("/state/stream/{store:part}", responses={**says(Health), 200: {"content": {"text/event-stream": {}}}})
async def updates(request: Request, store: StoreName) -> Response:
    """Each update of a store as it lands, from all instances, as server-sent events.

    `update` has key, value, timestamp, partition and offset (its id is partition-offset); `lost` says how many updates
    a slow reader has missed; `missing` and `joined` tell of instances that cannot be heard, and can be again.
    """
    queries, state = queries_of(request), request.app.state
    hosted = queries.store(store)
    is_from_peer = queries.forwarded_to_us(request, hosted) is not None
    if state.streams >= MOST_STREAMS:
        raise Refusal(503, f"{MOST_STREAMS} event streams are open, and no more are served.", "Close one.")
    state.streams += 1

    def close() -> None:
        state.streams -= 1

    peers = None if is_from_peer else queries.peers
    return Updates(queries.hosting, hosted, peers, lambda: bool(state.is_ending), close)


@routes.get("/health", responses=says(Health))
async def health(request: Request) -> Response:
    """Whether this instance answers."""
    hosting = queries_of(request).hosting
    return _json({"status": "ok", "application_id": hosting.application_id, "server": str(hosting.here)})


async def _instances(request: Request, store: str | None) -> Response:
    queries = queries_of(request)
    hosting = queries.hosting
    if queries.forwarded_to_us(request) is not None:
        return _json(_report(hosting, store))
    asked = path("state", "instances") if store is None else path("state", "instances", store)
    reports = await asyncio.gather(*(_report_of(queries, each, asked, store) for each in hosts_of(hosting)))
    return _json({"application_id": hosting.application_id, "instances": reports})


async def _report_of(queries: Queries, host: HostInfo, asked: str, store: str | None) -> Any:
    if host == queries.hosting.here:
        return _report(queries.hosting, store)
    try:
        return await queries.peers.ask(host, asked, ())
    except PeerError as error:
        return {"server": str(host), "reachable": False, "error": str(error), "stores": {}}


def _report(hosting: Hosting, store: str | None) -> dict[str, Any]:
    names = sorted(hosting.stores) if store is None else [store]
    states = {
        name: [
            {
                "partition": state.partition,
                "role": state.role,
                "position": state.position,
                "end": state.end,
                "lag": state.lag,
                "ready": state.ready,
            }
            for state in hosting.states(name)
        ]
        for name in names
    }
    return {"server": str(hosting.here), "reachable": True, "error": None, "stores": states}


def _json(said: Any) -> Response:
    return Response(encoded(dumps(said)), media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error.response()


async def _refuse_store(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidStateStoreError)
    return refusal_of(error).response()


async def _refuse_for_now(request: Request, error: Exception) -> Response:
    return Refusal(503, str(error), "Ask another instance, or this one again in a moment.").response()


async def _cannot_read(request: Request, error: Exception) -> Response:
    what_to_do = "The store names another serde than the one that wrote its changelog: correct it."
    return Refusal(500, f"A row cannot be read: {error}", what_to_do).response()


async def _refuse_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return bad_request(f"Parameter '{first['loc'][-1]}': {first['msg']}.").response()


async def _refuse_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return Refusal(404, "There is nothing at this path.", "GET /docs shows all there are.").response()
    allowed = "Everything here is only read: ask with GET."
    return Refusal(error.status_code, f"{error.detail}.", allowed, headers=error.headers).response()
