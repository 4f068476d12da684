"""An application whose folder is gone, on a live broker: rebuilt from the copies of its checkpoints, or refused."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import KafkaStreams, Serdes, StreamsBuilder, Topology
from streamskit.broker import Broker
from streamskit.common.errors import StreamsError
from streamskit.runtime.checkpoint_copies import CheckpointCopies
from streamskit.runtime.recovery.rebuilding import Rebuilding
from streamskit.testing import wait_until
from tests.integration.conftest import Run
from tests.integration.counting_program import counting, expected_counts, produce, written
from tests.integration.program_of_everything import check_everything, everything, prepare, read, rows, run_in, write

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def test_what_was_lost_with_its_folder_is_rebuilt_and_goes_on_exactly_once_for_every_kind_of_operator(
    broker: Broker,
    name: str,
    run: Run,
    state_dir: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepare(broker, name)
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


@pytest.mark.soak
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


@pytest.mark.soak
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
    wait_until(lambda: copied(streams) == [50, 50], "a copy of its checkpoints", 60)
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


def test_a_sub_topology_that_the_program_did_not_have_before_begins_while_the_others_are_rebuilt(
    broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(*(f"{name}-{suffix}" for suffix in ("in", "out", "more", "out-too")))

    def program(has_more: bool) -> Topology:
        builder = StreamsBuilder()
        for source, sink in [("in", "out"), ("more", "out-too")][: 1 + has_more]:
            joined = builder.stream(f"{name}-{source}").group_by_key().reduce(lambda one, other: one + other)
            joined.to_stream().to(f"{name}-{sink}")
        return builder.build()

    options = {"processing_guarantee": "exactly_once"}
    broker.produce(f"{name}-in", [("k", "a")])
    broker.produce(f"{name}-more", [("k", "1")])
    streams = run(program(has_more=False), **options)
    streams.await_processed("120 seconds")
    streams.close()
    shutil.rmtree(state_dir / name)
    broker.produce(f"{name}-in", [("k", "b")])
    run(program(has_more=True), **options).await_processed("120 seconds")
    assert list(broker.consume(f"{name}-out")["value"]) == ["a", "ab"]
    assert list(broker.consume(f"{name}-out-too")["value"]) == ["1"]


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_an_application_whose_folder_was_moved_goes_on_where_it_stopped(
    guarantee: str, broker: Broker, name: str, tmp_path: Path
) -> None:
    prepare(broker, name)
    here, there = tmp_path / "here", tmp_path / "there"
    write(broker, name, range(1, 20))  # number 0 has the time of the names
    streams = run_in(here, broker, name, guarantee)
    streams.close()
    here.rename(there)
    write(broker, name, range(20, 40))
    again = run_in(there, broker, name, guarantee)
    check_everything(broker, name, again, range(1, 40))
    again.close()
