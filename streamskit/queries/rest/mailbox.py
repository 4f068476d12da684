"""Between the thread that has news and the one that passes it on: a queue that never grows without bound."""

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Generic, TypeVar

News = TypeVar("News")


class Mailbox(Generic[News]):
    """Keeps the latest news until it is fetched; when there is too much of it, the oldest is lost, and counted.

    Args:
        most: how much it holds.

    >>> mailbox = Mailbox(2)
    >>> for number in (1, 2, 3): mailbox.put(number)
    >>> await mailbox.fetch(timeout=1)
    (1, [2, 3])
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._news: deque[News] = deque()
        self._lost = 0
        self._changing = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._there_is_some = asyncio.Event()
        self._is_called = False

    def put(self, news: News) -> None:
        """Add something, from any thread; it does not wait and does not fail."""
        with self._changing:
            if len(self._news) == self._most:
                self._news.popleft()
                self._lost += 1
            self._news.append(news)
            if self._is_called:
                return
            self._is_called = True
        with suppress(RuntimeError):  # the loop has ended, and with it everybody who could fetch
            self._loop.call_soon_threadsafe(self._there_is_some.set)

    async def fetch(self, timeout: float) -> tuple[int, list[News]]:
        """Wait until there is something, and return how much was lost before it, and all of it.

        Args:
            timeout: how long to wait, in seconds; then there is nothing.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._there_is_some.wait()
        except TimeoutError:
            return 0, []
        with self._changing:
            lost, news = self._lost, list(self._news)
            self._news.clear()
            self._lost, self._is_called = 0, False
            self._there_is_some.clear()
        return lost, news
