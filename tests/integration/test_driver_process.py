"""An application in a process of its own: it tells why it does not start, and ends with the program that started it."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from streamskit import Serdes, StreamsBuilder, Topology
from streamskit.broker.base import Broker
from streamskit.common.errors import StreamsError
from streamskit.environment.processes import alive, name_of, wait_until
from streamskit.faults import Driver

pytestmark = [pytest.mark.broker, pytest.mark.spark]

HOLDS = """
import sys, time
from streamskit.faults import Driver
from tests.integration.test_driver_process import copies
servers, name, state_dir = sys.argv[1:]
driver = Driver(copies, name, servers, state_dir=state_dir)
driver.start()
print(driver.pid, flush=True)
time.sleep(100)
"""


def copies() -> Topology:
    builder = StreamsBuilder()
    builder.stream("driver-in", value=Serdes.long()).map_values(lambda v: v + 1).to("driver-out", value=Serdes.long())
    return builder.build()


def test_a_driver_tells_why_it_does_not_start(broker: Broker, name: str, state_dir: Path) -> None:
    def missing() -> Topology:
        builder = StreamsBuilder()
        builder.stream(f"{name}-in").to(f"{name}-out")
        return builder.build()

    driver = Driver(missing, name, broker.bootstrap_servers, state_dir=state_dir)
    with pytest.raises(StreamsError, match=f"needs topics that do not exist: '{name}-in', '{name}-out'"):
        driver.start()
    assert driver.state == "NOT_RUNNING"
    with pytest.raises(StreamsError, match="does not run"):
        driver.await_processed()


def test_a_driver_and_its_java_end_with_a_program_that_is_killed(broker: Broker, name: str, state_dir: Path) -> None:
    broker.create_topics("driver-in", "driver-out")
    command = [sys.executable, "-c", HOLDS, broker.bootstrap_servers, name, str(state_dir)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    driver = psutil.Process(int(program.stdout.readline()))
    family = [driver, *driver.children(recursive=True)]
    assert any("java" in name_of(process) for process in family)
    program.kill()
    program.wait()
    wait_until(lambda: not any(alive(process) for process in family), "the end of the driver and all its processes")
