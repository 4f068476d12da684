"""The routes of window and session stores."""

from fastapi import APIRouter, Request, Response

from streamskit.queries.rest.http_errors import bad_request
from streamskit.queries.rest.json_codec import shown
from streamskit.queries.rest.models import (
    AnyTime,
    Key,
    OpenKey,
    Rows,
    SingleRow,
    StartTime,
    StoreName,
    TimeFrom,
    TimeTo,
    says,
)
from streamskit.queries.rest.results import read_one
from streamskit.queries.rest.routes_common import Options, StrictRoute, answer_list, queries_of

WINDOWS, SESSIONS = ("window",), ("session",)
routes = APIRouter(route_class=StrictRoute, tags=["window and session stores"])


@routes.get("/state/windowed/{store:part}/{key:part}/{start:part}", responses=says(SingleRow))
async def row_of_a_window(request: Request, store: StoreName, key: Key, start: StartTime) -> Response:
    """The row of a key in the window that starts at a time."""
    queries = queries_of(request)
    hosted = queries.store(store, WINDOWS)
    wanted, data = queries.key(hosted, key)
    read = read_one(lambda local: local.entry(wanted, start))
    return await queries.one(request, hosted, data, read, f"window of key '{shown(key)}' that starts at {start}")


@routes.get("/state/windowed/{store:part}/{key:part}/{from:part}/{to:part}", responses=says(Rows))
async def windows_of_a_key(
    request: Request, store: StoreName, key: Key, first: TimeFrom, last: TimeTo, options: Options
) -> Response:
    """The windows of a key that start between two times, both included."""
    queries = queries_of(request)
    hosted = queries.store(store, WINDOWS)
    wanted, data = queries.key(hosted, key)
    return await answer_list(
        request, hosted, options, lambda local: local.windows(wanted, first, last, options.reverse), data
    )


@routes.get("/state/windows/{store:part}", responses=says(Rows))
async def all_windows(request: Request, store: StoreName, options: Options) -> Response:
    """All windows of all keys, by key and then by time."""
    hosted = queries_of(request).store(store, WINDOWS)
    return await answer_list(request, hosted, options, lambda local: local.everything(options.reverse))


@routes.get("/state/windows/{store:part}/{from:part}/{to:part}", responses=says(Rows))
async def windows_of_a_time(
    request: Request,
    store: StoreName,
    first: TimeFrom,
    last: TimeTo,
    options: Options,
    key_from: OpenKey = None,
    key_to: OpenKey = None,
) -> Response:
    """The windows that start between two times, both included, of all keys or those of a range, by key and time."""
    queries = queries_of(request)
    hosted = queries.store(store, WINDOWS)
    low, high = queries.keys(hosted, key_from, key_to)
    return await answer_list(
        request, hosted, options, lambda local: local.windows_between(low, high, first, last, options.reverse)
    )


@routes.get("/state/sessions/{store:part}/{key:part}", responses=says(Rows))
async def sessions_of_a_key(
    request: Request, store: StoreName, key: Key, options: Options, start: AnyTime = None, end: AnyTime = None
) -> Response:
    """The sessions of a key; with `start` and `end` only the one with exactly these."""
    queries = queries_of(request)
    hosted = queries.store(store, SESSIONS)
    wanted, data = queries.key(hosted, key)
    if start is None and end is None:
        return await answer_list(request, hosted, options, lambda local: local.sessions(wanted, options.reverse), data)
    if start is None or end is None:
        raise bad_request("A session has a start and an end.", "Give both, or neither to get all sessions of the key.")
    read = read_one(lambda local: local.entry(wanted, start, end))
    return await queries.many(request, hosted, read, options.limit, key=data, partial=options.partial)


@routes.get("/state/sessions/{store:part}", responses=says(Rows))
async def all_sessions(
    request: Request, store: StoreName, options: Options, key_from: OpenKey = None, key_to: OpenKey = None
) -> Response:
    """The sessions of all keys, or those of a range, by key and then by time."""
    queries = queries_of(request)
    hosted = queries.store(store, SESSIONS)
    low, high = queries.keys(hosted, key_from, key_to)
    return await answer_list(request, hosted, options, lambda local: local.sessions_between(low, high, options.reverse))
