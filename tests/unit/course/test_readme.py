"""The README and the other documents: their example builds, their links lead somewhere, the names in them exist."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamskit
from streamskit import Topology
from streamskit.cli.commands import COMMANDS
from tests.conformance.api import names

ROOT = Path(__file__).parents[3]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *(ROOT / folder / "README.md" for folder in ("data", "examples/music", "labs", "tests/conformance")),
    *sorted((ROOT / "docs").glob("*.md")),
]
DRAWING = runpy.run_path(str(ROOT / "docs" / "layers.py"))
LAYERS: list[list[str]] = DRAWING["layers"]()
PACKAGES = [name for layer in LAYERS for name in layer]
FILE = re.compile(r"(?:streamskit|examples|tests|docs|notebooks|labs|data)/(?!.*NN-name)[\w./*-]*")
MODULE = re.compile(rf"(?:streamskit|{'|'.join(PACKAGES)})(?:\.\w+)+(?<!\.json)(?<!\.yml)")
documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@pytest.mark.columns
@pytest.mark.usefixtures("spark")
def test_the_first_example_of_the_readme_builds_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0]
    names: dict[str, Any] = {}
    exec(example, names)
    topology: Topology = names["builder"].build()
    assert capsys.readouterr().out == topology.describe() + "\n"
    assert list(topology.stores) == ["trade-aggregates"]


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= 9_000


def test_the_readme_lists_every_lesson_and_its_lab() -> None:
    listed = re.findall(r"^\| \[[^]]+\]\((notebooks/[^)]+)\)", (ROOT / "README.md").read_text(), re.M)
    assert listed == [f"notebooks/{path.name}" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    labs = re.findall(r"\[lab\]\((labs/[^)]+)\)", (ROOT / "README.md").read_text())
    assert labs == [f"labs/{path.name}" for path in sorted((ROOT / "labs").glob("*.ipynb"))]


def prose(document: Path) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", document.read_text(), flags=re.S | re.M)


def spans(document: Path) -> list[str]:
    """The pieces of code within a document's sentences."""
    return re.findall(r"`([^`\n]+)`", prose(document))


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub and most Markdown readers make them."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@documents
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not re.match(r"https?://", link) and (not target.exists() or (anchor and anchor not in anchors(target))):
            lost.append(link)
    assert lost == []


@documents
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    named = [span for span in spans(document) if FILE.fullmatch(span)]
    assert [span for span in named if not any(ROOT.glob(span.rstrip("/")))] == []


@documents
def test_every_module_and_class_that_a_document_names_exists(document: Path) -> None:
    settings = {key.kafka_name for key in streamskit.StreamsConfig.settings()}  # such as state.dir
    named = [span for span in spans(document) if MODULE.fullmatch(span) and span not in settings]
    assert [span for span in named if not exists(span.removeprefix("streamskit."))] == []


def test_everything_in_the_last_column_of_the_glossary_exists() -> None:
    named = list(names_of_the_glossary())
    assert named
    assert [name for name in named if not exists(name)] == []


def names_of_the_glossary() -> Iterator[str]:
    """The code in the last column of the glossary's tables that have a column for each of the three."""
    for row in re.findall(r"^\|(.+)\|$", (ROOT / "docs" / "glossary.md").read_text(), re.M):
        cells = row.split("|")
        if len(cells) == 3:
            yield from re.findall(r"`([^`]+)`", cells[2])


def exists(name: str) -> bool:
    """Whether a name leads to something below `streamskit`, or to one of its public names."""
    return name == "FACES" or names.exists(name)


def test_the_picture_of_the_layers_is_that_of_the_contract() -> None:
    assert (ROOT / "docs" / "layers.svg").read_text() == DRAWING["svg"](), "Run: python docs/layers.py"


def test_the_architecture_tells_of_every_package_from_the_ground_up() -> None:
    section = (ROOT / "docs" / "architecture.md").read_text().partition("## Layers")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.M)
    told = [re.findall(r"`(\w+)`", cell) for cell in cells]
    names = [name for row in told for name in row]
    assert sorted(names) == sorted(PACKAGES)
    layer = {name: number for number, layer in enumerate(reversed(LAYERS)) for name in layer}
    floors = [layer[row[0]] for row in told]
    assert floors == sorted(floors)


def test_every_command_and_setting_of_the_operations_page_exists() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| `python -m streamskit ([\w-]+)", page, re.M)) == set(COMMANDS)
    sources = "".join(path.read_text() for path in (ROOT / "streamskit").rglob("*.py"))
    listed = re.findall(r"^\| `(STREAMSKIT_\w+)`", page, re.M)
    assert listed
    assert [name for name in listed if f'"{name}"' not in sources] == []


def test_contributing_tells_of_every_make_target() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert targets
    told = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in targets[1].split() if name != "help" and f"`make {name}`" not in told] == []


def test_the_changelog_begins_with_what_is_not_released_and_has_this_version() -> None:
    versions = re.findall(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == "Unreleased"
    assert streamskit.__version__ in versions
