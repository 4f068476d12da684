"""Where the notebooks of the labs are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES, STUDENTS = ROOT / "labs" / "source", ROOT / "labs"


def source(name: str) -> Path:
    """Return the lab as its author wrote it."""
    return SOURCES / name / f"{name}.ipynb"


def student(name: str) -> Path:
    """Return the lab as a learner gets it."""
    return STUDENTS / f"{name}.ipynb"
