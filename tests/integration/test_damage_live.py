"""Files of a stopped application are damaged, or its disk is full: it stops with a sentence, and the way back works."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamskit import KafkaStreams, Serdes, State, StreamsBuilder, Topology
from streamskit.broker.base import Broker
from streamskit.common.errors import StreamsError
from streamskit.runtime.recovery.checkpoint import Checkpoint

pytestmark = [pytest.mark.broker, pytest.mark.spark]

LONG = Serdes.long()

Damage = Callable[[Path], object]


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def empty(file: Path) -> None:
    file.write_bytes(b"")


@dataclass
class Application:
    """A sum in Python (sub-topology 0.2) and a count by Spark (0.1) of the same numbers, in a folder."""

    name: str
    broker: Broker
    state_dir: Path

    @property
    def folder(self) -> Path:
        return self.state_dir / self.name

    def topology(self) -> Topology:
        builder = StreamsBuilder()
        numbers = builder.stream(f"{self.name}-in", value=LONG).group_by_key()
        numbers.reduce(lambda one, other: one + other, "totals")
        numbers.count("counts")
        return builder.build()

    def write(self, count: int) -> None:
        self.broker.produce(f"{self.name}-in", [(f"k{n % 7}", n) for n in range(count)])

    def streams(self) -> KafkaStreams:
        return KafkaStreams(self.topology(), self.name, self.broker.bootstrap_servers, state_dir=self.state_dir)

    def run(self) -> None:
        """Process all there is, and check that each record has counted exactly once."""
        with self.streams() as streams:
            streams.await_processed("120 seconds")
            values = self.broker.consume(f"{self.name}-in", value=LONG).groupby("key")["value"]
            assert dict(streams.store("totals").all()) == values.sum().to_dict()
            assert dict(streams.store("counts").all()) == values.count().to_dict()

    def refusal(self) -> str:
        """Return what is said of an application that cannot go on."""
        with pytest.raises(StreamsError) as refused:
            self.run()
        return str(refused.value)


@pytest.fixture(scope="module")
def stopped(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """An application that has run and is stopped."""
    application = Application("damaged-app", broker, tmp_path_factory.mktemp("stopped"))
    broker.create_topics(f"{application.name}-in", partitions=2)
    application.write(100)
    application.run()
    return application


@pytest.fixture
def copied(stopped: Application, tmp_path: Path) -> Application:
    """The stopped application in a folder of the test's own."""
    shutil.copytree(stopped.folder, tmp_path / stopped.name)
    return Application(stopped.name, stopped.broker, tmp_path)


@pytest.mark.parametrize("damage", [flip, cut, empty])
@pytest.mark.parametrize(
    "pattern",
    [
        "metadata",
        "offsets/[0-9]*",
        "commits/[0-9]*",
        "sources/0/0",
        "state/*/_metadata/**/*",
        "state/*/_stateSchema/**/*",
    ],
)
def test_a_damaged_file_that_spark_would_believe_is_named_before_anything_starts(
    pattern: str, damage: Damage, copied: Application
) -> None:
    files = [file for file in copied.folder.glob(f"*/{pattern}") if file.is_file() and not file.name.startswith(".")]
    file = max(files, key=lambda file: (int(file.name) if file.name.isdecimal() else 0, file))
    damage(file)
    query, _, inside = file.relative_to(copied.folder).as_posix().partition("/")
    said = copied.refusal()
    assert said.startswith(f"'damaged-app' cannot go on: '{inside}' in the checkpoint of sub-topology {query}, "), said
    assert "is damaged" in said
    assert "call clean_up()" in said


@pytest.mark.parametrize("query", ["0.1", "0.2"])
def test_a_damaged_file_of_the_state_stops_the_query_that_needs_it_and_is_named(
    query: str, copied: Application
) -> None:
    for file in copied.folder.glob(f"{query}/state/0/?/[0-9]*.*"):
        flip(file)
    copied.write(100)  # the state is read when there is something to do
    said = copied.refusal()
    assert re.match(
        rf"'damaged-app' cannot go on: 'state/0/\d/\d+\.(changelog|zip)' in .* sub-topology {query}, what", said
    )


def test_state_that_is_gone_is_told_of(copied: Application) -> None:
    shutil.rmtree(copied.folder / "0.2" / "state")
    copied.write(100)
    said = copied.refusal()
    assert said.startswith("'damaged-app' cannot go on: 'state"), said
    assert "of sub-topology 0.2, what the query remembers, " in said


def test_a_damaged_note_of_a_finished_batch_can_be_deleted_and_the_batch_runs_once_more(copied: Application) -> None:
    commits = copied.folder / "0.1" / "commits"
    file = max(commits.glob("[0-9]*"), key=lambda file: int(file.name))
    cut(file)
    assert f"Delete it and .{file.name}.crc beside it: the micro-batch then runs once more" in copied.refusal()
    file.unlink()
    (commits / f".{file.name}.crc").unlink()
    copied.run()


def test_after_clean_up_a_damaged_application_makes_everything_again(
    broker: Broker, name: str, state_dir: Path
) -> None:
    application = Application(name, broker, state_dir)
    broker.create_topics(f"{name}-in", partitions=2)
    application.write(100)
    application.run()
    empty(application.folder / "0.1" / "metadata")
    assert "call clean_up()" in application.refusal()
    application.streams().clean_up()
    application.run()


# A full disk.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of eight megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mounting, capture_output=True).returncode:
        pytest.skip("A disk that is full needs one that is small: only root may mount it, on Linux.")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_stops_the_application_with_a_sentence_and_it_resumes_with_nothing_lost(
    broker: Broker, name: str, small_disk: Path
) -> None:
    application = Application(name, broker, small_disk)
    broker.create_topics(f"{name}-in", partitions=2)
    application.write(100)
    streams = application.streams()
    streams.start()
    streams.await_processed("120 seconds")
    ballast = fill(small_disk)
    application.write(100)
    with pytest.raises(StreamsError, match=rf"^The disk is full that has the folder of '{name}'.* nothing is lost"):
        streams.await_processed("120 seconds")
    assert streams.state is State.ERROR
    streams.close()
    assert application.refusal().startswith(f"The disk is full that has the folder of '{name}', {application.folder}")
    ballast.unlink()
    assert Checkpoint(application.folder / "0.1").has_begun
    application.run()


def fill(disk: Path) -> Path:
    """Fill a disk to the last byte with one file, and return that."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return ballast
