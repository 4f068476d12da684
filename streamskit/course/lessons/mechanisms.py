"""Drawings of what happens inside Kafka: logs and readers, cleaning, and the ways of records from one topic to another.

Each is drawn from records that a lesson has just written or read, and says the same in words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from streamskit.course.lessons.drawing import KEY_LOOKS, Drawing, key_look

LEFT, TOP, LANE = 104, 62, 58
"""Where the first record of a log is drawn, and how far apart two logs are, in pixels."""

Label = Callable[[Any, Any], str]
"""Takes the key and the value of a record, and returns the text to write on it."""

Cell = tuple[Any, str]


def logs(title: str, topic: str, records: Any, label: Label | None = None, partitions: int | None = None) -> Drawing:
    """Draw a topic: each partition as a log, its records at their offsets, equal keys in equal colours.

    Args:
        title: over the picture.
        topic: its name.
        records: a frame of `broker.consume`, or records with `partition`, `key` and `value` in the order of offsets.
        label: the text on a record; its key if not given.
        partitions: how many there are, where some are empty.

    >>> logs("A topic", "orders", [Row(0, "ann", "a1"), Row(1, "ben", "b1")], lambda k, v: v)  # doctest: +SKIP
    """
    by_partition = grouped(records, label, partitions)
    keys = [key for cells in by_partition.values() for key, _ in cells]
    width, cell = _fitting(max(map(len, by_partition.values()), default=0), keys, by_partition)
    alt = f"Topic {topic}, {_counted(len(by_partition), 'partition')}. {in_words(by_partition)}"
    drawing = Drawing(title, alt, width, TOP + LANE * len(by_partition) - 6)
    for number, cells in by_partition.items():
        end = drawing.log(LEFT, TOP + LANE * number, f"partition {number}", cells, keys=keys, cell=cell)
        drawing.arrow((end + 6, TOP + 13 + LANE * number), (end + 40, TOP + 13 + LANE * number))
    return drawing.write(
        width - 14, 22, f"topic {topic}; new records are written at the end →", size=10, anchor="end", ink="quiet"
    )


def rekeyed(
    title: str, before: Any, after: Any, names: tuple[str, str], label: Label | None = None, partitions: int = 2
) -> Drawing:
    """Draw some records of a topic, and below them the same records after a new key has moved them.

    There are no offsets: others may be between the records that were picked.

    Args:
        title: over the picture.
        before: the records of the first topic, as in `logs`.
        after: those of the second.
        names: what the two topics are called.
        label: the text on a record.
        partitions: how many partitions each topic has.
    """
    upper, lower = grouped(before, label, partitions), grouped(after, label, partitions)
    keys = [key for cells in lower.values() for key, _ in cells]
    most = max(len(cells) for each in (upper, lower) for cells in each.values())
    width, cell = _fitting(most, keys, upper | {-1 - n: c for n, c in lower.items()})
    middle = TOP + LANE * partitions
    alt = f"Before and after. {names[0]}: {in_words(upper, '')} {names[1]}: {in_words(lower, '')}"
    drawing = Drawing(title, alt, width, 2 * middle + 16)
    drawing.write(14, 42, names[0], size=11, bold=True, ink="quiet")
    for number, cells in upper.items():
        drawing.log(LEFT, TOP + LANE * number, f"partition {number}", cells, keys=keys, cell=cell, offsets=False)
    drawing.arrow((LEFT + 120, middle - 14), (LEFT + 120, middle + 18))
    drawing.write(LEFT + 132, middle + 6, "each record goes where the hash of its new key says", size=10, ink="quiet")
    drawing.write(14, middle + 34, names[1], size=11, bold=True, ink="quiet")
    for number, cells in lower.items():
        y = middle + 54 + LANE * number
        drawing.log(LEFT, y, f"partition {number}", cells, keys=keys, cell=cell, offsets=False)
    return drawing


def readers(title: str, assignment: Mapping[str, Iterable[int]], partitions: int, group: str) -> Drawing:
    """Draw which member of a consumer group reads which partition; a member without any is idle.

    Args:
        title: over the picture.
        assignment: for each member the partitions it reads.
        partitions: how many there are.
        group: the group's name.
    """
    owned = {member: sorted(numbers) for member, numbers in assignment.items()}
    said = [f"{m} reads {', '.join(f'partition {n}' for n in ns) or 'nothing: it is idle'}" for m, ns in owned.items()]
    rows = max(partitions, len(owned))
    drawing = Drawing(title, f"Consumer group {group}: {'; '.join(said)}.", 620, 70 + 46 * rows)
    drawing.frame(400, 38, 200, 16 + 46 * rows, f"group {group}")
    for number in range(partitions):
        drawing.box(20, 62 + 46 * number, 150, 30, f"partition {number}", look="blue")
    for place, (member, numbers) in enumerate(owned.items()):
        y = 62 + 46 * place
        drawing.box(
            420,
            y,
            160,
            30,
            member + ("" if numbers else ", idle"),
            look="plain" if numbers else "grey",
            dashed=not numbers,
        )
        for number in numbers:
            drawing.arrow((172, 77 + 46 * number), (417, y + 15))
    return drawing


def cleaned(title: str, records: Sequence[Cell], expired: int) -> Drawing:
    """Draw a log, what time-based retention leaves of it, and what compaction leaves of it; offsets never change.

    Args:
        title: over the picture.
        records: key and text of each record, from offset 0.
        expired: how many records at the beginning are older than the retention time.
    """
    last = {key: offset for offset, (key, _) in enumerate(records)}
    kept = [record if last[record[0]] == offset else None for offset, record in enumerate(records)]
    young = [None if offset < expired else record for offset, record in enumerate(records)]
    keys = [key for key, _ in records]
    rows: list[tuple[str, Sequence[Cell | None]]] = [("as written", records), ("delete", young), ("compact", kept)]
    words = [f"{name}: {', '.join(r[1] if r else 'gone' for r in cells)}" for name, cells in rows]
    drawing = Drawing(
        title, f"One partition three times. {'; '.join(words)}.", LEFT + 70 * len(records) + 30, TOP + LANE * 3
    )
    for place, (name, cells) in enumerate(rows):
        drawing.log(LEFT, TOP + LANE * place, name, cells, keys=keys, cell=70)
    return drawing


def duality(title: str, updates: Sequence[Cell | tuple[Any, None]], shown: Sequence[int]) -> Drawing:
    """Draw a stream of updates as a log, and below it the table after some of them.

    Args:
        title: over the picture.
        updates: key and value of each, None for a tombstone.
        shown: after how many updates to draw the table.
    """
    keys = list(dict.fromkeys(key for key, _ in updates))
    cells = [(key, f"{key}={'∅' if value is None else value}") for key, value in updates]
    cell = max(62.0, 8.0 * max(len(words) for _, words in cells))
    tables = [{k: v for k, v in dict(updates[:count]).items() if v is not None} for count in shown]
    said = [
        f"after {n} updates the table is {', '.join(f'{k}={v}' for k, v in t.items())}"
        for n, t in zip(shown, tables, strict=True)
    ]
    width = max(LEFT + cell * len(cells) + 20, 460)
    drawing = Drawing(
        title, f"The stream: {', '.join(w for _, w in cells)}. {'; '.join(said)}.", width, 152 + 22 * len(keys)
    )
    drawing.log(LEFT, TOP, "stream", cells, keys=keys, cell=cell)
    drawing.write(LEFT - 8, 137, "table", size=11, anchor="end", bold=True)
    for count, table in zip(shown, tables, strict=True):
        right = LEFT + cell * count
        drawing.line((right, TOP + 26), (right, 100), dashed=True)
        x = max(LEFT, right - 96)
        drawing.rows(x, 122, f"after {count}", [(k, f"{k} = {v}") for k, v in table.items()], keys=keys, width=96)
    return drawing


def cached(title: str, updates: Sequence[Cell], sent: Sequence[Cell]) -> Drawing:
    """Draw how the record cache folds updates: all go into the store, the last of each key leaves on commit.

    Args:
        title: over the picture.
        updates: key and text of the updates that an aggregation makes.
        sent: the updates that are sent on.
    """
    keys = [key for key, _ in updates]
    into, out = ", ".join(words for _, words in updates), ", ".join(words for _, words in sent)
    cell = max(70.0, 7.0 * max(len(words) for _, words in updates))
    width = max(LEFT + cell * len(updates) + 20, 560)
    drawing = Drawing(
        title, f"Updates: {into}. The cache keeps the last of each key, and on commit these leave: {out}.", width, 270
    )
    drawing.log(LEFT, TOP, "updates", updates, keys=keys, cell=cell, offsets=False)
    middle = width / 2
    drawing.arrow((middle, TOP + 30), (middle, 118))
    drawing.frame(middle - 150, 120, 300, 62, "record cache: the last value of each key")
    for place, record in enumerate(sent):
        drawing.box(middle - 140 + place * (cell + 8), 144, cell, 26, record[1], look=key_look(record[0], keys))
    drawing.arrow((middle, 184), (middle, 218), "")
    drawing.write(middle + 10, 206, "on commit, or when the cache is full", size=10, ink="quiet")
    drawing.log(LEFT, 224, "sent", sent, keys=keys, cell=cell, offsets=False)
    return drawing


def byte_strip(title: str, parts: Sequence[tuple[str, bytes]]) -> Drawing:
    """Draw the bytes of a record, in groups with what each group means.

    Args:
        title: over the picture.
        parts: what some bytes mean, and the bytes, in their order.

    >>> byte_strip("A long", [("length", b"\\x04"), ("text", b"KO")]).alt
    'The bytes in order. length: 04; text: 4b 4f.'
    """
    said = "; ".join(f"{meaning}: {data.hex(' ')}" for meaning, data in parts)
    widths = [max(24.0 * len(data), 5.6 * max(map(len, meaning.split(", "))) + 10) for meaning, data in parts]
    drawing = Drawing(title, f"The bytes in order. {said}.", max(sum(widths) + 40, 420), 112)
    x = 20.0
    for place, ((meaning, data), width) in enumerate(zip(parts, widths, strict=True)):
        drawing.box(x, 42, width, 28, look=KEY_LOOKS[place % len(KEY_LOOKS)])
        drawing.write(x + width / 2, 60, data.hex(" "), size=10.5, anchor="middle", mono=True)
        drawing.write(x + width / 2, 86, *meaning.split(", "), size=9.5, anchor="middle", ink="quiet")
        x += width
    return drawing


def readings(title: str, data: bytes, written: tuple[str, Any], read: Mapping[str, Any]) -> Drawing:
    """Draw the bytes of a value, the serde that wrote them, and what several serdes read in them.

    Args:
        title: over the picture.
        data: the bytes.
        written: the serde that wrote them, and the value.
        read: by serde, the value that it reads.

    >>> readings("Two bytes", b"KO", ("a text", "KO"), {"a text": "KO", "a short": 19279}).alt
    "a text writes 'KO' as the bytes 4b 4f. In the same bytes, a text reads 'KO', and a short reads 19279."
    """
    said = ", and ".join(f"{serde} reads {value!r}" for serde, value in read.items())
    alt = f"{written[0]} writes {written[1]!r} as the bytes {data.hex(' ')}. In the same bytes, {said}."
    width, byte, box = 760.0, 44.0, 200.0
    drawing, middle = Drawing(title, alt, width, 236), width / 2
    drawing.box(middle - box / 2, 38, box, 42, f"{written[0]} writes", repr(written[1]), look="blue")
    drawing.arrow((middle, 82), (middle, 104))
    left = middle - byte * len(data) / 2
    for place, each in enumerate(data):
        drawing.box(left + byte * place, 108, byte, 28, look="grey")
        drawing.write(left + byte * (place + 0.5), 126, f"{each:02x}", anchor="middle", mono=True)
    gap = (width - box * len(read)) / (len(read) + 1)
    for place, (serde, value) in enumerate(read.items()):
        x = gap + (box + gap) * place
        drawing.arrow((middle + (x + box / 2 - middle) * 0.6, 140), (x + box / 2, 172))
        look = "blue" if serde == written[0] else "orange"
        drawing.box(x, 176, box, 42, f"{serde} reads", repr(value), look=look)
    return drawing


def grouped(records: Any, label: Label | None = None, partitions: int | None = None) -> dict[int, list[Cell]]:
    """Return for each partition its records as key and text, in the order in which they are read."""
    rows = records.itertuples() if hasattr(records, "itertuples") else records
    found: dict[int, list[Cell]] = {}
    for row in rows:
        found.setdefault(row.partition, []).append((row.key, label(row.key, row.value) if label else str(row.key)))
    return {number: found.get(number, []) for number in range(partitions or max(found, default=0) + 1)}


def in_words(by_partition: Mapping[int, Sequence[Cell]], where: str = ", from offset 0") -> str:
    """Say which records each partition has, for those who cannot see the drawing."""
    return " ".join(
        f"Partition {number} has{where}: {', '.join(words for _, words in cells) or 'nothing'}."
        for number, cells in by_partition.items()
    )


def _fitting(most: int, keys: Iterable[Any], cells: Mapping[int, Sequence[Cell]]) -> tuple[float, float]:
    """Return how wide the drawing and each of its records are, so that the longest text fits."""
    longest = max((len(words) for each in cells.values() for _, words in each), default=1)
    cell = max(36.0, 7.0 * longest + 8)
    return max(LEFT + cell * most + 60, 620), cell


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
