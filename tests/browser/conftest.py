"""JupyterLab as `make lab` starts it, on a copy of the course, and a headless Chromium to look at it."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True)
class JupyterLab:
    """A running JupyterLab and the project folder it works in."""

    address: str
    token: str
    folder: Path

    def url(self, notebook: str) -> str:
        """Return the address of a notebook, in a workspace of its own: another one opens what was left open in it."""
        return f"{self.address}/lab/workspaces/{secrets.token_hex(4)}/tree/{notebook}?token={self.token}"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("No Chromium on this machine: install the package chromium to run the browser tests.")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program, args=list(QUIET))


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    yield page
    page.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterLab]:
    folder = tmp_path_factory.mktemp("course")
    for part in ("notebooks", "labs", "data", "pyproject.toml"):
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / part)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = JupyterLab(f"http://127.0.0.1:{port}", secrets.token_hex(8), folder)
    options = ["--no-browser", f"--port={port}", f"--IdentityProvider.token={running.token}"]
    with (folder / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamskit", "lab", *options],
            cwd=folder,
            env=os.environ | {"STREAMSKIT_PROJECT": str(folder)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(running, process)
        yield running
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(lab: JupyterLab, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        assert process.poll() is None, (lab.folder / "lab.log").read_text()
        try:
            with urllib.request.urlopen(f"{lab.address}/api/status?token={lab.token}", timeout=5):
                return
        except OSError:
            assert time.monotonic() < deadline, "JupyterLab did not answer within two minutes"
            time.sleep(0.2)
