"""`QueryClient`: the stores of an application, asked over REST from anywhere."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError, UnknownStateStoreError
from streamskit.queries.client.calls import Calls
from streamskit.queries.client.stores import (
    RemoteKeyValueStore,
    RemoteSessionStore,
    RemoteStore,
    RemoteVersionedStore,
    RemoteWindowStore,
    read_key,
)
from streamskit.queries.metadata import HostInfo, KeyQueryMetadata
from streamskit.queries.queryable_instance import StoreUpdate
from streamskit.queries.rest.json_codec import from_json, to_text
from streamskit.queries.rest.protocol import EventReader, path

KINDS: dict[str, type[RemoteStore]] = {
    "key-value": RemoteKeyValueStore,
    "versioned": RemoteVersionedStore,
    "window": RemoteWindowStore,
    "session": RemoteSessionStore,
}


class QueryClient:
    """Asks an application for what is in its stores; any of its instances will do, each asks the others.

    Args:
        url: where an instance answers, such as "http://127.0.0.1:8080", or several that are tried in turn.
        token: the token that the instances require, if they do.
        timeout: how long one answer may take.
        retry: for how long to ask again while an instance says that it cannot answer at the moment.

    Raises:
        ValueError: a URL, the token or a duration is not valid.

    >>> QueryClient("http://127.0.0.1:8080").store("counts").get("KO")  # doctest: +SKIP
    42
    """

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | None = None,
        timeout: Duration = "5 seconds",
        retry: Duration = "10 seconds",
    ) -> None:
        urls = [url] if isinstance(url, str) or not isinstance(url, Iterable) else list(url)
        seconds = to_milliseconds(timeout, "timeout") / 1000
        self._calls = Calls(urls, token, seconds, to_milliseconds(retry, "retry") / 1000)

    def __repr__(self) -> str:
        return f"QueryClient({', '.join(self._calls.urls)})"

    def __enter__(self) -> "QueryClient":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._calls.close()

    def stores(self) -> list[str]:
        """Return the names of the stores there are."""
        return [store["name"] for store in self._calls.ask(path("state", "stores"))["stores"]]

    def store(self, name: str) -> Any:
        """Return a store; it has the methods of the local one, `streams.store(name)`.

        Raises:
            UnknownStateStoreError: the application has none of that name.
            StreamsError: no instance answers.

        >>> client.store("trade-aggregates").fetch("KO", 0, 60_000)  # doctest: +SKIP
        [(0, {'count': 3}), (1000, {'count': 2})]
        """
        described = self._described(name)
        return KINDS[described["kind"]](self._calls, described)

    def instances(self) -> list[dict[str, Any]]:
        """Return all instances: `server`, whether it is `reachable`, and by store how far each of its partitions is."""
        return list(self._calls.ask(path("state", "instances"))["instances"])

    def metadata_for_key(self, store: str, key: Any) -> KeyQueryMetadata:
        """Return which instances have a key.

        Raises:
            UnknownStateStoreError: the application has no such store.
            StreamsError: any instance may have the key, as a processor put it there.

        Mirrors `KafkaStreams#queryMetadataForKey`.
        """
        text = to_text(self._described(store)["key"], key)
        said = self._calls.ask(path("state", "instance", store, text))
        active, standbys = said["active_host"], tuple(HostInfo.of(each) for each in said["standby_hosts"])
        return KeyQueryMetadata(None if active is None else HostInfo.of(active), standbys, said["partition"])

    def updates(self, store: str) -> Iterator[StoreUpdate]:
        """Yield each update of a store as it lands, from all instances, until the caller stops.

        Raises:
            UnknownStateStoreError: the application has no such store.
            StreamsError: the connection ends, or updates were lost: this client has read too slowly, or an instance
                cannot be heard. Read the store again, and go on from there.

        >>> for update in client.updates("counts"):  # doctest: +SKIP
        ...     print(update.key, update.value)
        """
        described, reader = self._described(store), EventReader()
        for line in self._calls.lines(path("state", "stream", store)):
            event = reader.read(line)
            if event is not None and event.kind in ("lost", "missing"):
                raise StreamsError(_loss(store, event.kind, event.json()))
            if event is not None and event.kind == "update":
                said = event.json()
                value = from_json(described["value"], said["value"])
                key = read_key(described, said)
                yield StoreUpdate(key, value, said["timestamp"], said["partition"], said["offset"])
        raise StreamsError(f"The updates of store '{store}' have ended: the instance has stopped. Ask another one.")

    def _described(self, name: str) -> dict[str, Any]:
        said = self._calls.ask(path("state", "stores"))
        for store in said["stores"]:
            if store["name"] == name:
                return dict(store)
        known = ", ".join(store["name"] for store in said["stores"]) or "none"
        raise UnknownStateStoreError(f"Application '{said['application_id']}' has no store '{name}'; it has: {known}.")


def _loss(store: str, kind: str, said: dict[str, Any]) -> str:
    if kind == "lost":
        why = (
            f"{said['updates']} updates of store '{store}' were missed: they were not read fast enough, or their "
            "partition has moved."
        )
    else:
        why = f"Updates of store '{store}' may be missing: {said['why']}"
    return f"{why} Read the store again, and go on from there."
