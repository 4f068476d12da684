"""The pictures of whole programs: every recorded one draws, and what nodes, stores and lookups look like."""

import re
from functools import cache, partial

import pytest

from streamskit import StreamsBuilder, Topology
from streamskit.topology.drawing import placing
from streamskit.topology.drawing.diagram import draw
from tests.conformance import registry
from tests.conformance.programs import PROGRAMS
from tests.conformance.programs_described import DESCRIBED
from tests.unit.views.pictures import SVG, collisions, overflows, parsed, shapes, words_on

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

EVERY = {name: partial(registry.built, function) for name, function in DESCRIBED.items()} | PROGRAMS


@cache
def built(name: str) -> Topology:
    return EVERY[name]()


def picture(name: str) -> str:
    return draw(built(name).sub_topologies())


def titles(name: str) -> list[str]:
    return [group.findtext(f"{SVG}title") or "" for group in parsed(picture(name)).iter(f"{SVG}g")]


def drums(svg: str) -> tuple[int, int]:
    """Return how many stores are kept, and how many are looked into."""
    looked_into = svg.count('stroke-dasharray="3 2"')
    return len(re.findall(r'<path d="[^"]*" fill="#ffedd5"', svg)), looked_into


@pytest.mark.parametrize("name", sorted(EVERY))
def test_every_program_draws_all_its_nodes_apart_with_all_text_inside(name: str) -> None:
    svg = picture(name)
    assert {shape.name for shape in shapes(svg)} == set(built(name).nodes)
    assert collisions(svg) == []
    assert overflows(svg) == []


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_program_drawn_downwards_keeps_its_nodes_apart_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "streamskit.topology.drawing.diagram.Places", lambda groups, down: placing.Places(groups, down=True)
    )
    svg = picture(name)
    assert collisions(svg) == []
    assert overflows(svg) == []


def test_a_join_shows_the_store_it_looks_into_outlined_below_it() -> None:
    svg = picture("joins-stream-table-inner")
    assert drums(svg) == (1, 1)
    assert "looked into" in words_on(svg)
    assert any(re.search(r"-JOIN-\d+: join looking into ", title) for title in titles("joins-stream-table-inner"))


def test_a_join_with_a_global_table_looks_into_the_store_of_another_sub_topology() -> None:
    assert drums(picture("joins-stream-global-inner")) == (1, 1)
    assert "Sub-topology 0, whole in every instance" in words_on(picture("joins-stream-global-inner"))
    assert "Sub-topology 1, whole" not in words_on(picture("joins-stream-global-inner"))


def test_an_outer_join_of_streams_shows_its_windows_and_the_records_that_wait_for_a_match() -> None:
    words = words_on(picture("joins-stream-stream-outer-asymmetric"))
    for shown in ("keep for join", "outer join", "merge", "waiting for a match"):
        assert shown in words
    assert re.search(r"window store \d+ m?s back, \d+ m?s on", words)
    assert drums(picture("joins-stream-stream-outer-asymmetric")) == (3, 3)


def test_a_foreign_key_join_is_told_as_subscriptions_and_answers() -> None:
    svg = picture("joins-table-table-foreign-key")
    for word in ("subscribe", "keep subscription", "answer subscriber", "notify subscribers", "check answer"):
        assert word in words_on(svg)
    assert "foreign-key join" in words_on(svg)
    assert svg.count('stroke-dasharray="5 3"') == 2, "a topic there and one back"


def test_branches_of_a_split_say_which_is_the_default() -> None:
    words = words_on(picture("basic-split-branch"))
    assert re.findall(r"split|default branch|branch", words) == ["split", "branch", "branch", "default branch"]


def test_a_topic_that_each_record_chooses_is_drawn_without_a_name() -> None:
    assert "chosen by record" in words_on(picture("basic-to-dynamic-topic"))
    assert "→ topic chosen by record." in parsed(picture("basic-to-dynamic-topic")).findtext(f"{SVG}desc", "")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("windows-tumbling-count", r"window store \d+ m?s windows"),
        ("windows-hopping-count", r"window store \d+ m?s every \d+ m?s"),
        ("windows-sliding-count", r"window store sliding, \d+ m?s"),
        ("windows-unlimited-count", "window store one window without an end"),
        ("windows-session-count", r"session store sessions, gap \d+ m?s"),
        ("windows-tumbling-emit-on-close", r"\d+ m?s windows results on close"),
        ("windows-tumbling-suppress", "buffer until a window closes"),
        ("ktable-suppress-time-limit", r"buffer waiting for \d+ m?s"),
        ("joins-stream-table-grace", r"buffer waiting for \d+ m?s"),
        ("ktable-versioned-source", r"versioned store history of \d+ "),
    ],
)
def test_a_store_says_what_it_keeps_and_for_how_long(name: str, shown: str) -> None:
    assert re.search(shown, words_on(picture(name)))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("basic-peek-foreach", {"peek", "foreach"}),
        ("basic-filter-not", {"filter not"}),
        ("basic-group-by-count", {"select key", "drop null keys", "count"}),
        ("basic-reduce", {"reduce"}),
        ("basic-aggregate", {"aggregate"}),
        ("ktable-group-by-aggregate", {"table", "group by", "aggregate"}),
        ("ktable-group-by-count", {"table", "group by", "count"}),
        ("ktable-global-store", {"global table"}),
        ("ktable-to-table", {"to table"}),
        ("joins-stream-table-left", {"left join"}),
        ("joins-table-table-outer", {"outer join", "merge"}),
        ("cogroup", {"aggregate", "merge"}),
    ],
)
def test_a_node_shows_the_word_a_learner_writes(name: str, words: set[str]) -> None:
    shown = {text.text for text in parsed(picture(name)).iter(f"{SVG}text")}
    assert words <= shown


def test_the_real_and_the_internal_topic_of_one_name_are_not_linked() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda v: v, name="words").count().to_stream().to("words-repartition")
    svg = draw(builder.build().sub_topologies())
    assert svg.count('stroke-dasharray="5 3"') == 1
