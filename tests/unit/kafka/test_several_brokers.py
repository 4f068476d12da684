"""Where one of several brokers takes connections and never answers, the others are tried in time."""

import socket
import threading
from collections.abc import Iterator

import pytest

from streamskit.common.errors import BrokerError
from streamskit.kafka.connection import admin_client


class Frozen:
    """A broker that stands still: it takes connections, and counts those over which a request came."""

    def __init__(self) -> None:
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        for _ in range(100):
            try:
                taken, _ = self._socket.accept()
            except OSError:  # closed
                return
            self._kept.append(taken)
            threading.Thread(target=self._hear, args=[taken], daemon=True).start()

    def _hear(self, taken: socket.socket) -> None:
        self.asked += bool(taken.recv(1))

    def close(self) -> None:
        for each in (self._socket, *self._kept):
            each.close()


@pytest.fixture
def frozen() -> Iterator[list[Frozen]]:
    brokers = [Frozen() for _ in range(3)]
    yield brokers
    for each in brokers:
        each.close()


def test_each_of_several_brokers_is_asked_once_before_one_is_asked_again(frozen: list[Frozen]) -> None:
    addresses = ",".join(each.address for each in frozen)
    with (
        pytest.raises(BrokerError, match="No Kafka broker answers"),
        admin_client(addresses, timeout=5, tell_why=False),
    ):
        pass
    assert [each.asked for each in frozen] == [1, 1, 1]
