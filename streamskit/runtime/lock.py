"""The lock that lets only one `KafkaStreams` run an application on a folder."""

from collections.abc import Container
from pathlib import Path

from filelock import FileLock, Timeout

from streamskit.common.errors import StreamsError


class ApplicationLock:
    """Held by the `KafkaStreams` that runs an application; the system lets go of it when the process ends.

    Args:
        application_id: the application.
        folder: where it keeps its checkpoints; the lock lies beside it.

    Mirrors the lock of Kafka Streams on its state directory.
    """

    def __init__(self, application_id: str, folder: Path) -> None:
        self._application_id, self._folder = application_id, folder
        self._lock = FileLock(str(folder) + ".lock")

    def take(self, running_here: Container[str]) -> None:
        """Take the lock.

        Args:
            running_here: the ids of the applications that run in this process.

        Raises:
            StreamsError: another one has it.
        """
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            here = self._application_id in running_here
            close = f"KafkaStreams.running['{self._application_id}'].close()" if here else "close it where it runs"
            raise StreamsError(
                f"An application with the id '{self._application_id}' is running already, in "
                f"{'this' if here else 'another'} process: {close}, or choose another application_id."
            ) from None

    def release(self) -> None:
        """Let go of the lock."""
        self._lock.release()
