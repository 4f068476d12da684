"""What a live view shows: a snapshot, and the page that is made of it, live and in a saved notebook."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from streamskit.views.html import SAVED, STYLE, SWITCH, headline, moment, part, picture

RATE_OVER = 5.0
"""Over how many seconds changes are counted for a rate."""

Count = TypeVar("Count")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What a view has seen at one moment.

    Args:
        name: what it is of.
        taken_at: when it was taken, in seconds since 1970.
        stopped: why no more will come, if the subject has stopped.
        trouble: why the subject has failed, if it has failed but may recover.
    """

    name: str
    taken_at: float
    stopped: str = ""
    trouble: str = ""

    def calm(self) -> "Snapshot":
        """Return the same as a saved notebook shows it: nothing is marked as new."""
        return self


S = TypeVar("S", bound=Snapshot)


@dataclass(frozen=True)
class Page(Generic[S]):
    """How a snapshot is written as HTML, by functions of nothing but the snapshot.

    Args:
        kind: what the page's parts are called in the notebook, such as "store".
        subject: what it shows, for sentences such as "The store could not be read".
        facts: says what is seen, in the line under the name; the second argument is whether the page is a saved one.
        parts: writes each part below the header, by name; SVG becomes an image in a saved notebook.
        alarm: writes what must not be overlooked, below the facts.
        saved_parts: replace the parts in a saved notebook.
    """

    kind: str
    subject: str
    facts: Callable[[S, bool], Iterable[str]]
    parts: Mapping[str, Callable[[S], str]]
    alarm: Callable[[S], str] = lambda snapshot: ""
    saved_parts: Mapping[str, Callable[[S], str]] | None = None

    def header(self, snapshot: S, state: str, trouble: str = "") -> str:
        """Return the lines that say what is seen, its state, and a sentence about trouble."""
        is_saved = state == "saved"
        as_of = [f"as of {moment(int(snapshot.taken_at) * 1000)} UTC"] if is_saved else []
        state = "failed" if snapshot.trouble and state == "live" else state
        beneath = trouble or snapshot.stopped or snapshot.trouble
        facts = [*self.facts(snapshot, is_saved), *as_of]
        return headline(snapshot.name, state, facts, beneath, bool(trouble)) + self.alarm(snapshot)

    def kept(self, snapshot: S) -> str:
        """Return what a saved notebook shows of a snapshot."""
        calm = snapshot.calm()
        written = (write(calm) for write in (self.saved_parts or self.parts).values())  # type: ignore[arg-type]
        body = "".join(picture(each) if each.startswith("<svg") else each for each in written)
        return self.header(calm, "saved") + body  # type: ignore[arg-type]

    def saved(self, snapshot: S) -> str:
        """Return a separate page for a saved notebook, without controls, shown where the live view is not."""
        return saved_page(part(self.kept(snapshot), self.kind))


def saved_page(body: str) -> str:
    """Return the page for a saved notebook that has such a body, shown where no live view is."""
    return f'{STYLE}{SWITCH}<div class="{SAVED}">{body}</div>'


def counted_until(history: Sequence[tuple[float, Count]], now: float, count: Count) -> list[tuple[float, Count]]:
    """Return the counts of the last seconds and a new one; the last count before them is kept as the baseline."""
    recent = list(history)
    while len(recent) > 1 and recent[1][0] < now - RATE_OVER:
        recent.pop(0)
    return [*recent, (now, count)]


def rate(history: Sequence[tuple[float, int]]) -> float | None:
    """Return how many came in a second, or None where they were not counted for long enough."""
    if len(history) < 2 or history[-1][0] - history[0][0] < 0.1:
        return None
    (since, before), (until, after) = history[0], history[-1]
    return max(0.0, (after - before) / (until - since))


def condition(search: str) -> str:
    """Say what a search asks of a key."""
    return f"is {search}" if search.startswith('"') else f"begins with {search}"
