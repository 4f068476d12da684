"""Drawings of how results get from events to those who ask: with a cluster, with a library, with a database."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streamskit.course.lessons.drawing import Drawing, refuse_beyond

COLUMN, ROW, WIDTH, HEIGHT = 150.0, 78.0, 116.0, 46.0
ROWS_AT_MOST = 100


class System(NamedTuple):
    """A box of an architecture: its place, words and look. `keeps` says that it has a copy of the results."""

    column: float
    row: float
    words: tuple[str, ...]
    look: str = "plain"
    keeps: bool = False
    runs: bool = True


@dataclass(frozen=True)
class Architecture:
    """Systems, and the arrows between them.

    Args:
        title: the heading above the drawing.
        systems: by name; `runs` are those that somebody has to operate.
        flows: pairs of names, from one to the other, with words on the arrow.
        note: a sentence below the drawing.
    """

    title: str
    systems: Mapping[str, System]
    flows: Iterable[tuple[str, str, str]]
    note: str = ""

    @property
    def operated(self) -> list[str]:
        """The systems that somebody has to operate, by name."""
        return [name for name, system in self.systems.items() if system.runs]

    @property
    def copies(self) -> list[str]:
        """Where the results are kept, by name."""
        return [name for name, system in self.systems.items() if system.keeps]

    def drawing(self) -> Drawing:
        """Draw it.

        >>> LIBRARY.drawing().alt.startswith("Boxes with arrows between them: from Events to Kafka; from Kafka")
        True
        """
        rows = max(system.row for system in self.systems.values())
        height = 52 + ROW * rows + HEIGHT + (34 if self.note else 14)
        drawing = Drawing(self.title, self._words(), 760, height)
        for one, other, words in self.flows:
            self._arrow(drawing, self.systems[one], self.systems[other], words)
        for system in self.systems.values():
            x, y = _place(system)
            shape = drawing.drum if system.keeps else drawing.box
            shape(x, y, WIDTH, HEIGHT, *system.words, look=system.look)
        return drawing.write(14, height - 14, self.note, size=10.5, ink="quiet") if self.note else drawing

    def _words(self) -> str:
        arrows = "; ".join(
            f"from {self.systems[one].words[0]} to {self.systems[other].words[0]}" + (f" ({words})" if words else "")
            for one, other, words in self.flows
        )
        kept = " and ".join(self.systems[name].words[0] for name in self.copies)
        return f"Boxes with arrows between them: {arrows}. Results are kept in: {kept}. {self.note}".strip()

    @staticmethod
    def _arrow(drawing: Drawing, one: System, other: System, words: str) -> None:
        (x1, y1), (x2, y2) = _place(one), _place(other)
        middle = HEIGHT / 2
        if x1 < x2:
            drawing.arrow((x1 + WIDTH, y1 + middle), (x2, y2 + middle), words if y1 == y2 else "")
        else:
            down = y1 < y2
            start, end = (y1 + HEIGHT, y2) if down else (y1, y2 + HEIGHT)
            drawing.arrow((x1 + WIDTH / 2, start), (x2 + WIDTH / 2, end))


def _place(system: System) -> tuple[float, float]:
    return 16 + COLUMN * system.column, 46 + ROW * system.row


LAMBDA = Architecture(
    "Before: two processing layers and a database (Lambda)",
    {
        "Kafka": System(1, 0.5, ("Kafka", "events"), "frame"),
        "batch cluster": System(2, 0, ("batch cluster", "every few hours"), "blue"),
        "stream cluster": System(2, 1, ("stream cluster", "all the time"), "blue", keeps=True),
        "database": System(3, 0.5, ("database", "results"), "orange", keeps=True),
        "dashboard": System(4, 0.5, ("dashboard",)),
        "sources": System(0, 0.5, ("Events",), "frame", runs=False),
    },
    [
        ("sources", "Kafka", ""), ("Kafka", "batch cluster", ""), ("Kafka", "stream cluster", ""),
        ("batch cluster", "database", ""), ("stream cluster", "database", ""), ("database", "dashboard", ""),
    ],
    "The same logic is written twice, and both results have to agree.",
)  # fmt: skip

KAPPA = Architecture(
    "One processing layer (Kappa): replay the log in place of the batch",
    {
        "sources": System(0, 0, ("Events",), "frame", runs=False),
        "Kafka": System(1, 0, ("Kafka", "events, kept"), "frame"),
        "stream cluster": System(2, 0, ("stream cluster", "with its state"), "blue", keeps=True),
        "database": System(3, 0, ("database", "results"), "orange", keeps=True),
        "dashboard": System(4, 0, ("dashboard",)),
    },
    [
        ("sources", "Kafka", ""), ("Kafka", "stream cluster", ""), ("stream cluster", "database", "rows"),
        ("database", "dashboard", "rows"),
    ],
    "Every result is written twice: into the state of the processing, and into the database.",
)  # fmt: skip

LIBRARY = Architecture(
    "After: the application is the database for its own results",
    {
        "sources": System(0, 0, ("Events",), "frame", runs=False),
        "Kafka": System(1, 0, ("Kafka", "events, changelogs"), "frame"),
        "application": System(2, 0, ("your application", "with its stores"), "orange", keeps=True),
        "dashboard": System(3, 0, ("dashboard",)),
    },
    [("sources", "Kafka", ""), ("Kafka", "application", ""), ("application", "dashboard", "rows")],
    "Kafka Streams is a library inside your application: no cluster, and nothing runs inside the brokers.",
)

BOTH = Architecture(
    "Both: newest results from the application, all others from a database",
    {
        "Kafka": System(0, 0, ("Kafka", "events"), "frame"),
        "application": System(1, 0, ("your application", "with its stores"), "orange", keeps=True),
        "dashboard": System(2, 0, ("dashboard",)),
        "output": System(1, 1, ("output topic", "in Kafka"), "frame", runs=False),
        "Connect": System(2, 1, ("Kafka Connect",), "blue"),
        "database": System(3, 1, ("database", "results"), "orange", keeps=True),
        "reports": System(4, 1, ("reports", "SQL, joins"), runs=False),
    },
    [
        ("Kafka", "application", ""), ("application", "dashboard", "rows"), ("application", "output", ""),
        ("output", "Connect", ""), ("Connect", "database", ""), ("database", "reports", ""),
    ],
)  # fmt: skip


def same_application_many_times(instances: int, partitions: int) -> Drawing:
    """Draw the instances of one application, each with its share of a topic's partitions.

    Args:
        instances: how many, 1 to 100; those beyond the partitions are idle.
        partitions: how many the topic has, 1 to 100.

    Raises:
        ValueError: a number is out of these ranges.

    >>> same_application_many_times(3, 2).alt.endswith("Instance 3 is idle.")
    True
    """
    refuse_beyond(1, ROWS_AT_MOST, instances=instances, partitions=partitions)
    shares = [list(range(partitions))[number::instances] for number in range(instances)]
    said = [
        f"Instance {number + 1} reads {'partition' if len(share) == 1 else 'partitions'} {', '.join(map(str, share))}."
        if share
        else f"Instance {number + 1} is idle."
        for number, share in enumerate(shares)
    ]
    height = 62 + 44 * max(partitions, instances)
    drawing = Drawing("The same application, many instances", " ".join(said), 760, height)
    for partition in range(partitions):
        drawing.box(30, 46 + 44 * partition, 150, 32, f"partition {partition}", look="frame")
    for number, share in enumerate(shares):
        y = 46 + 44 * number
        look = "blue" if share else "grey"
        drawing.box(
            440, y, 220, 32, f"instance {number + 1}" + ("" if share else ", idle"), look=look, dashed=not share
        )
        for partition in share:
            drawing.arrow((180, 62 + 44 * partition), (440, y + 16))
    return drawing
