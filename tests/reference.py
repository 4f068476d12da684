"""`make docs`: the reference pages of what streamskit offers, made from its docstrings by pdoc."""

import sys
from pathlib import Path

import pdoc
import pdoc.render

import streamskit

PAGES = streamskit.FACES
"""The modules whose names are offered; the rest is to be read as code."""


def write(folder: Path) -> None:
    """Write the pages into a folder, with an index."""
    pdoc.render.configure(docformat="google", show_source=False)
    pdoc.pdoc(*PAGES, output_directory=folder)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference")
    write(target)
    print(f"The reference is at {target / 'streamskit.html'}.")
