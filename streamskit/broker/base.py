"""What every broker can do: run, stop, fail on request, and serve topics."""

from abc import abstractmethod
from types import TracebackType
from typing import Self

from streamskit.kafka.client import KafkaClient


class Broker(KafkaClient):
    """A Kafka broker. `with broker:` starts it, unless it runs, and stops what it started.

    >>> with EmbeddedBroker() as broker:  # doctest: +SKIP
    ...     broker.create_topics("trades")
    """

    _started_by_with: tuple[bool, ...] = ()
    """For each `with` block that is open, the innermost last, whether it started the broker."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether the broker's process is alive; a paused one is."""

    @abstractmethod
    def start(self) -> None:
        """Start the broker and return once it answers.

        Raises:
            SetupError: something that it needs is missing.
            BrokerError: it did not start.
        """

    @abstractmethod
    def stop(self) -> None:
        """Shut the broker down in an orderly way; its data stays."""

    @abstractmethod
    def kill(self) -> None:
        """End the broker at once by SIGKILL, as a crash would; its data stays."""

    @abstractmethod
    def pause(self) -> None:
        """Freeze the broker: it keeps its connections and answers nothing until `resume()`."""

    @abstractmethod
    def resume(self) -> None:
        """Let a paused broker go on."""

    def restart(self) -> None:
        """Stop the broker if it runs and start it again, on the same port and data."""
        if self.is_running:
            self.stop()
        self.start()

    def __enter__(self) -> Self:
        starts = not self.is_running
        if starts:
            self.start()
        self._started_by_with = (*self._started_by_with, starts)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        *outer, started = self._started_by_with
        self._started_by_with = tuple(outer)
        if started:
            self.stop()
            self._discard()

    def _discard(self) -> None:
        """Remove what is of no use after the `with` block, such as temporary data."""
