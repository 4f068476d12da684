"""Of a live view and the page kept of it, each frontend shows one: its markup, and a browser that applies the style."""

import pytest
from playwright.sync_api import Page, expect

from streamskit.views.html import LIVE
from streamskit.views.page import saved_page

FRONTENDS = {
    "JupyterLab": '<div class="jp-OutputArea-child"><div class="jp-OutputArea-output">{}</div></div>',
    "VS Code": '<div class="output_container"><div class="output"><div class="output-item">{}</div></div></div>',
    "nbviewer": '<div class="output_area"><div class="output_subarea">{}</div></div>',
}
PRINTED = "<pre>printed before</pre>"
WIDGET = f'<div class="cell-output-ipywidget-background"><div class="jupyter-widgets {LIVE}">a live view</div></div>'
NO_WIDGET = "<div>Error displaying widget: model not found</div>"
KEPT = saved_page("<p>the page kept of it</p>")


@pytest.mark.parametrize("frame", FRONTENDS.values(), ids=FRONTENDS.keys())
@pytest.mark.parametrize(
    ("first", "shown", "hidden"),
    [
        (WIDGET, "a live view", "the page kept of it"),
        (NO_WIDGET, "the page kept of it", "Error displaying widget"),
    ],
    ids=["with a kernel", "without one"],
)
def test_one_of_the_two_outputs_is_shown(page: Page, frame: str, first: str, shown: str, hidden: str) -> None:
    page.set_content(f"<section>{''.join(frame.format(each) for each in (PRINTED, first, KEPT))}</section>")
    expect(page.get_by_text(shown)).to_be_visible()
    expect(page.get_by_text(hidden)).to_be_hidden()
    expect(page.get_by_text("printed before")).to_be_visible()
