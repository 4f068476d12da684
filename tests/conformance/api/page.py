"""Writes docs/kafka-streams-api.md, Kafka Streams' API beside ours: `python -m tests.conformance.api.page`."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.api.counterparts import Area, Comparison, Entry, Row, recorded

PAGE = Path(__file__).parents[3] / "docs" / "kafka-streams-api.md"

INTRODUCTION = """\
# Kafka Streams' API, name by name

You know a class or a method of Kafka Streams {version} and want to know what it is called here. Each table lists the
public names of one part of the library: classes in bold, their methods and the constants of enums below them.

| | meaning |
|---|---|
| here | It has the same name; methods are in snake case (`flatMapValues` is `flat_map_values`). |
| renamed | You write something else: another name, a keyword (`StreamsBuilder.stream(key=)`), or plain Python. |
| absent | It does not exist. The last column says why, or what to use instead. |

You import most names from `streamskit`. One that begins with a small letter is in a module of that name:
`testing.TestInputTopic` in `streamskit.testing`, `state.read_only.VersionedRecord` in `streamskit.state.read_only`.

Some differences are the same everywhere, and the tables do not repeat them. Java's getters are attributes. A duration
is text such as "5 seconds", a `timedelta`, or a number of milliseconds. Wherever Kafka Streams takes a `Named`, you
write `name=`. Overloads share a row, and an inherited method is in the table of the class that declares it.

{counts}

A test makes this page from two listings, Kafka Streams' as recorded from its jars and streamskit's as Python reports
it, and fails when a public name of either is missing.
[tests/conformance/README.md](../tests/conformance/README.md#the-page-of-the-api) says how to change the page.
"""

ONLY_HERE = """\
## Only here

These public names of streamskit have no counterpart in Kafka Streams. A class stands for its members, too.

| name | why it exists |
|---|---|
"""


def page(comparison: Comparison) -> str:
    """Return the page as Markdown."""
    rows = [row for rows in comparison.rows.values() for row in rows]
    introduction = INTRODUCTION.format(version=recorded()["version"], counts=_counts(rows))
    tables = [_table(area, comparison.rows[area.title]) for area in comparison.areas]
    only = ONLY_HERE + "".join(f"| `{path}` | {why} |\n" for path, why in comparison.only_here.items())
    return "\n".join([introduction, *tables, only])


def _counts(rows: list[Row]) -> str:
    lines = ["| | here | renamed | absent |", "|---|---|---|---|"]
    for title, of_classes in (("classes", True), ("methods and constants", False)):
        counted = Counter(row.status for row in rows if row.is_class is of_classes)
        lines.append(f"| {title} | {counted['here']} | {counted['renamed']} | {counted['absent']} |")
    return "\n".join(lines)


def _table(area: Area, rows: list[Row]) -> str:
    head = [f"## {area.title}\n", *([f"{area.text.strip()}\n"] if area.text else [])]
    return "\n".join([*head, "| Kafka Streams | | here | |", "|---|---|---|---|", *map(_line, rows), ""])


def _line(row: Row) -> str:
    name = f"**`{row.java}`**" if row.is_class else f"`{row.java}`"
    deprecated = " (deprecated)" if row.is_deprecated else ""
    return f"| {name}{deprecated} | {row.status} | {_place(row.entry)} | {' '.join(_reasons(row.entry))} |".replace(
        "|  |", "| |"
    )


def _place(entry: Entry) -> str:
    if entry.absent:
        return "-"
    return ", ".join([*(f"`{path}`" for path in entry.here), *([entry.words] if entry.words else [])])


def _reasons(entry: Entry) -> Iterator[str]:
    yield from (text for text in (entry.absent, entry.note) if text)


def main() -> None:
    """Write the page, and say what is wrong with what it is made of."""
    comparison = Comparison.of_the_files()
    for finding in comparison.findings():
        print(finding)
    PAGE.write_text(page(comparison))


if __name__ == "__main__":
    main()
