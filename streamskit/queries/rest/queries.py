"""From a request to its answer: which store and key are meant, who is to be asked, and what the response says."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from streamskit.common.errors import UnknownStateStoreError
from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.metadata import HostInfo
from streamskit.queries.queryable_instance import QueryableInstance
from streamskit.queries.rest.http_errors import Refusal, bad_request, refusal_of
from streamskit.queries.rest.json_codec import Type, dumps, encoded, from_base64, from_text, key_bytes, shown, type_of
from streamskit.queries.rest.peers import Peers
from streamskit.queries.rest.protocol import undotted
from streamskit.queries.rest.results import QueryResult, ReadRows
from streamskit.queries.rest.routing import Question, Router
from streamskit.queries.rest.signing import APPLICATION, FORWARDED

ANY_KIND = ("key-value", "versioned", "window", "session")


class Queries:
    """Answers what is asked of the stores of an application.

    Args:
        instance: the instance that is asked.
        peers: the other instances.
    """

    def __init__(self, instance: QueryableInstance, peers: Peers) -> None:
        self.instance, self.peers = instance, peers
        self.router = Router(instance, peers)
        self._types: dict[str, Type] = {}

    def store(self, name: str, kinds: Collection[str] = ANY_KIND) -> QueryableStore:
        """Return a store of one of some kinds.

        Raises:
            Refusal: there is none of that name, or it is of another kind.
        """
        store = self.instance.stores.get(name)
        if store is None:
            known = ", ".join(sorted(self.instance.stores)) or "none"
            missing = f"Application '{self.instance.application_id}' has no store '{shown(name)}'; it has: {known}."
            raise refusal_of(UnknownStateStoreError(missing))
        if store.store.kind not in kinds:
            paths = {"window": "/state/windowed and /state/windows", "session": "/state/sessions"}
            asked = paths.get(store.store.kind, "/state/keyvalue and /state/keyvalues")
            raise bad_request(f"'{name}' is a {store.store.kind} store.", f"Ask for its rows with {asked}.")
        return store

    def key(self, store: QueryableStore, text: str) -> tuple[Any, bytes]:
        """Return the key that a text in a URL stands for, and its bytes.

        Raises:
            Refusal: it cannot be a key of this store.
        """
        try:
            kind = self._types.get(store.name) or self._types.setdefault(store.name, type_of(store.store.key))
            key = from_text(kind, text)
            return key, key_bytes(store.store.key, key)
        except ValueError as wrong:
            raise bad_request(f"Store '{store.name}': {wrong}") from None

    def keys(self, store: QueryableStore, *texts: str | None) -> list[Any]:
        """Return the keys of some texts; None where there is no text."""
        return [None if text is None else self.key(store, text)[0] for text in texts]

    async def one(self, request: Request, store: QueryableStore, key: bytes, read: ReadRows, row_name: str) -> Response:
        """Answer with one row.

        Args:
            request: what was asked.
            store: the store.
            key: the bytes of its key (without its window).
            read: finds the row in a partition.
            row_name: names the row, for the sentence that says that there is none.

        Raises:
            Refusal: there is no such row, or nobody can say.
        """
        partitions = self._partitions_of(store, key)
        question = Question(store, partitions, path_of(request), read, len(partitions), quick=True)
        forwarded = self.forwarded_to_us(request, store)
        if forwarded is not None:
            return await self._to_peer(question, forwarded)
        answer = await self.router.ask(question)
        row = min(answer.page.rows, key=lambda each: each.partition, default=None)
        if any(row is None or partition < row.partition for partition in answer.missing):
            raise _nobody_has(store, answer)
        if row is None:
            advice = "A list of the store shows which keys there are."
            raise Refusal(404, f"Store '{store.name}' has no {row_name}.", advice, {"partitions": answer.partitions})
        by = next(each for each in answer.partitions if each["partition"] == row.partition)
        said = {name: by[name] for name in ("host", "role", "lag")}
        return _json(f"{row.text[:-1]},{dumps(said)[1:]}")

    async def many(
        self,
        request: Request,
        store: QueryableStore,
        read: ReadRows,
        limit: int,
        *,
        key: bytes | None = None,
        reverse: bool = False,
        partial: bool = False,
    ) -> Response:
        """Answer with a list of rows.

        Args:
            request: what was asked.
            store: the store.
            read: reads a page of some partitions.
            limit: how many rows there may be.
            key: the bytes of the key whose rows they all are; None asks all partitions.
            reverse: whether the last row comes first.
            partial: whether to answer also when partitions are missing.

        Raises:
            Refusal: nobody can answer for a partition, and that was not allowed.
        """
        answer = await self._ask_all(request, store, read, limit, key, reverse, partial)
        if isinstance(answer, Response):
            return answer
        page = answer.page
        after = dumps(page.rows[-1].cursor if page.more else None)
        rest = dumps(
            {"partitions": answer.partitions, "missing": _missing(answer), "unreadable": answer.page.unreadable}
        )
        rows = ",".join(row.text for row in page.rows)
        return _json(f'{{"store":{dumps(store.name)},"rows":[{rows}],"next":{after},{rest[1:]}')

    async def count(self, request: Request, store: QueryableStore, read: ReadRows, partial: bool) -> Response:
        """Answer with the number of rows; see `many`."""
        answer = await self._ask_all(request, store, read, store.partitions, None, False, partial)
        if isinstance(answer, Response):
            return answer
        said = {"store": store.name, "count": sum(int(row.text) for row in answer.page.rows)}
        return _json(dumps({**said, "partitions": answer.partitions, "missing": _missing(answer)}))

    def forwarded_to_us(self, request: Request, store: QueryableStore | None = None) -> list[int] | None:
        """Return the partitions that another instance asks this one to answer for itself; None if no instance asks.

        Raises:
            Refusal: it is an instance of another application, or they are no partitions of the store.
        """
        asked = request.headers.get(FORWARDED)
        if asked is None:
            return None
        if request.headers.get(APPLICATION) != self.instance.application_id:
            said = f"This is an instance of application '{self.instance.application_id}'."
            raise Refusal(503, said, "The instance that was here has gone: ask again in a moment.")
        parts = asked.split(",") if asked else []
        count = 0 if store is None else store.partitions
        if not all(part.isascii() and part.isdecimal() and len(part) < 10 and int(part) < count for part in parts):
            raise bad_request(f"The header {FORWARDED} names no partitions: '{shown(asked)}'.", "Leave it out.")
        return [int(part) for part in parts]

    async def _ask_all(
        self,
        request: Request,
        store: QueryableStore,
        read: ReadRows,
        limit: int,
        key: bytes | None,
        reverse: bool,
        partial: bool,
    ) -> QueryResult | Response:
        partitions = tuple(range(store.partitions)) if key is None else self._partitions_of(store, key)
        question = Question(store, partitions, path_of(request), read, limit, reverse)
        forwarded = self.forwarded_to_us(request, store)
        if forwarded is not None:
            return await self._to_peer(question, forwarded)
        answer = await self.router.ask(question)
        if answer.missing and not partial:
            raise _nobody_has(store, answer)
        return answer

    def _partitions_of(self, store: QueryableStore, key: bytes) -> tuple[int, ...]:
        partition = self.instance.partition_of(store.name, key)
        return tuple(range(store.partitions)) if partition is None else (partition,)

    async def _to_peer(self, question: Question, partitions: Collection[int]) -> Response:
        answer = await self.router.here(replace(question, partitions=tuple(partitions)))
        return _json(answer.to_peer())


def cursor_of(text: str | None) -> bytes | None:
    """Return the place in a list that `next` of the page before gave.

    Raises:
        Refusal: the text is not such a place.
    """
    if text is None:
        return None
    try:
        place = from_base64(text)
    except ValueError:
        place = b""
    if len(place) < 4:
        raise bad_request(
            f"after='{shown(text)}' is not a position in a list.", 'Give it what the page before has as "next".'
        )
    return place


def hosts_of(instance: QueryableInstance) -> list[HostInfo]:
    """Return all instances, this one among them."""
    return sorted({instance.here, *instance.placement().members})


def _nobody_has(store: QueryableStore, answer: QueryResult) -> Refusal:
    numbers = ", ".join(map(str, sorted(answer.missing)))
    which = f"partition {numbers} of" if len(answer.missing) == 1 else f"partitions {numbers} of"
    why = next(iter(answer.missing.values()))
    again = "" if "sk again in a moment" in why else "Ask again in a moment. "
    advice = f"{again}Of a list, ?partial=true gives what there is."
    return Refusal(
        503, f"Nobody can answer for {which} store '{store.name}'. {why}", advice, {"missing": _missing(answer)}
    )


def _missing(answer: QueryResult) -> list[dict[str, Any]]:
    return [{"partition": partition, "why": why} for partition, why in sorted(answer.missing.items())]


def path_of(request: Request) -> str:
    """Return what was asked for, as another instance gets it."""
    path = undotted(request.scope["path"])
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _json(text: str) -> Response:
    return Response(encoded(text), media_type="application/json")
