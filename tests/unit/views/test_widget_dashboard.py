"""The dashboard: several views in one, in a notebook, in its saved page, and at the server of an application."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from streamskit.cli import serve
from streamskit.common.errors import StreamsError
from streamskit.widgets import ChartView, Dashboard, StoreView
from tests.unit.queries.rest_harness import ALL_ACTIVE, cluster, long
from tests.unit.views.test_widget_view import WIDGET, eventually, is_looking, threads
from tests.unit.views.widget_stores import count, counts


def test_a_dashboard_is_one_output_and_one_saved_page_with_all_its_views_that_is_kept_up_to_date() -> None:
    InteractiveShell.instance()
    store = counts(a=1)
    table, chart = StoreView(store, refresh="50 ms"), ChartView(store, refresh="50 ms")
    board = Dashboard(table, chart, title="One & all")
    with capture_output() as captured:
        board._ipython_display_()
        eventually(lambda: is_looking(table) and is_looking(chart))
        count(store, "a", 42)
        for each in (table, chart):
            each._pause.value = True
    live, saved, *_, kept = (output.data for output in captured.outputs)
    assert set(live) == {WIDGET}
    assert saved["text/plain"] == "<Dashboard of 2 views: <StoreView of 'counts'>, <ChartView of 'counts'>>"
    assert "<b>One &amp; all</b>" in saved["text/html"]
    assert ">1</td>" in saved["text/html"]
    assert kept["text/html"].count("▤ saved") == 2
    assert ">42</td>" in kept["text/html"]
    eventually(lambda: not threads())


def test_a_chart_view_has_the_chart_of_a_store_and_no_rows() -> None:
    view = ChartView(counts(a=1))
    view.refresh()
    assert "value: the largest of 1 key" in view._parts["chart"].value
    assert list(view._parts) == ["chart"]


@pytest.mark.parametrize(
    ("views", "columns", "error", "sentence"),
    [
        ((), 2, ValueError, "Dashboard has nothing to show"),
        ((counts(),), 2, TypeError, "Dashboard shows live views, and this is a CountingStore"),
        ((StoreView(counts()),), 9, ValueError, "columns=9 cannot be shown: choose a number from 1 to 4."),
    ],
)
def test_a_dashboard_that_makes_no_sense_is_refused_with_a_sentence(
    views: tuple[Any, ...], columns: int, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        Dashboard(*views, columns=columns)


def test_an_application_without_a_server_cannot_show_a_dashboard() -> None:
    streams: Any = SimpleNamespace(query_server=None, application_id="app")
    with pytest.raises(StreamsError, match=re.escape("application_server='127.0.0.1:0'")):
        Dashboard(StoreView(counts())).serve(streams)


def test_a_served_dashboard_says_where_it_is_and_shows_what_the_notebook_searches() -> None:
    view = StoreView(counts(KO=1, IBM=2), refresh="50 ms")
    board = Dashboard(view, title="Shop")
    with cluster(ALL_ACTIVE) as made:
        server = SimpleNamespace(rest=made.servers[0], here=made.servers[0].address)
        streams: Any = SimpleNamespace(query_server=server, application_id="app")
        assert board.serve(streams) == f"{made.url()}/dashboard"
        assert f'href="{made.url()}/dashboard"' in board._heading.value
        source = made.servers[0].dashboard
        assert source is not None
        page = source()
        leave = page.follow()
        eventually(lambda: ">IBM</td>" in page.seen()[0]["table"])
        view._search.value = "K"
        assert ">IBM</td>" not in page.seen()[0]["table"]
        leave()
        leave()
    eventually(lambda: not threads())


def test_a_view_that_is_followed_twice_looks_until_both_have_left() -> None:
    view = StoreView(counts(a=1), refresh="50 ms")
    one, two = view.follow(), view.follow()
    one()
    one()
    assert is_looking(view)
    two()
    eventually(lambda: not is_looking(view))


def test_an_instance_shows_all_stores_from_all_instances_and_these() -> None:
    with cluster({0: "active", 1: "active"}, {2: "active", 3: "active"}, token="secret") as made:
        for number in range(8):
            made.group.put("counts", str(number).encode(), long(number))
        served: Any = SimpleNamespace(rest=made.servers[0])
        config: Any = SimpleNamespace(application_id="app", token_text="secret")
        page = serve._dashboard(served, config)
        leave = page.follow()
        try:
            eventually(lambda: all("● live" in view["header"] for view in page.seen()))
        finally:
            leave()
            eventually(lambda: not threads())
        shown = {re.findall("<b>(.*?)</b>", view["header"])[0]: view for view in page.seen()}
        assert list(shown) == [*sorted(made.instances[0].stores), "app"]
        assert re.findall(r"<td[^>]*>(\d)</td><td[^>]*>\1</td>", shown["counts"]["table"]) == list("01234567")
        assert "2 of 2 instances alive" in shown["app"]["header"]
