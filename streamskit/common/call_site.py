"""Call sites: the line of the program that made a step, as in Spark's `CallSite`."""

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


def call_site() -> str:
    """Return the line of the user's program that is being run, as "In[3] line 2" or "app.py line 12"."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{file_label(frame.f_code.co_filename)} line {frame.f_lineno}"


def file_label(filename: str) -> str:
    """Return a file's name, or In[n] for the cell of a notebook."""
    # Another thread may be importing it at this moment: then it has no name yet, and no cell runs.
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if get_ipython else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In[{cells[filename]}]" if filename in cells else Path(filename).name
