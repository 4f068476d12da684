"""Gathers the sources of the site's pages in one folder, as Sphinx wants them.

The folder is laid out like the project, so that links from page to page hold. What differs: the README is the front
page, with the table of contents below it; files that a page links to come along; and outputs that only JupyterLab could
show say so.
"""

import json
import re
import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from os.path import normpath
from pathlib import Path
from typing import Any

from streamskit.views.html import SAVED

ROOT = Path(__file__).parents[2]
CONTENTS = ROOT / "docs" / "site" / "contents.md"

PATTERNS = (
    "notebooks/*.ipynb",
    "labs/*.ipynb",
    "labs/*.md",
    "docs/*.md",
    "data/README.md",
    "examples/*/README.md",
    "tests/conformance/README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
)
"""What has a page, besides the README and the reference."""

FRONT_PAGE = "index.md"
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]+)((?:#[^)\s]*)?)\)")
WIDGET = "application/vnd.jupyter.widget-view+json"
LIVE = (
    "<p class='only-live'><b>A live view.</b> Here a widget follows the running application. "
    "A page cannot: start the course with <code>make lab</code> and run the lesson to see it.</p>"
)


def pages() -> list[str]:
    """The paths of all pages' sources below the project's folder, the README first."""
    return ["README.md", *(str(path.relative_to(ROOT)) for each in PATTERNS for path in sorted(ROOT.glob(each)))]


def stage(folder: Path) -> None:
    """Gather the pages' sources in a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in pages():
        source = ROOT / page
        text = _notebook(source) if source.suffix == ".ipynb" else _document(source)
        target = folder / (FRONT_PAGE if page == "README.md" else page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        _bring_pictures_and_files(source, folder)


def toctrees(contents: str) -> list[list[str]]:
    """The entries of each table of contents in a text."""
    trees = re.findall(r"```\{toctree\}\n(.*?)```", contents, re.S)
    return [[line for line in tree.splitlines() if line and not line.startswith(":")] for tree in trees]


def places_in_the_contents(page: str) -> list[str]:
    """The entries of the site's tables of contents that lead to a page, given by the path of its source."""
    return [entry for tree in toctrees(CONTENTS.read_text()) for entry in tree if _leads_to(entry, page)]


def contents() -> str:
    """The site's tables of contents, without entries for pages that there are not yet."""
    lines = CONTENTS.read_text().splitlines(keepends=True)
    optional = {entry for tree in toctrees("".join(lines)) for entry in tree if entry.startswith("examples/")}
    empty = {entry for entry in optional if not any(_leads_to(entry, page) for page in pages())}
    return "".join(line for line in lines if line.strip() not in empty)


def for_a_page(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A cell's outputs as a page can show them: of a widget the page that was kept of it, or a sentence."""
    kept = any(SAVED in "".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    shown = [output for output in outputs if not (kept and WIDGET in output.get("data", {}))]
    return [{**output, "data": {"text/html": LIVE}} if WIDGET in output.get("data", {}) else output for output in shown]


def _leads_to(entry: str, page: str) -> bool:
    name = page.rpartition(".")[0]
    return fnmatchcase(name, entry) and name.count("/") == entry.count("/")


def _document(source: Path) -> str:
    text = _with_links(source.read_text(), source)
    if source == ROOT / "README.md":
        return text + contents()
    if source.name == "instructors.md":  # whoever searches for an operator should not find the labs' solutions first
        return f"---\nnosearch: true\n---\n{text}"
    return text


def _notebook(source: Path) -> str:
    notebook = json.loads(source.read_text())
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = _with_links("".join(cell["source"]), source)
        elif "outputs" in cell:
            cell["outputs"] = for_a_page(cell["outputs"])
    return json.dumps(notebook, ensure_ascii=False)


def _with_links(text: str, source: Path) -> str:
    """A text whose links to the README lead to the front page, and whose links to folders are plain words."""

    def of_the_site(link: re.Match[str]) -> str:
        target = _target(source, link[1])
        if target == "README.md":
            return f"]({'../' * str(source.relative_to(ROOT)).count('/')}{FRONT_PAGE}{link[2]})"
        return link[0]

    text = LINK.sub(of_the_site, text)
    return re.sub(
        r"\[([^]]+)\]\((?!\w+:)([^)\s#]+)\)",
        lambda link: link[1] if (ROOT / _target(source, link[2])).is_dir() else link[0],
        text,
    )


def _target(source: Path, link: str) -> str:
    return normpath(source.relative_to(ROOT).parent / link)


def _bring_pictures_and_files(source: Path, folder: Path) -> None:
    """Copy what a page links to and is no page itself."""
    for name in _linked(source):
        target = folder / name
        if (ROOT / name).is_file() and name not in pages() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)


def _linked(source: Path) -> Iterator[str]:
    text = source.read_text()
    if source.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for link in LINK.finditer(text):
        yield _target(source, link[1])
