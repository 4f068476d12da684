"""What a learner does with a notebook in JupyterLab: opens it, runs it, looks."""

import os
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import JupyterLab

SCREENSHOTS = Path(os.environ.get("STREAMSKIT_SCREENSHOTS", Path(__file__).parents[2] / "screenshots"))


def open_notebook(page: Page, lab: JupyterLab, notebook: str) -> None:
    """Open a notebook and wait until its kernel is there."""
    page.goto(lab.url(notebook))
    expect(page.locator(".jp-Notebook")).to_be_visible(timeout=60_000)
    # On a busy machine JupyterLab may ask for a kernel before it has the list of kernels, as it would ask a learner.
    choose = page.get_by_role("button", name="Select Kernel", exact=True)
    page.add_locator_handler(choose, lambda button: button.click())
    expect(page.locator("#jp-main-statusbar")).to_contain_text("Python 3 (ipykernel) | Idle", timeout=120_000)


def run_all(page: Page) -> None:
    """Clear the stored outputs, so that what is seen is new, and run all cells."""
    choose(page, "Edit", "Clear Outputs of All Cells")
    expect(page.locator(".jp-Notebook .jp-OutputArea-output")).to_have_count(0, timeout=30_000)
    choose(page, "Run", "Run All Cells")
    begun = page.locator(".jp-Notebook .jp-InputPrompt").filter(has_text=re.compile(r"\[(\*|\d+)\]"))
    expect(begun).not_to_have_count(0, timeout=60_000)  # until then the page says, truly, that the kernel is idle


def await_idle(page: Page, seconds: int = 180) -> None:
    """Wait until no cell runs, or waits for the one that runs."""
    waiting = page.locator(".jp-Notebook .jp-InputPrompt").filter(has_text="[*]")
    expect(waiting).to_have_count(0, timeout=seconds * 1000)
    idle = page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    expect(idle).to_be_attached(timeout=seconds * 1000)


def choose(page: Page, menu: str, item: str) -> None:
    """Choose an item of a menu."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def shoot(page: Page, name: str) -> None:
    """Take a screenshot, to be looked at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
