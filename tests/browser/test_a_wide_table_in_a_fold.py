"""A learner unfolds a result with a table that is wider than the notebook: it scrolls inside its frame."""

import pandas as pd
import pytest
from playwright.sync_api import Page

from streamskit.lessons import fold

pytestmark = pytest.mark.browser


def test_a_table_that_is_wider_than_the_page_stays_inside_the_frame_of_its_fold(page: Page) -> None:
    page.set_viewport_size({"width": 500, "height": 400})
    wide = pd.DataFrame({f"a-column-with-a-long-name-{number}": [number] for number in range(8)})
    page.set_content(fold("The result", wide)._repr_mimebundle_()["text/html"])
    page.get_by_text("The result").click()
    frame = page.locator("details")
    assert frame.evaluate("element => element.scrollWidth - element.clientWidth") > 0  # the table, which scrolls
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    assert frame.evaluate("element => element.scrollHeight - element.clientHeight") == 0
