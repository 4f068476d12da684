"""A broker that someone else runs."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from streamskit.api.client_settings import ClientSettings
from streamskit.broker.base import Broker
from streamskit.common.errors import BrokerError
from streamskit.kafka.connection import CONNECT_SECONDS, answers, no_answer


class ExternalBroker(Broker):
    """A Kafka broker that runs elsewhere: it serves topics, and cannot be stopped from here.

    Args:
        bootstrap_servers: its address, "host:port" or several with commas.
        client_settings: the clients' credentials, by the names of Kafka's clients, or a properties file with them.

    Raises:
        StreamsError: a setting is unknown, missing, or has a value that the clients do not take.

    >>> ExternalBroker("kafka.example.org:9092").topics()  # doctest: +SKIP
    >>> ExternalBroker("kafka.example.org:9093", "client.properties").topics()  # doctest: +SKIP
    """

    def __init__(
        self,
        bootstrap_servers: str | ClientSettings,
        client_settings: Mapping[str, Any] | str | Path | None = None,
    ) -> None:
        self._connection = ClientSettings.of(bootstrap_servers, client_settings)

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to."""
        return self._connection.bootstrap_servers

    @property
    def connection(self) -> ClientSettings:
        """Where clients connect to, and their credentials."""
        return self._connection

    @property
    def is_running(self) -> bool:
        """Whether the broker answers."""
        return answers(self._connection, CONNECT_SECONDS)

    def start(self) -> None:
        """Refused: raises BrokerError."""
        self._refuse("started")

    def stop(self) -> None:
        """Refused: raises BrokerError."""
        self._refuse("stopped")

    def kill(self) -> None:
        """Refused: raises BrokerError."""
        self._refuse("killed")

    def restart(self) -> None:
        """Refused: raises BrokerError."""
        self._refuse("restarted")

    def pause(self) -> None:
        """Refused: raises BrokerError."""
        self._refuse("paused")

    def resume(self) -> None:
        """Refused: raises BrokerError."""
        self._refuse("resumed")

    def __enter__(self) -> "ExternalBroker":
        if not self.is_running:
            raise no_answer(self._connection)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave it as it is: it runs elsewhere."""

    def __repr__(self) -> str:
        return f"ExternalBroker({self.bootstrap_servers!r})"

    def _refuse(self, participle: str) -> NoReturn:
        raise BrokerError(
            f"The broker at {self.bootstrap_servers} runs outside this project, so it cannot be {participle} from "
            "here. For a broker of your own use EmbeddedBroker(), or unset STREAMSKIT_BOOTSTRAP_SERVERS."
        )
