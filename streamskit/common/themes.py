"""Light or dark: how the pages that show a notebook mark their theme, in CSS."""

DARK_PAGES = ('[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-high-contrast:not(.vscode-high-contrast-light)")
LIGHT_PAGES = ('[data-jp-theme-light="true"]', ".vscode-light", ".vscode-high-contrast-light")
"""What a page's body carries: in JupyterLab, Notebook 7 and pages that nbconvert makes, and in VS Code."""


def on_dark_pages(selector: str, style: str) -> str:
    """Return the CSS rule for what is selected, on dark pages only.

    >>> on_dark_pages("b", "color:white").startswith(':is([data-jp-theme-light="false"],.vscode-dark,')
    True
    """
    return f":is({','.join(DARK_PAGES)}) {selector}{{{style}}}"


def follows_the_page(selector: str) -> str:
    """Return the CSS rules by which an SVG image takes its page's theme, and the system's on any other page.

    An image doesn't see the style of its page. What its own `@media (prefers-color-scheme:dark)` asks for is the
    `color-scheme` of the image's element, and that is what these rules set. JupyterLab 4 sets it for its whole page,
    even for a notebook that it doesn't trust and takes styles from. VS Code and pages of nbconvert need the rules.
    """
    light = f":is({','.join(LIGHT_PAGES)}) {selector}{{color-scheme:light}}"
    return on_dark_pages(selector, "color-scheme:dark") + light
