"""What a learner wrote, and where: names that can be part of topics, and the line of a step."""

import re
import sys
from pathlib import Path

from streamskit.errors import TopologyError

_PACKAGE = str(Path(__file__).parent)


def check_name(given: str) -> str:
    """Return a learner's name for a step or a store.

    Raises:
        TopologyError: it cannot be part of a topic's name.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", given) or given in (".", ".."):
        raise TopologyError(
            f"'{given}' cannot be a name: at most 249 letters, digits, dots, dashes and underscores can, because "
            "it becomes part of topic names."
        )
    return given


def written_at() -> str:
    """Return the line of the learner's program that is being run, as "In[3] line 2" or "app.py line 12"."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{file_label(frame.f_code.co_filename)} line {frame.f_lineno}"


def file_label(filename: str) -> str:
    """Return a file's name, or In[n] for the cell of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In[{cells[filename]}]" if filename in cells else Path(filename).name
