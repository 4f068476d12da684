"""A test that a learner writes: it has to pass with a program that is right, and to fail with each broken one."""

import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Verdict, right, wrong
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

Test = Callable[[TopologyTestDriver], object]


@dataclass(frozen=True)
class Program:
    """A program under test.

    Args:
        topology: makes it.
        name: what is wrong with it, in a few words; nothing for the one that is right.
        does: what it does by mistake, in a sentence that says what the test should have tried.
        driver: settings of its `TopologyTestDriver`.
    """

    topology: Callable[[], Topology]
    name: str = ""
    does: str = ""
    driver: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TellsApart:
    """Examines a test: a function of a `TopologyTestDriver` with assertions.

    Args:
        right: the program that is right.
        broken: programs that are not, each in its own way.
    """

    right: Program
    broken: tuple[Program, ...]

    def __call__(self, answer: Test) -> Verdict:
        if len(inspect.signature(answer).parameters) != 1:
            return wrong("The test has to take one thing, the driver: the check runs it with several programs.")
        failed = failure(answer, self.right)
        if failed is not None and not isinstance(failed, AssertionError | StreamsKitError):
            raise failed
        if failed is not None:
            return wrong(
                f"Your test fails with the program that is right: {_where(failed)}. A test asserts what the task "
                "promises, and no more.",
                "a test that a right program fails",
            )
        slipped = [program for program in self.broken if failure(answer, program) is None]
        if not slipped:
            names = ", ".join(program.name for program in self.broken)
            return right(f"Your test passes with the right program, and fails with {len(self.broken)} others: {names}.")
        if len(slipped) == len(self.broken):
            return wrong(
                "Your test passes with every broken program as well. Does it assert what came out, and does it pipe "
                "records for which the programs differ?",
                "a test that cannot fail",
            )
        others = f" It also passes with {len(slipped) - 1} more." if len(slipped) > 1 else ""
        return wrong(
            f"Your test passes with a broken program. {slipped[0].does}{others}", f"slipped through: {slipped[0].name}"
        )


def failure(test: Test, program: Program) -> Exception | None:
    """Run a test with a program; return what it failed with, if it did."""
    with TopologyTestDriver(program.topology(), **program.driver) as driver:
        try:
            test(driver)
        except Exception as failed:
            return failed
    return None


def _where(failed: Exception) -> str:
    """Say which line failed, or what the driver said."""
    if isinstance(failed, AssertionError):
        line = traceback.extract_tb(failed.__traceback__)[-1].line
        return str(failed) or line or "an assertion"
    return str(failed)
