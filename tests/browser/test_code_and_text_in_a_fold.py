"""A learner unfolds code or a long sentence in a narrow window: no word is broken at its edge, as JupyterLab would."""

import pytest
from playwright.sync_api import Page

from streamskit import StreamsBuilder
from streamskit.lessons import fold, java_twin

pytestmark = pytest.mark.browser

JUPYTERLAB = """<style>.jp-OutputArea-output pre {
    overflow: auto; word-break: break-all; overflow-wrap: break-word; white-space: pre-wrap; }</style>"""

WORDS_IN_TWO_LINES = """pre => {
    const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) for (const word of walker.currentNode.data.matchAll(/[^ \\n]+/g)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(each => each.top)).size > 1) found.push(word[0]);
    }
    return found;
}"""


def shown(page: Page, html: str) -> None:
    page.set_viewport_size({"width": 420, "height": 400})
    page.set_content(f'{JUPYTERLAB}<div class="jp-OutputArea-output">{html}</div>')
    page.locator("summary").click()


def test_a_sentence_in_a_fold_breaks_between_words_and_a_word_longer_than_the_line_stays_in_the_frame(
    page: Page,
) -> None:
    said = " ".join(f"'orders-of-customer-{number}'" for number in range(20))
    shown(page, fold("What it says", said)._repr_mimebundle_()["text/html"])
    text = page.locator("pre")
    assert text.evaluate(WORDS_IN_TWO_LINES) == []
    assert text.evaluate("pre => pre.clientHeight / parseFloat(getComputedStyle(pre).fontSize)") > 3  # several lines
    shown(page, fold("What it says", "x" * 400)._repr_mimebundle_()["text/html"])
    assert page.locator("pre").evaluate("pre => pre.scrollWidth - pre.clientWidth") == 0


def test_the_lines_of_a_java_program_stay_whole_and_scroll_in_their_frame(page: Page) -> None:
    builder = StreamsBuilder()
    builder.stream("widgets").filter(lambda v: v == "red").to("red-widgets")
    twin = java_twin("red-widgets", builder.build())
    shown(page, twin._repr_mimebundle_()["text/html"])
    code = page.locator("pre")
    assert code.evaluate(WORDS_IN_TWO_LINES) == []
    assert code.evaluate("pre => pre.scrollWidth - pre.clientWidth") > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
