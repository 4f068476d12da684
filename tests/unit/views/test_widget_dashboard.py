"""The dashboard: several views in one, in a notebook, in its saved page, and at the server of an application."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from ipywidgets import Widget

from streamskit.cli import serve
from streamskit.common.errors import StreamsError
from streamskit.runtime import State
from streamskit.views import page_answers
from streamskit.widgets import ChartView, Dashboard, StoreView
from tests.unit.queries.rest_harness import ALL_ACTIVE, cluster, long
from tests.unit.views.test_widget_view import WIDGET, answer, eventually, is_looking, threads
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


def test_a_view_in_two_dashboards_is_kept_up_to_date_in_both() -> None:
    InteractiveShell.instance()
    store = counts(a=1)
    view = StoreView(store, refresh="50 ms")
    with capture_output() as captured:
        for title in ("One", "Two"):
            Dashboard(view, title=title)._ipython_display_()
        count(store, "a", 42)
        view._pause.value = True
    kept = [output.data.get("text/html", "") for output in captured.outputs]
    assert [any(title in html and ">42</td>" in html for html in kept) for title in ("One", "Two")] == [True, True]
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


def test_a_dashboard_whose_title_is_no_text_is_refused_and_an_empty_one_is_none() -> None:
    title: Any = None
    with pytest.raises(TypeError, match=re.escape("title=None is no heading: give a text, or '' for none.")):
        Dashboard(StoreView(counts()), title=title)
    assert Dashboard(StoreView(counts()), title="").title == ""


def test_an_application_without_a_server_cannot_show_a_dashboard() -> None:
    streams: Any = SimpleNamespace(query_server=None, application_id="app")
    with pytest.raises(StreamsError, match=re.escape("application_server='127.0.0.1:0'")):
        Dashboard(StoreView(counts())).serve(streams)


def test_a_closed_application_serves_no_dashboard() -> None:
    streams: Any = SimpleNamespace(query_server=object(), application_id="app", state=State.NOT_RUNNING)
    with pytest.raises(StreamsError, match="'app' is closed, and its server with it"):
        Dashboard(StoreView(counts())).serve(streams)


def test_a_closed_dashboard_is_displayed_as_the_page_of_what_it_showed_last() -> None:
    InteractiveShell.instance()
    view = StoreView(counts(a=1))
    board = Dashboard(view)
    view.refresh()
    board.close()
    with capture_output() as captured:
        board._ipython_display_()
    (page,) = (output.data for output in captured.outputs)
    assert set(page) == {"text/plain", "text/html"}
    assert ">1</td>" in page["text/html"]


def test_only_an_application_serves_a_dashboard() -> None:
    driver: Any = counts()
    with pytest.raises(TypeError, match=re.escape("and this is a CountingStore: write serve(streams)")):
        Dashboard(StoreView(counts())).serve(driver)


def await_looks(view: StoreView, count: int) -> None:
    """Wait until the view has looked so often: one look may have been under way before."""
    for _ in range(count):
        before = view._snapshot
        eventually(lambda before=before: view._snapshot is not before)  # type: ignore[misc]


def test_a_view_that_is_only_followed_sends_nothing_to_a_notebook_that_is_closed_until_it_is_open_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(Widget, "_send", lambda widget, message, buffers=None: sent.append((widget, message)))
    monkeypatch.setattr(page_answers, "ASK_EVERY", 0.02)
    monkeypatch.setattr(page_answers, "SOON", 0.1)
    store = counts(a=1)
    view = StoreView(store, refresh="50 ms")
    leave = view.follow()
    view._view_count = 1
    eventually(lambda: view._answers._unanswered_since)
    answer(view)
    eventually(lambda: view._answers.is_silent)  # its page was closed, which tells nobody
    await_looks(view, 2)
    sent.clear()
    count(store, "a", 42)
    eventually(lambda: ">42</td>" in view.seen()["table"])
    assert sent == []
    view._parts["table"].send_state()  # a page that is opened asks for it
    assert ">42</td>" in sent.pop()[1]["state"]["value"]
    count(store, "a", 43)
    eventually(lambda: ">43</td>" in view.seen()["table"])
    assert sent == []
    answer(view)
    assert ">43</td>" in next(message for widget, message in sent if widget is view._parts["table"])["state"]["value"]
    view._view_count = 0
    await_looks(view, 2)
    sent.clear()
    count(store, "a", 44)
    eventually(lambda: ">44</td>" in view.seen()["table"])
    assert sent == []
    leave()
    eventually(lambda: not threads())


def test_a_served_dashboard_says_where_it_is_and_shows_what_the_notebook_searches() -> None:
    view = StoreView(counts(KO=1, IBM=2), refresh="50 ms")
    board = Dashboard(view, title="Shop")
    with cluster(ALL_ACTIVE) as made:
        server = SimpleNamespace(rest=made.servers[0], here=made.servers[0].address)
        streams: Any = SimpleNamespace(query_server=server, application_id="app", state=State.RUNNING)
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
