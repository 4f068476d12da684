"""Where the nodes of a graph go: in layers along the flow, in rows across it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

Point = tuple[float, float]

SWEEPS = 4


class Bend(NamedTuple):
    """Where an edge passes a layer that it has no node in."""

    parent: str
    child: str
    layer: int


Name = str | Bend
Links = Mapping[Name, Sequence[Name]]


@dataclass(frozen=True)
class Extent:
    """The room a node takes: `along` the flow, and `before` and `after` its centre line, across the flow."""

    along: float
    before: float
    after: float


@dataclass(frozen=True)
class Layout:
    """The nodes' centres as (along, across), the points where edges pass layers, and the size of it all."""

    centres: dict[str, Point]
    bends: dict[tuple[str, str], list[Point]]
    along: float
    across: float


def arrange(
    parents: Mapping[str, Sequence[str]],
    extents: Mapping[str, Extent],
    ends: Collection[str],
    gap_along: float,
    gap_across: float,
) -> Layout:
    """Lay out an acyclic graph: each node one layer after its last parent, the `ends` all in the last layer.

    Sugiyama's method: longest-path layers, order by barycentres, then rows as straight as room allows.
    """
    links, layer_of = _with_bends(parents, _layers(parents, ends))
    layers: list[list[Name]] = [[] for _ in range(1 + max(layer_of.values(), default=-1))]
    for name, layer in layer_of.items():
        layers[layer].append(name)
    order = _ordered(layers, links)
    sizes = {name: Extent(0, 5, 5) if isinstance(name, Bend) else extents[name] for name in layer_of}
    across = _rows(order, links, sizes, gap_across)
    return _placed(order, sizes, across, gap_along)


def _layers(parents: Mapping[str, Sequence[str]], ends: Collection[str]) -> dict[str, int]:
    layer_of: dict[str, int] = {}
    for name in TopologicalSorter(parents).static_order():
        layer_of[name] = 1 + max((layer_of[parent] for parent in parents[name]), default=-1)
    last = max(layer_of.values(), default=0)
    return {name: last if name in ends else layer_of[name] for name in parents}


def _with_bends(parents: Mapping[str, Sequence[str]], layer_of: Mapping[str, int]) -> tuple[Links, dict[Name, int]]:
    """Cut each edge that passes layers into edges of one layer, joined at bends."""
    links: dict[Name, list[Name]] = {name: [] for name in parents}
    layers: dict[Name, int] = dict(layer_of.items())
    for child, its_parents in parents.items():
        for parent in its_parents:
            before: Name = parent
            for layer in range(layer_of[parent] + 1, layer_of[child]):
                bend = Bend(parent, child, layer)
                links[bend], layers[bend], before = [before], layer, bend
            links[child].append(before)
    return links, layers


def _ordered(layers: list[list[Name]], parents: Links) -> list[list[Name]]:
    """Order each layer by the mean place of its neighbours, to and fro, so that few edges cross."""
    children = _turned(parents)
    for _ in range(SWEEPS):
        for neighbours, sweep in ((parents, layers), (children, layers[::-1])):
            for before, layer in pairwise(sweep):
                place = {name: number for number, name in enumerate(before)}
                means = {name: _mean_place(neighbours[name], place, number) for number, name in enumerate(layer)}
                layer.sort(key=means.__getitem__)
    return layers


def _mean_place(names: Sequence[Name], place: Mapping[Name, float], otherwise: float) -> float:
    return fmean([place[name] for name in names] or [otherwise])


def _turned(parents: Links) -> dict[Name, list[Name]]:
    children: dict[Name, list[Name]] = {name: [] for name in parents}
    for child, its_parents in parents.items():
        for parent in its_parents:
            children[parent].append(child)
    return children


def _rows(layers: list[list[Name]], parents: Links, sizes: Mapping[Name, Extent], gap: float) -> dict[Name, float]:
    """Put each node as near as room allows to the mean of its neighbours, so that chains are straight."""
    children = _turned(parents)
    across: dict[Name, float] = {}
    for layer in layers:
        across.update(_apart(layer, [0.0] * len(layer), sizes, gap))
    for neighbours, sweep in [(parents, layers), (children, layers[::-1])] * SWEEPS:
        for layer in sweep:
            wanted = [_mean_place(neighbours[name], across, across[name]) for name in layer]
            across.update(_apart(layer, wanted, sizes, gap))
    return across


def _apart(
    layer: list[Name], places: list[float], sizes: Mapping[Name, Extent], gap: float
) -> Iterator[tuple[Name, float]]:
    """Keep the nodes of a layer apart: those that would touch form a block, at the mean of what they want."""
    offsets = [0.0]
    for one, two in pairwise(layer):
        offsets.append(offsets[-1] + sizes[one].after + gap + sizes[two].before)
    blocks: list[list[float]] = []
    for want, offset in zip(places, offsets, strict=False):
        blocks.append([want - offset])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    bases = [base for block in blocks for base in [fmean(block)] * len(block)]
    return ((name, base + offset) for name, base, offset in zip(layer, bases, offsets, strict=False))


def _placed(layers: list[list[Name]], sizes: Mapping[Name, Extent], across: dict[Name, float], gap: float) -> Layout:
    first = min((across[name] - sizes[name].before for name in across), default=0)
    last = max((across[name] + sizes[name].after for name in across), default=0)
    centres: dict[str, Point] = {}
    bends: dict[tuple[str, str], list[Point]] = {}
    position = -gap
    for layer in layers:
        position += gap
        thickness = max(sizes[name].along for name in layer)
        for name in layer:
            row = across[name] - first
            if isinstance(name, Bend):
                edge = bends.setdefault((name.parent, name.child), [])
                edge += [(position, row), (position + thickness, row)]
            else:
                centres[name] = (position + thickness / 2, row)
        position += thickness
    return Layout(centres, bends, position, last - first)
