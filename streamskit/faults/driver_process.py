"""The process of a `Driver`: it runs one application until its line to the program that started it is cut."""

import contextlib
import pickle
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from pyspark import cloudpickle

from streamskit.common.errors import StreamsKitError
from streamskit.runtime import KafkaStreams

Say = Callable[[int | None, bool, Any], None]
"""Takes the number of a question (None for a state), whether it succeeded, and the answer."""


def main(line: Connection) -> int:
    """Start the application received over the line, and answer questions on it; return the exit code."""
    sending = threading.Lock()

    def say(number: int | None, is_fine: bool, said: Any) -> None:
        try:
            data: bytes = cloudpickle.dumps((number, is_fine, said))  # type: ignore[no-untyped-call]
        except Exception as failure:  # a row may hold what no other process can be given
            data = pickle.dumps((number, False, f"The answer cannot be sent to this process: {failure}"))
        with sending, contextlib.suppress(OSError):  # the other end may be gone
            line.send_bytes(data)

    program, application_id, bootstrap_servers, options = cloudpickle.loads(line.recv_bytes())
    try:
        topology = program() if callable(program) else program
        streams = KafkaStreams(topology, application_id, bootstrap_servers, **options)
        streams.set_state_listener(lambda new, old: say(None, True, new.name))
        streams.start()
    except StreamsKitError as failure:
        say(0, False, str(failure))
        return 1
    say(0, True, None)
    # None means to stop; the line is cut if the program that started this was killed.
    with contextlib.suppress(EOFError, OSError):
        while (asked := line.recv()) is not None:
            # In its own thread: one question may take long, while another is quick.
            threading.Thread(target=_answer, args=(streams, say, *asked), daemon=True).start()
    streams.close()
    return 0


def _answer(streams: KafkaStreams, say: Say, number: int, name: str, *arguments: Any) -> None:
    try:
        if name == "rows":
            found = [tuple(row) for row in streams.store(arguments[0]).all()]
        else:
            found = getattr(streams, name)(*arguments)
    except Exception as failure:
        say(number, False, str(failure))
    else:
        say(number, True, found)


if __name__ == "__main__":
    sys.exit(main(Connection(int(sys.argv[1]))))
