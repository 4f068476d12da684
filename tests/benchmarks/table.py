"""The one table that `make bench` prints, a row as soon as it is measured."""

from dataclasses import dataclass

COLUMNS = ("what", "by hand", "streamskit", "ratio", "more")
WIDTHS = (44, 22, 22, 5, 0)


@dataclass(frozen=True)
class Row:
    """One comparison.

    Args:
        what: what was measured.
        by_hand: the figure of plain PySpark, FastAPI or whatever is the plain way; "" where there is none.
        streamskit: the figure of streamskit.
        ratio: streamskit's cost over the plain way's, smaller is better; None where there is no plain way.
        more: what else the run told.
    """

    what: str
    by_hand: str
    streamskit: str
    ratio: float | None = None
    more: str = ""


def begin() -> None:
    """Print the head of the table."""
    _print(COLUMNS)
    print("|" + "|".join("-" * (width + 2) for width in WIDTHS) + "|", flush=True)


def show(row: Row) -> None:
    """Print a row."""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    _print((row.what, row.by_hand, row.streamskit, ratio, row.more))


def _print(cells: tuple[str, ...]) -> None:
    print("| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)) + " |", flush=True)
