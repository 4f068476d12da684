"""What happens to an application when one of its queries fails: the uncaught exception handler's answer."""

import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum

from streamskit.common.durations import Duration, spell, to_milliseconds
from streamskit.common.errors import StreamsError


class UncaughtExceptionResponse(Enum):
    """What to do about a query that failed.

    Mirrors `StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse`; a query is what a stream thread is there.
    """

    REPLACE_THREAD = "replace thread"
    """Run the failed query again from its last whole micro-batch; the other queries go on meanwhile."""

    SHUTDOWN_CLIENT = "shutdown client"
    """Stop all queries of this `KafkaStreams`; its state is ERROR then. What happens without a handler."""

    SHUTDOWN_APPLICATION = "shutdown application"
    """Stop the application wherever it runs: all queries of this `KafkaStreams`, and every instance that answers for
    its stores (`python -m streamskit serve`, `Instances`), through its consumer group.

    With SHUTDOWN_CLIENT, instances go on answering with what the stores had last.
    """


Handler = Callable[[StreamsError], UncaughtExceptionResponse]
"""Takes the error that a query failed with, and says what to do."""


def shutdown_client(failure: StreamsError) -> UncaughtExceptionResponse:
    """Answer every failure with SHUTDOWN_CLIENT: the default handler."""
    return UncaughtExceptionResponse.SHUTDOWN_CLIENT


class MaxFailures:
    """A handler that runs a failed query again, until there were too many failures within a time.

    Args:
        max_failures: how many failures within the time are followed by another try.
        max_time_interval: the time, a duration. One failure more within it shuts the client down.

    >>> streams.set_uncaught_exception_handler(MaxFailures(3, "1 minute"))  # doctest: +SKIP

    Mirrors `MaxFailuresUncaughtExceptionHandler` of Confluent's courses.
    """

    def __init__(self, max_failures: int, max_time_interval: Duration) -> None:
        if isinstance(max_failures, bool) or not isinstance(max_failures, int) or max_failures < 0:
            raise ValueError(f"max_failures is how often a query may fail, a whole number from 0 up: {max_failures!r}.")
        self._most = max_failures
        self._interval = to_milliseconds(max_time_interval, "max_time_interval")
        if self._interval < 1:
            raise ValueError(f"max_time_interval is the time in which failures are counted, not {max_time_interval!r}.")
        self._failed_at: deque[float] = deque()
        self._counting = threading.Lock()

    def __call__(self, failure: StreamsError) -> UncaughtExceptionResponse:
        """Count a failure, and say whether the query runs again."""
        with self._counting:
            now = time.monotonic()
            self._failed_at.append(now)
            while self._failed_at[0] <= now - self._interval / 1000:
                self._failed_at.popleft()
            if len(self._failed_at) <= self._most:
                return UncaughtExceptionResponse.REPLACE_THREAD
            return UncaughtExceptionResponse.SHUTDOWN_CLIENT

    def __repr__(self) -> str:
        return f"MaxFailures({self._most}, {spell(self._interval)!r})"


def check_handler(handler: object) -> None:
    """Check that a handler can be called.

    Raises:
        StreamsError: it cannot.
    """
    if not callable(handler):
        raise StreamsError(
            f"An uncaught exception handler is a function that takes the error, not {handler!r}: "
            "lambda failure: UncaughtExceptionResponse.REPLACE_THREAD, or MaxFailures(3, '1 minute')."
        )


def ask(handler: Handler, failure: StreamsError) -> tuple[UncaughtExceptionResponse, StreamsError]:
    """Return a handler's answer and the failure; a missing answer shuts the client down and is named in the failure."""
    try:
        answer: object = handler(failure)
    except (Exception, SystemExit) as second:  # sys.exit() would end only the thread, and hide the failure
        said = f"raised {type(second).__name__}: {second}"
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT, _without_answer(failure, said, second)
    if isinstance(answer, UncaughtExceptionResponse):
        return answer, failure
    said = f"returned {answer!r}, which is no UncaughtExceptionResponse"
    return UncaughtExceptionResponse.SHUTDOWN_CLIENT, _without_answer(failure, said, failure)


def _without_answer(failure: StreamsError, said: str, cause: BaseException) -> StreamsError:
    whole = str(failure) if str(failure).endswith((".", "!", "?")) else f"{failure}."
    error = StreamsError(
        f"{whole} The uncaught exception handler had no answer to that: it {said}. Let it return "
        "UncaughtExceptionResponse.REPLACE_THREAD, SHUTDOWN_CLIENT or SHUTDOWN_APPLICATION."
    )
    error.__cause__ = cause
    return error
