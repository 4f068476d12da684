"""A learner opens notebook 17 in JupyterLab, runs it, and watches the store change."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import JupyterLab
from tests.browser.pages import await_idle, open_notebook, run_all, shoot

# In `make test` nbval runs the notebook, test_widgets.py looks at every view, and test_a_lab.py works in JupyterLab.
pytestmark = [pytest.mark.browser, pytest.mark.broker, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(400)]

NOTEBOOK = "notebooks/17-trade-statistics.ipynb"


def test_the_rows_of_the_live_view_change_while_trades_arrive_and_no_cell_fails(lab: JupyterLab, page: Page) -> None:
    open_notebook(page, lab, NOTEBOOK)
    run_all(page)

    view = page.locator(".jupyter-widgets .streamskit-store .sk-rows")
    expect(view).to_be_visible(timeout=180_000)
    # The rows are drawn anew all the time; the box to search in stays.
    page.locator(".jupyter-widgets input[type=text]").first.scroll_into_view_if_needed()
    before = view.inner_text()
    expect(view).not_to_have_text(before, timeout=60_000, use_inner_text=True)
    shoot(page, "17-live")
    again = view.inner_text()
    expect(view).not_to_have_text(again, timeout=30_000, use_inner_text=True)

    await_idle(page)
    cells = save_until_all_have_run(lab, page)
    assert [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"] == []
    shoot(page, "17-done")


def save_until_all_have_run(lab: JupyterLab, page: Page) -> list[dict[str, Any]]:
    """Save the notebook, again while the kernel that looked idle was only between two cells."""
    for _ in range(30):
        page.keyboard.press("Control+s")
        page.wait_for_timeout(2_000)
        saved = json.loads((lab.folder / NOTEBOOK).read_text())
        cells = [cell for cell in saved["cells"] if cell["cell_type"] == "code"]
        if all(cell["execution_count"] for cell in cells):
            return cells
    not_run = ["".join(cell["source"]) for cell in cells if not cell["execution_count"]]
    raise AssertionError(f"a minute after the kernel was idle these cells had not run: {not_run}")


def test_a_paused_view_stands_still_and_a_search_finds_its_symbol(lab: JupyterLab, page: Page) -> None:
    page.goto(lab.url(NOTEBOOK))
    view = page.locator(".jupyter-widgets .streamskit-store .sk-rows")
    expect(view).to_be_visible(timeout=60_000)
    page.locator(".jupyter-widgets input[type=text]").first.fill("KO")
    page.locator(".jupyter-widgets input[type=text]").first.press("Enter")
    expect(view).to_contain_text("KO")
    expect(view).not_to_contain_text("AAPL")
    store = page.locator(".streamskit-live").filter(has=page.locator(".streamskit-store"))
    store.get_by_role("button", name="Pause").click()
    expect(store.get_by_role("button", name="Resume")).to_be_visible()
    shoot(page, "17-search")
