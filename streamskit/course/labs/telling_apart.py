"""A test that a learner writes: it has to pass with the right program and fail with each broken one."""

import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Verdict, Wrong, mistaken, right, wrong
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

Test = Callable[[TopologyTestDriver], object]


@dataclass(frozen=True)
class Program:
    """A program under test.

    Args:
        topology: makes it.
        driver: settings of its `TopologyTestDriver`.
    """

    topology: Callable[[], Topology]
    driver: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TellsApart:
    """Examines a test: a function of a `TopologyTestDriver` with assertions.

    A test that passes with a broken program makes the mistake "slipped through: " with the program's name.

    Args:
        right: the program that is right.
        broken: programs that are not, each in its own way, by a name that says what is wrong with it.
        wrong: tests by the mistake that they make.
    """

    right: Program
    broken: Mapping[str, Program]
    wrong: Wrong = field(default_factory=dict)

    def __call__(self, answer: Any) -> Verdict:
        if not callable(answer):
            return wrong(f"It has to be a function, but is {answer!r}.")
        if not _takes_a_driver(answer):
            return wrong("The test has to take one argument, the driver: the check runs it with several programs.")
        failed = failure(answer, self.right)
        if isinstance(failed, Exception) and not isinstance(failed, AssertionError | StreamsKitError):
            raise failed
        if failed is not None:
            return mistaken("a test that a right program fails", where=_where(failed))
        slipped = [name for name, program in self.broken.items() if failure(answer, program) is None]
        if not slipped:
            names = ", ".join(self.broken)
            return right(
                f"Your test passes with the correct program, and fails with {len(self.broken)} others: {names}."
            )
        if len(slipped) == len(self.broken):
            return mistaken("a test that cannot fail")
        others = f" It also passes with {len(slipped) - 1} others." if len(slipped) > 1 else ""
        return mistaken(f"slipped through: {slipped[0]}", others=others)


def failure(test: Test, program: Program) -> BaseException | None:
    """Run a test with a program; return what it failed with, if it did."""
    with TopologyTestDriver(program.topology(), **program.driver) as driver:
        try:
            test(driver)
        except KeyboardInterrupt:
            raise
        except BaseException as failed:  # what pytest.fail and pytest.raises raise is no Exception
            return failed
    return None


def _takes_a_driver(test: Test) -> bool:
    try:
        inspect.signature(test).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _where(failed: BaseException) -> str:
    """Say which line failed, or what the driver or the test said."""
    if isinstance(failed, StreamsKitError):
        return str(failed)
    if not isinstance(failed, AssertionError):
        return f"{type(failed).__name__}: {failed}"
    line = traceback.extract_tb(failed.__traceback__)[-1].line
    return str(failed) or line or "an assertion"
