"""The routes that read stores: key-value and versioned ones, windows and sessions."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from streamskit.queries.rest.http_errors import bad_request
from streamskit.queries.rest.json_codec import from_base64, shown
from streamskit.queries.rest.models import (
    AnyTime,
    EarliestTime,
    Key,
    LatestTime,
    OpenFrom,
    OpenKey,
    OpenTo,
    Partial,
    PathFrom,
    PathTo,
    RowCount,
    RowList,
    SingleRow,
    StartTime,
    StoreName,
    TimeFrom,
    TimeTo,
    says,
)
from streamskit.queries.rest.results import read_count, read_first, read_one
from streamskit.queries.rest.routes_common import ListOptions, Options, StrictRoute, answer_list, store_of
from streamskit.serdes import Serdes
from streamskit.state.rows import beginning, matches

TABLES, VERSIONED, WINDOWS, SESSIONS = ("key-value", "versioned"), ("versioned",), ("window",), ("session",)
tables = APIRouter(route_class=StrictRoute, tags=["key-value stores"])
windows = APIRouter(route_class=StrictRoute, tags=["window and session stores"])
ROUTERS = (tables, windows)

Prefix = Annotated[str, Path(description="How the keys begin.", examples=["K"])]
AsBytes = Annotated[bool, Query(description="Whether the prefix is bytes, in base64 with - and _.")]
Few = Annotated[int, Query(description="How many rows.", ge=1, le=10_000)]
Search = Annotated[str, Query(description="What the text of the keys begins with, or in double quotes all of it.")]


@tables.get("/state/keyvalue/{store:part}/{key:part}", responses=says(SingleRow))
async def row_of_a_key(request: Request, store: StoreName, key: Key, as_of: AnyTime = None) -> Response:
    """The row of a key. Of a versioned store `as_of` asks for the version that was valid at a time."""
    queries, hosted = store_of(request, store, TABLES)
    if as_of is not None and hosted.store.kind != "versioned":
        raise bad_request(f"'{store}' is a {hosted.store.kind} store and keeps no older versions.", "Leave as_of out.")
    decoded, data = queries.key(hosted, key)
    asked = (decoded,) if as_of is None else (decoded, as_of)
    return await queries.one(request, hosted, data, read_one(lambda local: local.entry(*asked)), f"key '{shown(key)}'")


@tables.get("/state/versions/{store:part}/{key:part}", responses=says(RowList))
async def versions_of_a_key(
    request: Request, store: StoreName, key: Key, options: Options, first: EarliestTime = None, last: LatestTime = None
) -> Response:
    """The versions of a key that were valid between two times, by time; `valid_to` is when one was replaced."""
    queries, hosted = store_of(request, store, VERSIONED)
    decoded, data = queries.key(hosted, key)
    if first is not None and last is not None and first > last:
        raise bad_request(f"There are no versions from {first} to {last}.", "Give the earlier time as 'from'.")
    return await answer_list(
        request, hosted, options, lambda local: local.versions_between(decoded, first, last, options.reverse), data
    )


@tables.get("/state/keyvalues/{store:part}/all", responses=says(RowList))
async def all_rows(request: Request, store: StoreName, options: Options) -> Response:
    """All rows, in the order of the keys' bytes."""
    hosted = store_of(request, store, TABLES)[1]
    return await answer_list(request, hosted, options, lambda local: local.everything(options.reverse))


@tables.get("/state/keyvalues/{store:part}/range/{from:part}/{to:part}", responses=says(RowList))
async def rows_of_a_range(
    request: Request, store: StoreName, first: PathFrom, last: PathTo, options: Options
) -> Response:
    """The rows with keys from one to another, both included, in the order of the keys' bytes."""
    return await _range(request, store, first, last, options)


@tables.get("/state/keyvalues/{store:part}/range", responses=says(RowList))
async def rows_of_an_open_range(
    request: Request, store: StoreName, options: Options, first: OpenFrom = None, last: OpenTo = None
) -> Response:
    """The rows with keys from one to another; either side may be left open."""
    return await _range(request, store, first, last, options)


@tables.get("/state/keyvalues/{store:part}/prefix/{prefix:part}", responses=says(RowList))
async def rows_with_a_prefix(
    request: Request, store: StoreName, prefix: Prefix, options: Options, as_bytes: AsBytes = False
) -> Response:
    """The rows with keys whose bytes begin with those of a prefix."""
    queries, hosted = store_of(request, store, TABLES)
    if not as_bytes:
        begin = queries.key(hosted, prefix)[0]
        return await answer_list(
            request, hosted, options, lambda local: local.with_prefix(begin, reverse=options.reverse)
        )
    try:
        data = from_base64(prefix)
    except ValueError as wrong:
        raise bad_request(f"The prefix is not bytes: {wrong}", "Write base64 with - and _.") from None
    serde = Serdes.bytes()
    return await answer_list(request, hosted, options, lambda local: local.with_prefix(data, serde, options.reverse))


@tables.get("/state/keyvalues/{store:part}/count", responses=says(RowCount))
async def number_of_rows(request: Request, store: StoreName, partial: Partial = False) -> Response:
    """How many rows a store of any kind has; about that many where they are kept on the disk."""
    queries, hosted = store_of(request, store)
    return await queries.count(request, hosted, read_count, partial)


@tables.get("/state/peek/{store:part}", responses=says(RowList))
async def a_few_rows(
    request: Request, store: StoreName, rows: Few = 15, search: Search = "", partial: Partial = False
) -> Response:
    """A few rows of a store of any kind to look at: the newest windows and sessions, or the first keys."""
    queries, hosted = store_of(request, store)

    def is_wanted(key: object) -> bool:
        return matches(str(key), search)

    read = read_first(rows, is_wanted if search else None, hosted.store.key, beginning(search))
    return await queries.many(request, hosted, read, rows, partial=partial)


async def _range(request: Request, store: str, first: str | None, last: str | None, options: ListOptions) -> Response:
    queries, hosted = store_of(request, store, TABLES)
    low, high = queries.keys(hosted, first, last)
    return await answer_list(request, hosted, options, lambda local: local.between(low, high, options.reverse))


@windows.get("/state/windowed/{store:part}/{key:part}/{start:part}", responses=says(SingleRow))
async def row_of_a_window(request: Request, store: StoreName, key: Key, start: StartTime) -> Response:
    """The row of a key in the window that starts at a time."""
    queries, hosted = store_of(request, store, WINDOWS)
    decoded, data = queries.key(hosted, key)
    read = read_one(lambda local: local.entry(decoded, start))
    return await queries.one(request, hosted, data, read, f"window of key '{shown(key)}' that starts at {start}")


@windows.get("/state/windowed/{store:part}/{key:part}/{from:part}/{to:part}", responses=says(RowList))
async def windows_of_a_key(
    request: Request, store: StoreName, key: Key, first: TimeFrom, last: TimeTo, options: Options
) -> Response:
    """The windows of a key that start between two times, both included."""
    queries, hosted = store_of(request, store, WINDOWS)
    decoded, data = queries.key(hosted, key)
    return await answer_list(
        request, hosted, options, lambda local: local.windows(decoded, first, last, options.reverse), data
    )


@windows.get("/state/windows/{store:part}", responses=says(RowList))
async def all_windows(request: Request, store: StoreName, options: Options) -> Response:
    """All windows of all keys, by key and then by time."""
    hosted = store_of(request, store, WINDOWS)[1]
    return await answer_list(request, hosted, options, lambda local: local.everything(options.reverse))


@windows.get("/state/windows/{store:part}/{from:part}/{to:part}", responses=says(RowList))
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
    queries, hosted = store_of(request, store, WINDOWS)
    low, high = queries.keys(hosted, key_from, key_to)
    return await answer_list(
        request, hosted, options, lambda local: local.windows_between(low, high, first, last, options.reverse)
    )


@windows.get("/state/sessions/{store:part}/{key:part}", responses=says(RowList))
async def sessions_of_a_key(
    request: Request, store: StoreName, key: Key, options: Options, start: AnyTime = None, end: AnyTime = None
) -> Response:
    """The sessions of a key; with `start` and `end` only the one with exactly these."""
    queries, hosted = store_of(request, store, SESSIONS)
    decoded, data = queries.key(hosted, key)
    if start is None and end is None:
        return await answer_list(request, hosted, options, lambda local: local.sessions(decoded, options.reverse), data)
    if start is None or end is None:
        raise bad_request("A session has a start and an end.", "Give both, or neither to get all sessions of the key.")
    read = read_one(lambda local: local.entry(decoded, start, end))
    return await queries.many(request, hosted, read, options.limit, key=data, partial=options.partial)


@windows.get("/state/sessions/{store:part}", responses=says(RowList))
async def all_sessions(
    request: Request, store: StoreName, options: Options, key_from: OpenKey = None, key_to: OpenKey = None
) -> Response:
    """The sessions of all keys, or those of a range, by key and then by time."""
    queries, hosted = store_of(request, store, SESSIONS)
    low, high = queries.keys(hosted, key_from, key_to)
    return await answer_list(request, hosted, options, lambda local: local.sessions_between(low, high, options.reverse))
