"""What the service answers: its own routes, beside those that every instance of an application has."""

import asyncio
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse

from examples.music.charts import Chart
from streamskit import RestCall, RestService

PAGE = Path(__file__).with_name("page.html")

ROLES = ("active", "standby")

service = RestService()


@service.get("/charts/genre/{genre}", store="top-five-by-genre", key="{genre}")
async def genre_chart(call: RestCall, genre: str) -> list[dict[str, Any]] | None:
    """The songs of a genre that are played most."""
    return await with_songs(call, call.store("top-five-by-genre").get(genre))


@service.get("/charts/top-five", store="top-five", key="all")
async def top_five(call: RestCall) -> list[dict[str, Any]] | None:
    """The songs that are played most."""
    return await with_songs(call, call.store("top-five").get("all"))


@service.get("/charts/genres")
async def genres(call: RestCall) -> list[str]:
    """The genres that have a chart."""
    charts = await call.ask("state", "keyvalues", "top-five-by-genre", "all")
    return sorted(row["key"] for row in charts["rows"])


@service.get("/song/{id}", store="songs", key="{id}")
async def song(call: RestCall, id: str) -> dict[str, Any] | None:  # noqa: A002 - the name in the path
    """A song of the catalogue."""
    found: dict[str, Any] | None = call.store("songs").get(id)
    return found


@service.get("/instances")
async def instances(call: RestCall) -> list[dict[str, Any]]:
    """The instances of the service, and how many partitions of which stores each answers for, or has a copy of."""
    said = await call.ask("state", "instances")
    return [
        {"server": each["server"], "reachable": each["reachable"], **{role: _parts(each, role) for role in ROLES}}
        for each in said["instances"]
    ]


@service.get("/dead-letters")
def dead_letters(call: RestCall) -> dict[str, Any]:
    """How many dead letters there are of each kind, as the second application counts them."""
    return dict(call.store("dead-letters").all())


@service.get("/")
def page(call: RestCall) -> HTMLResponse:
    """The page that follows the charts."""
    return HTMLResponse(PAGE.read_text(encoding="utf-8"))


async def with_songs(call: RestCall, chart: Chart | None) -> list[dict[str, Any]] | None:
    """Return a chart with all that is known of its songs, each from the instance that has it."""
    if chart is None:
        return None
    known = await asyncio.gather(*(call.ask("song", entry["id"]) for entry in chart))
    return [
        (found or {"id": entry["id"]}) | {"plays": entry["plays"]} for found, entry in zip(known, chart, strict=True)
    ]


def _parts(instance: dict[str, Any], role: str) -> dict[str, int]:
    """Return of how many partitions of each store an instance is the active or a standby one."""
    counts = {store: sum(part["role"] == role for part in parts) for store, parts in instance["stores"].items()}
    return {store: count for store, count in counts.items() if count}
