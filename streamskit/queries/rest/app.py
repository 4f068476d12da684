"""The REST layer: what an instance of an application answers about its stores and those of the others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi_offline import FastAPIOffline

from streamskit.queries.measures import CONTENT_TYPE_LATEST, page
from streamskit.queries.metadata import HostInfo
from streamskit.queries.queryable_instance import InstanceHealth, QueryableInstance
from streamskit.queries.rest import dashboard_routes, store_routes
from streamskit.queries.rest.events import Updates
from streamskit.queries.rest.http_errors import REFUSED, Refusal, bad_request, refusal_of
from streamskit.queries.rest.json_codec import dumps, encoded, to_json, type_of
from streamskit.queries.rest.models import Health, InstanceList, Key, KeyMetadata, StoreList, StoreName, says
from streamskit.queries.rest.peers import PeerError, Peers
from streamskit.queries.rest.protocol import path
from streamskit.queries.rest.queries import Queries, hosts_of
from streamskit.queries.rest.routes_common import StrictRoute, begin_a_stream, queries_of
from streamskit.queries.rest.service_routes import inside, router_of
from streamskit.queries.rest_service import RestService

routes = APIRouter(route_class=StrictRoute, tags=["the application"])


def rest_app(instance: QueryableInstance, token: str | None = None, service: RestService | None = None) -> FastAPI:
    """Return the application that answers for an instance; `Server` serves it.

    Args:
        instance: the instance.
        token: the token that the other instances require, if they do.
        service: the application's own routes, if it has any.

    Raises:
        StreamsError: a route names a store that does not exist, or whose keys have no instance of their own.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        peers = Peers(instance.application_id, token)
        app.state.queries = Queries(instance, peers)
        app.state.inside = inside(app)
        yield
        await app.state.inside.aclose()
        app.state.queries.router.close()
        await peers.close()

    app = FastAPIOffline(  # its page of the API asks no other host for its scripts
        title=f"The stores of {instance.application_id}",
        description="Keys are routed to the instance that has them; lists are gathered from all.",
        version="1",
        lifespan=lifespan,
        redirect_slashes=False,
        redoc_url=None,
    )
    app.state.streams = 0
    app.state.is_ending = False
    app.state.dashboard = None
    for each in (*store_routes.ROUTERS, routes, dashboard_routes.routes):
        app.include_router(each)
    if service is not None:
        app.include_router(router_of(service, instance))
    for kind in REFUSED:
        app.add_exception_handler(kind, _refuse)
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
    hosted, instance = queries.store(store), queries.instance
    decoded, data = queries.key(hosted, key)
    said = {"store": hosted.name, "key": to_json(decoded)}
    if hosted.is_global:
        others = [str(each) for each in hosts_of(instance) if each != instance.here]
        return _json({**said, "partition": -1, "active_host": str(instance.here), "standby_hosts": others})
    partition = instance.partition_of(hosted.name, data)
    if partition is None:
        raise bad_request(
            f"Any instance may have a key of store '{store}': a processor puts keys where it runs.",
            f"Ask for it with {path('state', 'keyvalue', store, key)}, which asks them all.",
        )
    hosts = instance.hosts(hosted.name, partition)
    active = None if hosts.active is None else str(hosts.active)
    standbys = [str(each) for each in hosts.standbys]
    return _json({**said, "partition": partition, "active_host": active, "standby_hosts": standbys})


@routes.get("/state/stores", responses=says(StoreList))
async def stores(request: Request) -> Response:
    """The stores there are, their kinds, and the types of their keys and values."""
    instance = queries_of(request).instance
    said = [
        {
            "name": store.name,
            "kind": store.store.kind,
            "partitions": store.partitions,
            "changelog": store.changelog,
            "key": type_of(store.store.key),
            "value": type_of(store.store.value),
            "routed": store.routed,
            "everywhere": store.is_global,
        }
        for _, store in sorted(instance.stores.items())
    ]
    return _json({"application_id": instance.application_id, "stores": said})


@routes.get("/state/stream/{store:part}", responses={**says(Health), 200: {"content": {"text/event-stream": {}}}})
async def updates(request: Request, store: StoreName) -> Response:
    """Each update of a store as it lands, from all instances, as server-sent events.

    `update` has key, value, timestamp, partition and offset (its id is partition-offset), and as `previous` the offset
    of the update before it in its partition, if that is known; `unreadable` stands for an update that the store's
    serdes cannot read; `lost` says how many updates a slow reader has missed, or nobody has told while their partition
    moved (at most: offsets without an update are counted, too); `missing` names an instance that cannot be reached, and
    `joined` one that is followed from now on.
    """
    queries = queries_of(request)
    hosted = queries.store(store)
    if queries.forwarded_to_us(request, hosted) is not None:  # the instance that was asked counts it
        return Updates(queries.instance, hosted, None, lambda: bool(request.app.state.is_ending), lambda: None)
    close = begin_a_stream(request)
    peers = queries.peers
    return Updates(queries.instance, hosted, peers, lambda: bool(request.app.state.is_ending), close)


@routes.get("/health", responses=says(Health))
async def health(request: Request) -> Response:
    """Whether all of this instance is alive: its application's queries, Spark's Java, and the changelogs' reader."""
    return _health_of(request, lambda found: "")


@routes.get("/ready", responses=says(Health))
async def ready(request: Request) -> Response:
    """Whether this instance answers now for all that it hosts: all of it lives, and nothing is being restored."""
    return _health_of(request, lambda found: found.waits_for)


@routes.get("/metrics", responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """What Prometheus reads: the lag, rates and losses of the application, and the sizes of the stores here."""
    instance = queries_of(request).instance
    said = await run_in_threadpool(lambda: page(instance.application_id, instance.measures()))
    return Response(said, media_type=CONTENT_TYPE_LATEST)


def _health_of(request: Request, waits_for: Callable[[InstanceHealth], str]) -> Response:
    instance = queries_of(request).instance
    found = instance.health()
    said: dict[str, Any] = {"application_id": instance.application_id, "server": str(instance.here)}
    said |= {"state": found.state or None, "parts": dict(found.parts)}
    if found.failure:
        advice = "Start the application again: it goes on after the last whole micro-batch."
        raise Refusal(503, found.failure, advice, {"status": "failed", **said})
    if why := waits_for(found):
        raise Refusal(503, why, "Ask again in a moment.", {"status": "waiting", **said})
    return _json({"status": "ok", **said})


async def _instances(request: Request, store: str | None) -> Response:
    queries = queries_of(request)
    instance = queries.instance
    if queries.forwarded_to_us(request) is not None:
        return _json(_report(instance, store))
    asked = path("state", "instances") if store is None else path("state", "instances", store)
    reports = await asyncio.gather(*(_report_of(queries, each, asked, store) for each in hosts_of(instance)))
    return _json({"application_id": instance.application_id, "instances": reports})


async def _report_of(queries: Queries, host: HostInfo, asked: str, store: str | None) -> Any:
    if host == queries.instance.here:
        return _report(queries.instance, store)
    try:
        return await queries.peers.ask(host, asked, ())
    except PeerError as error:
        return {"server": str(host), "reachable": False, "error": str(error), "stores": {}}


def _report(instance: QueryableInstance, store: str | None) -> dict[str, Any]:
    names = sorted(instance.stores) if store is None else [store]
    states = {name: [asdict(state) | {"lag": state.lag} for state in instance.states(name)] for name in names}
    return {"server": str(instance.here), "reachable": True, "error": None, "stores": states}


def _json(said: Any) -> Response:
    return Response(encoded(dumps(said)), media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    return refusal_of(error).response()
