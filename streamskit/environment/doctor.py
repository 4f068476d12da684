"""The doctor: looks at everything streamskit needs on this machine and says what is wrong and what to do."""

import importlib.metadata
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from streamskit.api.client_settings import ADDRESSES, are_addresses, host_and_port
from streamskit.common.errors import SetupError
from streamskit.common.ownership import check_own
from streamskit.common.paths import cache_dir, project_dir
from streamskit.environment import jars
from streamskit.environment.diagnosis import Check, Diagnosis, Status
from streamskit.environment.identity import process_start
from streamskit.environment.java import find_java
from streamskit.environment.processes import listened_ports

OLDEST_PYTHON = (3, 11)
JUPYTER_PORT = 8888
GIGABYTE = 1024**3


def doctor() -> Diagnosis:
    """Examine this machine: its system, Python, packages, Java, jars, broker, ports, Docker, memory, disk.

    Never raises; each check says in a sentence what is wrong and what to do.

    >>> doctor().healthy  # doctest: +SKIP
    True
    """
    return Diagnosis(tuple(_examine(name, check) for name, check in CHECKS.items()))


def _examine(name: str, check: Callable[[], tuple[Status, str, str]]) -> Check:
    try:
        return Check(name, *check())
    except SetupError as error:
        says, _, do = str(error).partition(". ")
        return Check(name, "problem", says.rstrip(".") + ".", do)
    except Exception as error:
        return Check(name, "problem", f"It could not be examined: {type(error).__name__}: {error}", "Please report it.")


def _system() -> tuple[Status, str, str]:
    if sys.platform == "win32":
        do = (
            "Install WSL 2 (`wsl --install` in a PowerShell of the administrator), open Ubuntu, and run `make lab` "
            "there, in a folder below your Linux home; docs/workshop.md says it step by step."
        )
        return "problem", "This is Windows. Spark and the broker run in its Linux, WSL 2, and not beside it.", do
    kernel = platform.release()
    if "microsoft" not in kernel.lower():
        return "ok", f"{platform.system()} {kernel} on {platform.machine()}.", ""
    if "wsl2" not in kernel.lower() and kernel.endswith("-Microsoft"):
        do = "Run `wsl --set-version <distribution> 2` in PowerShell; `wsl --list --verbose` names the distribution."
        return "problem", f"This is WSL 1 (kernel {kernel}), which is too slow and lacks what Spark needs.", do
    if re.match(r"/mnt/[a-z]/", f"{project_dir()}/"):
        do = "Move the project below your Linux home, as in ~/streamskit."
        return "warning", f"{project_dir()} is on a disk of Windows, where every file is slow to reach from WSL.", do
    return "ok", f"WSL 2 (kernel {kernel}).", ""


def _python() -> tuple[Status, str, str]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return (
            "problem",
            f"Python {version} is too old.",
            "Install Python 3.11 to 3.14, remove the folder .venv and run `make lab`.",
        )
    return "ok", f"Python {version} in {sys.prefix}.", ""


def _packages() -> tuple[Status, str, str]:
    try:
        needed = [Requirement(text) for text in importlib.metadata.requires("streamskit") or []]
    except importlib.metadata.PackageNotFoundError:
        do = "Run `make lab`, or `pip install -c constraints.txt -e .` in the project's folder."
        return (
            "warning",
            "streamskit runs from its folder and is not installed, so versions are not known.",
            do,
        )
    wrong = [fault for requirement in needed if (fault := _fault(requirement))]
    if wrong:
        return (
            "problem",
            "; ".join(wrong) + ".",
            "Remove the folder .venv and run `make lab`, which installs the right ones.",
        )
    return "ok", f"PySpark {importlib.metadata.version('pyspark')}, and all other packages fit.", ""


def _fault(requirement: Requirement) -> str | None:
    wanted = f"{requirement.name}{requirement.specifier}"
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        optional = requirement.marker and not requirement.marker.evaluate({"extra": ""})
        return None if optional else f"{wanted} is not installed"
    fits = requirement.specifier.contains(version, prereleases=True)
    return None if fits else f"{requirement.name} {version} is installed, and streamskit needs {wanted}"


def _java() -> tuple[Status, str, str]:
    java = find_java()
    says = f"Java {java.version} in {java.home} ({java.source})."
    if java.skipped:
        return (
            "warning",
            f"{'; '.join(java.skipped)}; streamskit uses Java {java.version} in {java.home} instead.",
            "",
        )
    return "ok", says, ""


def _spark() -> tuple[Status, str, str]:
    shipped = jars.pyspark_jars().parent
    named = os.environ.get("SPARK_HOME")
    if named and Path(named).resolve() != shipped.resolve():
        says = f"SPARK_HOME points to {named}, so that Spark would run and not the one of this PySpark."
        return "problem", says, "Unset SPARK_HOME and start the notebook's kernel again."
    return "ok", f"Spark {importlib.metadata.version('pyspark')} in {shipped}.", ""


def _jars() -> tuple[Status, str, str]:
    if jars.jars_are_here():
        jars.check_jars()
        return "ok", f"Kafka and its Spark connector are in {cache_dir() / 'jars'}.", ""
    jars.ask_repository()
    return (
        "warning",
        "The jars (53 MB) are not fetched yet; the network is there.",
        "`make lab` fetches them.",
    )


def _broker() -> tuple[Status, str, str]:
    if outside := os.environ.get("STREAMSKIT_BOOTSTRAP_SERVERS"):
        if not are_addresses(outside):
            return "problem", f"STREAMSKIT_BOOTSTRAP_SERVERS is {outside!r}.", f"Give {ADDRESSES}."
        if any(_answers(address) for address in outside.split(",")):
            says = f"STREAMSKIT_BOOTSTRAP_SERVERS names {outside}, where something listens."
            return "ok", f"{says} `python -m streamskit doctor` tries whether it lets you in.", ""
        do = "Start it, or unset the variable for a broker of the project's own."
        return "problem", f"STREAMSKIT_BOOTSTRAP_SERVERS names {outside}, and no broker answers there.", do
    lock = project_dir() / ".streamskit" / "broker.json"
    if "," in str(lock):
        says = f"{project_dir()} has a comma in its path, at which Kafka would cut the broker's folder in two."
        return "problem", says, "Move the project to a folder without one."
    check_own(lock.parent, lock)
    if not lock.is_file():
        return "ok", "No broker runs yet; the first notebook starts one.", ""
    try:
        found = json.loads(lock.read_text())
        pid, started, address = int(found["pid"]), str(found["started"]), str(found["bootstrap_servers"])
    except (ValueError, KeyError, TypeError):
        return "warning", f"The broker's lock file {lock} is damaged.", "Nothing: the next start replaces it."
    if not _lives(pid, started):
        says = f"The broker that {lock} names (process {pid}) has ended without removing its lock."
        return "warning", says, "Nothing: the next start takes over its data."
    if not _answers(address):
        do = "Run `python -m streamskit broker stop`, then start the notebook's kernel again."
        return "problem", f"The broker (process {pid}) is alive and does not answer at {address}.", do
    return "ok", f"It runs at {address} (process {pid}).", ""


def _lives(pid: int, started: str) -> bool:
    try:
        return bool(process_start(pid) == started and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _answers(address: str) -> bool:
    try:
        with socket.create_connection(host_and_port(address), timeout=3):
            return True
    except (OSError, ValueError):
        return False


def _ports() -> tuple[Status, str, str]:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            pass
    except OSError as error:
        do = "Look for a firewall or a security tool that forbids programs to listen on 127.0.0.1."
        return "problem", f"No port of 127.0.0.1 can be opened ({error.strerror}).", do
    if not _answers(f"127.0.0.1:{JUPYTER_PORT}"):
        return "ok", f"Ports of 127.0.0.1 can be opened; {JUPYTER_PORT} is free for JupyterLab.", ""
    if any(JUPYTER_PORT in listened_ports(parent) for parent in psutil.Process().parents()):
        return "ok", f"Ports of 127.0.0.1 can be opened; {JUPYTER_PORT} is that of the JupyterLab you are in.", ""
    do = "Nothing, or choose one: `make lab ARGS=--port=9999`."
    return "warning", f"Port {JUPYTER_PORT} is taken; JupyterLab will use the next free one.", do


def _docker() -> tuple[Status, str, str]:
    if shutil.which("docker") is None:
        return "ok", "Not installed, and not needed: only the broker in a container uses it.", ""
    command = ["docker", "info", "--format", "{{.ServerVersion}}"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return (
            "warning",
            "The Docker engine does not answer.",
            "Restart it, or go on without: it is optional.",
        )
    if said.returncode != 0 or not said.stdout.strip():
        do = "Start it if you want the broker in a container, or go on without: it is optional."
        return "warning", "Docker is installed, and its engine does not run or refuses you.", do
    return "ok", f"Engine {said.stdout.strip()}.", ""


def _memory() -> tuple[Status, str, str]:
    free, total = (size / GIGABYTE for size in psutil.virtual_memory()[1::-1])
    says = f"{free:.1f} GB of {total:.1f} GB are free."
    if free < 1:
        return (
            "problem",
            f"{says} Spark and Kafka need about 2 GB.",
            "Close other programs, or other notebooks' kernels.",
        )
    if free < 2.5:
        return "warning", f"{says} That is tight.", "Close other programs if a notebook becomes slow."
    return "ok", says, ""


def _disk() -> tuple[Status, str, str]:
    roomy = []
    for folder in dict.fromkeys((project_dir(), cache_dir())):
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
        free = shutil.disk_usage(nearest).free / GIGABYTE
        if free < 0.5:
            do = "Free some space, or set STREAMSKIT_CACHE to a folder on another disk."
            return "problem", f"The disk of {folder} is full ({free * 1024:.0f} MB left).", do
        if not os.access(nearest, os.W_OK):
            do = "Work in a folder of your own; STREAMSKIT_CACHE names another place for the cache."
            return "problem", f"{nearest} cannot be written.", do
        roomy.append(f"{free:.0f} GB free for {folder}")
    return "ok", "; ".join(roomy) + ".", ""


CHECKS: dict[str, Callable[[], tuple[Status, str, str]]] = {
    "System": _system,
    "Python": _python,
    "Packages": _packages,
    "Java": _java,
    "Spark": _spark,
    "Jars": _jars,
    "Broker": _broker,
    "Ports": _ports,
    "Docker": _docker,
    "Memory": _memory,
    "Disk": _disk,
}
