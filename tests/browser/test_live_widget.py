"""A learner opens notebook 17 in JupyterLab, runs it, and watches the store change."""

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import JupyterLab

pytestmark = [pytest.mark.browser, pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]

NOTEBOOK = "notebooks/17-trade-statistics.ipynb"
SCREENSHOTS = Path(os.environ.get("STREAMSKIT_SCREENSHOTS", Path(__file__).parents[2] / "screenshots"))


def test_the_rows_of_the_live_view_change_while_trades_arrive_and_no_cell_fails(lab: JupyterLab, page: Page) -> None:
    page.goto(lab.url(NOTEBOOK))
    expect(page.locator(".jp-Notebook")).to_be_visible(timeout=60_000)
    expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_attached(timeout=60_000)
    clear_outputs(page)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    view = page.locator(".jupyter-widgets .streamskit-store .sk-rows")
    expect(view).to_be_visible(timeout=180_000)
    view.scroll_into_view_if_needed()
    before = view.inner_text()
    expect(view).not_to_have_text(before, timeout=60_000, use_inner_text=True)
    shoot(page, "17-live")
    again = view.inner_text()
    expect(view).not_to_have_text(again, timeout=30_000, use_inner_text=True)

    expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_attached(timeout=180_000)
    page.keyboard.press("Control+s")
    saved = lab.folder / NOTEBOOK
    page.wait_for_timeout(2_000)
    cells = [cell for cell in json.loads(saved.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
    assert [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"] == []
    shoot(page, "17-done")


def test_a_paused_view_stands_still_and_a_search_finds_its_symbol(lab: JupyterLab, page: Page) -> None:
    page.goto(lab.url(NOTEBOOK))
    view = page.locator(".jupyter-widgets .streamskit-store .sk-rows")
    expect(view).to_be_visible(timeout=60_000)
    page.locator(".jupyter-widgets input[type=text]").first.fill("KO")
    page.locator(".jupyter-widgets input[type=text]").first.press("Enter")
    expect(view).to_contain_text("KO")
    expect(view).not_to_contain_text("AAPL")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    shoot(page, "17-search")


def clear_outputs(page: Page) -> None:
    page.get_by_role("menuitem", name="Edit", exact=True).click()
    page.get_by_role("menuitem", name="Clear Outputs of All Cells", exact=True).click()


def shoot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
