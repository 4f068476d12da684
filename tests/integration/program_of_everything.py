"""A program with operators that keep their state in different ways, and what has to come of numbers that it reads."""

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    KafkaStreams,
    Materialized,
    Processor,
    ProcessorContext,
    Record,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
)
from streamskit.broker import Broker

EVERY = 20_000
"""How many milliseconds lie between two numbers; those of a key are a minute apart."""

KEYS = 3
WINDOW = 300_000


class Totals(Processor):
    """Adds up in a store, and counts in a field, which begins anew at each start."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.totals, self.seen = context.state_store("totals"), 0

    def process(self, record: Record) -> None:
        self.seen += 1
        self.totals.put(record.key, (self.totals.get(record.key) or 0) + int(record.value))
        self.context.forward(record.with_value(str(self.seen)))


def everything(name: str) -> Topology:
    """Return a topology with operators that keep their state in different ways, in Spark and in Python."""
    builder, window = StreamsBuilder(), TimeWindows.of_size_with_no_grace(WINDOW)
    numbers = builder.stream(f"{name}-in", value=Serdes.string())
    names = builder.table(f"{name}-names", value=Serdes.string(), materialized="names")
    grouped = numbers.group_by_key()
    grouped.count("counts").to_stream().map_values(lambda v: v.cast("string")).to(f"{name}-counts")
    grouped.windowed_by(window).count(Materialized("windows", retention="1 day"))
    grouped.reduce(lambda before, value: f"{before},{value}", materialized="all")
    gaps = SessionWindows.of_inactivity_gap_with_no_grace("2 minutes")
    grouped.windowed_by(gaps).count(Materialized("sessions", retention="1 day"))
    lengths = grouped.windowed_by(window).aggregate(
        lambda: 0, lambda k, v, total: total + 1, Materialized("open", value=Serdes.long(), retention="1 day")
    )
    closed = lengths.suppress(Suppressed.until_window_closes()).to_stream(lambda k, v: k.key)
    closed.map_values(lambda v: v.cast("string")).to(f"{name}-closed", key=Serdes.string())
    numbers.join(names, lambda number, named: F.concat(number, F.lit("="), named)).to(f"{name}-named")
    around = JoinWindows.of_time_difference_with_no_grace(KEYS * EVERY)
    numbers.join(numbers.map_values(lambda v: v), lambda one, other: F.concat(one, F.lit("-"), other), around).to(
        f"{name}-pairs"
    )
    totals = Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long())
    numbers.process(Totals, stores=[totals]).to(f"{name}-seen")
    return builder.build()


def write(broker: Broker, name: str, ids: range) -> None:
    """Write numbers, each with its time."""
    broker.produce(
        f"{name}-in", [{"key": f"k{each % KEYS}", "value": str(each), "timestamp": each * EVERY} for each in ids]
    )


def read(broker: Broker, topic: str) -> Counter[str]:
    """Return the values in a topic, as a reader sees them who reads what is committed."""
    return Counter(broker.consume(topic, isolation="read_committed")["value"])


def rows(streams: KafkaStreams, store: str) -> dict[Any, Any]:
    return {row.key: row.value for row in streams.store(store).all()}


def check_everything(broker: Broker, name: str, streams: KafkaStreams, ids: range, named: range | None = None) -> None:
    """Compare all stores and outputs with those of a run that reads each of the numbers once.

    Args:
        broker: where the outputs are.
        name: the application.
        streams: the same, which runs.
        ids: the numbers.
        named: those that came after the names; all, if not given. Number 0 has the time of the names.
    """
    of_keys = {f"k{key}": [each for each in ids if each % KEYS == key] for key in range(KEYS)}
    windows = Counter((f"k{each % KEYS}", each * EVERY // WINDOW * WINDOW) for each in ids)
    assert rows(streams, "counts") == {key: len(each) for key, each in of_keys.items()}
    assert rows(streams, "all") == {key: ",".join(map(str, each)) for key, each in of_keys.items()}
    assert rows(streams, "totals") == {key: sum(each) for key, each in of_keys.items()}
    assert {(key.key, key.start): count for key, count in rows(streams, "windows").items()} == windows
    assert {(key.key, key.start): count for key, count in rows(streams, "open").items()} == windows
    sessions = {(key.key, key.start, key.end): count for key, count in rows(streams, "sessions").items()}
    assert sessions == {(k, each[0] * EVERY, each[-1] * EVERY): len(each) for k, each in of_keys.items()}
    for key, counts in broker.consume(f"{name}-counts", isolation="read_committed").groupby("key")["value"]:
        assert [int(count) for count in counts] == sorted({int(count) for count in counts}), key
    assert read(broker, f"{name}-named") == Counter(f"{each}=name {each % KEYS}" for each in named or ids)
    pairs = [(one, other) for one in ids for other in (one - KEYS, one, one + KEYS) if other in ids]
    assert read(broker, f"{name}-pairs") == Counter(f"{one}-{other}" for one, other in pairs)
    closed = [count for (_, start), count in windows.items() if start + WINDOW <= ids[-1] * EVERY]
    assert read(broker, f"{name}-closed") == Counter(map(str, closed))


def prepare(broker: Broker, name: str) -> None:
    """Make the topics of the program, and name the keys."""
    suffixes = ("in", "names", "counts", "closed", "named", "pairs", "seen")
    broker.create_topics(*(f"{name}-{suffix}" for suffix in suffixes), partitions=1)
    broker.produce(f"{name}-names", [{"key": f"k{key}", "value": f"name {key}", "timestamp": 0} for key in range(KEYS)])


def run_in(state_dir: Path, broker: Broker, name: str, guarantee: str = "at_least_once") -> KafkaStreams:
    """Run the program until all there is is processed."""
    config: Any = {"state_dir": state_dir, "processing_guarantee": guarantee}
    streams = KafkaStreams(everything(name), name, broker.bootstrap_servers, **config)
    streams.start()
    streams.await_processed("120 seconds")
    return streams
