"""The dashboard of an instance over REST: who gets to see it, what is sent, and that nobody looks for nobody."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from streamskit.queries.rest import routes_common
from tests.unit.queries.rest_harness import ALL_ACTIVE, Cluster, cluster

SECRET = {"authorization": "Bearer secret"}


class Views:
    """Two views that the test writes."""

    title, style = "Shop", ".a{}"

    def __init__(self) -> None:
        self.shown = [{"header": "one"}, {"header": "two", "table": "empty"}]
        self.followers = 0

    def follow(self) -> Callable[[], None]:
        self.followers += 1

        def leave() -> None:
            self.followers -= 1

        return leave

    def seen(self) -> list[dict[str, str]]:
        return [dict(each) for each in self.shown]


@pytest.fixture
def views() -> Views:
    return Views()


@pytest.fixture
def made(views: Views) -> Iterator[Cluster]:
    with cluster(ALL_ACTIVE) as made:
        made.servers[0].dashboard = lambda: views
        yield made


def events(lines: Iterator[str], count: int) -> list[tuple[str, Any]]:
    """Return the next events of a stream, each with its kind and its data."""
    found: list[tuple[str, Any]] = []
    kind = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            found.append((kind, json.loads(value)))
            if len(found) == count:
                break
    return found


def part(view: int, name: str, html: str) -> tuple[str, Any]:
    return "part", {"view": view, "part": name, "html": html}


def await_that(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come in 10 s"
        time.sleep(0.02)


def test_all_parts_are_sent_first_and_then_those_that_are_others_while_somebody_follows(
    made: Cluster, views: Views
) -> None:
    with made.http.stream("GET", f"{made.url()}/dashboard/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert events(lines, 4) == [
            ("layout", {"title": "Shop", "style": ".a{}", "views": 2}),
            part(0, "header", "one"),
            part(1, "header", "two"),
            part(1, "table", "empty"),
        ]
        assert views.followers == 1
        views.shown[1]["table"] = "full\n& more"
        assert events(lines, 1) == [part(1, "table", "full\n& more")]
    await_that(lambda: views.followers == 0 and made.servers[0]._app.state.streams == 0, "the end of the stream")


def test_a_stop_of_the_server_ends_the_stream(made: Cluster, views: Views) -> None:
    with made.http.stream("GET", f"{made.url()}/dashboard/events") as answer:
        lines = answer.iter_lines()
        assert len(events(lines, 4)) == 4
        stopping = threading.Thread(target=made.servers[0].stop)
        stopping.start()
        assert events(lines, 1) == []
        stopping.join(10)
    assert views.followers == 0


def test_where_nobody_has_composed_a_dashboard_the_stream_says_so(made: Cluster) -> None:
    made.servers[0].dashboard = None
    answer = made.get("/dashboard/events")
    assert (answer.status_code, answer.json()["error"]) == (404, "No dashboard was given to this instance.")
    assert "Dashboard(StoreView(...)" in answer.json()["what_to_do"]


def test_no_more_are_followed_than_event_streams_may_be_open(
    made: Cluster, views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes_common, "MOST_STREAMS", 0)
    assert made.get("/dashboard/events").status_code == 503
    assert views.followers == 0


def test_the_page_asks_for_the_token_and_what_the_views_show_needs_it(views: Views) -> None:
    with cluster(ALL_ACTIVE, token="secret") as made:
        made.servers[0].dashboard = lambda: views
        page = httpx.get(f"{made.url()}/dashboard", trust_env=False)
        assert page.status_code == 200
        assert 'type="password"' in page.text
        assert views.title not in page.text
        for path in ("/dashboard/events", "/dashboard/", "/dashboard/../state/stores", "/%64ashboard", "//dashboard"):
            assert httpx.get(made.url() + path, trust_env=False).status_code == 401, path
        with made.http.stream("GET", f"{made.url()}/dashboard/events", headers=SECRET) as answer:
            assert answer.status_code == 200


def test_the_page_runs_no_script_but_its_own_and_is_refused_to_another_host_name(made: Cluster) -> None:
    policy = made.get("/dashboard").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    assert made.get("/dashboard", host="evil.example").status_code == 400
