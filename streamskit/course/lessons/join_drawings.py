"""Drawings of joins and of time: who holds which rows, how a foreign key finds its row, three clocks for a record."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from streamskit.course.lessons.drawing import Drawing, key_look
from streamskit.views.html import time_of_day

Rows = Mapping[Any, str]


def co_partitioned(
    title: str, left: Mapping[int, Sequence[Any]], right: Mapping[int, Sequence[Any]], names: tuple[str, str]
) -> Drawing:
    """Draw which keys each task finds in its partition of two topics; a key that it misses on the right is marked.

    Args:
        title: over the picture.
        left: the keys in each partition of the left topic.
        right: those in each partition of the right topic.
        names: what the topics are called.
    """
    keys = sorted({key for some in left.values() for key in some})
    tasks = max(len(left), len(right))
    missed = {(number, key) for number, some in left.items() for key in some if key not in right.get(number, ())}
    said = [
        f"Task {n} reads {', '.join(map(str, left.get(n, ()))) or 'no key'} of {names[0]} and "
        f"{', '.join(map(str, right.get(n, ()))) or 'no key'} of {names[1]}"
        + "".join(f"; {key} finds no match" for number, key in sorted(missed) if number == n)
        for n in range(tasks)
    ]
    most = max(len(some) for side in (left, right) for some in side.values())
    drawing = Drawing(title, ". ".join(said) + ".", max(560, 250 + 62 * most), 48 + 98 * tasks)
    for number in range(tasks):
        y = 42 + 98 * number
        drawing.frame(14, y, drawing.width - 28, 88, f"task {number}")
        for side, (name, topic) in enumerate(zip(names, (left, right), strict=True)):
            top = y + 22 + 32 * side
            drawing.write(176, top + 17, f"{name} {number}", size=10.5, anchor="end")
            for place, key in enumerate(topic.get(number, ())):
                lost = side == 0 and (number, key) in missed
                look = "red" if lost else key_look(key, keys)
                drawing.box(186 + 62 * place, top, 56, 24, f"{key} ✕" if lost else str(key), look=look)
    return drawing


def copies(title: str, rows: Mapping[int, Rows], instances: Mapping[str, Sequence[int]]) -> Drawing:
    """Draw a table and a global table side by side: slices, one for each task, against a copy in each instance.

    Args:
        title: over the picture.
        rows: for each partition its rows, the text of each by its key.
        instances: for each instance the tasks (partitions) that run there.
    """
    every = {key: words for part in rows.values() for key, words in part.items()}
    keys = list(every)
    height = 40 + 22 * len(every)
    sliced = [
        f"{name} holds {', '.join(k for n in tasks for k in rows.get(n, {})) or 'no rows'}"
        for name, tasks in instances.items()
    ]
    whole = f"each of {', '.join(instances)} holds all of {', '.join(map(str, keys))}"
    alt = f"As a table: {'; '.join(sliced)}. As a global table: {whole}."
    drawing = Drawing(title, alt, 760, 74 + (height + 16) * len(instances))
    drawing.write(20, 46, "KTable: a task has the rows of its partition", size=11, bold=True, ink="quiet")
    drawing.write(480, 46, "GlobalKTable: an instance has all rows", size=11, bold=True, ink="quiet")
    for place, (name, tasks) in enumerate(instances.items()):
        y = 56 + (height + 16) * place
        drawing.frame(14, y, 440, height, name)
        for slot, number in enumerate(tasks):
            held = [(key, words) for key, words in rows.get(number, {}).items()]
            drawing.rows(24 + 145 * slot, y + 36, f"task {number}", held, keys=keys, width=132)
        drawing.frame(474, y, 272, height, name)
        drawing.rows(484, y + 36, "all tasks", list(every.items()), keys=keys, width=132)
    return drawing


def foreign_key(title: str, orders: Mapping[str, str], users: Rows, names: tuple[str, str]) -> Drawing:
    """Draw how a foreign-key join works: a subscription to the task that has the row, and its response.

    Args:
        title: over the picture.
        orders: for each key of the left table, its foreign key into the right one.
        users: the rows of the right table.
        names: what the two tables are called.
    """
    keys = list(users)
    pairs = "; ".join(f"{order} subscribes to {user} and is sent {users[user]}" for order, user in orders.items())
    drawing = Drawing(
        title,
        f"Two internal topics connect the tables {names[0]} and {names[1]}: {pairs}.",
        760,
        118 + 26 * max(len(orders), len(users) + 1),
    )
    height = 50 + 26 * max(len(orders), len(users) + 1)
    drawing.frame(14, 44, 190, height, f"task of {names[0]}")
    drawing.rows(
        28,
        84,
        "key → foreign key",
        [(user, f"{order} → {user}") for order, user in orders.items()],
        keys=keys,
        width=150,
    )
    drawing.frame(556, 44, 190, height, f"task of {names[1]}")
    bottom = drawing.rows(570, 84, "row", [(key, f"{key}: {row}") for key, row in users.items()], keys=keys, width=160)
    drawing.write(570, bottom + 18, "who has subscribed:", size=10, ink="quiet")
    drawing.write(
        570,
        bottom + 32,
        ", ".join(
            f"{user}: {'+'.join(o for o, u in orders.items() if u == user)}" for user in dict.fromkeys(orders.values())
        ),
        size=10,
    )
    drawing.box(250, 72, 260, 34, "…-SUBSCRIPTION-REGISTRATION…", "keyed by the foreign key", look="blue")
    drawing.box(250, 72 + height - 62, 260, 34, "…-SUBSCRIPTION-RESPONSE…", "keyed by the primary key", look="blue")
    drawing.arrow((206, 89), (247, 89)).arrow((512, 89), (553, 89))
    drawing.arrow((554, 27 + height), (513, 27 + height)).arrow((248, 27 + height), (207, 27 + height))
    return drawing


def clocks(title: str, records: Mapping[str, Sequence[int]]) -> Drawing:
    """Draw three times of the same records: when it happened, when the broker had it, when a program processed it.

    Each time has an axis of its own, from the first to the last of the records.

    Args:
        title: over the picture.
        records: for each name the event time, the ingestion time and the processing time, in milliseconds.
    """
    axes = ("event time", "ingestion time", "processing time")
    said = [
        f"{name}: {', '.join(f'{axis} {time_of_day(time)}' for axis, time in zip(axes, times, strict=True))}"
        for name, times in records.items()
    ]
    drawing = Drawing(title, f"Three times of each record. {'. '.join(said)}.", 760, 262)
    rows = list(zip(*records.values(), strict=True))
    for row, (axis, own) in enumerate(zip(axes, rows, strict=True)):
        y = 74 + 68 * row
        drawing.write(112, y + 4, axis, size=11, anchor="end", bold=True).line((122, y), (738, y))
        drawing.write(_along(min(own), own) + 17, y - 6, time_of_day(min(own)), size=9, ink="quiet")
        drawing.write(_along(max(own), own) - 17, y - 6, time_of_day(max(own)), size=9, anchor="end", ink="quiet")
    for name, times in records.items():
        points = [(_along(time, own), 74.0 + 68 * row) for row, (time, own) in enumerate(zip(times, rows, strict=True))]
        for start, end in pairwise(points):
            drawing.line(start, end, dashed=True)
        for x, height in points:
            drawing.box(x - 13, height - 11, 26, 22, name, look=key_look(name, records))
    return drawing


def _along(time: int, times: Sequence[int]) -> float:
    """Return the place of a time on an axis of its own, which reaches from the first to the last of some times."""
    first, last = min(times), max(times)
    return 160 + 540 * (time - first) / ((last - first) or 1)
