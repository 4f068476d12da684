"""A topology's snapshot as HTML: the diagram with what is measured in it, and how far each task is."""

from html import escape

from streamskit.topology.drawing.diagram import as_html, draw
from streamskit.views.live.chart import counted
from streamskit.views.live.html import Column, Line, cell, grid, headline, moment, saved
from streamskit.views.live.topology_snapshot import Task, TopologySnapshot

MOST_TASKS = 64
"""So many tasks are listed at most, those with the largest lag."""

COLUMNS = (
    Column("sub-topology", 120),
    Column("topic", 280, left=True),
    Column("partition", 95),
    Column("read up to", 110),
    Column("end", 110),
    Column("lag", 90),
)


def render_topology(snapshot: TopologySnapshot) -> str:
    """Return a page of its own for a saved notebook."""
    drawn = as_html(snapshot.sub_topologies, snapshot.notes, snapshot.failed)
    return saved(header(snapshot, "saved") + drawn + tasks(snapshot), "topology")


def header(snapshot: TopologySnapshot, state: str, trouble: str = "") -> str:
    """Return the lines that say what the application is doing."""
    lags = [task.lag for task in snapshot.tasks if task.lag is not None]
    count = len(snapshot.sub_topologies)
    said = [f"state {snapshot.state}", "1 sub-topology" if count == 1 else f"{count} sub-topologies"]
    said += [f"{counted(sum(lags), 'record')} behind"] if lags else []
    said += [f"run again {counted(snapshot.restarts, 'time')}"] if snapshot.restarts else []
    said += [f"as of {moment(int(snapshot.taken_at))} UTC"] if state == "saved" else []
    failed = f"✕ failed: {', '.join(snapshot.failed)}" if snapshot.failed else ""
    why = trouble or snapshot.stopped or snapshot.trouble
    lines = headline(snapshot.name, "failed" if failed and state == "live" else state, said, why)
    return lines + (f'<div class="sk-failed"><b>{escape(failed)}</b></div>' if failed else "")


def diagram(snapshot: TopologySnapshot) -> str:
    """Return the diagram, with rates at the nodes where records are counted and the failed ones in red."""
    return draw(snapshot.sub_topologies, snapshot.notes, snapshot.failed)


def tasks(snapshot: TopologySnapshot) -> str:
    """Return a table of the tasks: one for each partition that a sub-topology reads."""
    if not snapshot.tasks:
        return '<div class="sk-quiet">No task has read anything yet.</div>'
    shown = sorted(snapshot.tasks, key=lambda task: -(task.lag or 0))[:MOST_TASKS]
    shown.sort(key=lambda task: (task.sub_topology, task.topic, task.partition))
    rest = len(snapshot.tasks) - len(shown)
    title = "Tasks: how far each sub-topology has read each partition" + (f" ({rest} more are not shown)" * bool(rest))
    return f'<div class="sk-quiet">{escape(title)}</div>' + grid(COLUMNS, [_line(task) for task in shown], "behind")


def _line(task: Task) -> Line:
    numbers = ("not known" if number is None else f"{number:,}" for number in (task.read, task.end, task.lag))
    cells = [cell(task.sub_topology), cell(task.topic, task.topic, left=True), cell(str(task.partition))]
    whole = [*cells, *map(cell, numbers)]
    return Line(whole, "▸", "has records to read") if task.lag else Line(whole)
