"""`make lab`: jars, broker, and JupyterLab at the course's first notebook.

`python -m streamskit lab [options]`: the options are JupyterLab's own, as in `--no-browser --port=9999`.
"""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from streamskit.broker import find_shared_broker, shared_broker, stop_shared_broker
from streamskit.broker.shared import check_answers
from streamskit.common.errors import SetupError, StreamsKitError
from streamskit.common.ownership import check_writable
from streamskit.common.paths import project_dir, state_dir
from streamskit.environment.archives import archives_are_here
from streamskit.environment.jars import TellProgress, ensure_jars
from streamskit.environment.java import find_java
from streamskit.environment.session import JAVA_OPTIONS_VARIABLE, LESSON_OPTIONS

READING_SECONDS = 20.0
"""How long JupyterLab has the machine to itself at first."""


@dataclass(frozen=True)
class Lab:
    """A lab that is ready to open: JupyterLab's command and environment, and the broker it will find."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    notebook: Path | None
    bootstrap_servers: str
    started_broker: bool


def prepare(arguments: Sequence[str] = (), progress: TellProgress = print) -> Lab:
    """Make everything ready that JupyterLab needs: Java, the jars, the shared broker, Jupyter's settings.

    `arguments` are more options for JupyterLab; `progress` is called with a line of text for each step.
    Raises SetupError or BrokerError.

    >>> prepare(["--no-browser"]).bootstrap_servers  # doctest: +SKIP
    '127.0.0.1:25092'
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise SetupError("JupyterLab is not installed. Run `make lab`, or `pip install -e .[course]`.")
    java = find_java()
    progress(f"Java {java.version} ({java.source})")
    with _timed("Jars", progress):
        ensure_jars(progress)
    running = find_shared_broker()
    if running is None:
        progress("Starting a Kafka broker ...")
    with _timed("Kafka broker", progress):
        broker = running or shared_broker()
        check_answers(broker)
    folder, notebook = project_dir(), first_notebook(project_dir())
    return Lab(
        command=(sys.executable, "-m", "jupyterlab", *arguments),
        environment=_environment(folder, _write_settings(folder, notebook)),
        folder=folder,
        notebook=notebook,
        bootstrap_servers=broker.bootstrap_servers,
        started_broker=running is None,
    )


def first_notebook(folder: Path) -> Path | None:
    """The course's first notebook in a project folder, such as notebooks/01-getting-started.ipynb."""
    return min(folder.glob("notebooks/[0-9][0-9]-*.ipynb"), default=None)


def main(argv: Sequence[str] | None = None) -> int:
    """Open the lab, stay until JupyterLab ends, and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help"} & set(words):
        _say_options()
        return 0
    with _noted() as own:
        return _open(words, own)


def _open(words: Sequence[str], own: FileLock) -> int:
    try:
        lab = prepare(words)
    except StreamsKitError as error:
        print(f"{error}\n`make doctor` looks at the whole machine.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; what has arrived so far is kept.", file=sys.stderr)
        return 130
    print(
        f"Kafka is at {lab.bootstrap_servers}. Opening JupyterLab in {lab.folder}; Ctrl-C ends it.",
        flush=True,
    )
    try:
        return _run(lab)
    finally:
        _leave(lab, own)


def _say_options() -> None:
    """Say what the command does; JupyterLab's own help would come only once a broker has started for it."""
    parser = argparse.ArgumentParser(
        prog="python -m streamskit lab",
        usage="%(prog)s [-h] [JupyterLab's options]",
        description="Open JupyterLab at the first notebook. If no broker runs, one is started, and stopped at the end.",
        epilog="All other options go on to JupyterLab. `python -m jupyterlab --help` lists the rest.",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address instead of opening it")
    parser.add_argument("--port", help="where JupyterLab answers; 8888, or the next free one, if not given")
    parser.print_help()


def _run(lab: Lab) -> int:
    jupyter = subprocess.Popen(lab.command, env=lab.environment, cwd=lab.folder)
    # Ctrl-C reaches JupyterLab by itself, which asks whether it is meant; other signals reach only us.
    signal.signal(signal.SIGINT, lambda *_: None)
    for wish in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(wish, lambda *_: jupyter.terminate())
    threading.Thread(target=_keep_classes, args=(lab,), daemon=True).start()
    return jupyter.wait()


def _keep_classes(lab: Lab) -> None:
    """Make the archives of Java's classes while the learner reads, with what the machine has to spare."""
    time.sleep(READING_SECONDS)
    if not archives_are_here():
        made = subprocess.Popen([sys.executable, "-m", "streamskit", "class-sharing"], env=lab.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        psutil.Process(made.pid).nice(19)
        made.wait()


def _noted() -> FileLock:
    """Return the lock that a lab holds as long as it runs, on a file of its own, by which others know of it."""
    check_writable(state_dir())
    folder = state_dir() / "jupyter" / "labs"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{os.getpid()}.lock", thread_local=False)


def _others_run(own: FileLock) -> bool:
    """Whether another lab of this project runs; the files of those that have ended go."""
    for path in Path(own.lock_file).parent.glob("*.lock"):
        if path != Path(own.lock_file):
            try:
                with FileLock(path, timeout=0, thread_local=False):
                    path.unlink(missing_ok=True)
            except Timeout:
                return True
    return False


def _leave(lab: Lab, own: FileLock) -> None:
    if not lab.started_broker:
        print(f"The Kafka broker at {lab.bootstrap_servers} was running before and goes on.")
        return
    if _others_run(own):
        print(
            f"The Kafka broker at {lab.bootstrap_servers} goes on, as another lab of this project uses it; "
            "`python -m streamskit broker stop` stops it."
        )
        return
    try:
        stop_shared_broker()
        print("The Kafka broker that this lab started is stopped; its data stays for the next time.")
    except StreamsKitError as error:
        print(error, file=sys.stderr)


def _write_settings(folder: Path, notebook: Path | None) -> Path:
    """Write Jupyter's settings into the project's state folder, so that the user's own are never touched."""
    start = f"/lab/tree/{notebook.relative_to(folder).as_posix()}" if notebook else "/lab"
    # Root is allowed, as in a container: the server is on loopback only, and requires a token.
    # What nbgrader adds to JupyterLab is for graders, not for learners.
    tools = dict.fromkeys(("formgrader", "validate_assignment", "assignment_list", "course_list"), False)
    extensions = {f"nbgrader.server_extensions.{name}": on for name, on in tools.items()}
    server = {
        "ServerApp": {
            "root_dir": str(folder),
            "ip": "127.0.0.1",
            "allow_root": True,
            "jpserver_extensions": extensions,
        }
    }
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    settings = state_dir() / "jupyter"
    (settings / "labconfig").mkdir(parents=True, exist_ok=True)
    (settings / "jupyter_server_config.json").write_text(json.dumps(server))
    (settings / "jupyter_lab_config.json").write_text(json.dumps({"LabApp": {"default_url": start}}))
    (settings / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(quiet))
    (settings / "labconfig" / "page_config.json").write_text(
        json.dumps({"disabledExtensions": {"@jupyter/nbgrader": True}})
    )
    return settings


def _environment(folder: Path, settings: Path) -> dict[str, str]:
    before = os.environ.get("JUPYTER_CONFIG_PATH")
    return (
        {JAVA_OPTIONS_VARIABLE: LESSON_OPTIONS}
        | os.environ
        | {
            "STREAMSKIT_PROJECT": str(folder),
            "JUPYTER_CONFIG_PATH": os.pathsep.join([str(settings), before] if before else [str(settings)]),
            # Open tabs are remembered for each project, not mixed with those of the user's other work.
            "JUPYTERLAB_WORKSPACES_DIR": str(settings / "workspaces"),
        }
    )


@contextmanager
def _timed(step: str, progress: TellProgress) -> Iterator[None]:
    started = time.monotonic()
    yield
    progress(f"{step}: ready in {time.monotonic() - started:.1f} s")
