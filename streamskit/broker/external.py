"""A broker that someone else runs."""

from typing import NoReturn

from streamskit.broker.base import Broker
from streamskit.common.errors import BrokerError
from streamskit.kafka.connection import CONNECT_SECONDS, answers, no_answer


class ExternalBroker(Broker):
    """A Kafka broker that runs elsewhere: it serves topics, and cannot be stopped from here.

    `bootstrap_servers` is its address, "host:port" or several with commas.

    >>> ExternalBroker("kafka.example.org:9092").topics()  # doctest: +SKIP
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to."""
        return self._bootstrap_servers

    @property
    def is_running(self) -> bool:
        """Whether the broker answers."""
        return answers(self._bootstrap_servers, CONNECT_SECONDS)

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
            raise no_answer(self._bootstrap_servers)
        return self

    def __repr__(self) -> str:
        return f"ExternalBroker({self._bootstrap_servers!r})"

    def _refuse(self, what: str) -> NoReturn:
        raise BrokerError(
            f"The broker at {self._bootstrap_servers} runs outside this project, so it cannot be {what} from "
            "here. For a broker of your own use EmbeddedBroker(), or unset STREAMSKIT_BOOTSTRAP_SERVERS."
        )
