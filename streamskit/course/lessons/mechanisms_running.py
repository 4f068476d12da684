"""Drawings of what an application does while it runs: where records fail, who has which task, what a rebalance moves.

Each is made from a lesson's own numbers, as far as there are any.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from streamskit.course.lessons.drawing import Drawing, refuse_beyond

STATIONS = (
    ("read", "deserialization_handler", "bytes it cannot read"),
    ("steps", "processing_handler", "your function raises"),
    ("write", "production_handler", "the record is refused"),
)
"""Where a record can fail on its way: the station, the handler that is called, and an example."""

BOXES_AT_MOST = 32
"""As many tasks or threads can be read beside each other."""


def error_handlers(counts: Mapping[str, int] | None = None, topics: tuple[str, str] = ("bills", "shares")) -> Drawing:
    """Draw where each error handler stands on the way of a record, and what it may answer.

    Args:
        counts: how many records failed at "read", "steps" and "write"; "in" and "out" are those of the topics.
        topics: the names of the topic that is read and the one that is written.

    >>> error_handlers({"in": 10, "read": 1, "steps": 2, "write": 0, "out": 7}).alt.endswith("7 come out.")
    True
    """
    known = counts or {}
    alt = (
        f"Records go from the topic {topics[0]} through three stations to the topic {topics[1]}: read, steps, write. "
        "Each has a handler below it, which is asked when a record fails there: deserialization, processing and "
        "production handler. Each may drop the record, keep it as a dead letter, or fail. If it fails, the query "
        "stops and the uncaught exception handler decides: replace the thread, shut down the client, or shut down "
        "the application. While the broker is away nobody is asked: the application waits, until task_timeout."
    )
    if known:
        failed = ", ".join(f"{known.get(name, 0)} fail at {name}" for name, _, _ in STATIONS)
        alt += f" Here {known['in']} go in, {failed}, and {known['out']} come out."
    drawing = Drawing("Which handler decides when a record fails", alt, 760, 372)
    drawing.box(14, 52, 92, 44, topics[0], *_count(known, "in"), look="frame")
    drawing.box(654, 52, 92, 44, topics[1], *_count(known, "out"), look="frame")
    for place, (name, handler, example) in enumerate(STATIONS):
        x = 142 + place * 168
        drawing.box(x, 52, 132, 44, name, look="blue")
        drawing.arrow((x - 36, 74), (x, 74))
        drawing.arrow((x + 66, 96), (x + 66, 132), dashed=True, ink="warn")
        drawing.write(x + 72, 118, *_count(known, name, " fail"), size=10, ink="warn", bold=True)
        drawing.box(x - 14, 132, 160, 44, handler, example, look="violet")
        drawing.arrow((x + 66, 176), (x + 66, 212))
    drawing.arrow((610, 74), (654, 74))
    drawing.frame(130, 212, 492, 62, "its answer")
    drawing.box(142, 232, 148, 34, "resume", "dropped, and counted", look="grey")
    drawing.box(302, 232, 148, 34, "resume + DeadLetter", "kept on another topic", look="orange")
    drawing.box(462, 232, 148, 34, "fail", "the query stops", look="red")
    drawing.arrow((536, 266), (536, 304))
    drawing.frame(190, 304, 556, 58, "uncaught_exception_handler")
    for place, answer in enumerate(("REPLACE_THREAD", "SHUTDOWN_CLIENT", "SHUTDOWN_APPLICATION")):
        drawing.box(200 + place * 181, 324, 174, 30, answer, look="violet")
    drawing.box(
        14, 304, 164, 58, "the broker is away", "nobody is asked: wait,", "at most for task_timeout", look="plain"
    )
    return drawing


def _count(counts: Mapping[str, int], name: str, words: str = "") -> tuple[str, ...]:
    return (f"{counts[name]:,}{words}",) if name in counts else ()


class SubTopology(NamedTuple):
    """A sub-topology as it is drawn: the topic that it reads, and how many partitions that has."""

    topic: str
    partitions: int


def tasks_on_threads(sub_topologies: Sequence[SubTopology], threads: int) -> Drawing:
    """Draw partitions, the task of each, and the threads that share the tasks, dealt out in turn.

    Args:
        sub_topologies: in the order of their numbers; they have 1 to 32 tasks together.
        threads: how many there are, 1 to 32; those beyond the tasks are idle.

    Raises:
        ValueError: a number is out of these ranges.

    >>> tasks_on_threads([SubTopology("orders", 2)], 3).alt.endswith("Thread 3 is idle.")
    True
    """
    tasks = [(number, part) for number, each in enumerate(sub_topologies) for part in range(each.partitions)]
    refuse_beyond(1, BOXES_AT_MOST, tasks=len(tasks), threads=threads)
    rooms = {name: tasks[thread::threads] for thread in range(threads) for name in (f"Thread {thread + 1}",)}
    said = [
        f"{name} has the tasks {', '.join(f'{sub}_{part}' for sub, part in shared)}." if shared else f"{name} is idle."
        for name, shared in rooms.items()
    ]
    read = " ".join(
        f"Sub-topology {number} reads {each.topic} with {each.partitions} partitions, and has a task for each."
        for number, each in enumerate(sub_topologies)
    )
    cell = min(86.0, 640 / len(tasks))
    drawing = Drawing(
        f"{len(tasks)} tasks on {threads} {'thread' if threads == 1 else 'threads'}", " ".join([read, *said]), 760, 258
    )
    drawing.write(14, 80, "partition", bold=True).write(14, 138, "task", bold=True).write(14, 210, "thread", bold=True)
    at: dict[tuple[int, int], float] = {}
    for place, (sub, part) in enumerate(tasks):
        x = 96 + place * cell
        at[sub, part] = x + cell / 2
        look = "blue" if sub == 0 else "orange"
        if part == 0:
            drawing.write(x + 3, 50, _short(sub_topologies[sub].topic, cell * sub_topologies[sub].partitions), size=10)
        drawing.box(x + 3, 60, cell - 6, 30, f"{part}", look=look)
        drawing.arrow((x + cell / 2, 90), (x + cell / 2, 118))
        drawing.box(x + 3, 118, cell - 6, 30, f"{sub}_{part}", look=look)
    width = 640 / threads
    for place, (name, shared) in enumerate(rooms.items()):
        x = 96 + place * width
        words = "one after the other" if len(shared) > 1 else ("alone" if shared else "idle")
        drawing.box(
            x + 4,
            190,
            width - 8,
            44,
            name if width > 70 else name.split()[1],
            words,
            look="green" if shared else "grey",
            dashed=not shared,
        )
        for number, task in enumerate(shared):
            end = x + width / 2 + (number - (len(shared) - 1) / 2) * min(22, (width - 20) / len(shared))
            drawing.arrow((at[task], 148), (end, 190))
    return drawing


def _short(words: str, width: float) -> str:
    fits = int(width / 6)
    return words if len(words) <= fits else "…" + words[1 - fits :]


def batches_and_real_time() -> Drawing:
    """Draw what happens to one record in micro-batches and in Spark's real-time mode, on two lines of time.

    >>> batches_and_real_time().alt.startswith("Micro-batches: the record arrives while batch 1 runs")
    True
    """
    alt = (
        "Micro-batches: the record arrives while batch 1 runs. It waits until that batch has ended, and then for its "
        "own, batch 2: Spark plans and records the offsets, reads and counts, writes the result, and saves state and "
        "offsets. Real time: one batch lasts for minutes. The record is read, counted and written as soon as it "
        "arrives, while the batch runs, and only the end of the batch saves state and offsets."
    )
    drawing = Drawing("What a record waits for", alt, 760, 216)
    steps = (("plan, offsets", 92, "frame"), ("read, count, write", 130, "green"), ("save", 62, "frame"))
    arrives, left = 236.0, 116.0
    for batch, name in enumerate(("batch 1", "batch 2")):
        x = left + 300.0 * batch
        drawing.write(x, 58, name, size=10, ink="quiet")
        for words, width, look in steps:
            drawing.box(x, 64, width, 30, words, look="grey" if batch == 0 else look)
            x += width
    drawing.write(left - 10, 83, "micro-batches", anchor="end", bold=True)
    drawing.box(left, 144, 624, 30, look="frame")
    drawing.write(left + 616, 163, "one batch for minutes, saved at its end", anchor="end",
                  size=10, ink="quiet")  # fmt: skip
    drawing.box(arrives, 144, 130, 30, "read, count, write", look="green")
    drawing.write(left - 10, 163, "real time", anchor="end", bold=True)
    drawing.line((arrives, 46), (arrives, 190), dashed=True, ink="warn")
    drawing.write(arrives, 204, "the record arrives", size=10, anchor="middle", ink="warn")
    drawing.arrow((arrives + 2, 112), (left + 300 + 92 + 130, 112), "until its result can be read", ink="warn")
    return drawing


LETTER, BESIDE = 6.8, 24
"""How wide a letter on a bar is, and how many letters stand beside a bar at most."""


class Span(NamedTuple):
    """What one line of a time axis shows from one moment to another, in seconds."""

    begin: float
    end: float
    words: str
    look: str


def spans(samples: Sequence[tuple[float, Mapping[str, str]]], looks: Mapping[str, str]) -> dict[str, list[Span]]:
    """Return the bars of a time axis from repeated samples: the same words in consecutive samples are one bar.

    Args:
        samples: moments in seconds, each with the words of every line that had any.
        looks: the look of a bar by the first word on it; "blue" for others.

    >>> spans([(0.0, {"A": "up"}), (1.0, {"A": "up"}), (2.0, {})], {"up": "green"})
    {'A': [Span(begin=0.0, end=2.0, words='up', look='green')]}
    """
    names = dict.fromkeys(name for _, seen in samples for name in seen)
    lines: dict[str, list[Span]] = {name: [] for name in names}
    for (begin, seen), (end, _) in pairwise(samples):
        for name, words in seen.items():
            bars = lines[name]
            if bars and bars[-1].words == words and bars[-1].end == begin:
                bars[-1] = bars[-1]._replace(end=end)
            else:
                bars.append(Span(begin, end, words, looks.get(words.split(" ")[0], "blue")))
    return lines


def on_a_time_axis(
    title: str, lines: Mapping[str, Sequence[Span]], marks: Mapping[str, float] | None = None, alt: str = ""
) -> Drawing:
    """Draw who did what when: a line for each name, bars with words on it, and moments across all lines.

    Args:
        title: the heading above the drawing.
        lines: the bars of each line, by its name.
        marks: moments in seconds, by what happened then; their words are above the lines, the later ones lower.
        alt: the drawing in words; by default a sentence for each line.

    >>> on_a_time_axis("A rebalance", {"A": [Span(0, 2, "active", "blue")]}).alt
    'A: active from 0.0 s to 2.0 s.'
    """
    marks = marks or {}
    ends = [span.end for spans in lines.values() for span in spans] + [*marks.values()]
    longest = max(ends)
    left, top = 110.0, 44 + 14 * len(marks)
    height = top + 34 * len(lines) + 34
    width = min([622.0, *(_beside_the_last(spans, 622.0, longest) for spans in lines.values() if spans)])

    def x(second: float) -> float:
        return left + second / longest * width

    said = [
        f"{name}: "
        + ", then ".join(f"{span.words} from {span.begin:.1f} s to {span.end:.1f} s" for span in spans)
        + "."
        for name, spans in lines.items()
    ]
    said += [f"At {moment:.1f} s: {words}." for words, moment in marks.items()]
    drawing = Drawing(title, alt or " ".join(said), 760, height)
    for place, (name, spans) in enumerate(lines.items()):
        y = top + 34 * place
        drawing.write(left - 10, y + 18, name, anchor="end", bold=True)
        for span in spans:
            wide = max(2.0, x(span.end) - x(span.begin))
            fits = LETTER * len(span.words) < wide
            drawing.box(x(span.begin), y + 3, wide, 24, *((span.words,) if fits else ()), look=span.look)
            if not fits and span is spans[-1] and len(span.words) <= BESIDE:
                drawing.write(x(span.begin) + wide + 5, y + 19, span.words)
    for place, (words, moment) in enumerate(marks.items()):
        y = 44 + 14 * place
        is_right = x(moment) > left + width * 0.6
        drawing.line((x(moment), y - 8), (x(moment), height - 28), dashed=True, ink="warn")
        drawing.write(x(moment) + (-4 if is_right else 4), y, words, size=10, ink="warn",
                      anchor="end" if is_right else "start")  # fmt: skip
    step = next(each for each in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60) if longest / each <= 12)
    for tick in range(int(longest / step) + 1):
        drawing.write(x(tick * step), height - 12, f"{tick * step:g}", size=9.5, anchor="middle", ink="quiet")
    return drawing.write(left - 10, height - 12, "seconds", size=9.5, anchor="end", ink="quiet")


def _beside_the_last(spans: Sequence[Span], width: float, longest: float) -> float:
    """Return how wide an axis may be so that the words of a line's last bar have room: beside it if it is too short."""
    *_, last = spans
    room = LETTER * len(last.words)
    if len(last.words) > BESIDE or room < (last.end - last.begin) / longest * width:
        return width
    return (width + 18 - room) * longest / max(last.end, longest / 2)


def restored(changelog: Sequence[tuple[str, str]], name: str = "changelog") -> Drawing:
    """Draw how a changelog that is read from its start becomes a store again: the last value of each key stays.

    Args:
        changelog: key and value of each record, in the order of offsets; at most nine are drawn, without offsets, as
            there may be others between them.
        name: of the topic.

    >>> restored([("ann", "1"), ("bob", "2"), ("ann", "3")]).alt
    'The topic changelog holds ann 1, bob 2, ann 3. Read from its start it gives a store with ann 3, bob 2.'
    """
    records = list(changelog)[:9]
    table = dict(records)
    keys = list(table)
    alt = (
        f"The topic {name} holds {', '.join(f'{key} {value}' for key, value in records)}. Read from its start it gives "
        f"a store with {', '.join(f'{key} {value}' for key, value in table.items())}."
    )
    left = 22 + 6.4 * len(name)
    cell = min(76.0, (700 - left) / len(records))
    drawing = Drawing("Read from its start, the changelog is the store", alt, 760, 118 + 22 * len(keys) + 16)
    last = {key: place for place, (key, _) in enumerate(records)}
    cells = [(key, f"{key} {value}") for key, value in records]
    drawing.log(left, 56, name, cells, keys=keys, cell=cell, offsets=False)
    drawing.rows(left, 118, "store", [(key, f"{key}  {value}") for key, value in table.items()], keys=keys, width=150)
    for row, key in enumerate(keys):
        drawing.arrow((left + (last[key] + 0.5) * cell, 82), (left + 152, 129 + 22 * row), bend=-6)
    return drawing.write(
        left + 330, 112 + 22 * len(keys), "only the last value of each key matters", size=10, ink="quiet"
    )


def question_to_another_instance(
    key: str, asked: str, owner: str, partition: int, others: Sequence[str] = ()
) -> Drawing:
    """Draw a query to an instance that does not have the key and queries the one that has it.

    Args:
        key: what is asked for.
        asked: the name of the instance that the client queries.
        owner: the name of the instance that has the key.
        partition: the key's partition.
        others: the names of the instances that are not involved.

    >>> question_to_another_instance("A1", "A", "C", 3, ["B"]).alt.startswith("A client asks instance A for A1")
    True
    """
    alt = (
        f"A client asks instance {asked} for {key}. {asked} hashes the key: partition {partition}. The metadata of the "
        f"group says that {owner} has that partition. So {asked} asks {owner}, {owner} looks into its local store, and "
        f"the answer goes back through {asked} to the client."
    )
    alt += f" Not involved: {', '.join(others)}." if others else ""
    drawing = Drawing(f"Ask {asked}, and {asked} asks {owner}", alt, 760, 226)
    drawing.box(14, 92, 92, 44, "client", look="plain")
    drawing.frame(196, 50, 216, 128, f"instance {asked}")
    drawing.box(208, 76, 192, 34, f"hash of {key}", f"partition {partition}", look="violet")
    drawing.box(208, 130, 192, 36, "metadata of the group", f"partition {partition} is with {owner}", look="violet")
    drawing.arrow((304, 110), (304, 130))
    drawing.frame(560, 50, 186, 128, f"instance {owner}")
    drawing.drum(592, 80, 122, 78, "store", f"partition {partition}", f"has {key}")
    drawing.arrow((106, 104), (196, 104), f"get {key}")
    drawing.arrow((412, 104), (560, 104), f"get {key}")
    drawing.arrow((560, 142), (412, 142), "value, lag", dashed=True)
    drawing.arrow((196, 142), (106, 142), "value", dashed=True)
    quiet = f"not involved: {', '.join(others)}" if others else ""
    return drawing.write(204, 206, quiet, size=10, ink="quiet") if quiet else drawing
