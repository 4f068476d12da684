"""Java's properties files: read so that no message repeats what they contain, which may be a password."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streamskit.common.errors import StreamsError


class Line(NamedTuple):
    """What a line says; `number` is that of the first one, if it goes on in others."""

    name: str
    value: str
    number: int


def lines(path: Path) -> Iterator[Line]:
    r"""Yield what a properties file says, in its order.

    A file that is valid UTF-8 is read as UTF-8, any other as Latin-1. Kafka is not consistent: its command line tools
    read Latin-1, and `${file:...}` reads UTF-8. An ASCII file, with `\u00e4` for an "ä", is the same to all of them.

    Raises:
        OSError: there is no such file, or it cannot be read.
        StreamsError: a line has a backslash that begins no character. The sentence does not repeat the line.
    """
    import javaproperties  # Spark's Python workers import this module, and seldom read a file

    number, elements = 1, javaproperties.parse(_text(path.read_bytes()))
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError:
            break  # its message quotes the line: it must go no further, not even as the context of an error
        if element is None:
            return
        if isinstance(element, javaproperties.KeyValue):
            yield Line(element.key, element.value, number)
        number += element.source.count("\n")
    raise StreamsError(
        f"{path.name}, line {number}: \\u has to be followed by the four digits of a character; write a backslash as "
        "\\\\."
    )


def is_ascii(path: Path) -> bool:
    """Say whether a file reads the same in every encoding that Kafka's clients take a properties file for."""
    return path.read_bytes().isascii()


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
