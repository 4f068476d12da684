"""The stream threads of an application: how many slots of Spark's each of its queries may use at a time."""

import threading
from contextlib import suppress

from pyspark import SparkContext

from streamskit.common.errors import StreamsError
from streamskit.environment.spark_java import LOST
from streamskit.jvm.stream_threads import set_stream_threads


class StreamThreads:
    """The number of stream threads; a change takes effect from a query's next micro-batch on.

    Args:
        application_id: the application's id.
        number: how many there are at first; None for as many as Spark has slots, now and later.

    Mirrors the list of stream threads that `KafkaStreams` has there.
    """

    def __init__(self, application_id: str, number: int | None) -> None:
        self.number = number
        self._application_id = application_id
        self._changing, self._has_started = threading.Lock(), False

    def start(self) -> None:
        """Pass the number to Spark, before the first query starts."""
        set_stream_threads(self._application_id, self.number)
        self._has_started = True

    def stop(self) -> None:
        """Have Spark forget the application."""
        if self._has_started and SparkContext._jvm is not None:
            with suppress(*LOST):
                set_stream_threads(self._application_id, None)

    def add(self, slots: int) -> str:
        """Add one and return its name.

        Args:
            slots: how many Spark has.

        Raises:
            StreamsError: all slots may be used anyway.
        """
        with self._changing:
            if self.number is None:
                raise StreamsError(
                    f"'{self._application_id}' has no num_stream_threads: each of its queries may use all slots that "
                    f"Spark has, {slots} at the moment. Start Spark with more of them, "
                    f"streamskit.spark_session('local[{slots + 1}]'), or add a worker to its cluster."
                )
            return self._set(self.number + 1, self.number + 1)

    def remove(self, slots: int) -> str:
        """Remove one and return its name.

        Args:
            slots: how many Spark has.

        Raises:
            StreamsError: it is the last one.
        """
        with self._changing:
            now = slots if self.number is None else self.number
            if now <= 1:
                raise StreamsError(
                    f"'{self._application_id}' has one stream thread, and without it nothing would be processed. "
                    "pause() stops the processing until resume()."
                )
            return self._set(now - 1, now)

    def _set(self, number: int, changed: int) -> str:
        """Set the number, and return the name of the stream thread that was added or removed."""
        set_stream_threads(self._application_id, number)
        self.number = number
        return f"{self._application_id}-StreamThread-{changed}"
