"""The error guard: where a handler says that records may fail, a failed record becomes notes and dead letters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.error_handlers import Handlers, LogAndContinue, asks, fails
from streamskit.columns import user_functions
from streamskit.execution.dead_letters import GivenRecord, RecordOrigin, failed
from streamskit.execution.outcomes import Outcome
from streamskit.execution.record_columns import RecordColumns
from streamskit.execution.sources import DecodedInput, is_of
from streamskit.topology.nodes import Node

Result = TypeVar("Result")


@dataclass(frozen=True)
class Attempt(Generic[Result]):
    """What a step made of a record; `succeeded` says for which records it succeeded, None if it always does.

    `failures` are the outcomes of a record for which it did not.
    """

    result: Result
    succeeded: Column | None
    failures: list[Outcome]


@dataclass(frozen=True)
class ErrorGuard:
    """Lets steps fail for single records, as the handlers of the application say.

    `origin` is where the records came from. Unless the guard `tells`, failed records leave no notes or dead letters.
    """

    handlers: Handlers
    origin: RecordOrigin
    tells: bool = True

    def attempt(self, node: Node, record: RecordColumns, parent: Node, make: Callable[[], Result]) -> Attempt[Result]:
        """Make something of a record that `parent` passes on by a user's function of `node`."""
        if fails(self.handlers.processing):
            return Attempt(make(), None, [])
        with user_functions.catching() as errors:
            result = make()
        if not errors:
            return Attempt(result, None, [])
        error = F.coalesce(*errors)
        given = GivenRecord.of(record, parent) if asks(self.handlers.processing) else None
        return Attempt(result, error.isNull(), self.failed("processing", node, record, error, given))

    def failed(
        self, kind: str, node: Node, record: RecordColumns, error: Column, given: GivenRecord | None
    ) -> list[Outcome]:
        """Return the outcomes of a record with an error.

        Args:
            kind: names the handler that decides.
            node: where it failed.
            record: what failed.
            error: what was wrong.
            given: the record as the handler sees it, if one is called.
        """
        if not self.tells:
            return []
        is_failed = error.isNotNull() if record.condition is None else record.condition & error.isNotNull()
        origin = replace(self.origin, timestamp=record.timestamp, headers=record.headers)
        return [*failed(self.handlers, kind, node, is_failed, error, origin, given)]

    def unread(self, decoded: DecodedInput) -> list[Outcome]:
        """Return the outcomes of a record that could not be read, if its handler wants any."""
        if not self.tells or decoded.error is None or self.handlers.deserialization == LogAndContinue():
            return []
        is_failed = is_of(decoded.source, self.origin.topic) & decoded.error.isNotNull()
        return [*failed(self.handlers, "deserialization", decoded.source.node, is_failed, decoded.error, self.origin)]
