"""An application that uses all that talks to a broker, and the users' passwords, to be looked for."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import functions as F

from streamskit import KafkaStreams, Processor, Record, Serdes, Stores, StreamsBuilder, Topology
from tests.integration.secured.broker import SecuredBroker

PASSWORDS = {"alice": 'swordfish-"\\ 1', "bob": "swordfish-2", "carol": "swordfish-3", "mallory": "swordfish-4"}
SECRET = "swordfish"

Settings = dict[str, str]
Run = Callable[..., KafkaStreams]


class UpperCase(Processor):
    """Keeps the values of a topic in capital letters."""

    def process(self, record: Record) -> None:
        self.context.state_store("names").put(record.key, record.value and record.value.upper())


def counting(name: str) -> Topology:
    """Return a topology with all that talks to a broker.

    That is a repartition topic, a store, a global store, a partitioner, topics that records choose, and a function.
    """
    builder = StreamsBuilder()
    names = Stores.in_memory_key_value_store("names", Serdes.string(), Serdes.string())
    builder.add_global_store(names, f"{name}-names", UpperCase)
    records = builder.stream(f"{name}-in")
    records.peek(lambda key, value: None)
    records.to(lambda k, v: F.concat(F.lit(f"{name}-"), v), partitioner=lambda topic, key, value, count: [0])
    grouped = records.group_by(lambda k, v: v)
    grouped.count("counts").to_stream().to(f"{name}-out")
    return builder.build()


def make_topics(secured: SecuredBroker, name: str) -> None:
    topics = (f"{name}-{end}" for end in ("in", "out", "names", "x", "y"))
    secured.open.create_topics(*topics, partitions=2)
    secured.open.produce(f"{name}-names", [("x", "ex"), ("y", "why")])


def rows(streams: KafkaStreams) -> dict[str, int]:
    return {row.key: row.value for row in streams.store("counts").all()}


def command_lines() -> list[str]:
    """Return the command lines of this process's children, and theirs."""
    lines = []
    for process in psutil.Process().children(recursive=True):
        with_it = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(process.pid)], capture_output=True, text=True)
        lines.append(with_it.stdout)
    assert any("java" in line for line in lines)
    return lines


def found_in(folder: Path) -> list[Path]:
    """Return the files in a folder that hold a secret."""
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
