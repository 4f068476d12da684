"""Faults as HTML: which can be injected, what the case is with each, and what to watch."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from streamskit.views.live.chart import counted
from streamskit.views.live.html import Column, Line, grid, headline, moment, saved, text_cell

COLUMNS = (Column("fault", 220, left=True), Column("state", 520, left=True))

READY = "not injected"


@dataclass(frozen=True)
class FaultState:
    """One fault that can be injected: its button's words, and its state in words; `is_trouble` if it went wrong."""

    words: str
    state: str
    is_active: bool = False
    is_trouble: bool = False


@dataclass(frozen=True)
class FaultSnapshot:
    """All of them at one moment; `taken_at` in seconds since 1970; `last` is the report of the one injected last."""

    faults: Sequence[FaultState]
    last: str
    taken_at: float
    stopped: str = ""


def render_faults(snapshot: FaultSnapshot) -> str:
    """Return a page of its own for a saved notebook."""
    lines = [
        Line([text_cell(each.words), text_cell(each.state)], sign(each)[0], sign(each)[1], _look(each))
        for each in snapshot.faults
    ]
    return saved(header(snapshot, "saved") + grid(COLUMNS, lines, "state") + report(snapshot), "faults")


def header(snapshot: FaultSnapshot, state: str, trouble: str = "") -> str:
    """Return the lines that say how many faults last now."""
    active = sum(each.is_active for each in snapshot.faults)
    said = [f"{active} of {counted(len(snapshot.faults), 'fault')} last now"]
    said += [f"as of {moment(int(snapshot.taken_at))} UTC"] if state == "saved" else []
    return headline("Faults", state, said, trouble or snapshot.stopped)


def state_line(fault: FaultState) -> str:
    """Return what stands beside a fault's buttons: a sign and words, so that nothing is told by colour alone."""
    mark, meaning = sign(fault)
    look = "sk-failed" if fault.is_active or fault.is_trouble else "sk-quiet"
    return f'<div class="{look}" title="{meaning}">{mark} {escape(fault.state)}</div>'


def report(snapshot: FaultSnapshot) -> str:
    """Return what was done last, what to watch, and how to undo it; read out when it changes."""
    if not snapshot.last:
        return '<div class="sk-quiet">Choose a fault: here it says then what was done, and what to watch.</div>'
    lines = "".join(f"<div>{escape(line)}</div>" for line in snapshot.last.splitlines())
    return f'<div role="status" aria-live="polite">{lines}</div>'


def sign(fault: FaultState) -> tuple[str, str]:
    """Return a sign for a fault's state, and what it means."""
    if fault.is_trouble:
        return "▲", "could not be done"
    if fault.is_active:
        return "✕", "lasts"
    return ("○", "not injected") if fault.state == READY else ("●", "over")


def _look(fault: FaultState) -> str:
    return "sk-bad" if fault.is_active or fault.is_trouble else ""
