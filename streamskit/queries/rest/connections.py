"""Connections that cannot be held up: a client that sends too much, or sends or reads too slowly, is cut off."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streamskit.queries.rest.http_errors import Refusal
from streamskit.queries.rest.json_codec import dumps, encoded

MOST_CONNECTIONS = 1000
LARGEST_HEAD = 64 * 1024
"""The most bytes before the body of a request: a key of 8 KB takes three times that when percent-encoded."""

SLOWEST_REQUEST = 10.0
"""Within how many seconds a request has to come, from its first byte or from when the connection was made."""

STALLED_AFTER = 60.0
"""After how many seconds a client that does not read what it asked for is cut off."""

LEAST_READ = 16 * 1024
"""How many bytes it has to read in that time."""

REASONS = {
    400: "Bad Request",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
NOT_HTTP = Refusal(400, "This is no HTTP request.", "Ask with a browser, curl or QueryClient.")
TOO_LONG = Refusal(414, f"The URL has more than {LARGEST_HEAD} bytes.", "Read long keys with a list or a range.")
TOO_MANY_HEADERS = Refusal(431, f"The headers have more than {LARGEST_HEAD} bytes.", "Send fewer or shorter ones.")
FULL = Refusal(503, f"{MOST_CONNECTIONS} connections are open, and no more are taken.", "Ask again in a moment.")


class CarefulProtocol(HttpToolsProtocol):
    """uvicorn's side of a connection, with limits on how long and how large a request may be."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._request_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._received = 0
        self._is_reading = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(FULL)
        else:
            self._expect_a_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._received += len(data)
        super().data_received(data)
        if self._received > LARGEST_HEAD:
            self._refuse(TOO_MANY_HEADERS if self.headers else TOO_LONG)
        elif self._is_reading and self._request_timer is None:
            self._expect_a_request()

    def on_message_begin(self) -> None:
        self._is_reading = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if len(self.url) > LARGEST_HEAD:
            raise ValueError(TOO_LONG)  # ends the parsing, and comes out in `send_400_response`
        super().on_headers_complete()
        self._received = 0

    def on_body(self, body: bytes) -> None:
        self._received = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_reading = False
        self._received = 0
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with the request, as JSON like every other refusal."""
        self._refuse(TOO_LONG if len(getattr(self, "url", None) or b"") > LARGEST_HEAD else NOT_HTTP)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_the_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    def _expect_a_request(self) -> None:
        self._request_timer = self.loop.call_later(SLOWEST_REQUEST, self.transport.abort)

    def _watch_the_reader(self, left: int) -> None:
        def look() -> None:
            now_left = self.transport.get_write_buffer_size()
            if now_left > left - LEAST_READ:
                self.transport.abort()
            else:
                self._watch_the_reader(now_left)

        self._stall_timer = self.loop.call_later(STALLED_AFTER, look)

    def _stop_timers(self) -> None:
        for timer in (self._request_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()

    def _refuse(self, refusal: Refusal) -> None:
        if self.transport.is_closing():
            return
        body = encoded(dumps(refusal.body))
        head = {"content-type": "application/json", "content-length": len(body), "connection": "close"}
        lines = [f"HTTP/1.1 {refusal.status} {REASONS[refusal.status]}"]
        lines += [f"{name}: {value}" for name, value in {**head, **refusal.headers}.items()]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()
