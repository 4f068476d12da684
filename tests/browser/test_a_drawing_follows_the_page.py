"""A drawing is an image, and still takes the theme of JupyterLab or VS Code: a browser shows it light or dark."""

from io import BytesIO

import matplotlib.image as mpimg
import pytest
from playwright.sync_api import Browser

from streamskit.lessons import Drawing

DRAWING = Drawing("A topic", "An empty sheet of paper.", width=200, height=100)._repr_html_()


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize(
    ("body", "paper"),
    [
        ('data-jp-theme-light="true"', "light"),
        ('data-jp-theme-light="false"', "dark"),
        ('class="vscode-light"', "light"),
        ('class="vscode-dark"', "dark"),
        ('class="vscode-high-contrast"', "dark"),
        ('class="vscode-high-contrast vscode-high-contrast-light"', "light"),
        ('style="color-scheme:dark"', "dark"),
        ("", None),
    ],
)
def test_the_paper_of_a_drawing_is_that_of_the_page(
    browser: Browser, system: str, body: str, paper: str | None
) -> None:
    page = browser.new_page(color_scheme="dark" if system == "dark" else "light")
    page.set_content(f"<body {body}>{DRAWING}</body>")
    seen = mpimg.imread(BytesIO(page.get_by_alt_text("An empty sheet of paper.").screenshot()))
    page.close()
    brightness = float(seen[80, 100, :3].mean())
    assert ("light" if brightness > 0.5 else "dark") == (paper or system)
