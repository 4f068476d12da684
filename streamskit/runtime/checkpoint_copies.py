"""Keeps copies of the checkpoints of an at-least-once application, beside its queries.

With exactly-once, a micro-batch's copy is part of its transaction. With at-least-once, no query waits for the copy: it
is a few seconds old at most, and a folder that is rebuilt from it processes the records since then once more.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from streamskit.environment.spark_java import LOST
from streamskit.jvm import java_class
from streamskit.planning.plan import Plan
from streamskit.runtime.denials import denied
from streamskit.runtime.periodic import Periodic
from streamskit.runtime.recovery.checkpoint import Positions, positions_of

logger = logging.getLogger("streamskit")

EVERY_SECONDS = 2.0
"""How often the queries are checked for new progress."""

LAST_COPY_SECONDS = 5.0
"""How long a closing application waits for the last copy."""


class CheckpointCopies(Periodic):
    """Copies checkpoints to their topics, in a thread of its own.

    Args:
        application_id: the application.
        folder: its folder.
        about: returns what is stored with each position of a query.
    """

    def __init__(self, application_id: str, folder: Path, about: Callable[[Plan], str]) -> None:
        super().__init__("checkpoint copies", EVERY_SECONDS)
        self._application_id, self._folder, self._about = application_id, folder, about
        self._copiers: list[tuple[Plan, Any]] = []
        self._copied: dict[str, Positions] = {}
        self._impossible: set[str] = set()
        """The queries whose last copy has failed, by name."""

    def copy(self, plans: Sequence[tuple[Plan, Mapping[str, str]]]) -> None:
        """Begin, in a thread of its own.

        Args:
            plans: the queries, each with the settings of a producer for its transactions.
        """
        copier = java_class("CheckpointCopier")
        self._copiers = [
            (plan, copier(dict(settings), str(self._folder / plan.name), plan.checkpoint_topic))
            for plan, settings in plans
        ]
        self.start()

    def copied(self, plan: Plan) -> Positions | None:
        """Return the offsets up to which a query had read when its copy was made; None if no copy can be kept."""
        return None if plan.name in self._impossible else self._copied.get(plan.name, {})

    def turn(self) -> None:
        """Copy what the queries have done until now."""
        for plan, copier in self._copiers:
            try:
                self._copied[plan.name] = positions_of(copier.catchUp(self._about(plan)))
                self._impossible.discard(plan.name)
            except Py4JJavaError as failure:  # the broker may be away: the next turn tries again
                self._warn(failure, plan)
            except LOST:
                self.stop()
                return

    def close(self) -> None:
        """Close the clients."""
        for _, copier in self._copiers:
            try:
                copier.close()
            except (Py4JJavaError, *LOST):
                logger.debug("A copier did not close.", exc_info=True)

    def _warn(self, failure: Py4JJavaError, plan: Plan) -> None:
        if not self._impossible:
            said = failure.java_exception.toString()
            logger.warning(
                "'%s' could not copy its checkpoints to its topics, and tries again. Should its folder be lost "
                "meanwhile, it cannot be rebuilt. %s", self._application_id, denied(said, plan) or said,
            )  # fmt: skip
        self._impossible.add(plan.name)
