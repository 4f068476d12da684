"""`Dashboard`: several live views in one, in a notebook and as a page of the application's server."""

from functools import partial
from html import escape
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from streamskit.common.errors import StreamsError
from streamskit.queries.rest.protocol import DASHBOARD
from streamskit.runtime import KafkaStreams, State
from streamskit.views.controls import checked_count
from streamskit.views.html import LIVE, STYLE, part
from streamskit.views.kept_page import KeptPage
from streamskit.views.live_view import LiveView
from streamskit.views.page import saved_page
from streamskit.views.views_page import ViewsPage

MOST_COLUMNS = 4


class Dashboard(widgets.VBox):
    """Live views side by side, as the last expression of a cell: stores, charts, a topology with its lag, faults.

    Each view looks while a page shows it, and has its own pace and pause. `serve` shows the same to a browser, without
    the notebook and without controls; what is searched, paused or broken in the notebook also shows there.

    Args:
        views: the views, in rows from the left.
        title: the heading above them.
        columns: how many stand side by side, 1 to 4.

    Raises:
        TypeError: one of them is no live view, or the title is no text.
        ValueError: there is no view, or `columns` is not such a number.

    >>> counts = streams.store("counts")  # doctest: +SKIP
    >>> board = Dashboard(StoreView(counts), ChartView(counts), TopologyView(streams))  # doctest: +SKIP
    >>> board.serve(streams)  # doctest: +SKIP
    'http://127.0.0.1:8080/dashboard'
    """

    def __init__(self, *views: LiveView, title: str = "Dashboard", columns: int = 2) -> None:
        if not views:
            raise ValueError("Dashboard has nothing to show: write Dashboard(StoreView(...), TopologyView(streams)).")
        for each in views:
            if not isinstance(each, LiveView):
                raise TypeError(
                    f"Dashboard shows live views, and this is a {type(each).__name__}: write Dashboard(StoreView(...), "
                    "TopologyView(streams))."
                )
        if not isinstance(title, str):
            raise TypeError(f"title={title!r} is no heading: give a text, or '' for none.")
        count = min(checked_count(columns, "columns", MOST_COLUMNS), len(views))
        self.title, self.views, self._columns = title, views, f"repeat({count}, minmax(0, 1fr))"
        self._served_by = ""
        self._kept = KeptPage(self._page)
        self._heading = widgets.HTML(self._head())
        layout = {"grid_template_columns": self._columns, "grid_gap": "18px", "width": "100%"}
        super().__init__([widgets.HTML(STYLE), self._heading, widgets.GridBox(views, layout=layout)])
        self.add_class(LIVE)
        for each in views:
            each.refreshed.append(partial(self._keep, each))

    def __repr__(self) -> str:
        return f"<Dashboard of {len(self.views)} views: {', '.join(map(repr, self.views))}>"

    def serve(self, streams: KafkaStreams) -> str:
        """Serve the views from the server of an application as well, and return the address for a browser.

        The page replaces the one that was served there before, and disappears when the application is closed.
        It shows what this process sees. With a token, the page asks for it.

        Args:
            streams: the application, with an `application_server`.

        Raises:
            TypeError: it is no application.
            StreamsError: it has no server, or is closed.
        """
        if not hasattr(streams, "query_server"):
            raise TypeError(
                f"A dashboard is served by a running application, and this is a {type(streams).__name__}: write "
                "serve(streams), with streams = KafkaStreams(..., application_server='127.0.0.1:0')."
            )
        server = streams.query_server
        if server is None:
            raise StreamsError(
                f"'{streams.application_id}' has no server that could show the dashboard: write "
                "KafkaStreams(..., application_server='127.0.0.1:0'), where port 0 takes a free one."
            )
        if streams.state is State.NOT_RUNNING:
            raise StreamsError(
                f"'{streams.application_id}' is closed, and its server with it: serve the dashboard of an application "
                "that runs."
            )
        page = ViewsPage(self.title, self.views)
        server.rest.dashboard = lambda: page
        self._served_by = f"{server.here.url}{DASHBOARD}"
        self._heading.value = self._head()
        return self._served_by

    def _head(self) -> str:
        link = f'<a href="{self._served_by}" target="_blank">{self._served_by}</a>' if self._served_by else ""
        beside = f' <span class="sk-quiet">also at {link}, while the application runs</span>' if link else ""
        return part(f"<div><b>{escape(self.title)}</b>{beside}</div>", "dashboard")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, **self._page()}

    def _ipython_display_(self, **kwargs: Any) -> None:
        """Display the live views, and after them the page for those who open the notebook without them."""
        if self.comm is None:  # it was closed
            display(self._page(), raw=True)
            return
        for view in self.views:
            view.await_page()
        self._kept.display(super()._repr_mimebundle_(**kwargs))

    def _keep(self, refreshed: LiveView) -> None:
        self._kept.keep(at_once=not refreshed.is_live)  # a view that is not live may not refresh again soon

    def _page(self) -> dict[str, str]:
        title = part(f"<div><b>{escape(self.title)}</b></div>", "dashboard")
        grid = f"display:grid;grid-template-columns:{self._columns};gap:18px;align-items:start"
        cells = "".join(f"<div>{view.saved()}</div>" for view in self.views)
        return {"text/plain": repr(self), "text/html": saved_page(f'{title}<div style="{grid}">{cells}</div>')}
