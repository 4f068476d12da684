"""Updates of a store as server-sent events, from all instances: each as it lands, none held up by a slow reader."""

import asyncio
import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.metadata import HostInfo
from streamskit.queries.queryable_instance import QueryableInstance, StoreUpdate
from streamskit.queries.rest.json_codec import dumps, encoded
from streamskit.queries.rest.peers import PeerError, Peers
from streamskit.queries.rest.protocol import Event, EventReader, path
from streamskit.queries.rest.results import described

News = TypeVar("News")


class Mailbox(Generic[News]):
    """Keeps the latest news until it is fetched; when there is too much of it, the oldest is lost, and counted.

    Args:
        most: how much it holds.

    >>> async def put_and_fetch():
    ...     mailbox = Mailbox(2)
    ...     for number in (1, 2, 3):
    ...         mailbox.put(number)
    ...     return await mailbox.fetch(timeout=1)
    >>> asyncio.run(put_and_fetch())
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


MOST_WAITING = 10_000
"""How many updates wait for a slow reader before it loses the oldest."""

KEEP_ALIVE = 10.0
"""After how many seconds without an update a comment says that the stream is alive."""

LOOK_AROUND = 1.0
"""How often to look for instances that came or went, and to try again one that cannot be reached, in seconds."""

MOST_AT_ONCE = 500
"""How many events are written at once."""


class EventStream(Response):
    """A response that never ends: events, until the server stops or nobody listens any more.

    Args:
        is_ending: says whether the server is about to stop.
        on_close: called when it is over.
    """

    media_type = "text/event-stream"

    def __init__(self, is_ending: Callable[[], bool], on_close: Callable[[], None]) -> None:
        super().__init__(None, headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._is_ending, self._on_close = is_ending, on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.tell(receive, send)
        finally:
            self._on_close()

    async def tell(self, receive: Receive, send: Send) -> None:
        """Send all there is to send, until that ends or the client is gone."""
        raise NotImplementedError

    async def until_one_ends(self, *each: Awaitable[None]) -> None:
        """Do several things at once until one of them is done; the others are ended.

        Raises:
            Exception: what one of them has raised.
        """
        tasks = [asyncio.ensure_future(one) for one in each]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def begin(self, send: Send) -> None:
        """Send the head."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

    async def send_text(self, send: Send, text: str) -> None:
        """Send events, or a comment."""
        if text:
            await send({"type": "http.response.body", "body": encoded(text), "more_body": True})

    async def end(self, send: Send) -> None:
        """Send that there is no more."""
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def until_gone(self, receive: Receive) -> None:
        """Wait until the client is gone."""
        while (await receive())["type"] != "http.disconnect":
            pass


class Updates(EventStream):
    """The updates of a store.

    Args:
        instance: the instance that is asked.
        store: the store.
        peers: the other instances, whose updates are merged in; None gives those of this instance only.
        is_ending: says whether the server is about to stop.
        on_close: called when it is over.
    """

    def __init__(
        self,
        instance: QueryableInstance,
        store: QueryableStore,
        peers: Peers | None,
        is_ending: Callable[[], bool],
        on_close: Callable[[], None],
    ) -> None:
        super().__init__(is_ending, on_close)
        self._instance, self._store, self._peers = instance, store, peers
        self._seen: dict[str, tuple[object, int]] = {}

    async def tell(self, receive: Receive, send: Send) -> None:
        """Send each update as it lands."""
        self._mailbox = Mailbox[tuple[object, StoreUpdate | Event]](MOST_WAITING)
        here = self._instance.here
        unsubscribe = self._instance.subscribe(self._store.name, lambda update: self._mailbox.put((here, update)))
        try:
            await self.until_one_ends(self._send_all(send), self.until_gone(receive), self._follow_others())
        finally:
            unsubscribe()

    async def _send_all(self, send: Send) -> None:
        await self.begin(send)
        opened = {"store": self._store.name, "server": str(self._instance.here)}
        await self.send_text(send, Event("open", dumps(opened)).text())
        quiet = 0.0
        while not self._is_ending():
            lost, news = await self._mailbox.fetch(LOOK_AROUND)
            quiet = 0.0 if news else quiet + LOOK_AROUND
            if lost:
                await self.send_text(send, _lost(lost).text())
            elif quiet >= KEEP_ALIVE:
                quiet = 0.0
                await self.send_text(send, ": nothing new\n\n")
            for start in range(0, len(news), MOST_AT_ONCE):
                await self.send_text(send, "".join(self._texts(news[start : start + MOST_AT_ONCE])))
        await self.end(send)

    def _texts(self, news: Iterable[tuple[object, StoreUpdate | Event]]) -> Iterable[str]:
        for source, each in news:
            for event in self._in_order(source, each if isinstance(each, Event) else _event(each)):
                yield event.text()

    def _in_order(self, source: object, event: Event) -> Iterable[Event]:
        """Yield an event unless it was sent before, after a `lost` event for what is missing where a partition moved.

        For a moment the instance that a partition has left and the one that has it now may both report an update, or
        neither may.
        """
        place = re.fullmatch("([0-9]+)-([0-9]+)", event.identifier)
        if place is not None:
            offset = int(place[2])
            teller, last = self._seen.get(place[1], (source, offset))
            if teller != source and offset <= last:
                return
            if teller != source and (missed := _previous(event, offset) - last) > 0:
                yield _lost(missed)
            self._seen[place[1]] = (source, offset)
        yield event

    async def _follow_others(self) -> None:
        """Follow the streams of the other instances, including those that join later."""
        followers: dict[HostInfo, asyncio.Task[None]] = {}
        try:
            while True:
                others = set(self._instance.placement().members) - {self._instance.here} if self._peers else set()
                if self._store.is_global:
                    others = set()
                for gone in followers.keys() - others:
                    followers.pop(gone).cancel()
                for new in others - followers.keys():
                    followers[new] = asyncio.create_task(self._follow(new))
                await asyncio.sleep(LOOK_AROUND)
        finally:
            for follower in followers.values():
                follower.cancel()
            await asyncio.gather(*followers.values(), return_exceptions=True)

    async def _follow(self, host: HostInfo) -> None:
        """Pass on what an instance reports, and send an event when it cannot be reached."""
        assert self._peers is not None
        is_heard = True
        while True:
            try:
                async with self._peers.listen(host, path("state", "stream", self._store.name), 3 * KEEP_ALIVE) as lines:
                    reader = EventReader()
                    async for line in lines:
                        event = reader.read(line)
                        if event is None:
                            continue
                        if event.kind == "open":
                            event = Event("joined", dumps({"server": str(host)}))
                            is_heard = True
                        self._mailbox.put((host, event))
                why = f"{host} has ended its stream."
            except PeerError as error:
                why = str(error)
            if is_heard:
                is_heard = False
                self._mailbox.put((host, Event("missing", dumps({"server": str(host), "why": why}))))
            await asyncio.sleep(LOOK_AROUND)


def _previous(event: Event, offset: int) -> int:
    """Return the offset of the update before the one in an event: the one before its own, if its teller knows none."""
    previous: int | None = event.json().get("previous")
    return offset - 1 if previous is None else previous


def _event(update: StoreUpdate) -> Event:
    said, identifier = update._asdict(), f"{update.partition}-{update.offset}"
    if update.error:
        return Event("unreadable", dumps({name: said[name] for name in ("error", "timestamp", *PLACE)}), identifier)
    del said["error"]
    return Event("update", dumps(said | described(update.key, update.value)), identifier)


PLACE = ("partition", "offset", "previous")


def _lost(count: int) -> Event:
    what_to_do = "Read the store again to see where it is; a slow reader has to read faster."
    return Event("lost", dumps({"updates": count, "what_to_do": what_to_do}))
