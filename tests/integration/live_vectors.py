"""The programs of recorded vectors as applications on a broker: cut into micro-batches, and run.

All run beside each other, on one broker and one Spark session: each application's topics begin with a name of its own,
which is taken out of what it wrote before that is compared.
"""

import inspect
import json
import random
import re
import shutil
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaProducer
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import KafkaStreams, State, StreamsError, Topology
from streamskit.broker import Broker
from streamskit.kafka.producer import NULL, NullSerializer
from streamskit.kafka.topic_partition import partition_for
from streamskit.serdes import Serde, Serdes
from streamskit.topology.nodes import Sink, Source
from tests.conformance.programs import PROGRAMS, SETTINGS
from tests.conformance.random_programs import BAD
from tests.conformance.registry import LETTERS, forget_effects, take_effects
from tests.conformance.test_vectors import VECTORS, Vector, as_it_is, row
from tests.integration.live_outcomes import Outcome, globals_of, source_of

AT_ONCE = 4
"""How many applications run beside each other."""

REAL_TIME = "real time"
"""As a cut: one batch of Spark's real-time mode, or as few as can be, where one micro-batch would be."""

AS_THEY_COME = "as they come"
"""As a cut: one record after the other in real-time mode, where no topic waits for another."""

IN_REAL_TIME: dict[str, Any] = {"real_time": "5 seconds"}
WAITING_FOR_NONE: dict[str, Any] = IN_REAL_TIME | {"max_task_idle_ms": -1}
"""Settings of real-time mode: topics in the order of their time, and each as it comes."""

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Plans are compiled, as in an application; most other tests take them as they are, as the test driver does."""

SECONDS = 600
"""How long an application may take for a micro-batch, at most."""
QUEUE_SECONDS = 3000
"""How long a run may take with those that are before it."""

starting = threading.Lock()
"""Applications and test drivers take settings from one session while they start."""

_effects = threading.Lock()
"""Programs with side effects note them in one place: only one of them runs at a time."""


# ---- cuts ------------------------------------------------------------------------------------------------------------


def cut(steps: list[Vector], topology: Topology, how: str) -> list[list[Vector]]:
    """Return the records of a vector, cut into micro-batches.

    Args:
        steps: the vector's.
        topology: what they are for.
        how: "whole", one micro-batch, or as few as can be where the order in time is not that of the recording; "each",
            one for each record; or "random N", cut at random with the seed N.
    """
    records = [step["pipe"] for step in steps if "pipe" in step]
    if how == "each":
        return [[record] for record in records]
    chance = random.Random(how)
    portions: list[list[Vector]] = []
    for record in records:
        begins = not portions or (how != "whole" and chance.random() < 0.4)
        if begins or not is_in_order([*portions[-1], record], topology):
            portions.append([])
        portions[-1].append(record)
    return portions


def is_in_order(records: list[Vector], topology: Topology) -> bool:
    """Return whether an application that finds all these records at once takes them in the order in which they are.

    It takes all of a global table first, then the topic whose next record is the earliest. Where it has several
    sub-topologies, records take ways of different lengths, and only those of one topic stay in order.
    """
    if len({record["topic"] for record in records}) == 1:
        return True
    if len(topology.sub_topologies()) > 1 + len(globals_of(topology)):
        return False
    waiting = {record["topic"]: deque[Vector]() for record in records}
    for record in records:
        waiting[record["topic"]].append(record)
    first = globals_of(topology)
    for record in records:
        heads = {topic: -1 if topic in first else ahead[0]["timestamp"] for topic, ahead in waiting.items() if ahead}
        mine = heads.pop(record["topic"])
        if any(time <= mine for time in heads.values()):  # of two at the same time either may come first
            return False
        waiting[record["topic"]].popleft()
    return True


# ---- a run -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One application that is to be: a vector's program, how its records are cut, and on how many partitions."""

    name: str
    how: str
    partitions: int = 1

    @property
    def vector(self) -> Vector:
        """What was recorded."""
        return json.loads((VECTORS / f"{self.name}.json").read_text())

    @property
    def prefix(self) -> str:
        """How the names of its topics begin, and its application's id."""
        return f"{self.name}.{self.how.replace(' ', '')}.{self.partitions}."


class Bench:
    """Runs applications on a broker, several beside each other."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._broker, self._folder = broker, folder
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._futures: dict[Any, Future[Outcome]] = {}
        self._producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, value_serializer=NullSerializer(), acks="all", linger_ms=0
        )
        self._consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused"})

    def close(self) -> None:
        """Let go of the connections; what has not begun is not run any more."""
        self._pool.shutdown(cancel_futures=True)
        self._producer.close()
        self._consumer.close()

    def submit(self, runs: Iterable[Run]) -> None:
        """Take runs on, which begin as soon as there is room for them."""
        for run in runs:
            self._futures[run] = self._pool.submit(self.run, run)

    def outcome(self, run: Run) -> Outcome:
        """Return what came of a run that was taken on."""
        return self._futures[run].result(QUEUE_SECONDS)

    def run(self, run: Run) -> Outcome:
        """Run the program of a vector, and return what came of it."""
        settings = dict(SETTINGS.get(run.name, {}))
        cache = settings.pop("cache", False)
        settings.setdefault("statestore_cache_max_bytes", 10 * 1024 * 1024 if cache else 0)
        vector, topology = run.vector, PROGRAMS[run.name]()
        application = Application(self, run.prefix, topology, vector, run.partitions, self._folder, settings)
        settings |= {REAL_TIME: IN_REAL_TIME, AS_THEY_COME: WAITING_FOR_NONE}.get(run.how, {})
        portions = cut(vector["steps"], topology, {REAL_TIME: "whole", AS_THEY_COME: "each"}.get(run.how, run.how))
        if not vector.get("side_effects"):
            return application.run(portions)
        with _effects:
            forget_effects()
            self.create([LETTERS], 1)
            before = self.ends(LETTERS)
            outcome = application.run(portions)
            outcome.side_effects = [
                {"kind": kind, "data": text.replace(run.prefix, "")} for kind, text in take_effects()
            ]
            outcome.side_effects += [
                {"kind": "dead_letter", "data": json.loads(letter.value.replace(run.prefix, ""))}
                for letter in self.records(LETTERS, Serdes.string(), Serdes.string(), before)
            ]
            return outcome

    def run_made(
        self, name: str, topology: Topology, vector: Vector, how: str, settings: dict[str, Any] | None = None
    ) -> "Future[Outcome]":
        """Run a program that is no recorded one; `vector` is what is to come of it."""
        settings = {"statestore_cache_max_bytes": 0} | (settings or {})
        application = Application(self, name, topology, vector, 1, self._folder, settings)
        return self._pool.submit(application.run, cut(vector["steps"], topology, how))

    # ---- what applications share

    def create(self, topics: list[str], partitions: int) -> None:
        """Make topics."""
        self._broker.create_topics(*topics, partitions=partitions)

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address."""
        return self._broker.bootstrap_servers

    def send(self, records: Iterable[Any]) -> None:
        """Write records, each a topic, partition, key, value, timestamp and headers, and wait until they are there.

        One topic waits for the other: a micro-batch that comes in between has the first of them.
        """
        for _, together in groupby(records, itemgetter(0)):
            sent = [
                self._producer.send(topic, NULL if value is None else value, key, headers, partition, timestamp)
                for topic, partition, key, value, timestamp, headers in together
            ]
            for each in sent:
                each.get(60)

    def ends(self, topic: str) -> dict[int, int]:
        """Return the offset behind the last record of each partition of a topic."""
        partitions = self._consumer.list_topics(topic, 30).topics[topic].partitions
        return {
            number: self._consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1] for number in partitions
        }

    def records(self, topic: str, key: Serde, value: Serde, begin: dict[int, int] | None = None) -> list[Any]:
        """Return the records of a topic, from offsets on."""
        return list(self._broker.records(topic, key=key, value=value, from_offsets=begin or "earliest"))


class Application:
    """One application on topics of its own."""

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        topology: Topology,
        vector: Vector,
        partitions: int,
        folder: Path,
        settings: dict[str, Any],
    ) -> None:
        self.bench, self.prefix, self.partitions = bench, prefix, partitions
        self.topology = renamed(topology, prefix)
        self.vector = vector
        self.topics = [topic for topic, each in vector["topics"].items() if each["role"] != "internal"]
        self.folder = folder / prefix
        self.settings = settings

    def run(self, portions: list[list[Vector]]) -> Outcome:
        """Give the application its records, portion by portion, and return what came of them."""
        self.bench.create([self.prefix + topic for topic in self.topics], self.partitions)
        streams = KafkaStreams(
            self.topology,
            self.prefix + "oracle",
            self.bench.bootstrap_servers,
            state_dir=self.folder,
            commit_interval="10 ms",
            **{"real_time": "off"} | self.settings,
        )
        outcome = Outcome()
        try:
            if portions:
                self._send(portions[0])  # before the start: one micro-batch takes all of it
            with starting:
                streams.start()
            for number, portion in enumerate(portions):
                if number:
                    self._send(portion)
                self._settle(streams)
            streams.await_processed(f"{SECONDS} seconds")
            outcome.stores = {
                name: list(stored(streams.store(name), self.vector["store_kinds"][name]))
                for name in self.vector["stores"]
            }
        except StreamsError as failure:
            outcome.failure = str(failure)
        outcome.dropped = int(streams.metrics()["dropped"].sum())
        streams.close()
        outcome.outputs = {topic: self._written(topic) for topic in self.vector["outputs"]}
        shutil.rmtree(self.folder, ignore_errors=True)
        return outcome

    def _send(self, portion: list[Vector]) -> None:
        def as_sent(record: Vector) -> Any:
            topic = self.prefix + record["topic"]
            source = source_of(topic, self.topology)
            data = [
                as_it_is(record, part, serde).serialize(record.get(part, record.get(f"{part}_utf8")))
                for part, serde in (("key", source.key), ("value", source.value))
            ]
            if record.get("bad"):
                data[1] = BAD
            partition = 0 if data[0] is None else partition_for(data[0], self.partitions)
            headers = [(name, text.encode()) for name, text in record.get("headers", {}).items()]
            return topic, partition, *data, record["timestamp"], headers

        self.bench.send(map(as_sent, portion))

    def _settle(self, streams: KafkaStreams) -> None:
        """Wait until all queries have processed what is in their topics."""
        deadline = time.monotonic() + SECONDS
        queries = streams._application.supervisor.queries
        moved = True
        while moved:  # what one has written is for another
            moved = False
            for query in queries:
                ends = {topic: self.bench.ends(topic) for topic in query.plan.topics}
                while not query.progress.has_reached(ends):
                    moved = True
                    streams._application.supervisor.raise_failure()
                    if streams.state not in (State.RUNNING, State.REBALANCING):
                        raise StreamsError(f"it is {streams.state.name}")
                    if time.monotonic() > deadline:
                        raise StreamsError(f"{query.plan.name} has not processed its records in {SECONDS} s")
                    time.sleep(0.01)

    def _written(self, topic: str) -> dict[int, list[Vector]]:
        """Return what is in a topic, by partition, as the vectors write it."""
        key, value = self._serdes(topic)
        if self.vector["topics"][topic]["value"] == "json":
            value = Serdes.json("string")
        found: dict[int, list[Vector]] = defaultdict(list)
        for record in self.bench.records(self.prefix + topic, key, value):
            found[record.partition].append(json.loads(json.dumps(row(record)).replace(self.prefix, "")))
        return dict(found)

    def _serdes(self, topic: str) -> tuple[Serde, Serde]:
        """Return the serdes of a topic that the application has written."""
        mine = f"{self.prefix}oracle-"
        writers: dict[Any, Any] = {
            mine + str(sink.topic) if sink.internal else sink.topic: sink for sink in self.topology.sinks
        }
        writers |= {f"{mine}{store.name}-changelog": store for store in self.topology.stores.values()}
        chosen = next((sink for sink in self.topology.sinks if not isinstance(sink.topic, str)), None)
        writer = writers.get(self.prefix + topic) or chosen
        assert writer is not None, f"nobody writes {topic}"
        return writer.key, writer.value


def renamed(topology: Topology, prefix: str) -> Topology:
    """Return a topology whose topics begin with a prefix."""
    nodes = []
    for node in topology.nodes.values():
        if isinstance(node, Source) and not node.internal:
            pattern = node.pattern and f"{re.escape(prefix)}(?:{node.pattern})"
            node = replace(node, topics=tuple(prefix + topic for topic in node.topics), pattern=pattern)
        elif isinstance(node, Sink) and not node.internal:
            node = replace(node, topic=prefix + node.topic if isinstance(node.topic, str) else chosen(node, prefix))
        nodes.append(node)
    return Topology(nodes, topology._loose_stores.values())


def chosen(node: Sink, prefix: str) -> Callable[..., Column]:
    """Return the function that chooses a record's topic, with a prefix before what it chooses."""
    choose = node.topic
    assert callable(choose)
    if len(inspect.signature(choose).parameters) == 1:
        return lambda value: F.concat(F.lit(prefix), choose(value))
    return lambda key, value: F.concat(F.lit(prefix), choose(key, value))


def stored(store: Any, kind: str) -> Iterator[Vector]:
    """Yield the rows of a store as the vectors write them."""
    timed = kind not in ("key-value", "window", "session")
    for entry, timestamp in zip(store.all(), store.to_pandas().get("timestamp", ()), strict=True):
        one = {"key": entry.key, "value": entry.value} | ({"timestamp": int(timestamp)} if timed else {})
        if hasattr(entry.key, "start"):
            one |= {"key": entry.key.key, "window": {"start": entry.key.start, "end": entry.key.end}}
        yield one
