"""Processes and machines are told apart, whatever the clock and the host name say."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from streamskit.broker.java_process import BrokerLock
from streamskit.environment import identity
from streamskit.environment.identity import machine_id, process_start
from streamskit.runtime.sole_runner import Claim


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    machine_id.cache_clear()
    yield
    machine_id.cache_clear()


@pytest.fixture
def without_proc(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> Path:
    """A system that has no /proc, such as macOS."""
    monkeypatch.setattr(identity, "BOOT", empty_cache / "nothing")
    return empty_cache


def test_a_process_is_itself_and_one_that_has_ended_is_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mine, its = process_start(os.getpid()), process_start(child.pid)
    time.sleep(0.02)
    assert (process_start(os.getpid()), process_start(child.pid)) == (mine, its)
    assert mine != its
    child.kill()
    child.wait()
    assert process_start(child.pid) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="psutil reads the clock on Linux only")
def test_a_clock_that_is_set_makes_no_living_process_dead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    claim = Claim.of_this_process(tmp_path)
    lock = BrokerLock(os.getpid(), process_start(os.getpid()) or "", "127.0.0.1:9", "embedded", "x")
    booted, began = psutil.boot_time(), psutil.Process().create_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + 3600)
    assert psutil.Process().create_time() == pytest.approx(began + 3600, abs=1)  # what is not to be trusted
    assert not claim.is_dead
    assert lock.process() is not None


@pytest.mark.skipif(not identity.BOOT.exists(), reason="there is no /proc here")
def test_a_program_may_have_any_name(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    child = subprocess.Popen([odd, "60"])
    ticks, boot = (process_start(child.pid) or "").split(" of ")
    child.kill()
    child.wait()
    assert int(ticks) / os.sysconf("SC_CLK_TCK") == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)
    assert boot == identity.BOOT.read_text().strip()


def test_machines_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not identity.BOOT.exists():
        pytest.skip("there is no /proc here")
    monkeypatch.setattr(socket, "gethostname", lambda: "raspberrypi")
    here = Claim.of_this_process(tmp_path)
    assert "on 'raspberrypi'" in str(here)
    found = {machine_id()}
    copied, space = tmp_path / "boot_id", tmp_path / "pid"
    copied.write_text("another start of a copied disk")
    space.symlink_to("pid:[1]")
    for name, value in (("BOOT", copied), ("PROCESSES", space)):
        with monkeypatch.context() as patched:
            patched.setattr(identity, name, value)
            machine_id.cache_clear()
            found.add(machine_id())
            there = Claim.of_this_process(tmp_path)
        machine_id.cache_clear()
        # The number of its process is free here, and that says nothing.
        assert not Claim(**{**vars(there), "pid": 2**22 + os.getpid()}).is_dead
    assert len(found) == 3
    assert Claim(**{**vars(here), "pid": 2**22 + os.getpid()}).is_dead


def test_elsewhere_a_machine_has_a_random_id_that_stays(without_proc: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: identity._kept_id(), range(50)))
    assert len(ids) == 1
    first = machine_id()
    machine_id.cache_clear()
    assert machine_id() == first
    assert [each.name for each in without_proc.iterdir()] == ["machine-id"]
    (without_proc / "machine-id").write_text("another machine's")
    machine_id.cache_clear()
    assert machine_id() != first


def test_where_no_id_can_be_kept_this_process_is_a_machine_of_its_own(
    without_proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_proc.write_text("a file where the folder should be")
    first = machine_id()
    assert machine_id() == first
    machine_id.cache_clear()
    assert machine_id() != first


def test_without_proc_a_process_is_known_by_the_clock_of_the_system(without_proc: Path) -> None:
    assert process_start(os.getpid()) == f"{psutil.Process().create_time():.2f}"
    assert process_start(2**22 + os.getpid()) is None
