"""A learner works on a lab: a wrong answer, the difference, a hint, the right answer, progress."""

import pytest
from playwright.sync_api import Locator, Page, expect

from streamskit.course.labs.catalogue import exercise
from tests.browser.conftest import JupyterLab
from tests.browser.pages import await_idle, open_notebook, shoot

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.timeout(400)]

NOTEBOOK = "labs/08-windows.ipynb"

ANSWER = """def clicks_per_minute(builder):
    windows = TimeWindows.{windows}
    counts = builder.stream("clicks").group_by_key().windowed_by(windows).count("clicks-per-minute")
    counts.to_stream().to("clicks-per-minute")"""


def test_from_a_wrong_answer_by_a_hint_to_the_right_one(lab: JupyterLab, page: Page) -> None:
    open_notebook(page, lab, NOTEBOOK)
    run(page, cell(page, "from streamskit.labs import"))
    answer, check = cell(page, "def clicks_per_minute"), cell(page, 'check("clicks_per_minute")')

    run(page, answer)
    run(page, check)
    expect(check).to_contain_text("still raises NotImplementedError", timeout=90_000)

    write(page, answer, ANSWER.format(windows='of_size_and_grace("1 minute", "10 minutes")'))
    run(page, answer)
    run(page, check)
    expect(check).to_contain_text("late record counted", timeout=90_000)
    expect(check.locator("img[alt^=Chart]")).to_be_visible()
    expect(check).to_contain_text("CheckFailed: clicks_per_minute is not right yet; see above.")
    check.scroll_into_view_if_needed()
    shoot(page, "lab-wrong")

    other = cell(page, "try_out(clicks_per_minute")  # a check cannot be written over
    write(page, other, "hint()")
    run(page, other)
    expect(other).to_contain_text(exercise("clicks_per_minute").hints[0], timeout=30_000)
    shoot(page, "lab-hint")

    write(page, answer, ANSWER.format(windows='of_size_with_no_grace("1 minute")'))
    run(page, answer)
    run(page, check)
    expect(check).to_contain_text("✓ clicks_per_minute: passed", timeout=90_000)
    expect(check).to_contain_text("are those of Kafka Streams 4.1")
    shoot(page, "lab-right")

    write(page, other, "progress()")
    run(page, other)
    expect(other).to_contain_text("1 of ", timeout=30_000)
    expect(other).to_contain_text("✓ clicks_per_minute")
    shoot(page, "lab-progress")


def cell(page: Page, text: str) -> Locator:
    """Return the code cell in which a text stands, by its place, so that it stays the same when it is rewritten."""
    cells = page.locator(".jp-Notebook-cell")
    expect(cells.filter(has_text=text).first).to_be_attached(timeout=30_000)
    for _ in range(300):  # JupyterLab draws a cell's text after the cell
        for at, each in enumerate(cells.all()):
            if text in each.inner_text() and "jp-CodeCell" in kind(each):
                return cells.nth(at)
        page.wait_for_timeout(100)
    raise AssertionError(f"No code cell shows {text!r}.")


def kind(cell: Locator) -> str:
    return cell.get_attribute("class") or ""


def write(page: Page, cell: Locator, text: str) -> None:
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def run(page: Page, cell: Locator) -> None:
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    await_idle(page)
