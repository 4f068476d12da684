"""An application whose folder is gone, on a live broker: rebuilt from the copies of its checkpoints, or refused."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
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
from streamskit.common.errors import StreamsError
from streamskit.runtime.checkpoint_copies import CheckpointCopies
from streamskit.runtime.recovery.rebuilding import Rebuilding
from streamskit.testing import wait_until
from tests.integration.conftest import Run
from tests.integration.counting_program import counting, expected_counts, produce, written

pytestmark = [pytest.mark.spark, pytest.mark.broker]

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


def check_everything(broker: Broker, name: str, streams: KafkaStreams, ids: range) -> None:
    """Compare all stores and outputs with those of a run that reads each of the numbers once."""
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
    assert read(broker, f"{name}-named") == Counter(f"{each}=name {each % KEYS}" for each in ids)
    pairs = [(one, other) for one in ids for other in (one - KEYS, one, one + KEYS) if other in ids]
    assert read(broker, f"{name}-pairs") == Counter(f"{one}-{other}" for one, other in pairs)
    closed = [count for (_, start), count in windows.items() if start + WINDOW <= ids[-1] * EVERY]
    assert read(broker, f"{name}-closed") == Counter(map(str, closed))


def test_what_was_lost_with_its_folder_is_rebuilt_and_goes_on_exactly_once_for_every_kind_of_operator(
    broker: Broker,
    name: str,
    run: Run,
    state_dir: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = [f"{name}-{suffix}" for suffix in ("in", "names", "counts", "closed", "named", "pairs", "seen")]
    broker.create_topics(*outputs, partitions=1)
    broker.produce(f"{name}-names", [{"key": f"k{key}", "value": f"name {key}", "timestamp": 0} for key in range(KEYS)])
    options = {"processing_guarantee": "exactly_once"}
    streams = run(everything(name), **options)
    for ids in (range(10), range(10, 25)):
        write(broker, name, ids)
        streams.await_processed("120 seconds")
    streams.close()
    shutil.rmtree(state_dir / name)
    write(broker, name, range(25, 40))
    # It dies as soon as one of several checkpoints is there again.
    make, made = Rebuilding._make_checkpoint, list[str]()

    def die_at_the_second(self: Rebuilding, copy: Any, folder: Path) -> None:
        if made:
            raise KeyboardInterrupt
        made.append(folder.name)
        make(self, copy, folder)

    monkeypatch.setattr(Rebuilding, "_make_checkpoint", die_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run(everything(name), **options)
    assert (state_dir / name / "rebuilding" / made[0] / "offsets").exists()
    assert not (state_dir / name / made[0]).exists()
    monkeypatch.undo()
    again = run(everything(name), **options)
    again.await_processed("120 seconds")
    check_everything(broker, name, again, range(40))
    # A field of a processor begins anew, as at every start.
    assert read(broker, f"{name}-seen")["1"] == 2
    assert (
        f"the checkpoint of sub-topology {made[0]} is rebuilt from topic '{name}-{made[0]}-checkpoint'" in caplog.text
    )
    assert f"goes on at {name}-in-0@25" in caplog.text


def test_a_row_of_state_that_is_too_large_for_one_record_is_rebuilt(
    broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-table", f"{name}-out")
    builder = StreamsBuilder()
    table = builder.table(f"{name}-table", value=Serdes.string())
    numbers = builder.stream(f"{name}-in", value=Serdes.string())
    numbers.join(table, lambda number, text: F.concat(number, F.length(text).cast("string"))).to(f"{name}-out")
    topology, options = builder.build(), {"processing_guarantee": "exactly_once"}
    streams = run(topology, **options)
    for length in (900_000, 700_000):  # in two parts each
        broker.produce(f"{name}-table", [("k", "x" * length)])
        streams.await_processed("120 seconds")
    streams.close()
    shutil.rmtree(state_dir / name)
    broker.produce(f"{name}-in", [("k", "length ")])
    run(topology, **options).await_processed("120 seconds")
    assert read(broker, f"{name}-out") == Counter(["length 700000"])


def copied(streams: KafkaStreams) -> list[int]:
    """Return how many records each query had read when its checkpoint was copied last."""
    positions = [streams._application.checkpoint_copies.copied(each) or {} for each in streams.plans]
    return [sum(sum(offsets.values()) for offsets in each.values()) for each in positions]


def test_at_least_once_a_lost_folder_is_rebuilt_also_of_a_copy_that_was_begun_later(
    broker: Broker, name: str, run: Run, state_dir: Path, monkeypatch: Any
) -> None:
    broker.create_topics(*(f"{name}-{suffix}" for suffix in ("in", "out", "counted")), partitions=2)
    produce(broker, name, range(20))
    streams = run(counting(name))
    streams.await_processed("120 seconds")  # a micro-batch that close() interrupts is written once more
    streams.close()
    # As if an earlier version had run, which kept no copies.
    broker.delete_topics(f"{name}-0-checkpoint", f"{name}-1-checkpoint")
    streams = run(counting(name))
    streams.await_processed("120 seconds")
    streams.close()
    shutil.rmtree(state_dir / name)
    produce(broker, name, range(20, 50))
    streams = run(counting(name))
    streams.await_processed("120 seconds")
    assert rows(streams, "counts") == expected_counts(range(50))
    assert written(broker, name) == Counter(range(50))
    # What was done since the last copy is done once more.
    wait_until(lambda: copied(streams) == [50, 50], "a copy of its checkpoints", 30)
    monkeypatch.setattr(CheckpointCopies, "stop", lambda self: None)
    streams._application.checkpoint_copies._copiers.clear()
    produce(broker, name, range(50, 60))
    streams.await_processed("120 seconds")
    streams.close()
    monkeypatch.undo()
    shutil.rmtree(state_dir / name)
    streams = run(counting(name))
    streams.await_processed("120 seconds")
    assert written(broker, name) == Counter(range(60)) + Counter(range(50, 60))
    assert rows(streams, "counts") == expected_counts(range(60)) + expected_counts(range(50, 60))


def test_without_one_of_the_copies_nothing_is_rebuilt_and_nothing_written_twice(
    broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(*(f"{name}-{suffix}" for suffix in ("in", "out", "counted")))
    produce(broker, name, range(20))
    options = {"processing_guarantee": "exactly_once"}
    streams = run(counting(name), **options)
    streams.await_processed("120 seconds")
    streams.close()
    shutil.rmtree(state_dir / name)
    broker.delete_topics(f"{name}-1-checkpoint")
    twice = f"To begin anew would write all its results to '{name}-out', '{name}-counted' a second time"
    with pytest.raises(StreamsError, match=rf"Topic '{name}-1-checkpoint', with a copy of .* is gone, too. {twice}"):
        run(counting(name), **options)


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_an_application_whose_folder_was_moved_goes_on_where_it_stopped(
    guarantee: str, broker: Broker, name: str, tmp_path: Path
) -> None:
    outputs = [f"{name}-{suffix}" for suffix in ("in", "names", "counts", "closed", "named", "pairs", "seen")]
    broker.create_topics(*outputs, partitions=1)
    broker.produce(f"{name}-names", [{"key": f"k{key}", "value": f"name {key}", "timestamp": 0} for key in range(KEYS)])
    here, there = tmp_path / "here", tmp_path / "there"
    write(broker, name, range(1, 20))  # number 0 has the time of the names
    streams = run_in(here, broker, name, guarantee)
    streams.close()
    here.rename(there)
    write(broker, name, range(20, 40))
    again = run_in(there, broker, name, guarantee)
    check_everything(broker, name, again, range(1, 40))
    again.close()


def run_in(state_dir: Path, broker: Broker, name: str, guarantee: str) -> KafkaStreams:
    """Run everything there is to be processed."""
    config: Any = {"state_dir": state_dir, "processing_guarantee": guarantee}
    streams = KafkaStreams(everything(name), name, broker.bootstrap_servers, **config)
    streams.start()
    streams.await_processed("120 seconds")
    return streams
