"""A Docker engine for the tests: the one that is there, else a private one of their own."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ENGINE_SECONDS = 60.0
BRIDGE = Path("/sys/class/net/docker0")


class NoEngineError(Exception):
    """There is no Docker engine and none can be started; the message says why."""


@contextlib.contextmanager
def docker_engine(folder: Path) -> Iterator[str | None]:
    """Give the address of an engine; None means that Docker's usual settings lead to one.

    A private engine keeps its socket, data and log in `folder`, leaves the firewall alone, and ends with the
    block.
    """
    if engine_answers(None):
        yield None
        return
    engine = start_private_engine(folder)
    try:
        yield address_of(folder)
    finally:
        stop_private_engine(engine, folder)


def engine_answers(address: str | None) -> bool:
    """Whether an engine answers at the address, or where Docker's usual settings lead."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    environment = {**os.environ, "DOCKER_HOST": address} if address else None
    try:
        return subprocess.run([docker, "info"], env=environment, capture_output=True, timeout=30).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def address_of(folder: Path) -> str:
    """The address of the private engine of a folder."""
    return f"unix://{folder / 'docker.sock'}"


def start_private_engine(folder: Path) -> psutil.Process:
    """Start dockerd and wait until it answers. Raises NoEngineError if it cannot run here."""
    dockerd = shutil.which("dockerd") or shutil.which("dockerd", path="/usr/sbin:/sbin")
    if dockerd is None or shutil.which("docker") is None:
        raise NoEngineError("No Docker engine answers, and Docker (Debian: docker.io) is not installed to start one.")
    if os.name != "posix" or os.geteuid() != 0:
        raise NoEngineError("No Docker engine answers, and starting a private one needs root.")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "dockerd.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [
                dockerd,
                f"--host={address_of(folder)}",
                f"--data-root={folder / 'data'}",
                f"--exec-root={folder / 'exec'}",
                f"--pidfile={folder / 'pid'}",
                *("--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + ENGINE_SECONDS
    while not engine_answers(address_of(folder)):
        if child.poll() is not None or time.monotonic() > deadline:
            child.kill()
            child.wait()
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise NoEngineError(f"No Docker engine answers, and a private one could not be started: {last}")
        time.sleep(0.2)
    return psutil.Process(child.pid)


def stop_private_engine(engine: psutil.Process, folder: Path) -> None:
    """Remove all containers of a private engine and end it; leave no mount and no bridge behind."""
    environment = {**os.environ, "DOCKER_HOST": address_of(folder)}
    listed = subprocess.run(["docker", "ps", "-aq"], env=environment, capture_output=True, text=True)
    if containers := listed.stdout.split():
        subprocess.run(["docker", "rm", "--force", *containers], env=environment, capture_output=True)
    engine.terminate()
    try:
        engine.wait(timeout=30)
    except psutil.TimeoutExpired:
        engine.kill()
        engine.wait(timeout=30)
    for mount in psutil.disk_partitions(all=True):
        if Path(mount.mountpoint).is_relative_to(folder):
            subprocess.run(["umount", mount.mountpoint], capture_output=True)
    if BRIDGE.exists():  # ours: no other engine answered before
        subprocess.run(["ip", "link", "delete", BRIDGE.name], capture_output=True)
