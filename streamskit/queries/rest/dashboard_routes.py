"""The dashboard of an instance: a page that follows views of this process, outside of their notebook."""

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse
from starlette.types import Receive, Send

from streamskit.queries.rest.events import KEEP_ALIVE, EventStream
from streamskit.queries.rest.http_errors import Refusal
from streamskit.queries.rest.json_codec import dumps
from streamskit.queries.rest.models import Health, says
from streamskit.queries.rest.protocol import DASHBOARD, Event
from streamskit.queries.rest.routes_common import StrictRoute, begin_a_stream

LOOK = 0.25
"""How often to look for what the views have rewritten, in seconds."""

routes = APIRouter(route_class=StrictRoute, tags=["the application"])


class FollowedViews(Protocol):
    """Views of this process that a page elsewhere follows: what they show, as HTML in which all data is escaped."""

    @property
    def title(self) -> str:
        """The heading above them."""

    @property
    def style(self) -> str:
        """The style sheet that their HTML needs."""

    def follow(self) -> Callable[[], None]:
        """Keep the views up to date until the returned function is called."""

    def seen(self) -> Sequence[Mapping[str, str]]:
        """Return what each view shows now, part by part."""


DashboardSource = Callable[[], FollowedViews]
"""Returns the views of a dashboard; it is called when somebody opens the page."""


@routes.get(DASHBOARD, responses={200: {"content": {"text/html": {}}}})
async def dashboard(request: Request) -> Response:
    """A page that follows the dashboard of this instance live."""
    page, policy = _page()
    return HTMLResponse(page, headers={"content-security-policy": policy, "cache-control": "no-cache"})


@routes.get(f"{DASHBOARD}/events", responses={**says(Health), 200: {"content": {"text/event-stream": {}}}})
async def dashboard_events(request: Request) -> Response:
    """What the dashboard shows, as server-sent events.

    `layout` has its title, its style and the number of its views; each `part` has the number of a view, the name of a
    part of it, and its HTML, whenever that has changed.
    """
    source: DashboardSource | None = request.app.state.dashboard
    if source is None:
        raise Refusal(
            404,
            "No dashboard was given to this instance.",
            "Compose one where the application runs: Dashboard(StoreView(...), TopologyView(streams)).serve(streams).",
        )
    views = await run_in_threadpool(source)
    close = begin_a_stream(request)
    return Following(views, lambda: bool(request.app.state.is_ending), close)


class Following(EventStream):
    """What views show, as long as somebody follows them.

    Args:
        views: the views.
        is_ending: says whether the server is about to stop.
        on_close: called when it is over.
    """

    def __init__(self, views: FollowedViews, is_ending: Callable[[], bool], on_close: Callable[[], None]) -> None:
        super().__init__(is_ending, on_close)
        self._views = views
        self._shown: dict[tuple[int, str], str] = {}

    async def tell(self, receive: Receive, send: Send) -> None:
        """Send what the views show, and then each part that has changed."""
        leave = self._views.follow()
        try:
            await self.until_one_ends(self._send_all(send), self.until_gone(receive))
        finally:
            leave()

    async def _send_all(self, send: Send) -> None:
        await self.begin(send)
        seen = await run_in_threadpool(self._views.seen)
        layout = {"title": self._views.title, "style": self._views.style, "views": len(seen)}
        await self.send_text(send, Event("layout", dumps(layout)).text())
        quiet = 0.0
        while not self._is_ending():
            said = "".join(self._texts(await run_in_threadpool(self._views.seen)))
            quiet = 0.0 if said else quiet + LOOK
            if quiet >= KEEP_ALIVE:
                quiet, said = 0.0, ": nothing new\n\n"
            await self.send_text(send, said)
            await asyncio.sleep(LOOK)
        await self.end(send)

    def _texts(self, seen: Sequence[Mapping[str, str]]) -> list[str]:
        """Return the events for what is not shown yet."""
        now = {(view, name): html for view, parts in enumerate(seen) for name, html in parts.items()}
        new = {place: html for place, html in now.items() if self._shown.get(place) != html}
        self._shown = now
        return [
            Event("part", dumps({"view": view, "part": name, "html": html})).text()
            for (view, name), html in new.items()
        ]


@cache
def _page() -> tuple[str, str]:
    """Return the page, and the policy that lets it run its own script only, whatever the views show."""
    page = Path(__file__).with_name("dashboard.html").read_text(encoding="utf-8")
    script = re.findall("<script>(.*?)</script>", page, re.DOTALL)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'"
    return page, f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
