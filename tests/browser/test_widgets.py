"""An instructor shows the live views in JupyterLab: each is clicked, and says what happens."""

import re
from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from streamskit import QueryClient
from streamskit.views.views_page import page_of_stores
from tests.browser.conftest import JupyterLab
from tests.browser.pages import await_idle, open_notebook, run_all, shoot
from tests.unit.queries.rest_harness import ALL_ACTIVE, cluster, long

pytestmark = [pytest.mark.browser, pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]

NOTEBOOK = "notebooks/widgets.ipynb"
NINE = 1_704_186_000_000

CELLS = (
    f"""
import threading, time
import ipywidgets
from streamskit import (
    Instances, JoinWindows, KafkaStreams, Materialized, QueryClient, Serdes, StreamsBuilder, TimeWindows
)
from streamskit.broker import shared_broker
from streamskit.widgets import (
    ClusterView, Dashboard, FaultPanel, JoinView, StoreView, TopicView, TopologyView, WindowView
)

broker = shared_broker()
broker.delete_topics("ticks", "marks", "pairs", missing_ok=True)
broker.create_topics("ticks", "marks", "pairs")

def longest(one, two):
    if two == "poison":
        raise ValueError("this is poison")
    return max(one, two, key=len)

builder = StreamsBuilder()
ticks, marks = (builder.stream(name, key=Serdes.string(), value=Serdes.string()) for name in ("ticks", "marks"))
windows = TimeWindows.of_size_and_grace("5 seconds", "2 seconds")
ticks.group_by_key().windowed_by(windows).reduce(longest, Materialized("longest", retention="1 day"))
ticks.join(marks, lambda tick, mark: tick, JoinWindows.of_time_difference_with_no_grace("2 seconds")).to("pairs")
streams = KafkaStreams(builder.build(), "widgets-app", broker.bootstrap_servers)
streams.clean_up()
streams.start()
def tick(key, value, second, topic="ticks"):
    broker.produce(topic, [{{"key": key, "value": value, "timestamp": {NINE} + round(second * 1000),
                            "headers": [("from", b"browser")]}}])
for number in range(12):
    tick("KO" if number % 3 else "IBM", f"tick {{number}}", number * 1.5 - (9 if number == 8 else 0))
for number in range(3):
    tick("KO", f"mark {{number}}", number * 4 + 1, "marks")
streams.await_processed("3 minutes")
""",
    'TopicView(broker, "ticks", rows=5)',
    'WindowView(streams, "longest")',
    "JoinView(streams)",
    'StoreView(streams.store("longest"), rows=5)',
    """
instances = Instances("widgets-app", broker.bootstrap_servers, standby_replicas=1, session_timeout="2 seconds")
first = instances.start()
remote = QueryClient(first.url, retry="1 minute").store("longest")
remote.all()
instances.start()
ClusterView(instances, "widgets-app")
""",
    "StoreView(remote, rows=5)",
    "TopologyView(streams)",
    'FaultPanel(broker=broker, topic="marks", seconds=60)',
    'Dashboard(StoreView(streams.store("longest"), rows=5), TopologyView(streams), title="Side by side")',
    """
more, poison = (ipywidgets.Button(description=words) for words in ("Send a tick", "Send poison"))
more.on_click(lambda _: tick("PEP", "one more", 30))
poison.on_click(lambda _: [tick("KO", value, 31) for value in ("fine", "poison")])
ipywidgets.HBox([more, poison])
""",
)


@pytest.fixture(scope="module")
def lesson(browser: Browser, lab: JupyterLab) -> Iterator[Page]:
    """The notebook with all views, after its last cell has run."""
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    whole = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(whole, lab.folder / NOTEBOOK)
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    open_notebook(page, lab, NOTEBOOK)
    run_all(page)
    await_idle(page, 300)
    yield page
    # The next file finds the lab as it was, without a kernel that has a Spark session.
    signed = {"Authorization": f"token {lab.token}"}
    for session in page.request.get(f"{lab.address}/api/sessions", headers=signed).json():
        if session["path"] == NOTEBOOK:
            page.request.delete(f"{lab.address}/api/sessions/{session['id']}", headers=signed)
    page.close()


def view(page: Page, kind: str) -> Locator:
    """Return the live view of a kind, scrolled to."""
    found = page.locator(".streamskit-live").filter(has=page.locator(f".streamskit-{kind}")).first
    expect(found).to_be_visible(timeout=60_000)
    found.scroll_into_view_if_needed()
    return found


def look(page: Page, found: Locator, name: str) -> None:
    """Take a screenshot that begins where a view begins."""
    found.evaluate("element => element.scrollIntoView(true)")
    shoot(page, name)


def darken(page: Page, lab: JupyterLab) -> None:
    """Put the dark theme on this page only: to choose it in the menu would change the settings of who runs the test."""
    dark = page.request.get(f"{lab.address}/lab/api/themes/@jupyterlab/theme-dark-extension/index.css").text()
    page.add_style_tag(content=dark.replace(":root{", ":root:root{"))  # stronger than the light one, which stays
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")


def test_a_topic_is_followed_searched_and_filtered(lesson: Page) -> None:
    topic = view(lesson, "topic")
    rows = topic.locator(".sk-rows")
    expect(rows).to_contain_text("from=browser")
    lesson.get_by_role("button", name="Send a tick").click()
    topic.scroll_into_view_if_needed()
    expect(rows).to_contain_text("one more", timeout=30_000)
    search = topic.get_by_placeholder("begins with")
    search.fill("IBM")
    search.press("Enter")
    expect(rows).not_to_contain_text("one more", timeout=30_000)
    expect(rows).to_contain_text("tick 9")
    look(lesson, topic, "widgets-topic")


def test_a_wide_table_stays_where_one_has_scrolled_to_and_a_chart_keeps_its_shape(lesson: Page) -> None:
    lesson.set_viewport_size({"width": 800, "height": 1000})
    topic = view(lesson, "topic")
    box = topic.locator(".widget-html-content").filter(has=lesson.locator(".sk-rows"))
    box.evaluate("element => element.scrollLeft = 150")
    box.locator("table").evaluate("element => element.id = 'before'")
    search = topic.get_by_placeholder("begins with")
    search.fill("KO")
    search.press("Enter")
    expect(lesson.locator("#before")).to_have_count(0, timeout=30_000)  # the table was drawn anew
    assert box.evaluate("element => [element.scrollLeft, element.scrollHeight - element.clientHeight]") == [150, 0]
    shape = "e => ['Width', 'Height'].map(each => e['client' + each] / e.viewBox.baseVal[each.toLowerCase()])"
    width, height = view(lesson, "windows").locator("svg").evaluate(shape)
    assert width < 1
    assert abs(width - height) < 0.02
    lesson.set_viewport_size({"width": 1300, "height": 1000})


def test_stepping_back_shows_the_windows_as_they_were_and_resuming_follows(lesson: Page) -> None:
    windows = view(lesson, "windows")
    expect(windows).to_contain_text("Record 13 of 13", timeout=30_000)
    expect(windows).to_contain_text("too late: its last window, 09:00:00 – 09:00:05, had closed at 09:00:07")
    look(lesson, windows, "widgets-windows")
    windows.get_by_title("One record back").click()
    expect(windows).to_contain_text("Record 12 of 13", timeout=30_000)
    expect(windows).to_contain_text("❚❚ paused")
    slider = windows.get_by_role("slider")
    slider.focus()
    slider.press("ArrowLeft")
    expect(windows).to_contain_text("Record 11 of 13", timeout=30_000)
    windows.get_by_role("button", name="Resume").click()
    expect(windows).to_contain_text("Record 13 of 13", timeout=30_000)


def test_a_join_is_stepped_back_and_says_who_met_whom(lesson: Page) -> None:
    join = view(lesson, "join")
    counted = re.compile(r"Record (\d+) of \1")
    expect(join).to_contain_text(counted, timeout=30_000)
    look(lesson, join, "widgets-join")
    last = counted.search(join.text_content() or "")
    assert last is not None
    join.get_by_title("One record back").click()
    expect(join).to_contain_text(f"Record {int(last[1]) - 1} of {last[1]}", timeout=30_000)
    expect(join).to_contain_text("❚❚ paused")
    join.get_by_role("button", name="Resume").click()
    expect(join).to_contain_text(f"Record {last[1]} of {last[1]}", timeout=30_000)


def test_a_fault_is_injected_told_of_and_undone_by_buttons(lesson: Page) -> None:
    panel = view(lesson, "faults")
    expect(panel).to_contain_text("0 of 3 faults last now", timeout=30_000)
    panel.get_by_role("button", name="Pause the broker for 60 s").click()
    expect(panel).to_contain_text("1 of 3 faults last now", timeout=30_000)
    expect(panel).to_contain_text("watch: ")
    look(lesson, panel, "widgets-faults")
    panel.locator("button[title^='Undo: Pause']").click()
    expect(panel).to_contain_text("Undone: Pause the broker for 60 s.", timeout=30_000)
    expect(panel).to_contain_text("0 of 3 faults last now", timeout=30_000)


def test_a_window_is_chosen_and_the_store_says_who_answered(lesson: Page) -> None:
    store = view(lesson, "store")
    expect(store).to_contain_text(re.compile(r"answered in \d+\.\d ms by this process"), timeout=30_000)
    first = store.get_by_placeholder("the newest")
    first.fill("2024-01-02 09:00:05")
    first.press("Enter")
    expect(store).to_contain_text("starting at 2024-01-02 09:00:05", timeout=30_000)
    expect(store.locator(".sk-rows")).not_to_contain_text("09:00:30")
    look(lesson, store, "widgets-store")


def test_an_instance_is_killed_and_its_standby_takes_over(lesson: Page) -> None:
    cluster = view(lesson, "cluster")
    kill = cluster.get_by_role("button", name=re.compile("Kill 127"))
    expect(kill).to_have_count(2, timeout=60_000)
    expect(cluster).to_contain_text("standby", timeout=60_000)
    active = re.search(r"(127\.0\.0\.1:\d+)longest0active", cluster.text_content() or "")
    assert active is not None
    cluster.get_by_role("button", name=f"Kill {active[1]}").click()
    taken_over = re.compile(
        rf"longest 0: active on 127\.0\.0\.1:\d+( \(its standby until now\))?, before on {re.escape(active[1])}"
    )
    expect(cluster).to_contain_text(taken_over, timeout=60_000)
    cluster.get_by_role("button", name="Start an instance").click()
    expect(cluster).to_contain_text(re.compile(r"127\.0\.0\.1:\d+ has joined"), timeout=60_000)
    look(lesson, cluster, "widgets-cluster")


def test_a_store_is_seen_from_afar_with_the_instance_that_answered(lesson: Page) -> None:
    answered = re.compile(r"answered in \d+\.\d ms by .*127\.0\.0\.1:\d+")
    remote = lesson.locator(".streamskit-live").filter(has_text=answered)
    expect(remote).to_have_count(1, timeout=60_000)
    expect(remote.locator(".sk-rows")).to_contain_text("KO")


def test_a_dashboard_follows_with_all_its_views_side_by_side(lesson: Page) -> None:
    board = lesson.locator(".streamskit-live").filter(has_text="Side by side").first
    board.scroll_into_view_if_needed()
    kinds = ("store", "topology")
    boxes = [board.locator(f".streamskit-{kind} .sk-rows").first.bounding_box() for kind in kinds]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    store = board.locator(".streamskit-store").first
    updates = re.search(r"(\d+) updates", store.inner_text())
    assert updates
    lesson.get_by_role("button", name="Send a tick").click()
    board.scroll_into_view_if_needed()
    expect(store).to_contain_text(f"{int(updates[1]) + 1} updates", timeout=30_000)
    look(lesson, board, "widgets-dashboard")


def test_a_browser_sees_all_stores_and_instances_at_an_instance(lesson: Page, page: Page) -> None:
    alive = re.search(r"●(127\.0\.0\.1:\d+)longest", view(lesson, "cluster").text_content() or "")
    assert alive
    page.goto(f"http://{alive[1]}/dashboard")
    expect(page.locator("section")).to_have_count(2, timeout=60_000)
    expect(page.locator("section").first).to_contain_text("KO", timeout=60_000)
    expect(page.locator("section").last).to_contain_text(alive[1], timeout=60_000)
    shoot(page, "dashboard-of-an-instance")


def test_the_failing_node_is_red_in_both_themes(lab: JupyterLab, lesson: Page) -> None:
    topology = view(lesson, "topology")
    expect(topology).to_contain_text("state RUNNING", timeout=30_000)
    look(lesson, topology, "widgets-topology")
    lesson.get_by_role("button", name="Send poison").click()
    expect(topology).to_contain_text("✕ failed: KSTREAM-REDUCE-0000000002", timeout=120_000)
    expect(topology).to_contain_text("this is poison")
    expect(topology.locator(".streamskit-topology svg")).to_contain_text("✕ failed")
    look(lesson, topology, "widgets-failed")
    darken(lesson, lab)
    expect(topology.locator(".streamskit-view").first).to_have_css("color", "rgba(255, 255, 255, 0.87)")
    for kind in ("topology", "windows", "join", "topic", "store", "cluster", "faults"):
        look(lesson, view(lesson, kind), f"widgets-{kind}-dark")


def test_a_dashboard_is_followed_in_a_browser_that_has_the_token(page: Page) -> None:
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    with cluster(ALL_ACTIVE, token="secret") as made, QueryClient(made.url(), token="secret") as client:
        made.group.put("counts", b"<b>KO</b>", long(1))
        views = page_of_stores("Shop", client)
        made.servers[0].dashboard = lambda: views
        page.goto(f"{made.url()}/dashboard")
        expect(page.locator("#status")).to_contain_text("asks for a token")
        expect(page.locator("section")).to_have_count(0)
        page.get_by_label("Token").fill("secret")
        page.get_by_role("button", name="Open").click()
        counts = page.locator("section").filter(has=page.locator("b", has_text=re.compile("^counts$")))
        expect(counts).to_contain_text("<b>KO</b>")
        made.group.put("counts", b"<b>KO</b>", long(42))
        expect(counts.locator("td", has_text="42")).to_be_visible()
        page.emulate_media(color_scheme="dark")
        shoot(page, "dashboard-dark")
        page.context.set_offline(True)
        made.servers[0].stop()
        expect(page.locator("#status")).to_contain_text("the connection is gone", timeout=10_000)
    assert mistakes == []
