"""Draws docs/layers.svg: the layers of the package, from the contract in pyproject.toml that `make lint` enforces.

Run it after the contract has changed: `python docs/layers.py`. A test compares the picture with the contract.
"""

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "layers.svg"

BANDS = {
    "#e8e8ef": {
        "__main__": "python -m streamskit",
        "cli": "its commands: serve, broker, class-sharing",
        "datasets": "data sets, as lessons import them",
        "labs": "checks, as labs import them",
        "lessons": "predictions and drawings, as lessons import them",
        "widgets": "live views, as lessons import them",
        "course": "data sets, labs and their checks, JupyterLab",
        "views": "live views and pictures for notebooks",
    },
    "#fdebd3": {
        "faults": "things to break on purpose, and to undo",
        "testing": "TopologyTestDriver",
        "cluster": "a Spark cluster on this machine",
        "runtime": "KafkaStreams: a topology, running",
        "queries": "interactive queries: instances, REST, client",
    },
    "#d9ecdf": {
        "execution": "a plan becomes Spark DataFrames",
        "planning": "a topology becomes the plans of Spark queries",
        "dsl": "StreamsBuilder, KStream, KTable",
        "operators": "Kafka Streams' algorithms in plain Python",
        "topology": "nodes, sub-topologies, description, picture",
        "columns": "a user's functions on Columns",
    },
    "#dbe7f6": {
        "state": "stores: what is declared, and local copies",
        "serdes": "keys and values as bytes",
        "broker": "brokers that one starts",
        "kafka": "clients that talk to a broker",
        "environment": "Java, jars, the Spark session, the doctor",
        "api": "windows, processors, handlers: plain values",
        "jvm": "Scala that runs inside Spark",
        "common": "errors, durations, paths, call sites",
    },
}
"""The colour of a part of the package, and what each of its packages is for, in a few words."""

WIDTH, ROW, ROOM, MARGIN, PURPOSE = 760, 26, 30, 12, 170
FONT = "font-family='ui-sans-serif, system-ui, sans-serif'"


def layers() -> list[list[str]]:
    """Return the layers of the contract from top to bottom, each as the packages that stand side by side in it."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def svg() -> str:
    """Return the picture: a row for each layer, from the top of the package to its ground."""
    rows = layers()
    height = len(rows) * ROOM + 2 * MARGIN
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' "
        f"role='img' aria-label='The layers of streamskit: each imports only those below it' {FONT} font-size='13'>",
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>",
    ]
    for number, names in enumerate(rows):
        parts += _row(MARGIN + number * ROOM, names)
    return "\n".join([*parts, "</svg>", ""])


def _row(top: int, names: list[str]) -> list[str]:
    """Return one layer: a box for each package in it; one that is alone says beside its name what it is for."""
    width = (WIDTH - 2 * MARGIN - (len(names) - 1) * 6) / len(names)
    parts = []
    for number, name in enumerate(names):
        left = MARGIN + number * (width + 6)
        colour, purpose = _band(name)
        parts.append(
            f"<rect x='{left:.0f}' y='{top}' width='{width:.0f}' height='{ROW}' rx='4' "
            f"fill='{colour}' stroke='#8a8f98'><title>{escape(name)}: {escape(purpose)}</title></rect>"
        )
        middle = top + ROW / 2 + 4.5
        parts.append(_text(left + 12, middle, name, "font-weight='600' fill='#1d2129'"))
        if len(names) == 1:
            parts.append(_text(PURPOSE, middle, purpose, "fill='#3d434d'"))
        elif len(names) == 2:
            parts.append(_text(left + 80, middle, purpose, "fill='#3d434d'"))
    return parts


def _text(x: float, y: float, text: str, style: str) -> str:
    return f"<text x='{x:.0f}' y='{y:.1f}' {style}>{escape(text)}</text>"


def _band(name: str) -> tuple[str, str]:
    for colour, purposes in BANDS.items():
        if name in purposes:
            return colour, purposes[name]
    raise SystemExit(f"docs/layers.py does not say what '{name}' is for: add it to BANDS.")


if __name__ == "__main__":
    PICTURE.write_text(svg())
    print(f"Drew {PICTURE.relative_to(ROOT)}.")
