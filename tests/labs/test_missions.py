"""A live mission's scene is its own, is taken down whatever happens, and is judged by what a learner's function did."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit.common.errors import StreamsError, StreamsKitError
from streamskit.course.datasets.event_time import HOUR
from streamskit.course.labs import catalogue, missions
from streamskit.course.labs.exercise import Exercise, Lab, Says, Verdict, mistaken, right
from streamskit.course.labs.exercises import elasticity, movie_ratings_mission, pos_invoices_mission
from streamskit.course.labs.exercises.elasticity import COUNTS
from streamskit.course.labs.exercises.fault_tolerance import DEPOSITS, sums
from streamskit.course.labs.exercises.flights_mission import (
    NOON,
    OPENS,
    SILENT,
    closed,
    come_in,
    comes_later,
    heartbeat,
)
from streamskit.course.labs.exercises.interactive_queries_mission import AFTER, BEFORE, judge_through_a_death
from streamskit.course.labs.exercises.kafka_music_as_a_service import judge_next_release
from streamskit.course.labs.exercises.kafka_music_mission import EVERYTHING, OTHER_CHARTS, WITH_NEW, charts_of
from streamskit.course.labs.exercises.movie_ratings_mission import OTHER_TOTALS, PAST, TODAY, Page, totals
from streamskit.course.labs.exercises.risk_management_mission import (
    MONDAY,
    TRAINING,
    TUESDAY,
    WEDNESDAY,
    _by_alarms,
    held,
)
from streamskit.course.labs.exercises.topology_and_tasks import LARGEST, LONG, SALE, largest_share
from streamskit.course.labs.missions import Lives, Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.kstream import KStream
from streamskit.dsl.ktable import KTable
from streamskit.environment.processes import wait_until
from streamskit.labs import scene
from streamskit.queries.metadata import HostInfo
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams


class Broker:
    """A broker that knows topics by name only."""

    bootstrap_servers = "127.0.0.1:9"

    def __init__(self) -> None:
        self.names = dict[str, int]()

    def create_topics(self, name: str, partitions: int) -> None:
        self.names[name] = partitions

    def delete_topics(self, *names: str, missing_ok: bool = False) -> None:
        assert names, "name at least one topic"
        self.names = {name: size for name, size in self.names.items() if name not in names}

    def topics(self) -> dict[str, int]:
        return self.names


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(missions, "shared_broker", lambda: broker)
    return broker


def set_up(site: Site) -> None:
    site.create_topics(red_orders=3)


def judged(site: Site, returned: Any) -> Verdict:
    return right("Done.") if returned == site.topic("red-orders") else mistaken("another topic")


LIVES = Lives("sort_out", set_up, judged, errors={"no such customer": "nobody asked"})
WORDS = {"another topic": "That is another one.", "nobody asked": "Nobody asked."}
MISSION = Exercise("sort_out", "Sort out.", LIVES, ("a", "b", "c"), WORDS)
NUMBER = Exercise("tasks", "Say how many.", Says(4, "Four."), ("a", "b", "c"))


@pytest.fixture
def only_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(catalogue, "labs", lambda: (Lab("99-tests", "Tests", (MISSION, NUMBER)),))
    yield
    missions._take_down()


def test_two_sites_of_one_mission_share_no_topic_no_application_and_no_folder(broker: Broker) -> None:
    with Site("sort_out") as one, Site("sort_out") as other:
        one.create_topics(orders=2)
        other.create_topics(orders=2)
        assert one.topic("orders") != other.topic("orders")
        assert one.application_id != other.application_id
        assert one.folder != other.folder
        assert sorted(broker.names) == sorted([one.topic("orders"), other.topic("orders")])


def test_nothing_is_left_of_a_site_and_what_the_scene_started_is_stopped(broker: Broker) -> None:
    stopped = list[str]()
    broker.create_topics("orders", 1)
    with Site("sort_out") as site:
        site.create_topics(orders=2)
        site.on_close(lambda: stopped.append("instances"))
    assert (list(broker.names), site.folder.exists(), stopped) == (["orders"], False, ["instances"])


def test_an_application_of_any_id_that_reads_the_sites_topics_is_stopped_so_that_it_can_start_anew_and_no_other(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    did = list[str]()

    def runs(name: str, topic: str) -> Any:
        builder = StreamsBuilder()
        builder.stream(topic).to("elsewhere")
        topology, calls = builder.build(), {"close": name, "clean_up": f"{name} is clean"}
        told = {call: partial(did.append, what) for call, what in calls.items()}
        return SimpleNamespace(application_id=name, topology=topology, **told)

    with Site("sort_out") as site:
        some = [runs("my-orders", site.topic("orders")), runs(site.application_id, "bills"), runs("shop", "orders")]
        monkeypatch.setattr(KafkaStreams, "running", {each.application_id: each for each in some})
        own = site.application_id
    assert did == [own, "my-orders", "my-orders is clean"]


def test_a_site_without_topics_is_closed_as_well(broker: Broker) -> None:
    with Site("sort_out") as site:
        pass
    assert not site.folder.exists()


def test_a_function_is_judged_by_what_it_did_at_a_site_with_its_topics(broker: Broker) -> None:
    assert MISSION.examine_answer(lambda site: site.topic("red-orders")).passed
    assert MISSION.examine_answer(lambda site: "orders").says == "That is another one."
    assert broker.names == {}


def test_an_error_is_told_as_the_mistake_that_it_tells_of_or_in_its_own_words(broker: Broker) -> None:
    def fail(says: str) -> Any:
        raise StreamsError(says)

    assert MISSION.examine_answer(lambda site: fail("There is no such customer.")).says == "Nobody asked."
    assert "It ended with an error: It is raining." in MISSION.examine_answer(lambda site: fail("It is raining.")).says
    assert broker.names == {}


def test_a_scene_that_cannot_be_set_is_no_fault_of_the_answer_which_is_not_called(broker: Broker) -> None:
    called = list[Site]()

    def never_done(site: Site) -> None:
        site.create_topics(orders=2)
        raise StreamsError("Sub-topology 0 is not done after 60.0 s.")

    verdict = replace(MISSION, examine=replace(LIVES, scene=never_done)).examine_answer(called.append)
    assert not verdict.written
    assert verdict.says.startswith("Your answer was not examined, and may be right: the check could not get ready.")
    assert "not done after 60.0 s" in verdict.says
    assert (called, broker.names) == ([], {})


@pytest.mark.usefixtures("python_s_own_interrupt")
def test_a_mission_that_waits_for_ever_is_stopped_taken_down_and_can_be_tried_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waits(site: Site) -> None:
        end = time.monotonic() + 60
        while broker.names and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(missions, "LONGEST", 0.5)
    says = MISSION.examine_answer(waits).says
    assert says.startswith("It did not come to an end within 500 ms, and was stopped at test_missions.py line ")
    assert says.endswith("try your function at scene('sort_out'): which record, store or instance is not there?")
    assert broker.names == {}
    monkeypatch.setattr(missions, "LONGEST", 60.0)
    assert MISSION.examine_answer(lambda site: site.topic("red-orders")).passed


@pytest.mark.usefixtures("python_s_own_interrupt")
@pytest.mark.parametrize("times", [1, 2])
def test_who_interrupts_a_mission_again_while_it_is_taken_down_leaves_nothing_behind(
    broker: Broker, times: int
) -> None:
    stopped = list[str]()

    def interrupted(name: str) -> None:
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        stopped.append(name)

    site = Site("sort_out")
    site.create_topics(orders=2)
    site.on_close(lambda: stopped.append("tills"))
    site.on_close(lambda: interrupted("instances"))
    with pytest.raises(KeyboardInterrupt):
        site.close()
    assert (broker.names, site.folder.exists()) == ({}, False)
    assert stopped == ["instances", "tills"][times - 1 :]


def test_what_cannot_be_stopped_keeps_nothing_else_of_a_site_from_being_taken_down(broker: Broker) -> None:
    def fail() -> None:
        raise StreamsError("No instance runs there.")

    site = Site("sort_out")
    site.create_topics(orders=2)
    site.on_close(fail)
    with pytest.raises(StreamsError, match="No instance runs there"):
        site.close()
    assert (broker.names, site.folder.exists()) == ({}, False)


def test_an_answer_that_has_to_return_the_application_is_told_what_it_returned_instead(broker: Broker) -> None:
    mission = replace(MISSION, examine=replace(LIVES, returns_application=True))
    builder = StreamsBuilder()
    builder.stream("orders").to("more")
    assert mission.examine_answer(lambda site: None).says.endswith("the KafkaStreams that runs now; it returned None.")
    assert mission.examine_answer(lambda site: site.application(builder.build())).says == "That is another one."
    assert broker.names == {}


def test_a_stub_is_not_an_answer_and_leaves_no_topic(broker: Broker) -> None:
    def stub(site: Site) -> None:
        raise NotImplementedError

    assert not MISSION.examine_answer(stub).written
    assert broker.names == {}


@pytest.mark.usefixtures("only_lab")
def test_a_scene_is_set_to_look_around_and_the_one_before_is_taken_down(broker: Broker) -> None:
    first, second = scene("sort_out"), scene("sort_out")
    assert list(broker.names) == [second.topic("red-orders")]
    assert not first.folder.exists()


@pytest.mark.usefixtures("only_lab")
def test_a_scene_that_is_interrupted_is_taken_down(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(site: Site) -> None:
        site.create_topics(orders=2)
        raise KeyboardInterrupt

    mission = replace(MISSION, examine=replace(LIVES, scene=interrupted))
    monkeypatch.setattr(catalogue, "exercise", lambda name: mission)
    with pytest.raises(KeyboardInterrupt):
        scene("sort_out")
    assert broker.names == {}


def test_trades_that_were_half_counted_when_a_check_was_interrupted_are_counted_anew(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, results = list[bool](), iter([KeyboardInterrupt, None])

    def count_trades(application_id: str, topic: str, folder: Path) -> None:
        began.append(list(broker.names) == [topic] and not any(folder.iterdir()))
        (folder / application_id).mkdir()
        broker.create_topics(f"{application_id}-totals-changelog", 4)
        if failure := next(results):
            raise failure

    monkeypatch.setattr(elasticity, "shared_broker", lambda: broker)
    monkeypatch.setattr(elasticity, "find_shared_broker", lambda: broker)
    monkeypatch.setattr(elasticity, "count_trades", count_trades)
    monkeypatch.setattr("atexit.register", lambda *_: None)
    counted = elasticity.state_of_the_application.__wrapped__
    with pytest.raises(KeyboardInterrupt):
        counted()
    assert broker.names == {}
    folder = counted()
    assert began == [True, True]
    elasticity._forget(folder)


@pytest.mark.usefixtures("only_lab")
def test_an_exercise_that_is_no_mission_has_no_scene(broker: Broker) -> None:
    with pytest.raises(StreamsKitError, match="tasks is no live mission"):
        scene("tasks")


def test_what_a_site_does_not_have_is_told_by_its_name(broker: Broker) -> None:
    with Site("sort_out") as site, pytest.raises(AttributeError, match="This site has no 'instances'"):
        site.instances  # noqa: B018


def test_applications_of_a_site_keep_their_state_in_its_folder_and_differ_by_a_suffix(broker: Broker) -> None:
    builder = StreamsBuilder()
    builder.stream("orders").to("more")
    with Site("sort_out") as site:
        one, other = site.application(builder.build()), site.application(builder.build(), "-2")
        assert (one.application_id, other.application_id) == (site.application_id, f"{site.application_id}-2")
        assert {one.folder.parent, other.folder.parent} == {site.folder}
        assert site.application(builder.build(), state_dir=site.folder / "old").folder.parent == site.folder / "old"


def test_each_mistake_on_the_air_makes_charts_of_its_own() -> None:
    right_charts = charts_of(EVERYTHING, WITH_NEW)
    made = [right_charts, *(charts() for charts in OTHER_CHARTS.values())]
    assert [other for other in made if made.count(other) > 1] == []
    assert "song-31" in {song["id"] for song in right_charts["Jazz"]}


def test_each_way_to_count_ratings_again_makes_totals_of_its_own() -> None:
    made = [totals([*PAST, *TODAY]), *(each() for each in OTHER_TOTALS.values())]
    assert [other for other in made if made.count(other) > 1] == []


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand for the applications at two addresses: a row, None where it has none, an error where nobody answers."""
    rows: dict[str, Any] = {"http://old": {"count": 90}, "http://new": {"count": 70}}

    class Client:
        def __init__(self, url: str, retry: int = 0) -> None:
            if url not in rows:
                raise ValueError(f"{url!r} is not the URL of an instance.")
            self.url = url

        def close(self) -> None:
            pass

        def __enter__(self) -> "Client":
            return self

        def __exit__(self, *failure: object) -> None:
            pass

        def store(self, name: str) -> "Client":
            return self

        def get(self, key: str) -> Any:
            if isinstance(rows[self.url], Exception):
                raise rows[self.url]
            return rows[self.url]

    monkeypatch.setattr(movie_ratings_mission, "QueryClient", Client)
    monkeypatch.setattr(movie_ratings_mission, "SECONDS_BETWEEN_LOOKS", 0.002)
    return rows


def test_a_page_notes_what_it_shows_and_when_it_is_dark(answers: dict[str, Any]) -> None:
    page = Page("http://old")
    wait_until(lambda: page.shown, "the first look")
    page.url = "http://new"
    wait_until(lambda: page.shown[-1] == 70, "the new address")
    assert page.dark == 0
    answers["http://new"] = None
    wait_until(lambda: page.shown[-1] == 0, "an empty page")
    answers["http://new"] = StreamsError("Nobody answers.")
    wait_until(lambda: page.dark > 1, "a dark page")
    page.close()
    assert set(page.shown) == {90, 70, 0}


def test_a_page_that_is_given_what_is_no_address_refuses_it_and_goes_on_at_the_one_before(
    answers: dict[str, Any],
) -> None:
    page = Page("http://old")
    refused: Any = None
    with pytest.raises(ValueError, match="not the URL"):
        page.url = refused
    answers["http://old"] = StreamsError("Nobody answers.")
    wait_until(lambda: page.dark > 1, "a page that looks, and is dark")
    page.close()
    assert (page.url, page.is_open) == ("http://old", False)


@pytest.mark.parametrize(
    ("state", "server", "is_open", "told"),
    [
        (State.CREATED, "127.0.0.1:8080", True, "does not run: it is CREATED"),
        (State.RUNNING, None, True, "give it an application_server"),
        (State.RUNNING, "127.0.0.1:8080", False, "You closed the page"),
        (State.RUNNING, "127.0.0.1:8080", True, "the page asks the old one"),
    ],
)
def test_what_returns_is_told_whether_it_runs_whether_it_answers_and_whether_the_page_asks_it(
    state: State, server: str | None, is_open: bool, told: str
) -> None:
    site: Any = SimpleNamespace(old=object(), page=SimpleNamespace(url="http://old", is_open=is_open))
    returned: Any = SimpleNamespace(state=state, application_server=server)
    verdict = movie_ratings_mission.judge_rated_anew(site, returned)
    assert told in (verdict.misconception.name if verdict.misconception else verdict.says)


def test_the_evening_closes_by_a_heartbeat_and_a_morning_is_lost_by_one_that_is_too_far_ahead() -> None:
    silent = {window for window in closed([*come_in(), heartbeat(OPENS)]) if window[0] == SILENT}
    assert len(silent - closed(come_in()).keys()) == 5
    due = closed([*come_in(), heartbeat(OPENS), *comes_later()])
    assert closed([*come_in(), heartbeat(OPENS + 4 * HOUR), *comes_later()]) == due
    assert sum(closed([*come_in(), heartbeat(NOON), *comes_later()]).values()) < sum(due.values())


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ([("a", 2.0), ("b", 1.5)], ""),
        ([("a", 2.0), ("b", 2.0)], "tills first"),
        ([("a", None), ("b", 1.5)], "a discount that is not there"),
        ([("b", 1.5)], "invoices left out"),
        ([("a", 2.0), ("b", 1.5), ("a", 2.0)], "started again from the beginning"),
        ([("a", 1.0), ("b", 1.5)], "the wrong points"),
    ],
)
def test_a_change_of_format_is_judged_by_what_customers_were_told(notes: list[Any], told: str) -> None:
    sent = [
        {"InvoiceNumber": "a", "TotalAmount": 100.0},
        {"InvoiceNumber": "b", "TotalAmount": 100.0, "Discount": 25.0},
    ]
    verdict = pos_invoices_mission._by_notes(sent, notes)
    assert verdict.passed == (told == "")
    assert told in (verdict.misconception.name if verdict.misconception else verdict.says)


DEAD, ALIVE = HostInfo("127.0.0.1", 1), HostInfo("127.0.0.1", 2)


@pytest.mark.parametrize(
    ("standby", "told"),
    [({"A1"}, ""), (set(), "a copy taken for the owner"), ({"A2"}, "name a role")],
)
def test_answers_are_judged_by_who_had_the_key_when_an_instance_died(standby: set[str], told: str) -> None:
    owners = {symbol: DEAD if symbol == "A1" else ALIVE for symbol in AFTER}
    site: Any = SimpleNamespace(urls=[DEAD.url, ALIVE.url], owners=owners)
    answers = [(symbol, COUNTS[symbol], "active") for symbol in BEFORE]
    answers += [(symbol, COUNTS.get(symbol, 0), "standby" if symbol in standby else "active") for symbol in AFTER]
    verdict = judge_through_a_death(site, answers)
    assert verdict.passed == (told == "")
    assert told in (verdict.misconception.name if verdict.misconception else verdict.says)


def test_answers_to_questions_that_were_all_taken_before_the_first_was_answered_are_told_so() -> None:
    owners = {symbol: DEAD if symbol == BEFORE[0] else ALIVE for symbol in AFTER}
    site: Any = SimpleNamespace(urls=[DEAD.url, ALIVE.url], owners=owners)
    asked = [*BEFORE, *AFTER]
    answers = [(each, COUNTS.get(each, 0), "standby" if each == BEFORE[0] else "active") for each in asked]
    assert "list(site.questions()) takes all of them" in judge_through_a_death(site, answers).says


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"http://one:1": {"a": 1}}, "'http://one:1' is not the text of an instance that runs"),
        ({"one:1": None}, "The value of one:1 has to be its rows as a dict, but is None."),
        ({"one:1": [("a", 1)]}, "has to be its rows as a dict"),
        ({"one:1": {}}, "a part for the whole"),
        ({"one:1": {"a": 1}, "two:2": {"a": 1}}, "yesterday's list"),
    ],
)
def test_answers_of_every_instance_are_told_what_is_wrong_with_their_keys_and_values(found: Any, told: str) -> None:
    assert elasticity._answers({"one:1": {"a": 1}}, ["one:1"], {"a": 1}) is None
    verdict = elasticity._answers(found, ["one:1"], {"a": 1})
    assert verdict
    assert told in (verdict.misconception.name if verdict.misconception else verdict.says)


def test_triples_may_be_lists() -> None:
    owners = {symbol: DEAD if symbol == "A1" else ALIVE for symbol in AFTER}
    site: Any = SimpleNamespace(urls=[DEAD.url, ALIVE.url], owners=owners)
    answers = [[symbol, COUNTS[symbol], "active"] for symbol in BEFORE]
    answers += [[symbol, COUNTS.get(symbol, 0), "standby" if symbol == "A1" else "active"] for symbol in AFTER]
    assert judge_through_a_death(site, answers).passed


def test_equal_deposits_into_an_account_are_not_the_same_one() -> None:
    every = [(account, deposit["amount"]) for account, deposit in DEPOSITS]
    assert sums(every) != sums([*{*every}])
    assert len({deposit["id"] for _, deposit in DEPOSITS}) == len(DEPOSITS)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/", "http://localhost:8080/", "127.0.0.1:8080"])
def test_a_page_asks_the_same_address_in_whichever_way_it_is_written(url: str) -> None:
    assert movie_ratings_mission._server(url) == movie_ratings_mission._server("http://127.0.0.1:8080")
    assert movie_ratings_mission._server(url) != movie_ratings_mission._server("http://127.0.0.1:8081")


def test_positions_tell_whether_mondays_deals_are_in_them_and_those_of_the_training_desk() -> None:
    days = [[*MONDAY, *TUESDAY, *WEDNESDAY], [*TUESDAY, *WEDNESDAY]]
    made = [held(deals, without) for deals in days for without in ("", TRAINING)]
    assert [positions for positions in made if made.count(positions) > 1] == []


@pytest.mark.parametrize(
    ("assets", "changed", "told"),
    [
        ("COFFEE GOLD WHEAT", {}, ""),
        ("", {}, "no alarm"),
        ("COFFEE GOLD", {}, "owed positions forgotten"),
        ("GOLD WHEAT", {}, "another limit"),
        ("BRENT COFFEE GOLD WHEAT", {}, "alarms within the limit"),
        ("COFFEE COTTON GOLD WHEAT", {}, "alarms within the limit"),
        ("COFFEE GOLD SILVER WHEAT", {}, "alarms within the limit"),
        ("COFFEE GOLD WHEAT", {"GOLD": {"quantity": 1150, "paid": None}}, "not as it is"),
        ("COFFEE GOLD WHEAT", {"GOLD": {"quantity": 1050, "paid": 105_000.0}}, "not as it is"),
        ("COFFEE GOLD WHEAT", {"GOLD": None}, "not as it is"),
    ],
)
def test_new_rules_are_judged_by_the_last_alarm_of_each_asset(assets: str, changed: dict[str, Any], told: str) -> None:
    due = held([*MONDAY, *TUESDAY, *WEDNESDAY], TRAINING)
    alarms = {asset: due.get(asset, {"quantity": 100, "paid": 1.0}) for asset in assets.split()} | changed
    verdict = _by_alarms(alarms, due)
    assert verdict.passed == (told == "")
    assert told in (verdict.misconception.name if verdict.misconception else verdict.says)


def by_shop(parts: KTable) -> KTable:
    grouped = parts.group_by(lambda k, v: (F.split(k, "/")[0], v), name="by-shop")
    return grouped.reduce(lambda total, new: total + new, lambda total, old: total - old)


def in_parts(sales: KStream) -> KTable:
    by_article = sales.group_by(lambda k, v: F.concat(k, F.lit("/"), v.article), name="by-article")
    return by_shop(by_article.aggregate(lambda v: F.sum(v.pieces)))


def spread(sales: KStream) -> KStream:
    return sales.select_key(lambda k, v: F.concat(k, F.lit("/"), v.article)).repartition(name="by-article")


def spread_and_brought_together(sales: KStream) -> KTable:
    by_shop = spread(sales).group_by(lambda k, v: F.split(k, "/")[0], name="by-shop")
    return by_shop.aggregate(lambda v: F.sum(v.pieces))


def spread_first(sales: KStream) -> KTable:
    return by_shop(spread(sales).group_by_key().aggregate(lambda v: F.sum(v.pieces)))


def the_busy_shop_alone(sales: KStream) -> KTable:
    rest = sales.filter(lambda k, v: k != LARGEST).group_by(lambda k, v: k, name="rest")
    rest.aggregate(lambda v: F.sum(v.pieces)).to_stream().to("totals", value=LONG)
    return in_parts(sales.filter(lambda k, v: k == LARGEST))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("program", "share"),
    [
        (in_parts, 0.25),
        (spread_first, 0.25),
        (the_busy_shop_alone, 0.25),
        (spread_and_brought_together, 0.8),
        (lambda sales: sales.group_by_key().aggregate(lambda v: F.sum(v.pieces)), 0.85),
    ],
)
def test_the_work_on_sales_is_measured_where_state_is_first_kept_of_them(
    program: Callable[[KStream], KTable], share: float
) -> None:
    offsets = {"sales": [340, 30, 20, 10], "a-by-article-repartition": [100] * 4, "a-rest-repartition": [50, 30, 0, 0]}
    offsets["a-by-shop-repartition"] = [320, 40, 20, 20]
    broker = SimpleNamespace(end_offsets=lambda topic: dict(enumerate(offsets[topic])))
    builder = StreamsBuilder()
    program(builder.stream("sales", value=SALE)).to_stream().to("totals", value=LONG)
    site: Any = SimpleNamespace(broker=broker, application_id="a")
    assert largest_share(site, builder.build()) == share


OLD, NEW = (
    [HostInfo("127.0.0.1", 11), HostInfo("127.0.0.1", 12)],
    [HostInfo("127.0.0.1", 21), HostInfo("127.0.0.1", 22)],
)


class Running(list[HostInfo]):
    """Instances that run, and those of which everything was elsewhere when they went."""

    def __init__(self, running: list[HostInfo], covered: list[HostInfo]) -> None:
        super().__init__(running)
        self.covered = {server: server in covered for server in [*OLD, *NEW]}

    def kill(self, server: HostInfo) -> None:
        """Nothing dies here."""


@pytest.mark.parametrize(
    ("running", "covered", "front", "nobody_there", "told"),
    [
        ([OLD[1], NEW[0]], OLD, NEW, 0, "an old release left"),
        (NEW[:1], OLD, NEW, 0, "nobody to spare"),
        (NEW, OLD[:1], NEW, 3, "gone before the others were ready"),
        (NEW, OLD, NEW, 1, "listeners sent to nobody"),
        (NEW, OLD, [*OLD, *NEW], 0, "listeners sent to nobody"),
        (NEW, OLD, NEW, 0, "not ready for a death"),
    ],
)
def test_a_release_is_judged_by_who_was_there_for_listeners_all_the_while(
    running: list[HostInfo], covered: list[HostInfo], front: list[HostInfo], nobody_there: int, told: str
) -> None:
    listeners = SimpleNamespace(close=list, calls=Counter({"right": 50, "nobody there": nobody_there}))
    site: Any = SimpleNamespace(
        listeners=listeners, instances=Running(running, covered), old=OLD, front=[server.url for server in front]
    )
    mistake = judge_next_release(site, None).misconception
    assert mistake is not None
    assert mistake.name == told
