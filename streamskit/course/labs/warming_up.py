"""Spark starts while a learner still reads: their first check waits neither for Java nor for a Python worker."""

import logging
import threading

from IPython import get_ipython

from streamskit.api.windows import JoinWindows, TimeWindows
from streamskit.course.labs import catalogue
from streamskit.course.labs.recording import Piped
from streamskit.course.labs.trial import records_of
from streamskit.dsl.builder import StreamsBuilder

logger = logging.getLogger("streamskit")

RECORDS = [Piped(topic, "key", "value", time) for time in (0, 1000) for topic in ("left", "right", "table")]


def warm_up_in_a_kernel() -> threading.Thread | None:
    """Begin to warm up in the background if this runs in a notebook, and return the thread; elsewhere do nothing.

    Scripts and tests know when they need Spark, and only a notebook has a reader in front of it.
    """
    if getattr(get_ipython(), "kernel", None) is None:
        return None
    thread = threading.Thread(target=_warm_up, name="streamskit: warming up for a lab", daemon=True)
    thread.start()
    return thread


def _warm_up() -> None:
    """Read all labs, start Spark, and take records through each kind of operator that a check may run first."""
    try:
        catalogue.labs()
        for write in (_columns, _functions, _joins):
            write(builder := StreamsBuilder())
            records_of(builder.build(), RECORDS)
    except Exception as failure:  # the learner's own first cell will raise and show the same error
        logger.debug("Warming up for a lab ended early.", exc_info=failure)


def _columns(builder: StreamsBuilder) -> None:
    words = builder.stream("left").filter(lambda value: value.isNotNull()).group_by(lambda value: value)
    words.windowed_by(TimeWindows.of_size_with_no_grace("1 minute")).count("counts").to_stream().to("out")


def _functions(builder: StreamsBuilder) -> None:
    latest = builder.table("table").group_by(lambda key, value: (value, value))
    latest.reduce(lambda kept, new: new, lambda kept, old: kept, "latest")


def _joins(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left"), builder.stream("right")
    joined = left.join(right, lambda one, other: one, JoinWindows.of_time_difference_with_no_grace("1 minute"))
    joined.left_join(builder.table("table"), lambda one, other: one).to("out")
