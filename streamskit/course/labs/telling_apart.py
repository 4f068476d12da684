"""A test that a learner writes: it has to pass with the right program and fail with each broken one."""

import inspect
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamskit.api.processor import Processor
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Verdict, Wrong, mistaken, right, wrong
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology

Test = Callable[[Any], object]
"""Gets what is under test."""


class UnderTest(Protocol):
    """What a test is run with."""

    def given(self) -> AbstractContextManager[Any]:
        """Return what the test gets, open as long as it runs."""


@dataclass(frozen=True)
class SingleProcessor:
    """A processor under test: the test gets its class."""

    processor: type[Processor]

    def given(self) -> AbstractContextManager[type[Processor]]:
        return nullcontext(self.processor)


@dataclass(frozen=True)
class Program:
    """A program under test.

    Args:
        topology: makes it.
        driver: settings of its `TopologyTestDriver`.
    """

    topology: Callable[[], Topology]
    driver: Mapping[str, Any] = field(default_factory=dict)

    def given(self) -> AbstractContextManager[TopologyTestDriver]:
        return TopologyTestDriver(self.topology(), **self.driver)


@dataclass(frozen=True)
class TellsApart:
    """Examines a test: a function with assertions, of a `TopologyTestDriver` or of a processor's class.

    A test that passes with a broken program makes the mistake "slipped through: " with the program's name.

    Args:
        right: the program that is right.
        broken: programs that are not, each in its own way, by a name that says what is wrong with it.
        wrong: tests by the mistake that they make.
        takes: what the test gets, in a few words.
    """

    right: UnderTest
    broken: Mapping[str, UnderTest]
    wrong: Wrong = field(default_factory=dict)
    takes: str = "the driver"

    def __call__(self, answer: Any) -> Verdict:
        if not callable(answer):
            return wrong(f"It has to be a function, but is {answer!r}.")
        if not _takes_one_argument(answer):
            return wrong(f"The test has to take one argument, {self.takes}: the check runs it with several programs.")
        if inspect.iscoroutinefunction(answer) or inspect.isgeneratorfunction(answer):
            return wrong(
                "The test has to be an ordinary function: write def in place of async def, and no yield in it."
            )
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
        return mistaken(f"slipped through: {slipped[0]}", others=_also(len(slipped) - 1))


def failure(test: Test, program: UnderTest) -> BaseException | None:
    """Run a test with a program; return what it failed with, if it did."""
    with program.given() as given:
        try:
            test(given)
        except KeyboardInterrupt:
            raise
        except BaseException as failed:  # what pytest.fail and pytest.raises raise is no Exception
            return failed
    return None


def _takes_one_argument(test: Test) -> bool:
    try:
        inspect.signature(test).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _also(others: int) -> str:
    """Say with how many broken programs a test passes beside the one that is named."""
    if not others:
        return ""
    return f" It also passes with {'another one' if others == 1 else f'{others} others'}."


def _where(failed: BaseException) -> str:
    """Say which line failed, or what the driver or the test said."""
    if isinstance(failed, StreamsKitError):
        return str(failed).removesuffix(".")
    if not isinstance(failed, AssertionError):
        return f"{type(failed).__name__}: {failed}"
    line = traceback.extract_tb(failed.__traceback__)[-1].line
    return str(failed) or line or "an assertion"
