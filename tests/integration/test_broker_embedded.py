"""The life of an embedded broker: start, faults, restart, stop, and starts that fail."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from streamskit.broker import EmbeddedBroker
from streamskit.broker.java_process import explain
from streamskit.common.errors import BrokerError, SetupError
from streamskit.environment.processes import alive, wait_until

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that tests may kill, pause and restart; it runs at the start of each."""
    with EmbeddedBroker(tmp_path_factory.mktemp("lasting")) as broker:
        yield broker


@pytest.fixture
def broker(lasting: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    yield lasting
    if not lasting.is_running:
        lasting.start()


def pid_of(broker: EmbeddedBroker) -> int:
    assert broker.process is not None
    return broker.process.pid


def test_a_killed_broker_comes_back_with_its_port_and_records(broker: EmbeddedBroker, name: str) -> None:
    broker.create_topics(name)
    broker.produce(name, [("k", i) for i in range(1000)])
    address, pid = broker.bootstrap_servers, pid_of(broker)
    broker.kill()
    assert not broker.is_running
    assert not psutil.pid_exists(pid)
    broker.restart()
    assert broker.bootstrap_servers == address
    assert pid_of(broker) != pid
    assert len(broker.consume(name)) == 1000


def test_a_killed_broker_is_named_by_every_request(broker: EmbeddedBroker) -> None:
    broker.kill()
    for request in (broker.topics, lambda: broker.consume("t"), lambda: broker.produce("t", [("k", "v")])):
        with pytest.raises(BrokerError, match=rf"No Kafka broker answers at {broker.bootstrap_servers}"):
            request()


def test_records_on_their_way_survive_a_restart_without_duplicates(broker: EmbeddedBroker, name: str) -> None:
    broker.create_topics(name, partitions=2)
    back = threading.Thread(target=broker.restart)

    def records() -> Iterator[tuple[str, int]]:
        for i in range(20_000):
            if i == 10_000:
                broker.kill()
                back.start()
            yield f"k{i}", i

    assert broker.produce(name, records()) == 20_000
    back.join(120)
    frame = broker.consume(name)
    assert len(frame) == frame["key"].nunique() == 20_000


def test_a_paused_broker_answers_again_when_it_is_resumed(broker: EmbeddedBroker, name: str) -> None:
    broker.create_topics(name)
    broker.pause()
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(broker.topics)
        with pytest.raises(TimeoutError):
            asking.result(timeout=1)
        assert broker.is_running
        broker.resume()
        assert name in asking.result(timeout=30)


@pytest.fixture(scope="module")
def soon_missed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that its controller shuts out for a moment after two seconds without a sign of life."""
    settings = {"broker.session.timeout.ms": "2000"}
    with EmbeddedBroker(tmp_path_factory.mktemp("missed"), settings=settings) as broker:
        yield broker


def test_a_broker_that_stood_still_for_longer_than_its_session_is_asked_until_it_leads_its_partitions_again(
    soon_missed: EmbeddedBroker, name: str
) -> None:
    soon_missed.create_topics(name)
    soon_missed.pause()
    time.sleep(4)
    soon_missed.resume()
    assert {tuple(soon_missed.end_offsets(name).items()) for _ in range(25)} == {((0, 0),)}


def test_a_topic_is_made_when_a_broker_that_stood_still_is_let_in_again(soon_missed: EmbeddedBroker, name: str) -> None:
    soon_missed.pause()
    time.sleep(4)
    soon_missed.resume()
    soon_missed.create_topics(name)
    assert soon_missed.end_offsets(name) == {0: 0}


def test_a_machine_that_stands_still_for_some_seconds_does_not_have_its_broker_shut_out(
    broker: EmbeddedBroker, name: str
) -> None:
    broker.stop()
    broker.start()  # after a crash it is missed sooner
    broker.create_topics(name)
    broker.pause()
    time.sleep(5)
    broker.resume()
    broker.create_topics(f"{name}-later")
    assert "Fencing broker" not in (broker.data_dir / "server.log").read_text()


def test_a_paused_broker_can_be_shut_down_in_an_orderly_way(broker: EmbeddedBroker) -> None:
    broker.pause()
    broker.stop()
    assert not broker.is_running
    assert "shut down completed" in (broker.data_dir / "server.log").read_text()


def test_a_stopped_broker_starts_again_on_its_data(broker: EmbeddedBroker, name: str) -> None:
    broker.create_topics(name)
    address = broker.bootstrap_servers
    broker.stop()
    broker.stop()
    broker.start()
    broker.start()
    assert broker.bootstrap_servers == address
    assert name in broker.topics()


def test_only_loopback_is_listened_on(broker: EmbeddedBroker) -> None:
    assert broker.process is not None
    listening = {c.laddr.ip for c in broker.process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_two_brokers_run_side_by_side(broker: EmbeddedBroker, name: str) -> None:
    broker.create_topics(name)
    with EmbeddedBroker() as other:
        assert other.bootstrap_servers != broker.bootstrap_servers
        assert name not in other.topics()


def test_a_data_folder_in_use_is_refused(broker: EmbeddedBroker) -> None:
    with pytest.raises(BrokerError, match=f"in use by another broker, process {pid_of(broker)}"):
        EmbeddedBroker(broker.data_dir).start()
    assert broker.topics() is not None


def test_a_data_folder_in_use_is_refused_even_without_its_lock_file(broker: EmbeddedBroker) -> None:
    lock = broker.data_dir / "broker.json"
    text = lock.read_text()
    lock.unlink()
    try:
        with pytest.raises(BrokerError, match=f"in use by process {pid_of(broker)}.*lock file is lost"):
            EmbeddedBroker(broker.data_dir).start()
    finally:
        lock.write_text(text)


def test_another_object_on_the_same_folder_cannot_stop_the_broker(broker: EmbeddedBroker) -> None:
    EmbeddedBroker(broker.data_dir).stop()
    assert broker.is_running
    assert (broker.data_dir / "broker.json").exists()


def test_the_logs_stay_in_the_data_folder_and_say_what_happened(broker: EmbeddedBroker) -> None:
    assert "Kafka Server started" in (broker.data_dir / "server.log").read_text()


def test_temporary_data_is_removed_after_the_with_block() -> None:
    with EmbeddedBroker() as broker:
        process, folder = broker.process, broker.data_dir
        assert folder.is_dir()
    assert process is not None
    assert not alive(process)
    assert not folder.exists()


PROGRAM = """
import sys
from streamskit.broker import EmbeddedBroker
broker = EmbeddedBroker(sys.argv[1] or None, detached=sys.argv[2] == "detached")
broker.start()
print(broker.process.pid, broker.data_dir, flush=True)
if sys.argv[2] == "waits":
    sys.stdin.read()
"""


def run_program(folder: Path, kind: str) -> int:
    command = [sys.executable, "-c", PROGRAM, str(folder), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout.splitlines()[-1].split()[0])


def test_a_broker_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    pid = run_program(tmp_path, "scoped")
    wait_until(lambda: not psutil.pid_exists(pid), "the end of the broker's process", 60)


def test_a_broker_ends_with_a_program_that_is_killed_and_its_temporary_data_too() -> None:
    command = [sys.executable, "-c", PROGRAM, "", "waits"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        pid, _, folder = program.stdout.readline().strip().partition(" ")
        java = psutil.Process(int(pid))
        assert Path(folder).is_dir()
        program.kill()
    wait_until(lambda: not alive(java), "the end of the broker's process", 60)
    wait_until(lambda: not Path(folder).exists(), "the end of its data", 60)


def test_a_detached_broker_outlives_its_program_and_is_found_again(tmp_path: Path) -> None:
    pid = run_program(tmp_path, "detached")
    found = EmbeddedBroker(tmp_path, detached=True)
    try:
        assert pid_of(found) == pid
        assert found.topics() == {}
    finally:
        found.stop()
    assert not found.is_running


def test_an_interrupt_of_the_terminal_does_not_reach_the_broker(broker: EmbeddedBroker) -> None:
    assert os.getpgid(pid_of(broker)) != os.getpgid(0)


def test_a_taken_port_is_told_before_java_starts(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SetupError, match=f"Port {port} of 127.0.0.1 is taken"):
            EmbeddedBroker(tmp_path, port).start()


def test_a_port_that_is_taken_while_java_starts_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        monkeypatch.setattr("streamskit.broker.settings.is_free", lambda port: True)
        with pytest.raises(SetupError, match=f"Port {port} of 127.0.0.1 is taken"):
            EmbeddedBroker(tmp_path, port).start()


def test_a_broker_moves_to_another_port_when_its_old_one_is_taken(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        address = broker.bootstrap_servers
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(address.rpartition(":")[2])))
        other.listen()
        with EmbeddedBroker(tmp_path) as broker:
            assert broker.bootstrap_servers != address
            assert broker.topics() == {}


def test_a_broker_runs_in_a_folder_whose_name_is_not_ascii(tmp_path: Path) -> None:
    folder = tmp_path / "jörg" / "データ"
    for _ in range(2):
        with EmbeddedBroker(folder, port=0) as broker:
            broker.create_topics("trades")
            broker.produce("trades", [("KO", "up")])
            address = broker.bootstrap_servers
            with pytest.raises(BrokerError, match="in use by another broker"):
                EmbeddedBroker(folder).start()
    assert len(list(folder.glob("kafka/trades-0"))) == 1
    with EmbeddedBroker(folder) as broker:
        assert broker.bootstrap_servers == address
        assert len(broker.consume("trades")) == 2


def test_a_damaged_data_folder_is_told_in_kafkas_words(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path):
        pass
    about = tmp_path / "kafka" / "meta.properties"
    about.write_text(about.read_text().replace("node.id=1", "node.id=7"))
    with pytest.raises(BrokerError, match=r"Stored node id 7 doesn't match.*remove it and start again"):
        EmbeddedBroker(tmp_path).start()


def test_a_wrong_setting_is_told_in_kafkas_words() -> None:
    with pytest.raises(BrokerError, match=r"refuses one of its settings: .*log\.segment\.bytes"):
        EmbeddedBroker(settings={"log.segment.bytes": "many"}).start()


def test_a_java_that_cannot_start_is_told_in_its_own_words() -> None:
    with pytest.raises(SetupError, match=r"Java does not start: .*heap"):
        EmbeddedBroker(heap="1m").start()


def test_a_broker_whose_java_dies_at_the_start_is_told_at_once(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)

    def kill_java() -> None:
        lock = tmp_path / "broker.json"
        wait_until(lock.exists, "the lock of the other program", 60)
        os.kill(json.loads(lock.read_text())["pid"], signal.SIGKILL)

    killing = threading.Thread(target=kill_java)
    killing.start()
    with pytest.raises(BrokerError, match="could not start"):
        broker.start()
    killing.join(60)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(BrokerError, match="files that don't belong to a broker"):
        EmbeddedBroker(tmp_path).start()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_disk_that_fills_up_is_told() -> None:
    told = explain(Path("/data"), "java.io.IOException: No space left on device")
    assert isinstance(told, SetupError)
    assert "The disk that holds /data is full" in str(told)


def test_a_full_disk_is_told_before_java_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamskit.broker.java_process.LEAST_FREE_BYTES", 2**62)
    with pytest.raises(SetupError, match=r"MB left; a broker needs at least"):
        EmbeddedBroker(tmp_path).start()


def test_a_detached_broker_needs_a_folder() -> None:
    with pytest.raises(BrokerError, match="needs a data_dir"):
        EmbeddedBroker(detached=True)


def test_a_broker_that_never_started_has_no_address(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    with pytest.raises(BrokerError, match="before its first start"):
        broker.topics()
    with pytest.raises(BrokerError, match="cannot be paused"):
        broker.pause()


IN_A_FOLDER = """
import sys
from pathlib import Path

from streamskit.broker import EmbeddedBroker
from streamskit.environment.session import spark_session

folder = Path(sys.argv[1])
with EmbeddedBroker(folder / "broker") as broker:
    print(broker.is_running)
spark_session().range(3).write.parquet(f"file://{folder / 'rows'}")
print(len(list((folder / "rows").glob("*.parquet"))) > 0)
"""


@pytest.mark.spark
@pytest.mark.parametrize("locale", ["C", "xx_XX.UTF-8"])
def test_a_broker_and_spark_start_in_a_folder_with_an_accent_whatever_the_locale(tmp_path: Path, locale: str) -> None:
    folder = tmp_path / "Übung é"
    folder.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", IN_A_FOLDER, str(folder)],
        env={
            **os.environ,
            "LC_ALL": locale,
            "STREAMSKIT_PROJECT": str(folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.stdout.split() == ["True", "True"], ran.stderr
