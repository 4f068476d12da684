"""Whether the links of a site that was built lead somewhere. Nothing is fetched: other sites are only listed."""

import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Links:
    """What was found in a site: links that lead nowhere, by page, and the addresses of other sites."""

    broken: list[str] = field(default_factory=list)
    external: set[str] = field(default_factory=set)
    loaded: list[str] = field(default_factory=list)
    """What a page would load from another site, by page: a site that is to work without a network has none."""


def check(site: Path) -> Links:
    """Look at every link of every page below a folder."""
    found = Links()
    for page in sorted(site.rglob("*.html")):
        for tag, address in _read(page).addresses:
            where = page.relative_to(site)
            if re.match(r"(?:https?:)?//", address):
                found.external.add(address)
                if tag in {"script", "img", "link", "iframe"}:
                    found.loaded.append(f"{where}: {address}")
            elif not re.match(r"\w+:", address) and not _leads_somewhere(page, address):
                found.broken.append(f"{where}: {address}")
    return found


def _leads_somewhere(page: Path, address: str) -> bool:
    parts = urlsplit(address)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    return not parts.fragment or target.suffix != ".html" or unquote(parts.fragment) in _read(target).anchors


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[tuple[str, str]] = []
        self.anchors = {"", "top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.addresses.append((tag, value))
            elif name in {"id", "name"} and value:
                self.anchors.add(value)


@cache
def _read(page: Path) -> _Page:
    parsed = _Page()
    parsed.feed(page.read_text())
    return parsed
