"""The command line of streamskit: `python -m streamskit COMMAND ...`."""

import argparse
import codecs
import importlib
import io
import sys
from collections.abc import Sequence
from typing import NamedTuple

import streamskit
from streamskit.common.errors import StreamsKitError
from streamskit.common.names import unknown_name

PROGRAM = "python -m streamskit"

SPELLED = "streamskit.spelled"
"""The name of our handler among those of Python's encoders: it spells out a sign that an encoding lacks."""

OTHER_SIGNS = {"✓": "+", "✗": "x", "→": "->", "…": "..."}
"""Signs in the commands' texts, in ASCII; any other becomes an escape, such as `\\u2026`."""


class Command(NamedTuple):
    """A command: the module whose `main(arguments)` runs it and returns the exit code, and what it does."""

    module: str
    summary: str


COMMANDS = {
    "lab": Command("streamskit.course.jupyter", "a broker, Spark and JupyterLab at the first notebook"),
    "doctor": Command("streamskit.cli.doctor", "look at this machine: what is wrong, and what to do"),
    "broker": Command("streamskit.cli.broker", "start, stop or clean the project's broker, or ask for its status"),
    "serve": Command("streamskit.cli.serve", "answer queries to an application's stores, in a process of its own"),
    "class-sharing": Command("streamskit.cli.class_sharing", "keep Java's classes ready for faster starts"),
    "new": Command("streamskit.course.project.new", "begin a project of your own, with tests that pass"),
    "check-project": Command("streamskit.course.project.judging", "judge what every project has to hold"),
    "labs": Command("streamskit.course.labs.student", "make the learners' labs anew, or record wrong answers"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: the command's name and what follows it; those of the process when not given.

    >>> main(["broker", "status"])  # doctest: +SKIP
    The broker runs at 127.0.0.1:25092 ...
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _spell_signs_that_the_terminal_lacks()
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__, epilog=f"`{PROGRAM} COMMAND --help` says more.")
    parser.add_argument("--version", action="version", version=f"streamskit {streamskit.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.summary, add_help=False)
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        parser.error(f"{unknown_name('command', words[0], COMMANDS)} The commands are: {', '.join(COMMANDS)}.")
    # Only the command is read here: what follows belongs to it, and may be another program's options.
    chosen = parser.parse_args(words[:1]).command
    try:
        # A command's module is imported when it is asked for: the doctor has to run where Spark or pandas is broken.
        code: int = importlib.import_module(COMMANDS[chosen].module).main(words[1:])
    except StreamsKitError as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    return code


def _spell_signs_that_the_terminal_lacks() -> None:
    """Let a terminal that is not set to UTF-8 show the doctor's signs, and paths with accents, in other letters."""
    codecs.register_error(SPELLED, _spelled)
    if isinstance(sys.stdout, io.TextIOWrapper) and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        sys.stdout.reconfigure(errors=SPELLED)


def _spelled(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return b"".join(map(_in_ascii, error.object[error.start : error.end])), error.end


def _in_ascii(sign: str) -> bytes:
    if "\udc80" <= sign <= "\udcff":  # a byte of a file's name, which Python could not read in this locale
        return sign.encode("utf-8", "surrogateescape")
    return (OTHER_SIGNS.get(sign) or ascii(sign)[1:-1]).encode("ascii")
