"""Somebody opens the site in a browser, and searches it."""

import importlib.util
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.site.__main__ import build

pytestmark = [pytest.mark.browser, pytest.mark.soak, pytest.mark.timeout(900)]


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site, built from what is here."""
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("The site is built by Sphinx, which is not installed: `make docs` installs it.")
    folder: Path = tmp_path_factory.mktemp("pages") / "site"
    build(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_search_leads_to_the_lesson_that_one_looks_for(site: str, page: Page) -> None:
    failures = list[str]()
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.goto(f"{site}/index.html")
    expect(page.get_by_role("heading", level=1)).to_contain_text("streamskit")
    page.goto(f"{site}/search.html?q=tumbling+windows")
    found = page.locator("#search-results li a", has_text="Windows").first
    expect(found).to_be_visible(timeout=60_000)
    found.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Windows")
    expect(page.locator("img, svg").first).to_be_attached()
    assert failures == []
