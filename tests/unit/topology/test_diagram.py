"""The picture of a topology: what is on it, and that nothing covers or leaves anything else."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamskit.api.windows import TimeWindows
from streamskit.serdes import Serdes
from streamskit.state.stores import Store
from streamskit.topology.drawing.diagram import WIDEST, as_html, draw
from streamskit.topology.drawing.labels import in_words
from streamskit.topology.drawing.layout import Extent, arrange
from streamskit.topology.drawing.shapes import Engine, wrapped
from streamskit.topology.nodes import (
    ColumnAggregate,
    Filter,
    MapValues,
    Merge,
    Node,
    Sink,
    Source,
    TableAggregate,
    ToStream,
)
from tests.unit.views.pictures import SVG, centres, collisions, measured, overflows, parsed, shapes, words_on

TEXT = Serdes.string()
RECORDED = sorted((Path(__file__).parents[2] / "conformance" / "vectors").glob("*.json"))
VECTORS = [path for path in RECORDED if json.loads(path.read_text())["topology"]]  # one was refused as it was built
Topologies = list[list[Node]]


@dataclass(frozen=True)
class Keeper(Node):
    held: tuple[Store, ...] = ()

    @property
    def stores(self) -> tuple[Store, ...]:
        return self.held


def node(kind: Any, name: str, *parents: str, **details: Any) -> Any:
    return kind(name, parents, TEXT, TEXT, "In[3] line 5", **details)


def trade_topology() -> Topologies:
    windows = TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second")
    store = Store("trade-aggregates", "window", TEXT, TEXT, windows, 86_400_000)
    return [
        [
            node(Source, "KSTREAM-SOURCE-0000000000", topics=("trades",)),
            node(Filter, "KSTREAM-FILTER-0000000001", "KSTREAM-SOURCE-0000000000"),
            node(
                ColumnAggregate,
                "KSTREAM-AGGREGATE-0000000002",
                "KSTREAM-FILTER-0000000001",
                windows=windows,
                store=store,
            ),
            node(MapValues, "KTABLE-MAPVALUES-0000000003", "KSTREAM-AGGREGATE-0000000002"),
            node(ToStream, "KTABLE-TOSTREAM-0000000004", "KTABLE-MAPVALUES-0000000003"),
            node(Sink, "KSTREAM-SINK-0000000005", "KTABLE-TOSTREAM-0000000004", topic="stats-out"),
        ]
    ]


def diamond() -> Topologies:
    return [
        [
            node(Source, "orders-source", topics=("orders",)),
            node(Filter, "cheap", "orders-source"),
            node(MapValues, "discount", "cheap"),
            node(Filter, "dear", "orders-source"),
            node(Merge, "both", "discount", "dear"),
            node(Sink, "all", "both", topic="all-orders"),
            node(Sink, "audit", "orders-source", topic="audit"),
        ]
    ]


def chain(length: int, reads: str = "in", writes: str = "out", prefix: str = "") -> list[Node]:
    nodes = [node(Source, f"{prefix}source", topics=(reads,))]
    for number in range(length - 2):
        nodes.append(node(Filter, f"{prefix}filter-{number}", nodes[-1].name))
    return [*nodes, node(Sink, f"{prefix}sink", nodes[-1].name, topic=writes)]


def recorded(vector: Path) -> Topologies:
    """Return the nodes that a recorded description names."""
    groups: Topologies = []
    found: list[tuple[str, str, str, list[str]]] = []
    for line in json.loads(vector.read_text())["topology"].splitlines():
        if "Sub-topology:" in line:
            found = []
            groups.append(found)  # type: ignore[arg-type]
        elif match := re.match(r"\s+(Source|Processor|Sink): (\S+) \([^:]+: (.*)\)$", line):
            found.append((*match.groups(), []))  # type: ignore[arg-type]
        elif match := re.match(r"\s+<-- (.*)", line):
            found[-1][3].extend(name for name in match[1].split(", ") if name != "none")
    return [[made(*each) for each in group] for group in groups]  # type: ignore[misc]


def made(kind: str, name: str, what: str, parents: Sequence[str]) -> Node:
    names = [each for each in what.strip("[]").split(", ") if each]
    if kind == "Source":
        return node(Source, name, *parents, topics=tuple(names))
    if kind == "Sink":
        return node(Sink, name, *parents, topic=what)
    return node(Keeper, name, *parents, held=tuple(Store(each, "key-value", TEXT, TEXT) for each in names))


def test_a_node_shows_the_word_a_learner_writes_and_kafkas_name_for_it() -> None:
    words = words_on(draw(trade_topology()))
    for word in ("trades", "filter", "aggregate", "map values", "to stream", "stats-out"):
        assert word in words
    assert "KSTREAM-AGGREGATE- 0000000002" in words


def test_a_grouped_tables_reduce_is_not_drawn_as_an_aggregate() -> None:
    reduce = node(TableAggregate, "KTABLE-REDUCE-0000000005", "rows")
    aggregate = node(TableAggregate, "KTABLE-AGGREGATE-0000000005", "rows", initializer=int)
    assert [reduce.label, aggregate.label] == ["reduce", "aggregate"]


def test_a_store_is_drawn_at_its_node_with_its_kind_and_windows() -> None:
    svg = draw(trade_topology())
    assert "trade-aggregates window store 5 s every 1 s" in words_on(svg)
    aggregate, store = (shape for shape in shapes(svg) if shape.name == "KSTREAM-AGGREGATE-0000000002")
    assert store.top > aggregate.bottom
    assert store.left >= aggregate.left
    assert store.right <= aggregate.right


def test_a_store_of_two_nodes_says_that_it_is_shared() -> None:
    store = Store("songs", "key-value", TEXT, TEXT)
    nodes = [
        node(Source, "songs-source", topics=("songs",)),
        node(Keeper, "table", "songs-source", held=(store,)),
        node(Source, "plays-source", topics=("plays",)),
        node(Keeper, "join", "plays-source", held=(store,)),
    ]
    assert words_on(draw([nodes])).count("key-value store, shared") == 2


def test_the_flow_goes_from_left_to_right_while_it_fits() -> None:
    svg = draw(trade_topology())
    across = [centres(svg)[each.name][0] for each in trade_topology()[0]]
    assert across == sorted(across)
    assert float(parsed(svg).attrib["width"]) < 900


def test_a_long_chain_flows_down_and_fits_the_page() -> None:
    nodes = chain(12)
    svg = draw([nodes])
    down = [centres(svg)[each.name][1] for each in nodes]
    assert down == sorted(down)
    assert float(parsed(svg).attrib["width"]) < WIDEST


def test_the_two_ways_of_a_diamond_meet_and_a_sink_stands_at_the_end() -> None:
    places = centres(draw(diamond()))
    assert places["orders-source"][0] < places["cheap"][0] == places["dear"][0] < places["discount"][0]
    assert places["discount"][0] < places["both"][0] < places["all"][0] == places["audit"][0]


def test_branches_stand_one_under_the_other_around_their_source() -> None:
    nodes = [node(Source, "pos", topics=("pos",))]
    for name in ("one", "two", "three"):
        nodes += [node(Filter, f"{name}-filter", "pos"), node(Sink, f"{name}-sink", f"{name}-filter", topic=name)]
    places = centres(draw([nodes]))
    rows = [places[f"{name}-filter"][1] for name in ("one", "two", "three")]
    assert rows == sorted(rows)
    assert places["pos"][1] == pytest.approx(rows[1], abs=0.2)
    assert [places[f"{name}-sink"][1] for name in ("one", "two", "three")] == pytest.approx(rows, abs=0.2)


def test_a_topic_between_sub_topologies_links_their_boxes_with_a_dashed_arrow() -> None:
    groups = [chain(3, "between", "out", "b-"), chain(3, "in", "between", "a-")]
    svg = draw(groups)
    places = centres(svg)
    assert places["a-source"][1] < places["b-source"][1], "the one that writes the topic comes first"
    links = [path.attrib["d"] for path in parsed(svg).iter(f"{SVG}path") if path.get("stroke-dasharray")]
    assert len(links) == 1
    corners = [tuple(map(float, corner.split())) for corner in links[0].lstrip("M").split("L")]
    assert corners[0][1] == pytest.approx(places["a-sink"][1], abs=0.2)
    assert corners[-1][1] == pytest.approx(places["b-source"][1], abs=0.2)


def test_sub_topologies_that_feed_each_other_are_drawn_with_both_links() -> None:
    svg = draw([chain(3, "response", "request", "a-"), chain(3, "request", "response", "b-")])
    assert svg.count("stroke-dasharray") == 2


def test_each_edge_has_an_arrow_that_ends_at_its_child() -> None:
    svg = draw(diamond())
    tips = [tuple(map(float, polygon.attrib["points"].split()[:2])) for polygon in parsed(svg).iter(f"{SVG}polygon")]
    wanted = [shape for shape in shapes(svg) for each in diamond()[0] if each.name == shape.name for _ in each.parents]
    ends = sorted((shape.left, round((shape.top + shape.bottom) / 2, 1)) for shape in wanted)
    assert [pytest.approx(end, abs=0.2) for end in ends] == sorted(tips)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda path: path.stem)
def test_no_two_shapes_of_a_recorded_topology_cover_each_other(vector: Path) -> None:
    svg = draw(recorded(vector))
    assert shapes(svg)
    assert collisions(svg) == []
    assert overflows(svg) == []


def test_long_names_stay_within_their_shapes_and_are_whole_in_the_tooltip() -> None:
    name = "WWWW-A-NAME-THAT-NOBODY-WOULD-WANT-TO-READ-OR-WRITE-EVEN-ONCE-0000000001"
    nodes = [
        node(Source, "source-" + name, topics=("topic." + name,)),
        node(Keeper, name, "source-" + name, held=(Store("store-" + name, "key-value", TEXT, TEXT),)),
    ]
    svg = draw([nodes])
    assert overflows(svg) == []
    titles = [group.findtext(f"{SVG}title") or "" for group in parsed(svg).iter(f"{SVG}g")]
    assert any(title.startswith(f"{name}: keeper with key-value store store-{name}") for title in titles)


def test_a_name_is_broken_after_a_hyphen_and_loses_only_its_middle() -> None:
    assert wrapped("KTABLE-AVERYLONGPARTOFANAME-0000000001", 22) == ["KTABLE-AVERYLONGPARTOF", "ANAME-0000000001"]
    assert wrapped("KSTREAM-AGGREGATE-0000000001", 22) == ["KSTREAM-AGGREGATE-", "0000000001"]
    assert wrapped("short", 22) == ["short"]
    assert wrapped("rewards-repartition", 18, 3) == ["rewards-", "repartition"]
    assert wrapped("averylongnamewithoutahyphen", 18, 3) == ["averylongnamewitho", "utahyphen"]
    first, last = wrapped("KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-0000000017", 22)
    assert first == "KTABLE-FK-JOIN-"
    assert last == "…-PROCESSOR-0000000017"


def test_names_with_signs_of_xml_are_text() -> None:
    svg = draw([[node(Source, "a<b>&\"c'", topics=("<script>alert(1)</script>",))]])
    assert "<script" not in svg
    assert "a<b>&\"c'" in words_on(svg)


def test_a_note_and_a_failure_are_written_at_their_nodes() -> None:
    failing = "KTABLE-MAPVALUES-0000000003"
    plain, svg = draw(trade_topology()), draw(trade_topology(), notes={failing: "900 records/s"}, failed=[failing])
    assert "✕ failed · 900 records/s" in words_on(svg)
    assert centres(plain) == centres(svg), "nothing moves when a note comes"


@pytest.mark.parametrize("count", [3, 12])
def test_a_long_note_is_fitted_between_its_neighbours(count: int) -> None:
    notes = {f"filter-{number}": "1,234,567 records/s · 12 dropped" for number in range(count)}
    picture = parsed(draw([chain(count + 2)], notes=notes, failed=["filter-1"]))
    fitted = [text for text in picture.iter(f"{SVG}text") if (text.text or "").endswith("12 dropped")]
    (width,) = {float(text.attrib["textLength"]) for text in fitted}
    if count == 3:  # side by side, each over its own node
        one, two = (float(text.attrib["x"]) for text in fitted[:2])
        assert one + width / 2 < two - width / 2
    else:  # one beneath the other
        assert all(float(text.attrib["x"]) + width <= float(picture.attrib["width"]) for text in fitted)


def test_a_note_stands_beside_the_arrow_where_the_flow_goes_down() -> None:
    words = words_on(draw([chain(12)], notes={"filter-3": "900 records/s"}, failed=["filter-3"]))
    assert "✕ failed 900 records/s" in words


ENGINES = {"KSTREAM-FILTER-0000000001": Engine.SPARK, "KSTREAM-AGGREGATE-0000000002": Engine.PYTHON}


def test_what_python_runs_has_a_second_edge_beside_its_colour() -> None:
    picture = parsed(draw(trade_topology(), engines=ENGINES))
    groups = {group.findtext(f"{SVG}title", "").split(":")[0]: group for group in picture.iter(f"{SVG}g")}
    spark, python = (groups[name] for name in ENGINES)
    assert [each.attrib["fill"] for each in spark.findall(f"{SVG}rect")] == ["#dcfce7"]
    assert [each.attrib["fill"] for each in python.findall(f"{SVG}rect")] == ["#f3e8ff"]
    closed = [[each.attrib["d"].endswith("z") and each.attrib["fill"] == "none" for each in group.iter(f"{SVG}path")]
              for group in (spark, python)]  # fmt: skip
    assert [sum(each) for each in closed] == [0, 1]


@pytest.mark.parametrize("groups", [trade_topology(), [chain(12)], [chain(3)]], ids=["wide", "long", "small"])
def test_a_picture_of_engines_has_a_legend_that_covers_nothing(groups: Topologies) -> None:
    engines = dict.fromkeys((each.name for each in groups[0][1:-1]), Engine.PYTHON)
    svg = draw(groups, engines=engines)
    assert words_on(svg).endswith("Python: record by record")
    assert "Spark: compiled" not in words_on(svg)
    assert collisions(svg) == []
    assert overflows(svg) == []
    right = max(measured(text).right for text in parsed(svg).findall(f"{SVG}text"))
    assert right <= float(parsed(svg).attrib["width"])


def test_a_failed_node_is_red_whatever_runs_it() -> None:
    name = "KSTREAM-AGGREGATE-0000000002"
    assert draw(trade_topology(), failed=[name], engines={name: Engine.PYTHON}).count("#fee2e2") == 1


def test_the_picture_says_in_words_what_it_shows() -> None:
    picture = parsed(draw(trade_topology()))
    assert picture.attrib["role"] == "img"
    assert picture[0].tag == f"{SVG}title"
    assert picture.findtext(f"{SVG}desc") == (
        "Sub-topology 0: topic trades → filter → aggregate with window store trade-aggregates → map values "
        "→ to stream → topic stats-out."
    )


def test_branches_and_merges_are_said_as_chains_that_begin_and_end_there() -> None:
    assert in_words(diamond()) == (
        "Sub-topology 0: topic orders → filter → map values → merge. topic orders → filter → merge. "
        "topic orders → topic audit. merge → topic all-orders."
    )


def test_the_same_program_gives_the_same_small_picture() -> None:
    assert draw(trade_topology()) == draw(trade_topology())
    assert len(draw(trade_topology()).encode()) < 12_000


def test_the_picture_needs_neither_scripts_nor_styles_nor_variables_of_a_page() -> None:
    svg = draw(trade_topology())
    assert not re.search(r"<script|<style|class=|var\(|currentColor|url\(", svg)


def test_an_image_of_the_picture_has_the_words_as_its_alternative() -> None:
    html = as_html(trade_topology())
    assert html.startswith('<img alt="Sub-topology 0: topic trades → filter')
    assert "data:image/svg+xml;base64," in html


def test_an_empty_topology_is_an_empty_picture() -> None:
    assert parsed(draw([])).attrib["role"] == "img"


def test_an_edge_over_several_layers_keeps_clear_of_the_nodes_between() -> None:
    parents: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]}
    layout = arrange(parents, dict.fromkeys(parents, Extent(100, 20, 20)), ["d"], 30, 20)
    rows = {row for _, row in layout.bends["a", "d"]}
    assert len(layout.bends["a", "d"]) == 4
    for between in ("b", "c"):
        assert all(abs(row - layout.centres[between][1]) >= 25 for row in rows)
