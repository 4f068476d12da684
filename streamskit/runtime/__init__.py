"""Running a topology: `KafkaStreams`, its states, and what happens to a query that fails."""

from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams
from streamskit.runtime.uncaught_exceptions import MaxFailures, UncaughtExceptionResponse

__all__ = ["KafkaStreams", "MaxFailures", "State", "UncaughtExceptionResponse"]
