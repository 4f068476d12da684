"""A load of HTTP requests over connections that stay open, made with as little work for each as Python can."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import uvloop


@dataclass(frozen=True)
class Load:
    """What a load was answered with: requests a second, times in seconds, and how many answers were not 200."""

    rate: float
    p50: float
    p99: float
    worst: float
    others: int

    def __str__(self) -> str:
        times = f"p50 {self.p50 * 1000:5.1f} ms, p99 {self.p99 * 1000:5.1f} ms, worst {self.worst * 1000:5.1f} ms"
        return f"{self.rate:8,.0f} /s   {times}   {self.others} not 200"


class Caller(asyncio.Protocol):
    """One connection: asks, waits for the whole answer, asks again."""

    def __init__(self, requests: Sequence[bytes], times: list[float], until: float) -> None:
        self._requests, self._times, self._until = requests, times, until
        self._next, self._answer, self._began = 0, b"", 0.0
        self.others = 0
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, separator, body = self._answer.partition(b"\r\n\r\n")
        if not separator or len(body) < _length(head):
            return
        now = time.perf_counter()
        self._times.append(now - self._began)
        self.others += not head.startswith(b"HTTP/1.1 200 ")
        if now < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _ask(self) -> None:
        self._answer, self._next = b"", (self._next + 1) % len(self._requests)
        self._began = time.perf_counter()
        self._transport.write(self._requests[self._next])


def load(host: str, port: int, paths: Sequence[str], connections: int = 8, seconds: float = 5.0) -> Load:
    """Ask a server for paths in turn, each connection from another one on, and return how that went.

    Args:
        host: where it listens.
        port: and on which port.
        paths: what to ask for.
        connections: how many requests are under way at the same time.
        seconds: for how long.
    """
    requests = [f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for path in paths]

    async def run() -> Load:
        loop, times, callers = asyncio.get_running_loop(), list[float](), list[Caller]()
        began = time.perf_counter()
        for number in range(connections):
            turned = requests[number * 7919 % len(requests) :] + requests[: number * 7919 % len(requests)]
            _, caller = await loop.create_connection(partial(Caller, turned, times, began + seconds), host, port)
            callers.append(caller)
        await asyncio.gather(*(caller.ended for caller in callers))
        took = time.perf_counter() - began
        cuts = statistics.quantiles(times, n=100)
        return Load(len(times) / took, cuts[49], cuts[98], max(times), sum(caller.others for caller in callers))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length: ")
    return int(rest.partition(b"\r\n")[0] or 0)
