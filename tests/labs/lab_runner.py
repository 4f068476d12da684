"""Where the notebooks of the labs are."""

from pathlib import Path

from streamskit.course.labs import catalogue
from streamskit.course.labs.lab_files import recorded_of

ROOT = Path(__file__).parents[2]
SOURCES, STUDENTS = ROOT / "labs" / "source", ROOT / "labs"


def source(name: str) -> Path:
    """Return the lab as its author wrote it."""
    return SOURCES / name / f"{name}.ipynb"


def student(name: str) -> Path:
    """Return the lab as a learner gets it."""
    return STUDENTS / f"{name}.ipynb"


def recorded() -> list[str]:
    """Return the labs whose wrong answers are recorded."""
    return [name for name in catalogue.NAMES if recorded_of(name)]
