"""The live view of a store: when it looks, when it stops, and what it leaves in a notebook."""

import gc
import re
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn
from weakref import ref

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from ipywidgets.widgets.widget import _instances

from streamskit.common.errors import StreamsError
from streamskit.serdes import Serdes
from streamskit.state.stores import Store
from streamskit.views import page_answers
from streamskit.views.live_view import RepeatingTimer, _within
from streamskit.widgets import StoreView
from tests.unit.views.widget_stores import CountingStore, count, counts, trades

WIDGET = "application/vnd.jupyter.widget-view+json"


def eventually(condition: Callable[[], Any], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "streamskit-view"]


def is_looking(view: StoreView) -> bool:
    return view._timer.is_running


@pytest.fixture
def shown() -> Any:
    """Return a function that shows a view as a page would, and takes it off the page after the test."""
    views: list[StoreView] = []

    def show(view: StoreView) -> StoreView:
        view._view_count = 1
        views.append(view)
        return view

    yield show
    for view in views:
        view._view_count = 0
    eventually(lambda: not threads())


# The view.


def test_a_view_follows_its_store_while_a_page_shows_it_and_no_longer(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    count(store, "a", 42)
    eventually(lambda: ">42</td>" in view._parts["table"].value)
    view._view_count = 0
    eventually(lambda: not is_looking(view))
    assert threads() == []
    view._view_count = 1
    count(store, "a", 43)
    eventually(lambda: ">43</td>" in view._parts["table"].value)


def answer(view: StoreView) -> None:
    """Do as a page that is asked: report how often it shows the mark, in a thread beside the cells."""
    saying = threading.Thread(target=view._answers._mark.set_state, args=[{"_view_count": 1}])
    saying.start()
    saying.join(60)
    assert not saying.is_alive(), "The view did not take the answer of its page within a minute."


def test_a_view_rests_while_its_page_answers_no_more_and_goes_on_when_one_does(
    shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_answers, "ASK_EVERY", 0.02)
    monkeypatch.setattr(page_answers, "SOON", 0.2)
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    eventually(lambda: view._answers._unanswered_since)
    answer(view)
    eventually(lambda: not is_looking(view))
    assert "◌ resting" in view._header.value
    assert "No page has answered" in view._header.value
    count(store, "a", 42)
    answer(view)
    eventually(lambda: ">42</td>" in view._parts["table"].value)
    assert "● live" in view._header.value
    eventually(lambda: not is_looking(view))
    view.get_state()  # as when a page is opened again
    count(store, "a", 43)
    eventually(lambda: ">43</td>" in view._parts["table"].value)


@pytest.mark.parametrize("left", [0, -1])
def test_a_view_goes_on_for_a_page_that_shows_it_when_another_shows_it_no_more(shown: Any, left: int) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    view._view_count = left  # one of its pages has cleared its output; they share the count
    eventually(lambda: not is_looking(view))
    assert view._answers.children == (view._answers._mark,), "the others are asked"
    answer(view)
    count(store, "a", 42)
    eventually(lambda: ">42</td>" in view._parts["table"].value)


def test_a_view_goes_on_for_a_page_that_never_says_what_it_shows(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_answers, "ASK_EVERY", 0.02)
    monkeypatch.setattr(page_answers, "SOON", 0.02)
    monkeypatch.setattr(page_answers, "WHEN_IDLE", 0.02)
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    for number in range(5):
        asked = view._answers._asked_at
        eventually(partial(is_asked_after, view, asked))
        count(store, "a", 42 + number)
        eventually(partial(shows, view, f">{42 + number}</td>"))


def is_asked_after(view: StoreView, time: float) -> bool:
    return view._answers._asked_at > time


def shows(view: StoreView, html: str) -> bool:
    return html in view._parts["table"].value


def test_a_view_that_no_page_shows_does_not_look() -> None:
    view = StoreView(counts(a=1))
    assert not is_looking(view)


def test_a_paused_view_stands_still_and_goes_on_when_resumed(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    view._pause.value = True
    eventually(lambda: not is_looking(view))
    assert "❚❚ paused" in view._header.value
    assert view._pause.description == "Resume"
    count(store, "a", 42)
    view._pause.value = False
    assert "● live" in view._header.value
    eventually(lambda: is_looking(view) and ">42</td>" in view._parts["table"].value)


def test_a_search_is_answered_at_once_also_when_paused() -> None:
    view = StoreView(counts(KO=1, IBM=2))
    view._pause.value = True
    view._search.value = "K"
    assert ">KO</td>" in view._parts["table"].value
    assert ">IBM</td>" not in view._parts["table"].value


def test_another_refresh_rate_holds_from_then_on(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="1 hour"))
    eventually(lambda: ">1</td>" in view._parts["table"].value)
    view._every.value = 200
    count(store, "a", 42)
    eventually(lambda: ">42</td>" in view._parts["table"].value)


def test_a_view_looks_as_soon_as_its_store_has_changed_unless_it_is_given_a_pace() -> None:
    store = counts(a=1)
    at_once, paced, chosen = StoreView(store), StoreView(store, refresh="500 ms"), StoreView(store)
    chosen._every.value = 200
    for view in (at_once, paced, chosen):
        view.refresh()
    assert not at_once.has_news()
    count(store, "a", 42)
    assert (at_once.has_news(), paced.has_news(), chosen.has_news()) == (True, False, False)
    at_once.refresh()
    assert not at_once.has_news()


class StoreOfAnApplication(CountingStore):
    """A store that refuses every question once its application is closed."""

    is_closed = False

    def __getattribute__(self, name: str) -> Any:
        if name == "updates" and object.__getattribute__(self, "is_closed"):
            raise StreamsError("The application is closed.")
        return super().__getattribute__(name)


def test_a_store_that_refuses_to_be_asked_is_no_news_until_the_next_look_is_due() -> None:
    store = StoreOfAnApplication(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    view = StoreView(store)
    view.refresh()
    store.is_closed = True
    assert not view.has_news()


def test_news_does_not_wait_for_the_next_look_and_is_shown_twenty_times_a_second_at_most() -> None:
    ticks: list[float] = []
    is_new, goes_on = threading.Event(), threading.Event()
    goes_on.set()
    timer = RepeatingTimer(
        lambda: ticks.append(time.monotonic()), lambda: 3600.0, goes_on.is_set, has_news=is_new.is_set
    )
    timer.start()
    eventually(lambda: len(ticks) == 1)
    is_new.set()
    eventually(lambda: len(ticks) >= 5)
    goes_on.clear()
    timer.start()
    eventually(lambda: not timer.is_running)
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(ticks))


def test_a_view_of_a_closed_application_says_so_and_looks_no_more(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    store.stopped = "The application 'trades-app' is closed."
    eventually(lambda: not is_looking(view))
    assert "■ stopped" in view._header.value
    assert "The application &#x27;trades-app&#x27; is closed." in view._header.value
    view._search.value = "zzz"
    assert "No key begins with zzz." in view._parts["table"].value


class StoreOfAnInstance(CountingStore):
    """A store that an instance has given up at its end: it refuses all questions but why."""

    ended = ""

    def __getattribute__(self, name: str) -> Any:
        why = object.__getattribute__(self, "ended")
        if why and name not in ("stopped", "ended"):
            raise StreamsError(f"The instance does not answer any more: {why}")
        return why if name == "stopped" else super().__getattribute__(name)


def test_a_store_that_has_ended_and_answers_no_more_is_shown_as_it_was(shown: Any) -> None:
    store = StoreOfAnInstance(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    count(store, "a", 42)
    view = shown(StoreView(store, refresh="50 ms"))
    eventually(lambda: ">42</td>" in view._parts["table"].value)
    store.ended = "The instance is closed."
    eventually(lambda: not is_looking(view))
    assert "■ stopped" in view._header.value
    assert "The instance is closed." in view._header.value
    assert ">42</td>" in view._parts["table"].value


def test_a_store_that_cannot_be_read_is_a_sentence_and_the_view_tries_again(
    shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    eventually(lambda: ">1</td>" in view._parts["table"].value)
    with monkeypatch.context() as broken:
        broken.setattr(store, "_partitions", None)
        store.updates += 1
        eventually(lambda: "▲ failed" in view._header.value)
        assert "The store could not be read: " in view._header.value
    eventually(lambda: "● live" in view._header.value)


def test_a_view_that_never_could_read_shows_the_sentence_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    store = counts(a=1)
    monkeypatch.setattr(store, "_partitions", None)
    view = StoreView(store)
    view.refresh()
    assert "The store could not be read" in view._header.value


def test_a_failure_that_is_a_sentence_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(before: Any) -> NoReturn:
        raise StreamsError("Nobody has it.")

    view = StoreView(counts(a=1))
    monkeypatch.setattr(view, "take", refuse)
    view.refresh()
    assert "The store could not be read: Nobody has it. The next refresh tries again." in view._header.value


def test_a_closed_view_looks_no_more_and_its_thread_ends_though_no_page_has_taken_it_off() -> None:
    store = counts(a=1)
    view = StoreView(store, refresh="50 ms")
    view._view_count = 1
    eventually(lambda: ">1</td>" in view._parts["table"].value)
    view.close()
    eventually(lambda: not threads())
    assert "■ stopped" in view.seen()["header"]
    view.close()
    count(store, "a", 42)
    leave = view.follow()
    view.await_page()
    view._view_count = 2
    view._every.value, view._pause.value = 200, True
    leave()
    assert not is_looking(view)
    assert ">1</td>" in view._parts["table"].value


def test_a_closed_view_lets_go_of_its_widgets_and_of_what_looking_has_opened() -> None:
    opened = [StoreView(counts(a=1)) for _ in range(2)]
    rested: list[bool] = []
    for view in opened:
        view.rest = lambda: rested.append(True)  # type: ignore[method-assign]
    never_seen, seen = opened
    seen.refresh()
    rested.clear()
    for view in opened:
        view.close()
    assert rested, "the connection is closed"
    assert {each.comm for view in opened for each in (view, *_within(view))} == {None}
    assert never_seen.saved() == ""


@pytest.mark.parametrize("store", [counts(a=1), trades()])
def test_of_a_closed_view_the_kernel_keeps_nothing(store: Any) -> None:
    before = set(_instances)
    view = StoreView(store)
    view.refresh()
    alive = ref(view)
    view.close()
    assert set(_instances) == before
    del view
    gc.collect()
    assert alive() is None


def test_a_closed_view_is_displayed_as_the_page_of_what_it_saw_last() -> None:
    InteractiveShell.instance()
    view = StoreView(counts(a=1))
    with capture_output() as captured:
        view._ipython_display_()
        view.close()
        view._ipython_display_()
    live, saved, kept, again = (output.data for output in captured.outputs)
    assert (set(live), "▤ saved" in saved["text/html"]) == ({WIDGET}, True)
    assert set(again) == {"text/plain", "text/html"}
    assert ">1</td>" in kept["text/html"]
    assert ">1</td>" in again["text/html"]


def test_a_view_that_was_refused_can_be_thrown_away_without_a_word() -> None:
    view = StoreView.__new__(StoreView)
    view.close()


def test_a_page_that_loads_anew_begins_to_count_its_views_at_zero(shown: Any) -> None:
    view = shown(StoreView(counts(a=1)))
    assert view.get_state()["_view_count"] == 0
    assert view.get_state("_view_count")["_view_count"] == 1


def test_a_view_is_an_html_page_and_text_beside_the_widget() -> None:
    view = StoreView(counts(a=1))
    view.refresh()
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == "<StoreView of 'counts'>"
    assert ">a</td>" in bundle["text/html"]
    assert "model_id" in bundle[WIDGET]


def test_a_displayed_view_leaves_two_outputs_the_live_one_and_the_page_of_it() -> None:
    InteractiveShell.instance()
    store = counts(a=1)
    view = StoreView(store, refresh="50 ms")
    with capture_output() as captured:
        view._ipython_display_()
        count(store, "a", 42)
        view._pause.value = True
    live, saved, kept = (output.data for output in captured.outputs)
    assert set(live) == {WIDGET}
    assert ">1</td>" in saved["text/html"]
    assert ">42</td>" in kept["text/html"], "the page is brought up to date when the view is paused"
    eventually(lambda: not is_looking(view))


def test_the_pages_of_a_view_that_two_cells_display_are_brought_up_to_date_together() -> None:
    InteractiveShell.instance()
    view = StoreView(counts(a=1), refresh="50 ms")
    with capture_output() as captured:
        view._ipython_display_()
        view._ipython_display_()
        view._pause.value = True
    pages = [output for output in captured.outputs if "text/html" in output.data]
    # Pausing updates both at once; a look that is under way then may do so, too.
    assert [page.update for page in pages] == [False, False, *[True] * max(1, len(pages) - 2)]
    assert len({page.transient["display_id"] for page in pages}) == 1
    eventually(lambda: not is_looking(view))


def test_a_displayed_view_looks_until_the_page_has_counted_its_views() -> None:
    InteractiveShell.instance()
    view = StoreView(counts(a=1), refresh="50 ms")
    with capture_output():
        view._ipython_display_()
        assert is_looking(view)
        view._view_count = 1
        view._view_count = 0
    eventually(lambda: not is_looking(view))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"refresh": "10 ms"}, "A refresh every 10 ms is too often: choose at least 50 ms."),
        ({"refresh": "often"}, "is not a duration"),
        ({"rows": 0}, "rows=0 cannot be shown: choose a number from 1 to 200."),
        ({"rows": 1000}, "choose a number from 1 to 200"),
    ],
)
def test_a_view_that_makes_no_sense_is_refused_with_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        StoreView(counts(), **arguments)


def test_only_a_store_can_be_viewed() -> None:
    with pytest.raises(TypeError, match=re.escape("StoreView(streams.store('a-name'))")):
        StoreView("trade-aggregates")  # type: ignore[arg-type]


# The pulse.


def test_a_slow_beat_makes_the_next_one_wait_longer() -> None:
    times: list[float] = []

    def beat() -> None:
        times.append(time.monotonic())
        threading.Event().wait(0.05)

    pulse = RepeatingTimer(beat, lambda: 0.001, lambda: len(times) < 3)
    pulse.start()
    eventually(lambda: not pulse.is_running)
    assert all(after - before >= 0.25 for before, after in pairwise(times))


def test_after_a_beat_that_waited_for_long_the_next_one_comes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamskit.views.live_view.LONGEST_REST", 0.1)
    times: list[float] = []

    def beat() -> None:
        times.append(time.monotonic())
        threading.Event().wait(0.3)

    pulse = RepeatingTimer(beat, lambda: 0.001, lambda: len(times) < 3)
    pulse.start()
    eventually(lambda: not pulse.is_running)
    assert all(0.4 <= after - before < 1.2 for before, after in pairwise(times))


def test_a_start_while_beating_beats_at_once() -> None:
    beats: list[int] = []
    pulse = RepeatingTimer(lambda: beats.append(1), lambda: 3600, lambda: len(beats) < 3)
    for number in (1, 2, 3):
        pulse.start()
        eventually(lambda number=number: len(beats) >= number)  # type: ignore[misc]
    pulse.start()
    eventually(lambda: not pulse.is_running)
