"""Ports on loopback: which are free, and free ones to use."""

import random
import socket

from streamskit.broker.settings import HOST
from streamskit.common.errors import SetupError

# Below the ports that systems hand out for outgoing connections: one of those could take the port while the
# broker is down, and a client that keeps reconnecting to it can even connect to itself.
CANDIDATES = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended do not count
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on. Raises SetupError if none is found."""
    for port in random.sample(CANDIDATES, 200):
        if is_free(port):
            return port
    raise SetupError(f"No free port found on {HOST} between {CANDIDATES.start} and {CANDIDATES.stop}.")
