"""The exercises of lab 14: who gets which share, what moves, who answers meanwhile, and how far a program can grow."""

import atexit
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from operator import eq
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from streamskit.broker import find_shared_broker, shared_broker
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Judges, Runs, Verdict, getting_ready, mistaken, right, topology_of, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import WrongLoop, looped
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Batch, Piped, Recording
from streamskit.course.labs.time_limit import finished_first
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.grouped_stream import KGroupedStream
from streamskit.dsl.kstream import KStream
from streamskit.environment.processes import wait_until
from streamskit.queries.client.query_client import QueryClient
from streamskit.queries.group.assignor import ClientState, assign_tasks
from streamskit.queries.instances import Instances
from streamskit.queries.metadata import HostInfo
from streamskit.runtime.streams import KafkaStreams
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
    """Return how many of six partitions each of `count` instances has, fewest first."""
    names = [f"instance-{number}" for number in range(count)]
    shares = assign_tasks(SIX, [ClientState(name, name) for name in names])
    return sorted(list(shares.active.values()).count(name) for name in names)


def fair_shares() -> dict[int, list[int]]:
    """Return the shares of 1, 2, 4, 5 and 8 instances, as instances agree upon them."""
    return {count: fair(count) for count in (1, 2, 4, 5, 8)}


# ---- 2, 3: live ------------------------------------------------------------------------------------------------------


class OneTooManyError(Exception):
    """One more instance than requested was about to be started."""


class AtMost(Instances):
    """A limited number of instances: a check that waits until each has a share would wait forever with more."""

    most = 4

    def start(self, *arguments: Any, **settings: Any) -> HostInfo:
        """Start one more instance, if it is not one too many."""
        if len(self) == self.most:
            raise OneTooManyError
        return super().start(*arguments, **settings)


@contextmanager
def no_instances() -> Iterator[tuple[AtMost, dict[str, int]]]:
    """Yield instances of that application, none of which is running yet, and the answers they have to give."""
    with getting_ready():
        folder = state_of_the_application()
    with AtMost(APPLICATION, shared_broker().bootstrap_servers, applications=folder) as instances:
        yield instances, COUNTS


def hosted(instances: Instances) -> list[int]:
    """Return how many partitions each instance has whole, fewest first."""
    alive = [each for each in instances.instances() if each.alive]
    return sorted(sum(not task.is_restoring for task in each.tasks) for each in alive)


def examine_grow(answer: Any) -> Verdict:
    """Judge a function that starts instances, by what they host when it returns."""
    with no_instances() as (instances, _):
        for count, due in ((1, [4]), (2, [2, 2])):
            instances.most = count
            try:
                answer(instances, count)
            except OneTooManyError:
                return mistaken("start what is missing", count=count, left=count + 1)
            found = hosted(instances)
            if len(instances) != count:
                return mistaken("start what is missing", count=count, left=len(instances))
            if found != due:
                return mistaken("not waited", count=count, found=found, due=due)
    return right(
        "With one instance and with two, every partition was complete on its instance when your function returned."
    )


def examine_ask(answer: Any) -> Verdict:
    """Judge a function that queries every instance while one of two stops."""
    with no_instances() as (instances, counts):
        with getting_ready():
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
    return right(
        f"Each instance answered for all {len(counts)} stocks, and so did the last one after the other had gone."
    )


def _answers(found: Any, servers: Sequence[str], counts: Mapping[str, int]) -> Verdict | None:
    """Judge what was asked; None if it is right."""
    if not isinstance(found, dict):
        return wrong(f"It has to return a dict with a key for each instance; it returned {found!r}.")
    if len(found) != len(servers):
        return mistaken("yesterday's list", running=len(servers), answering=len(found))
    if other := sorted(set(map(str, found)) - set(servers)):
        return wrong(
            f"{other[0]!r} is not the text of an instance that runs: each key has to be, as {servers[0]!r} is."
        )
    for server, rows in found.items():
        if not isinstance(rows, dict):
            return wrong(f"The value of {server} has to be its rows as a dict, but is {rows!r}.")
    if any(rows != counts for rows in found.values()):
        return mistaken("a part for the whole")
    return None


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
    """Return the answer that groups readings in this way, and counts them."""
    return lambda builder: by(builder.stream("readings", value=READING)).count("readings-by-station")


# ---- the application -------------------------------------------------------------------------------------------------


PARTITIONS = 4
APPLICATION = f"lab-elastic-{secrets.token_hex(3)}"
"""A different one in each process, so that two checks at a time do not disturb each other."""
TOPIC = f"{APPLICATION}-trades"
SYMBOLS = [f"{letter}{number}" for letter in "ABCD" for number in range(1, 6)]
COUNTS = {symbol: number + 1 for number, symbol in enumerate(SYMBOLS)}


@cache
def state_of_the_application() -> Path:
    """Let the application count trades once, and return where its state is; its store is `totals`."""
    folder = Path(mkdtemp(prefix="streamskit-lab-"))
    atexit.register(_forget, folder)
    try:
        shared_broker().create_topics(TOPIC, partitions=PARTITIONS)
        count_trades(APPLICATION, TOPIC, folder)
    except BaseException:  # the next check begins anew, and would count the trades that are there once more
        with finished_first():
            _forget(folder)
        raise
    return folder


def count_trades(application_id: str, topic: str, folder: Path) -> None:
    """Put trades into a topic, and let an application count them in the store `totals`; then it ends."""
    broker = shared_broker()
    broker.produce(topic, [(symbol, str(number)) for symbol, count in COUNTS.items() for number in range(count)])
    builder = StreamsBuilder()
    builder.stream(topic).group_by_key().count("totals")
    with KafkaStreams(builder.build(), application_id, broker.bootstrap_servers, state_dir=folder) as streams:
        streams.await_processed("60 seconds")


def _forget(folder: Path) -> None:
    """Leave nothing behind on the broker or on the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(StreamsKitError):
        if broker := find_shared_broker():
            left = [topic for topic in broker.topics() if topic.startswith(APPLICATION)]
            if left:
                broker.delete_topics(*left, missing_ok=True)


# ---- 4: relieve an instance ------------------------------------------------------------------------------------------


class Watched(Instances):
    """Instances that note who could have answered at the moment when one of them was stopped."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.covered: dict[HostInfo, bool] = {}

    def stop(self, server: HostInfo | None = None) -> None:
        """Stop one instance, or all."""
        if server is not None:
            self.note(HostInfo.of(str(server)))
        super().stop(server)

    def kill(self, server: HostInfo | str) -> None:
        """Kill an instance."""
        self.note(HostInfo.of(str(server)))
        super().kill(server)

    def note(self, server: HostInfo) -> None:
        """Note whether an instance other than this one has every partition whole."""
        self.covered[server] = whole(self, without=server) == set(range(PARTITIONS))


def whole(instances: Instances, without: HostInfo | None = None) -> set[int]:
    """Return the partitions of which an instance that runs has all rows, as the owner's or as a standby's copy."""
    return {
        task.partition
        for each in instances.instances()
        if each.alive and str(each.server) != str(without)
        for task in each.tasks
        if not task.is_restoring
    }


def rows_at(site: Site, server: HostInfo) -> dict[str, int]:
    """Return the rows of the whole store as an instance returns them, as soon as every partition is whole."""
    wait_until(lambda: len(whole(site.instances)) == PARTITIONS, "every partition at the new instance")
    return dict(QueryClient(server.url).store("totals").all())


def an_old_instance(site: Site) -> None:
    """Let one instance have the whole store."""
    site.create_topics(trades=PARTITIONS)
    count_trades(site.application_id, site.topic("trades"), site.folder)
    instances = Watched(site.application_id, site.bootstrap_servers, standby_replicas=1, applications=site.folder)
    site.on_close(instances.stop)
    site.props |= {"instances": instances, "old": instances.start()}
    wait_until(lambda: len(whole(instances)) == PARTITIONS, "the whole store at the old instance")


def judge_relieve(site: Site, returned: Any) -> Verdict:
    """Judge by who was there when the old instance went, and by what the new one knows."""
    instances, old = site.instances, site.old
    running = list(instances)
    if old in running:
        return mistaken("not relieved")
    if not running:
        return mistaken("nobody left")
    if not instances.covered.get(old):
        return mistaken("gone before the other was ready")
    if len(running) > 1:
        return wrong(f"One instance should be left, but {len(running)} are running.")
    knows = rows_at(site, running[0])
    if knows != COUNTS:
        return wrong(f"The new instance has {len(knows)} of {len(COUNTS)} stocks.")
    if not isinstance(returned, dict) or dict(returned) != COUNTS:
        return mistaken("no proof", kind=type(returned).__name__)
    return right(f"When the old instance stopped, the new one had all {PARTITIONS} partitions; no key is lost.")


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def relieved(waits: bool = True, starts: bool = True, stops: bool = True, proof: bool = True) -> Any:
    """Return an answer that starts an instance, waits for it, stops the old one, and proves it, or leaves some out."""

    def answer(site: Site) -> Any:
        instances, old = site.instances, site.old
        new = instances.start() if starts else old
        if waits and starts:
            wait_until(
                lambda: whole(instances, without=old) == set(range(PARTITIONS)), "every partition at the new one"
            )
        if stops:
            instances.stop(old)
        return rows_at(site, new) if proof and starts else None

    return answer


def killed_first(site: Site) -> Any:
    """Stop the old instance, and start a new one then."""
    site.instances.stop(site.old)
    return rows_at(site, site.instances.start())


WRONG = {
    "not relieved": relieved(stops=False),
    "nobody left": relieved(starts=False),
    "gone before the other was ready": [relieved(waits=False), killed_first],
    "no proof": relieved(proof=False),
}


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "14-elasticity",
    fair_shares=SaysEach(
        fair_shares, "Six partitions were shared out among 1, 2, 4, 5 and 8 instances, as instances do.", TYPICAL_SHARES
    ),
    grow=Judges(examine_grow),
    ask_everyone=Judges(examine_ask),
    relieve=Lives("relieve", an_old_instance, judge_relieve),
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
        tested="The counts of all stations are right, and each of eight instances has a share.",
        partitions=3,
    ),
)
