"""What the doctor says: checks, and how they read in a terminal and in a notebook."""

import html
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "problem"]
SIGNS = {"ok": "✓", "warning": "!", "problem": "✗"}


@dataclass(frozen=True)
class Check:
    """One line of the doctor: what was looked at, how it is, and what to do about it ("" for nothing)."""

    name: str
    status: Status
    says: str
    do: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks of one run; prints as text in a terminal, shows as a table in a notebook."""

    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether there is no problem (there may be warnings)."""
        return all(check.status != "problem" for check in self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __str__(self) -> str:
        wide = max(40, min(110, shutil.get_terminal_size().columns))
        return "\n".join(_as_text(check, wide) for check in self.checks)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(_as_row(check) for check in self.checks)
        heads = "".join(
            f'<th scope="col" style="text-align:left">{head}</th>'
            for head in ("Status", "What", "How it is", "What to do")
        )
        return (
            "<table><caption>Is this machine ready for streamskit?</caption>"
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        )


def _as_text(check: Check, wide: int) -> str:
    start = f"{SIGNS[check.status]} {check.status:<8} {check.name:<9} "
    hint = " " * len(start) + "→ "
    return "\n".join(_wrapped(start, check.says, wide) + _wrapped(hint, check.do, wide))


def _wrapped(start: str, text: str, wide: int) -> list[str]:
    indent = " " * len(start)
    # Paths stay whole, so that they can be copied.
    return textwrap.wrap(
        text,
        wide,
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _as_row(check: Check) -> str:
    bold = "font-weight:bold;" if check.status != "ok" else ""
    status = f'<td style="text-align:left;white-space:nowrap;{bold}">{SIGNS[check.status]} {check.status}</td>'
    cells = "".join(f'<td style="text-align:left">{html.escape(text)}</td>' for text in (check.says, check.do))
    return f'<tr>{status}<th scope="row" style="text-align:left">{check.name}</th>{cells}</tr>'
