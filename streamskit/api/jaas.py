"""The line that tells Kafka's Java clients which user to log in as: `sasl.jaas.config`."""

import re
from typing import NamedTuple

from streamskit.common.errors import StreamsError
from streamskit.common.secret import Secret

MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

OPTION = re.compile(
    r"""\s*(?P<name>[\w.$-]+)\s*=\s*
    (?:(?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)|(?P<bare>[^\s;"']+))""",
    re.DOTALL | re.VERBOSE,
)
ESCAPED = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
"""A backslash with what it makes one character: up to three octal digits, or a letter."""

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class Credentials(NamedTuple):
    """A user's name and password."""

    username: str
    password: Secret


def line(mechanism: str, username: str, password: str) -> str:
    """Return the line for a user.

    >>> line("PLAIN", "alice", 'a"b')
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="a\\\\"b";'
    """
    module = MODULES.get(mechanism, MODULES["PLAIN"])
    return f"{module} required username={_quoted(username)} password={_quoted(password)};"


def credentials(config: str) -> Credentials:
    """Return the user in a line.

    Raises:
        StreamsError: the line names no user. The message does not repeat the line.

    >>> credentials(line("PLAIN", "alice", 'a"b\\\\')).password.reveal()
    'a"b\\\\'
    """
    parts = config.strip().split(None, 2)
    options, position = dict[str, str](), 0
    text = parts[2].rstrip() if len(parts) == 3 else ""
    while (found := OPTION.match(text, position)) is not None:
        quoted = found["quoted"]
        options[found["name"]] = found["bare"] if quoted is None else _unquoted(quoted)
        position = found.end()
    if len(parts) < 3 or "username" not in options or "password" not in options or text[position:].strip() != ";":
        raise StreamsError(
            "sasl.jaas.config does not name a user. It has to be in one line: "
            f'{MODULES["PLAIN"]} required username="..." password="..."; with a semicolon at its end. '
            "Or give sasl.username and sasl.password instead."
        )
    return Credentials(options["username"], Secret(options["password"]))


def _quoted(text: str) -> str:
    """Return text in quotes, as Java's `StreamTokenizer` reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _unquoted(text: str) -> str:
    """Return what text in quotes says, as Java's `StreamTokenizer` reads it."""

    def character(found: re.Match[str]) -> str:
        said = found[1]
        return chr(int(said, 8)) if said[0] in "01234567" else ESCAPES.get(said, said)

    return ESCAPED.sub(character, text)
