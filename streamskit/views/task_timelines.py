"""Pictures of who does the work: Spark's tasks in time, and the partitions of stores by instance."""

from base64 import b64encode
from collections.abc import Mapping
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from streamskit.api.windows import Windowed
from streamskit.views.charts import COLOURS
from streamskit.views.event_time_axis import stacked
from streamskit.views.timeline_parts import finished, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACTIVE = "#2563eb"

NARROW = 0.02
"""The share of the picture that a bar must have for a number in it, and for an edge, which would cover a narrow one."""


class Picture:
    """A figure as an image, with a sentence for those who cannot see it.

    Args:
        figure: what is drawn.
        alt: the same in words.
    """

    def __init__(self, figure: "Figure", alt: str) -> None:
        drawn = BytesIO()
        finished(figure).savefig(drawn, format="png", dpi=90)
        self.alt, self.data = alt, drawn.getvalue()

    def _repr_html_(self) -> str:
        # As HTML: JupyterLab leaves the words of an image out that is an output by itself.
        data = b64encode(self.data).decode()
        return f'<img alt="{escape(self.alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'

    def __repr__(self) -> str:
        return f"<Picture: {self.alt}>"


class TaskBar(NamedTuple):
    """A task as it is drawn: on which executor, in which of its lines, for which partition, when in milliseconds."""

    executor: str
    slot: int
    partition: int
    begin: int
    length: int


def tasks_timeline(tasks: pd.DataFrame, title: str = "") -> Picture:
    """Draw tasks as bars in time, one line for each that runs at the same time; a wide bar's number is its partition.

    Args:
        tasks: what `spark_tasks` returned, or some of its rows; the columns started, milliseconds, partition and
            executor are read.
        title: what stands over the picture.

    Raises:
        ValueError: there is no task.

    >>> tasks_timeline(spark_tasks(streams).query("job == 3"))  # doctest: +SKIP
    """
    bars = _bars(tasks)
    if not bars:
        raise ValueError("There is no task to draw: has the application processed a record by now?")
    lines = sorted({(bar.executor, bar.slot) for bar in bars})
    partitions = sorted({bar.partition for bar in bars})
    figure, axes = subplots(0.9 + 0.45 * len(lines))
    whole = max(bar.begin + bar.length for bar in bars)
    narrow = whole * NARROW
    for number, partition in enumerate(partitions):
        colour = COLOURS[number % len(COLOURS)]
        for place, line in enumerate(lines):
            own = [bar for bar in bars if bar.partition == partition and (bar.executor, bar.slot) == line]
            edges = ["none" if bar.length < narrow else "white" for bar in own]
            spans = [(bar.begin, bar.length) for bar in own]
            axes.broken_barh(spans, (place - 0.35, 0.7), facecolors=colour, edgecolors=edges)
            for begin, length in spans:
                if length >= narrow:
                    axes.text(begin + length / 2, place, str(partition), color="black", fontsize=9,
                              ha="center", va="center", clip_on=True)  # fmt: skip
    axes.set_yticks(range(len(lines)), [f"{executor}, slot {slot + 1}" for executor, slot in lines])
    axes.set_xlabel("milliseconds")
    axes.set_title(title)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    shares = [
        f"{executor} slot {slot + 1}: partitions "
        + ", ".join(str(bar.partition) for bar in bars if (bar.executor, bar.slot) == (executor, slot))
        for executor, slot in lines
    ]
    return Picture(figure, f"{title or 'Tasks in time'}: {len(bars)} tasks in {whole} ms; " + "; ".join(shares))


def hosting(moments: Mapping[str, pd.DataFrame]) -> Picture:
    """Draw who hosts which partition, at several moments; a filled square is active, an empty one a standby.

    Args:
        moments: by title, data frames with the columns instance, role ("active" or "standby") and partition.

    Raises:
        ValueError: there is no moment.

    >>> hosting({"before": shares, "after": other_shares})  # doctest: +SKIP
    """
    from matplotlib.patches import Patch

    if not moments:
        raise ValueError("There is no moment to draw: give data frames by title, as in hosting({'before': shares}).")
    everything = pd.concat(moments.values())
    instances, partitions = sorted(set(everything["instance"])), sorted(set(everything["partition"]))
    size = (0.9 + 0.45 * len(instances), len(moments), 2 * len(moments) + 1)
    figure, panes = subplots(*size, sharey=True, squeeze=False)
    for axes, (title, shares) in zip(panes[0], moments.items(), strict=True):
        for instance, role, partition in shares[["instance", "role", "partition"]].values:
            place = (partitions.index(partition), instances.index(instance))
            axes.scatter(
                *place, s=200, marker="s", linewidths=2, edgecolors=ACTIVE, c=ACTIVE if role == "active" else "white"
            )
        axes.set_title(title, fontsize=10)
        axes.set_xticks(range(len(partitions)), [str(partition) for partition in partitions])
        axes.set_yticks(range(len(instances)), instances)
        axes.set(xlim=(-0.6, len(partitions) - 0.4), ylim=(len(instances) - 0.4, -0.6), xlabel="partition")
        axes.spines[["top", "right"]].set_visible(False)
    if (everything["role"] == "standby").any():
        keys = [Patch(facecolor=colour, edgecolor=ACTIVE) for colour in (ACTIVE, "white")]
        figure.legend(keys, ["active", "standby"], frameon=False, loc="outside right upper")
    return Picture(figure, "; ".join(f"{title}: {_shared(shares)}" for title, shares in moments.items()))


def _shared(shares: pd.DataFrame) -> str:
    """Say in words who hosts what, by the columns instance, role and partition."""
    held: dict[tuple[str, str], list[Any]] = {}
    for instance, role, partition in sorted(shares[["instance", "role", "partition"]].values.tolist()):
        held.setdefault((instance, role), []).append(partition)
    return ", ".join(f"{instance} {role} {' '.join(map(str, parts))}" for (instance, role), parts in held.items())


def _bars(tasks: pd.DataFrame) -> list[TaskBar]:
    """Give tasks (started, milliseconds, partition, executor) lines of their executor's on which no other runs then."""
    rows = sorted(tasks[["started", "partition", "milliseconds", "executor"]].values.tolist())
    bars = []
    for executor in dict.fromkeys(row[3] for row in rows):
        own = [Windowed(part, start, start + length) for start, part, length, where in rows if where == executor]
        name = "this process" if executor == "driver" else f"executor {executor}"
        for task, slot in zip(own, stacked(own, 0), strict=True):
            bars.append(TaskBar(name, slot, task.key, task.start - rows[0][0], max(1, task.end - task.start)))
    return bars
