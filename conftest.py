"""For tests and notebooks alike: Spark starts as for lessons; nothing that they have started outlives them."""

import contextlib
import os
from collections.abc import Generator

import pytest
from nbval.plugin import IPyNbCell

from streamskit.broker import find_shared_broker, stop_shared_broker
from streamskit.environment.session import INTERPRETED, JAVA_OPTIONS, JAVA_OPTIONS_VARIABLE, LESSON_OPTIONS, SETTINGS
from tests import notebook_spark, scheduling
from tests.reaper import Reaper

os.environ.setdefault(JAVA_OPTIONS_VARIABLE, LESSON_OPTIONS)
# In this process, whose Java works for many minutes: after two, its second compiler saves a third of the time.
# Notebooks, and applications that tests start beside it, compile their plans and do not live as long.
SETTINGS |= INTERPRETED | {JAVA_OPTIONS: "-XX:TieredStopAtLevel=4"}

_running_before = pytest.StashKey[bool]()
_reaper = pytest.StashKey[Reaper]()


def pytest_configure(config: pytest.Config) -> None:
    if not _is_one_of_several(config):
        config.stash[_reaper] = Reaper()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_running_before] = find_shared_broker() is not None


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not session.config.stash[_running_before] and not _is_one_of_several(session.config):
        stop_shared_broker()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    scheduling.arrange(items)


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, IPyNbCell):
        notebook_spark.prepare(item.parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what a cell that failed wrote to stderr: nbval says only that it wrote something."""
    report = yield
    if report.failed and isinstance(item, IPyNbCell):
        outputs = item.test_outputs or []
        if said := "".join(each.get("text", "") for each in outputs if each.get("name") == "stderr"):
            report.sections.append(("what the cell wrote to stderr", said))
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    if _reaper not in config.stash:
        return
    with contextlib.suppress(Exception):  # a test may have killed it
        _end_spark()
    if left := config.stash[_reaper].reap():
        print(f"The tests left running, and it has been ended:\n{left}", end="")


def _end_spark() -> None:
    """End the Java of this process's Spark, which otherwise ends a moment after the process."""
    from pyspark import SparkContext

    if (gateway := SparkContext._gateway) is not None:
        if (context := SparkContext._active_spark_context) is not None:
            context.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()


def _is_one_of_several(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
