"""Whom to ask: the active instance of a partition, else a standby; one for a key, all for a list."""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from streamskit.common.errors import InvalidStateStoreError, StateStoreMigratedError
from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.metadata import HostInfo
from streamskit.queries.queryable_instance import QueryableInstance
from streamskit.queries.rest.peers import PeerError, Peers
from streamskit.queries.rest.results import QueryResult, ReadRows, merged

NOBODY = "No instance has it at the moment."
READERS = 4
"""How many lists are read at the same time; a single key is read immediately, outside this limit."""


@dataclass(frozen=True)
class Question:
    """Something that is asked of partitions of a store.

    `path` is the request as another instance gets it, `read` what an instance that has the partitions does. A list is
    merged to `limit` rows; a `quick` question is answered without a thread of its own.
    """

    store: QueryableStore
    partitions: tuple[int, ...]
    path: str
    read: ReadRows
    limit: int = 1
    reverse: bool = False
    quick: bool = False


class Router:
    """Finds answers here and at other instances.

    Args:
        instance: the instance that it speaks for.
        peers: the others.
    """

    def __init__(self, instance: QueryableInstance, peers: Peers) -> None:
        self._instance, self._peers = instance, peers
        self._readers = ThreadPoolExecutor(READERS, "streamskit: lists")

    def close(self) -> None:
        """Let go of the threads."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    async def ask(self, question: Question) -> QueryResult:
        """For each partition, query the instances that have it, one after the other, until one answers."""
        quickly = self._ask_here(question)
        if quickly is not None:
            return quickly
        candidates = {partition: self._candidates(question.store, partition) for partition in question.partitions}
        answers, missing = list[QueryResult](), dict.fromkeys(question.partitions, NOBODY)
        while groups := _next_groups(candidates, missing):
            answered = await self._ask_all(groups, question)
            answers += answered
            for answer in answered:
                missing |= answer.missing
                for each in answer.partitions:
                    missing.pop(each["partition"], None)
        page = merged((answer.page for answer in answers), question.limit, question.reverse)
        heard = sorted((each for answer in answers for each in answer.partitions), key=lambda each: each["partition"])
        return QueryResult(page, heard, missing)

    async def here(self, question: Question) -> QueryResult:
        """Answer for partitions that are here; those that are not are missing."""
        if question.quick:
            return self._read(question)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, question)

    def _ask_here(self, question: Question) -> QueryResult | None:
        """Return the answer to a question that needs no other instance, as most about one key do; else None."""
        if not question.quick or len(question.partitions) > 1 or question.store.is_global:
            return None
        if self._instance.hosts(question.store.name, question.partitions[0]).active != self._instance.here:
            return None
        answer = self._read(question)
        return None if answer.missing else answer

    def _read(self, question: Question) -> QueryResult:
        try:
            return self._read_whole(question)
        except InvalidStateStoreError as error:
            if len(question.partitions) == 1:
                return QueryResult.none(question.partitions, str(error))
        each = [self._read(replace(question, partitions=(partition,))) for partition in question.partitions]
        return QueryResult(
            merged((answer.page for answer in each), question.limit, question.reverse),
            [heard for answer in each for heard in answer.partitions],
            {partition: why for answer in each for partition, why in answer.missing.items()},
        )

    def _read_whole(self, question: Question) -> QueryResult:
        name, partitions = question.store.name, question.partitions
        page = question.read(self._instance.local(name, partitions), partitions)
        # Looked up after the rows were read: what it says of them holds, or the partition has gone.
        states = {state.partition: state for state in self._instance.states(name)}
        gone = [partition for partition in partitions if partition not in states]
        if gone:
            raise StateStoreMigratedError(f"Partition {gone[0]} of store '{name}' has just moved from this instance.")
        here = str(self._instance.here)
        heard = [
            {"partition": partition, "host": here, "role": states[partition].role, "lag": states[partition].lag}
            for partition in partitions
        ]
        return QueryResult(page, heard)

    async def _ask_all(self, groups: dict[HostInfo, list[int]], question: Question) -> list[QueryResult]:
        asked = [
            self._ask_one(host, replace(question, partitions=tuple(partitions))) for host, partitions in groups.items()
        ]
        return [await asked[0]] if len(asked) == 1 else list(await asyncio.gather(*asked))

    async def _ask_one(self, host: HostInfo, question: Question) -> QueryResult:
        if host == self._instance.here:
            return await self.here(question)
        try:
            sent = await self._peers.ask(host, question.path, question.partitions)
            return _limited(QueryResult.from_peer(sent), question.partitions)
        except PeerError as error:
            return QueryResult.none(question.partitions, str(error))
        except (ValueError, KeyError, TypeError, AttributeError):
            why = f"{host} answered something else: it may run another version of streamskit."
            return QueryResult.none(question.partitions, why)

    def _candidates(self, store: QueryableStore, partition: int) -> Iterator[HostInfo]:
        if store.is_global:
            here = self._instance.here
            return iter([here, *(each for each in self._instance.placement().members if each != here)])
        return iter(dict.fromkeys(self._instance.hosts(store.name, partition)))


def _next_groups(candidates: dict[int, Iterator[HostInfo]], partitions: Iterable[int]) -> dict[HostInfo, list[int]]:
    """Return, for each instance to ask next, the partitions to ask it for."""
    groups: dict[HostInfo, list[int]] = {}
    for partition in partitions:
        host = next(candidates[partition], None)
        if host is not None:
            groups.setdefault(host, []).append(partition)
    return groups


def _limited(answer: QueryResult, partitions: Collection[int]) -> QueryResult:
    """Return an answer after checking that it covers exactly the partitions that were asked for."""
    heard = {each["partition"] for each in answer.partitions}
    if not heard <= set(partitions) or heard | set(answer.missing) != set(partitions):
        raise ValueError("The answer is for other partitions.")
    return answer
