"""A learner closes the page of a live view, opens it again, and restarts the kernel under it."""

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import JupyterLab
from tests.browser.pages import await_idle, choose, open_notebook, run_all, shoot

pytestmark = [pytest.mark.browser, pytest.mark.broker, pytest.mark.timeout(400)]

NOTEBOOK = "notebooks/leaving.ipynb"

CELLS = (
    """
import struct, threading, time
from pathlib import Path
from streamskit.queries import LocalKeyValueStore
from streamskit.serdes import Serdes
from streamskit.state.stores import Store
from streamskit.views import page_answers
from streamskit.widgets import StoreView

page_answers.ASK_EVERY, page_answers.SOON = 0.5, 3.0
store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
view = StoreView(store, rows=5)

def go_on():
    for number in range(3_000):
        store.apply(b"KO", struct.pack(">q", number), 0)
        Path("looking.txt").write_text(str(view._timer.is_running))
        time.sleep(0.1)

threading.Thread(target=go_on, daemon=True).start()
""",
    "view",
    "time.sleep(6)",
)


def open_and_watch(page: Page, lab: JupyterLab) -> None:
    """Open the notebook, and wait until its live view changes."""
    open_notebook(page, lab, NOTEBOOK)
    rows = page.locator(".streamskit-live .sk-rows")
    expect(rows).to_be_visible(timeout=60_000)
    before = rows.inner_text()
    expect(rows).not_to_have_text(before, timeout=30_000, use_inner_text=True)


def await_looking(page: Page, lab: JupyterLab, looks: bool) -> None:
    """Wait until the view has begun or ceased to look at its store."""
    noted = lab.folder / "notebooks" / "looking.txt"
    for _ in range(120):
        if noted.read_text() == str(looks):
            return
        page.wait_for_timeout(500)
    raise AssertionError(f"for a minute it was not so that the view looks: {looks}")


def write_notebook(lab: JupyterLab, *sources: str) -> None:
    """Write the notebook, with these cells."""
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), lab.folder / NOTEBOOK)


def save(page: Page) -> None:
    """Save the notebook, and wait until it is saved."""
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-DirtyIndicator, .jp-mod-dirty")).to_have_count(0, timeout=30_000)


def test_a_view_that_two_pages_show_goes_on_in_one_when_the_other_clears_its_output(
    browser: Browser, lab: JupyterLab
) -> None:
    write_notebook(lab, *CELLS[:2])
    one, two = (browser.new_page(viewport={"width": 1300, "height": 1000}) for _ in range(2))
    open_notebook(one, lab, NOTEBOOK)
    run_all(one)
    await_idle(one)
    save(one)
    open_and_watch(two, lab)
    choose(one, "Edit", "Clear Outputs of All Cells")
    expect(one.locator(".streamskit-live")).to_have_count(0, timeout=30_000)
    rows = two.locator(".streamskit-live .sk-rows")
    two.wait_for_timeout(10_000)  # what was under way has come
    for _ in range(3):
        before = rows.inner_text()
        expect(rows).not_to_have_text(before, timeout=30_000, use_inner_text=True)
    one.close()
    two.close()


def test_a_view_rests_when_its_page_is_closed_goes_on_when_it_is_open_again_and_tells_when_its_kernel_is_gone(
    browser: Browser, lab: JupyterLab
) -> None:
    write_notebook(lab, *CELLS)
    another, page = browser.new_page(), browser.new_page(viewport={"width": 1300, "height": 1000})
    open_notebook(page, lab, NOTEBOOK)
    run_all(page)
    await_idle(page)
    await_looking(page, lab, True)  # also while a cell ran for longer than a page may be silent
    save(page)
    page.close()
    await_looking(another, lab, False)

    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    open_and_watch(page, lab)
    await_looking(page, lab, True)
    view = page.locator(".streamskit-live").first
    expect(view.get_by_text("Not live any more")).to_be_hidden()
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.locator('.lm-Menu-item[data-command="kernelmenu:restart"]').click()
    page.locator(".jp-Dialog button.jp-mod-accept").click()
    expect(view.get_by_text("Not live any more")).to_be_visible(timeout=60_000)
    expect(view.locator(".sk-badge")).to_be_hidden()
    shoot(page, "widgets-without-kernel")
    expect(page.locator("#jp-main-statusbar")).to_contain_text("| Idle", timeout=60_000)  # a server does not end before
    page.close()
    another.close()
