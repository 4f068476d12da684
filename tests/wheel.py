"""`make wheel`: builds the wheel, and tries it in an environment that has nothing but what it asks for."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]

PROGRAM = """
import streamskit
from streamskit import StreamsBuilder, TopologyTestDriver

builder = StreamsBuilder()
builder.stream("words").group_by_key().count("counts").to_stream().to("counted")
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("words").pipe_input("k", "one", timestamp=0)
    print(driver.create_output_topic("counted").read_record().value)
print(streamskit.__version__, streamskit.__file__)
"""
"""What a new user might run first: a topology in the test driver."""

HIDDEN = {"PYTHONPATH", "STREAMSKIT_PROJECT"}
"""What would lead the environment's Python back to this project."""

MINUTES = 20
"""How long an installation may take on a slow line."""


def build(folder: Path) -> Path:
    """Build the wheel into a folder and return its path."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    return next(folder.glob("*.whl"))


def install(wheel: Path, folder: Path) -> Path:
    """Make an environment, install the wheel in the versions of constraints.txt, and return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    options = ["-q", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
    run(str(python), "-m", "pip", "install", *options, str(wheel))
    return python


def try_out(python: Path, project: Path) -> list[str]:
    """Run the doctor and a program in an empty project, with an environment's Python; return what the program says.

    Raises:
        SystemExit: the doctor is not content, or the program has failed; what it said is above.
    """
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    run(str(python), "-m", "streamskit", "doctor", cwd=project, env=environment)
    return run(str(python), "-c", PROGRAM, cwd=project, env=environment, stdout=subprocess.PIPE).splitlines()


def run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None, stdout: int | None = None) -> str:
    """Run a program and return what it said, if that was asked for."""
    done = subprocess.run(command, cwd=cwd, env=env, stdout=stdout, text=True, timeout=MINUTES * 60)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:3])} has failed: what is wrong is named above.")
    return done.stdout or ""


if __name__ == "__main__":
    made = build(ROOT / "dist")
    with tempfile.TemporaryDirectory() as place:
        project = Path(place) / "project"
        project.mkdir()
        counted, where = try_out(install(made, Path(place) / "environment"), project)
        if counted != "1" or place not in where:
            raise SystemExit(f"The program counted {counted} and not 1, with streamskit {where}.")
    print(f"{made.name} ({made.stat().st_size // 1024} KB) runs in an environment that has nothing else.")
