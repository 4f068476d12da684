"""The exercises of lab 14: who gets which share, what moves, who answers meanwhile, and how far a program can grow."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import eq
from typing import Any

from streamskit.broker import shared_broker
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Judges, Runs, Verdict, mistaken, right, topology_of, wrong
from streamskit.course.labs.exercises.elasticity_application import (
    APPLICATION,
    COUNTS,
    PARTITIONS,
    state_of_the_application,
)
from streamskit.course.labs.exercises.elasticity_mission import WRONG, an_old_instance, judge_relieve
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import WrongLoop, looped
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Batch, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.grouped_stream import KGroupedStream
from streamskit.dsl.kstream import KStream
from streamskit.environment.processes import wait_until
from streamskit.queries.client.query_client import QueryClient
from streamskit.queries.group.assignor import ClientState, assign_tasks
from streamskit.queries.instances import Instances
from streamskit.serdes import Serdes
from streamskit.topology import Topology
from streamskit.topology.nodes import Node, Source, of_kind

# ---- 1: fair shares --------------------------------------------------------------------------------------------------

SIX = [f"0_{partition}" for partition in range(6)]
TYPICAL_SHARES: dict[str, Typical] = {
    "as even as can be": {4: [0, 2, 2, 2], 5: [0, 0, 2, 2, 2]},
    "more instances than partitions": {8: [1] * 8},
    "another order": {count: lambda due, count=count: due[count][::-1] for count in (4, 5, 8)},
}


def fair(count: int) -> list[int]:
    """Return how many of six partitions each of so many instances has, fewest first."""
    names = [f"instance-{number}" for number in range(count)]
    shares = assign_tasks(SIX, [ClientState(name, name) for name in names])
    return sorted(list(shares.active.values()).count(name) for name in names)


def fair_shares() -> dict[int, list[int]]:
    """Return the shares of 1, 2, 4, 5 and 8 instances, as instances agree upon them."""
    return {count: fair(count) for count in (1, 2, 4, 5, 8)}


# ---- 2, 3: live ------------------------------------------------------------------------------------------------------


@contextmanager
def no_instances() -> Iterator[tuple[Instances, dict[str, int]]]:
    """Yield instances of that application, none of which runs yet, and what they have to say."""
    folder = state_of_the_application()
    with Instances(APPLICATION, shared_broker().bootstrap_servers, applications=folder) as instances:
        yield instances, COUNTS


def hosted(instances: Instances) -> list[int]:
    """Return how many partitions each instance has whole, fewest first."""
    alive = [each for each in instances.instances() if each.alive]
    return sorted(sum(not task.is_restoring for task in each.tasks) for each in alive)


def examine_grow(answer: Any) -> Verdict:
    """Judge a function that starts instances, by what they host when it returns."""
    with no_instances() as (instances, _):
        for count, due in ((1, [4]), (2, [2, 2])):
            answer(instances, count)
            found = hosted(instances)
            if len(instances) != count:
                return mistaken("start what is missing", count=count, left=len(instances))
            if found != due:
                return mistaken("not waited", count=count, found=found, due=due)
    return right(
        "With one instance and with two, every partition was whole where it belongs when your function returned."
    )


def examine_ask(answer: Any) -> Verdict:
    """Judge a function that asks every instance, while one of two goes."""
    with no_instances() as (instances, counts):
        servers = [instances.start(), instances.start()]
        wait_until(lambda: hosted(instances) == [2, 2], "two instances with two partitions each")
        for count in (2, 1):
            try:
                found = answer(instances)
            except StreamsKitError as error:
                return Verdict(False, f"With {count} of 2 instances left: {error}", cause=error)
            verdict = _answers(found, [str(server) for server in instances], counts)
            if verdict is not None:
                return verdict
            if count == 2:
                instances.stop(servers[0])
    return right(f"Each instance knew all {len(counts)} stocks, and so did the last one when the other had gone.")


def _answers(found: Any, servers: Sequence[str], counts: Mapping[str, int]) -> Verdict | None:
    """Judge what was asked; None if it is right."""
    if not isinstance(found, dict):
        return wrong(f"It has to return a dict, by instance; it returned {found!r}.")
    if sorted(map(str, found)) != sorted(servers):
        return mistaken("a list of yesterday", running=len(servers), answering=len(found))
    if any(dict(rows) != counts for rows in found.values()):
        return mistaken("a part for the whole")
    return None


def growing(what_is_missing: bool = True, waits: bool = True) -> Any:
    """Return an answer that starts what is missing, or as many as are wanted, and waits for them or not."""

    def grow(instances: Instances, count: int) -> None:
        for _ in range(count - len(instances) if what_is_missing else count):
            instances.start()
        if waits:
            wait_until(lambda: sum(hosted(instances)) == PARTITIONS, "every partition whole")

    return grow


def of_yesterday() -> Any:
    """Return an answer that goes on telling what instances said that are gone."""
    answers: dict[str, dict[str, int]] = {}

    def ask(instances: Instances) -> dict[str, dict[str, int]]:
        answers.update({str(server): dict(QueryClient(server.url).store("totals").all()) for server in instances})
        return answers

    return ask


def of_one_partition(instances: Instances) -> dict[str, dict[str, int]]:
    """Return half of what each instance says."""
    answers = {str(server): list(QueryClient(server.url).store("totals").all()) for server in instances}
    return {server: dict(rows[: len(rows) // 2]) for server, rows in answers.items()}


# ---- 5: room to grow -------------------------------------------------------------------------------------------------

READING = Serdes.json("station string, degrees double")
READINGS_PARTITIONS, WANTED = 2, 8
"""How many partitions the topic has, and how many instances are to have a share."""


class _Shared(Runs):
    """Examines the results, and then among how many instances the store could be shared out."""

    def __call__(self, answer: Any) -> Verdict:
        verdict = super().__call__(answer)
        if verdict.passed and (found := shares(topology_of(answer), "readings-by-station")) < WANTED:
            return mistaken("fewer shares than instances", found=found)
        return verdict


def shares(topology: Topology, store: str) -> int:
    """Return how many partitions a store has, if the topic of the readings has two."""
    return _partitions(topology, lambda node: any(each.name == store for each in node.stores))


def _partitions(topology: Topology, has: Callable[[Node], bool]) -> int:
    """Return how many partitions the topics have that the sub-topology with such a node reads."""
    groups = [nodes for nodes in topology.sub_topologies() if any(map(has, nodes))]
    sources = [source for nodes in groups for source in of_kind(Source, nodes) if source.internal]
    read = {topic for source in sources for topic in source.topics}
    written = [sink for sink in topology.sinks if sink.internal and sink.topic in read]
    counts = (sink.partitions or _partitions(topology, partial(eq, sink)) for sink in written)
    return max(counts, default=READINGS_PARTITIONS)


def _readings(key: Callable[[Piped], str] = lambda record: str(record.value["station"])) -> Recording:
    stations = ("Turku", "Turku", "Oulu", "Turku", "Vaasa", "Oulu", "Turku", "Vaasa", "Turku")
    some = tuple(
        Piped("readings", f"sensor-{n % 5}", {"station": station, "degrees": 4.5 + n}, n * 1_000)
        for n, station in enumerate(stations)
    )
    return looped([Batch(some)], [], lambda record: (), {"readings-by-station": Counter(map(key, some))})


def counting(by: Callable[[KStream], KGroupedStream]) -> Callable[[StreamsBuilder], object]:
    """Return the answer that brings readings together in this way, and counts them."""
    return lambda builder: by(builder.stream("readings", value=READING)).count("readings-by-station")


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "14-elasticity",
    fair_shares=SaysEach(
        fair_shares, "Six partitions were shared out among 1, 2, 4, 5 and 8 instances, as instances do.", TYPICAL_SHARES
    ),
    grow=Judges(
        examine_grow, {"start what is missing": growing(what_is_missing=False), "not waited": growing(waits=False)}
    ),
    ask_everyone=Judges(examine_ask, {"a list of yesterday": of_yesterday(), "a part for the whole": of_one_partition}),
    relieve=Lives("relieve", an_old_instance, judge_relieve, wrong=WRONG),
    room_to_grow=_Shared(
        _readings,
        wrong={
            "fewer shares than instances": [
                counting(lambda readings: readings.group_by(lambda v: v.station)),
                counting(lambda readings: readings.select_key(lambda v: v.station).repartition().group_by_key()),
                counting(lambda readings: readings.repartition(partitions=4).group_by(lambda v: v.station)),
            ],
            "counted by sensor": [
                WrongLoop(lambda: _readings(lambda record: str(record.key))),
                WrongLoop(lambda: _readings(lambda record: f"{record.value['station']}/{record.key}")),
            ],
        },
        tested="The counts of all stations are right, and there is a share for each of eight instances.",
    ),
)
